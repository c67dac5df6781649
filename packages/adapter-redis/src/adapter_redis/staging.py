"""For harnesses: what happens to a real server, staged over a client of an administrator."""

from typing import Any
from uuid import UUID

from adapter_core import TERMS_VERSION

from .connections import ServerTransport
from .index import Space
from .settings import RedisSettings
from .transport import Call, Script

_SEARCHES = (b"zmscore", b"zrange", b"zinter", b"ft.search", b"ft.aggregate")
_WRITES = b"hincrby"

# Every key of every namespace under one prefix; a shared server has others beside.
_EACH = """
local cursor, done = '0', 0
repeat
  local page = redis.call('SCAN', cursor, 'MATCH', ARGV[1], 'COUNT', 1000)
  cursor = page[1]
  for _, key in ipairs(page[2]) do
    {deed}
    done = done + 1
  end
until cursor == '0'
return done
"""
_AGE = Script.of(
    "stage",
    _EACH.format(
        deed="""
    if redis.call('TYPE', key).ok == 'hash' then
      for _, field in ipairs({'signature', 'indexed'}) do
        local old = redis.call('HGET', key, field)
        if old then redis.call('HSET', key, field, (old:gsub('"terms":"%d+"', '"terms":"' .. ARGV[2] .. '"'))) end
      end
    end"""
    ),
)
_DELETE = Script.of("stage", _EACH.format(deed="redis.call('DEL', key)"))
# the stores go on with their namespaces
_EMPTY = Script.of(
    "stage",
    _EACH.format(
        deed="""
    if redis.call('TYPE', key).ok == 'hash' and redis.call('HEXISTS', key, 'signature') == 1 then
      local old = redis.call('HGET', key, 'signature')
      local new = old:gsub('"terms":"%d+"', '"terms":"' .. ARGV[2] .. '"')
      redis.call('HSET', key, 'items', '0', 'signature', new)
    else
      redis.call('DEL', key)
    end"""
    ),
)


class Admin:
    """Stages faults in the keys of one prefix, and in the rights of one account.

    Args:
        url: Of an account that may do anything.
        settings: How the keys begin.
        account: The name of the account that the stores use; it is made.
        password: That account's.
    """

    def __init__(self, url: str, settings: RedisSettings, account: str, password: str) -> None:
        self._transport = ServerTransport(url, settings)
        self._settings = settings
        self._account = account.encode()
        self._password = password.encode()

    async def prepare(self) -> None:
        """Make the account."""
        await self._rights(b"reset", b"on", b">" + self._password, b"~*", b"&*", b"+@all")

    async def run(self, *command: bytes) -> Any:
        """Run one command."""
        (answer,) = await self._transport.send(Call("stage", command))
        return answer

    async def info(self) -> dict[str, str]:
        """Read what the server says of itself."""
        text: bytes = await self.run(b"INFO")
        pairs = (line.partition(":") for line in text.decode().splitlines())
        return {name: value for name, colon, value in pairs if colon}

    def item_key(self, namespace: str, item_id: UUID) -> bytes:
        """Give the key of an item."""
        return Space.of(self._settings.prefix, namespace).items + str(item_id).encode()

    async def plant_foreign(self, namespace: str, item_id: UUID) -> None:
        """Put a key of another kind where the item with this id would be."""
        await self.run(b"SET", self.item_key(namespace, item_id), b"foreign")

    async def plant_malformed(self, namespace: str, item_id: UUID) -> None:
        """Damage the hash of a stored item."""
        await self.run(b"HSET", self.item_key(namespace, item_id), b"content", b"{")

    async def refuse_writes(self, refuse: bool) -> None:
        """Take the right away that every write needs first, or give it back."""
        await self._rights((b"-" if refuse else b"+") + _WRITES)

    async def refuse_queries(self, refuse: bool) -> None:
        """Take the rights away that every search needs and no other read, or give them back."""
        known = [name for name in _SEARCHES if not name.startswith(b"ft.") or await self._knows(name)]
        await self._rights(*((b"-" if refuse else b"+") + name for name in known))

    async def age_index(self) -> None:
        """Let every namespace remember another version of the term rules."""
        aged = str(TERMS_VERSION + 1).encode()
        await self._transport.send(Call("stage", (self._pattern, aged), _AGE, b"-"))

    async def reset(self) -> None:
        """Remove every key but those of the namespaces, which begin anew, and end what is staged."""
        await self.prepare()
        terms = str(TERMS_VERSION).encode()
        await self._transport.send(Call("stage", (self._pattern, terms), _EMPTY, b"-"))

    async def drop(self) -> None:
        """Remove every key, and the account."""
        await self._transport.send(Call("stage", (self._pattern,), _DELETE, b"-"))
        await self.run(b"ACL", b"DELUSER", self._account)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    @property
    def _pattern(self) -> bytes:
        return f"{self._settings.prefix}:*".encode()

    async def _rights(self, *rules: bytes) -> None:
        await self.run(b"ACL", b"SETUSER", self._account, *rules)

    async def _knows(self, command: bytes) -> bool:
        answer = await self.run(b"COMMAND", b"INFO", command)
        return bool(answer and answer[0])
