"""For tests: a double of the server with faults to switch on, and a recorder of calls.

fake = FakeRedis()
store = RedisMemoryStore("redis://any", index="keyspace", transport=fake.transport())
fake.faults.down = True
"""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from adapter_core import TERMS_VERSION
from adapter_core.testing import OPERATION_KINDS, Faults

from .index import KeyspaceIndex, Space
from .library import MARK
from .recording import RecordingTransport
from .stored import FakeItem, FakeServerError, FakeSpace, rows_of, scores_of
from .transport import Call, Transport, Work

__all__ = ["AGED", "FakeItem", "FakeRedis", "FakeServerError", "FakeSpace", "RecordingTransport"]

AGED = json.dumps(
    {"index": KeyspaceIndex.name, "layout": "1", "terms": str(TERMS_VERSION + 1)},
    sort_keys=True,
    separators=(",", ":"),
)
"""How a namespace is indexed whose term rules are of another version."""

_FIRST_REVISION = 1_000_000


class _Head(NamedTuple):
    """The first arguments of every script."""

    signed: str
    watch: str
    due: bool


class FakeRedis:
    """One server that many stores can use through `transport()`, with the index `keyspace`.

    It knows the adapter's scripts by their names and does what they say. Each call gives way to the
    event loop once before and once after its work, so that a cancellation can strike on either side.

    Attributes:
        faults: Switches that make it misbehave, and the log of calls.
        spaces: What is stored, by the key of the namespace.
        policy: Its `maxmemory-policy`.
        appendonly: Whether it keeps an append-only file.
        appendfsync: When it brings that file to the disk.
        role: `master` or `slave`.
        full: Whether it is out of memory.
        clock: Gives the seconds by which items expire.
    """

    def __init__(self) -> None:
        self.faults = Faults()
        self.spaces: dict[bytes, FakeSpace] = {}
        self.policy = "noeviction"
        self.appendonly = True
        self.appendfsync = "everysec"
        self.role = "master"
        self.full = False
        self.clock: Callable[[], float] = time.monotonic
        self._revision = _FIRST_REVISION
        self._held: dict[bytes, dict[str, FakeItem]] | None = None

    def transport(self) -> Transport:
        """Make a transport for one store."""
        return RecordingTransport(_FakeTransport(self), self.faults.calls)

    # Staging

    def flush(self) -> None:
        """Do as `FLUSHALL` does."""
        self.spaces.clear()

    def plant_foreign(self, namespace: str, item_id: object, prefix: str = "memory") -> None:
        """Put a hash that is not the adapter's where the item with this id would be."""
        space = self._space(Space.of(prefix, namespace).base)
        old = space.items.get(str(item_id), FakeItem({}))
        space.items[str(item_id)] = replace(old, fields={"adapter": "foreign"})

    def plant_malformed(self, namespace: str, item_id: object, prefix: str = "memory") -> None:
        """Damage the hash of a stored item."""
        items = self._space(Space.of(prefix, namespace).base).items
        old = items[str(item_id)]
        items[str(item_id)] = replace(old, fields={**old.fields, "content": "{"})

    def age_index(self) -> None:
        """Let every namespace remember another version of the term rules."""
        for space in self.spaces.values():
            space.signature = AGED
            for item_id, item in space.items.items():
                if item.is_ours:
                    space.items[item_id] = replace(item, fields={**item.fields, "indexed": AGED})

    def reset(self) -> None:
        """Remove every item, and end what is staged. The namespaces stay."""
        self.faults.reset()
        signature = AGED.replace(f'"{TERMS_VERSION + 1}"', f'"{TERMS_VERSION}"')
        for space in self.spaces.values():
            space.items.clear()
            space.signature = signature
        self.policy, self.appendonly, self.role, self.full = "noeviction", True, "master", False
        self._held = None

    def _space(self, key: bytes) -> FakeSpace:
        if key not in self.spaces:
            self._revision += 1
            signature = AGED.replace(f'"{TERMS_VERSION + 1}"', f'"{TERMS_VERSION}"')
            self.spaces[key] = FakeSpace(signature, self._revision)
        return self.spaces[key]

    # What the commands do

    def perform(self, call: Call) -> Any:
        """Do what one command says, as the faults allow; for the transports of this fake."""
        kind = OPERATION_KINDS.get(call.name, "other")
        self._hold_or_release()
        if self.faults.down:
            raise ConnectionRefusedError("the fake is down")
        if call.script is None:
            return self._command(call.arguments)
        if kind == "write" and self.faults.refuse_writes:
            raise FakeServerError("NOPERM", "refused")
        if kind == "search" and self.faults.refuse_queries:
            raise FakeServerError("NOPERM", "refused")
        self._expire()
        signed, watch, due, *arguments = (argument.decode() for argument in call.arguments)
        head = _Head(signed, watch, due == "1")
        does: Callable[..., str] = getattr(self, f"_do_{call.name}")
        return does(call.key, head, *arguments).encode()

    def _command(self, arguments: Sequence[bytes]) -> Any:
        if arguments[0] == b"INFO":
            lines = (
                f"maxmemory_policy:{self.policy}",
                f"aof_enabled:{int(self.appendonly)}",
                f"role:{self.role}",
            )
            return "\r\n".join(lines).encode()
        return [b"appendfsync", self.appendfsync.encode()]

    def _hold_or_release(self) -> None:
        if not self.faults.hold_index:
            self._held = None
        elif self._held is None:
            self._held = {key: dict(space.items) for key, space in self.spaces.items()}

    def _expire(self) -> None:
        now = self.clock()
        for space in self.spaces.values():
            for item_id, item in list(space.items.items()):
                if item.gone_at is not None and item.gone_at < now:
                    del space.items[item_id]

    def _unfit(self, head: _Head) -> str:
        return f"!evicting {self.policy}" if "e" in head.watch and self.policy != "noeviction" else ""

    def _refusal(self, key: bytes, head: _Head, *, signed: bool = True) -> str:
        space = self.spaces.get(key)
        if space is None:
            return "!gone"
        if signed and space.signature != head.signed:
            return "!signature"
        if head.due:
            if "a" in head.watch and not self.appendonly:
                return "!volatile"
            if self.role != "master":
                return "!replica"
            return self._unfit(head)
        return ""

    def _do_ready(self, key: bytes, head: _Head) -> str:
        if key not in self.spaces:
            self._revision += 1
            self.spaces[key] = FakeSpace(head.signed, self._revision)
        return self.spaces[key].signature

    def _do_remembered(self, key: bytes, _: _Head) -> str:
        return self.spaces[key].signature if key in self.spaces else "!gone"

    def _do_get(self, key: bytes, head: _Head, *ids: str) -> str:
        if key not in self.spaces:
            return "!gone"
        items = self.spaces[key].items
        found = [items[one].document if one in items and items[one].is_ours else False for one in ids]
        if (head.due or not all(found)) and (why := self._unfit(head)):
            return why
        return json.dumps(found)

    _do_get_revision = _do_get

    def _do_put(self, key: bytes, head: _Head, lasts: str, *arguments: str) -> str:
        rows = list(rows_of(arguments))
        if why := self._refusal(key, head) or self._foreign(key, [row[0] for row in rows]):
            return why
        self._check_memory()
        if self.faults.drop_identity:
            return ""
        for row in rows:
            self._write(self.spaces[key], head.signed, lasts, *row)
        return " ".join(row[0] for row in rows)

    def _do_check(self, key: bytes, head: _Head, ids: str) -> str:
        return self._refusal(key, head) or self._foreign(key, ids.split())

    def _do_replace(self, key: bytes, head: _Head, lasts: str, expected: str, *arguments: str) -> str:
        if why := self._refusal(key, head):
            return why
        ((item_id, *rest),) = rows_of(arguments)
        old = self.spaces[key].items.get(item_id)
        if old is None or not old.is_ours or old.fields["revision"] != expected:
            return ""
        self._check_memory()
        if self.faults.drop_identity:
            return "?"
        return self._write(self.spaces[key], head.signed, lasts, item_id, *rest)

    def _do_delete(self, key: bytes, head: _Head, item_id: str) -> str:
        if why := self._refusal(key, head, signed=False):
            return why
        items = self.spaces[key].items
        there = item_id in items and items[item_id].is_ours
        if there:
            del items[item_id]
        return str(int(there))

    def _do_clear(self, key: bytes, head: _Head, _: str, __: str) -> str:
        if why := self._refusal(key, head, signed=False):
            return why
        space = self.spaces[key]
        doomed = [item_id for item_id, item in space.items.items() if item.is_ours]
        for item_id in doomed:
            del space.items[item_id]
        return f"{len(doomed)} - {space.revision}"

    def _do_forget(self, key: bytes, _: _Head) -> str:
        return "!gone" if self.spaces.pop(key, None) is None else "1"

    def _do_find(self, key: bytes, head: _Head, *arguments: str) -> str:
        if why := self._refusal(key, head):
            return why
        limit, least, greatest, required, terms, ids, *groups = arguments
        held = self.spaces[key].items if self._held is None else self._held.get(key, {})
        asked = terms.split()
        needed = {*required.split(), *asked}
        any_of = [set(group.split()) for group in groups]
        hits = [
            (sum(item.scores[term] for term in asked), item.order, item_id, item)
            for item_id, item in held.items()
            if item.is_ours
            and float(least) <= item.order <= float(greatest)
            and needed <= item.scores.keys()
            and all(group & item.scores.keys() for group in any_of)
            and (not ids or item_id in ids)
        ]
        hits.sort(key=lambda hit: hit[:3])
        if len(hits) < int(limit) and (why := self._unfit(head)):
            return why
        rows = [(hit[2], repr(hit[0]) if asked else "", hit[3].document) for hit in hits[: int(limit)]]
        return json.dumps(rows)

    def _do_page(self, key: bytes, head: _Head, after: str, size: str, *conditions: str) -> str:
        if why := self._refusal(key, head) or self._unfit(head):
            return why
        least, greatest, *groups = conditions
        any_of = [set(group.split()) for group in groups]
        hits = [
            (item_id, item.document)
            for item_id, item in sorted(self.spaces[key].items.items())
            if item.is_ours
            and item_id > after
            and (not least or -item.order >= float(least))
            and (not greatest or -item.order <= float(greatest))
            and all(group & item.scores.keys() for group in any_of)
        ]
        page = hits[: int(size)]
        return json.dumps([page[-1][0] if len(hits) > len(page) else "", page])

    def _do_outdated(self, key: bytes, head: _Head, behind: str, size: str) -> str:
        if key not in self.spaces:
            return "!gone"
        space = self.spaces[key]
        stale = [
            (item_id, item.document)
            for item_id, item in sorted(space.items.items())
            if item.is_ours and item_id > behind and item.fields["indexed"] != head.signed
        ]
        page = stale[: int(size)]
        return json.dumps([str(space.revision), page[-1][0] if page else "", page])

    def _do_reindex(self, key: bytes, head: _Head, *arguments: str) -> str:
        if key not in self.spaces:
            return "!gone"
        items, rest, done = self.spaces[key].items, list(arguments), 0
        while rest:
            item_id, revision, order, text, count = rest[:5]
            extra, rest = rest[5 : 5 + int(count)], rest[5 + int(count) :]
            old = items.get(item_id)
            if old is not None and old.is_ours and old.fields["revision"] == revision:
                fields = {
                    **old.fields,
                    "indexed": head.signed,
                    **dict(zip(extra[::2], extra[1::2], strict=True)),
                }
                items[item_id] = replace(old, fields=fields, order=float(order), scores=scores_of(text))
                done += 1
        return str(done)

    def _do_adopt(self, key: bytes, head: _Head, since: str) -> str:
        space = self.spaces.get(key)
        if space is None:
            return "!gone"
        if space.signature == head.signed:
            return "1"
        others = [number for signed, number in space.wrote.items() if signed != head.signed]
        if not since or max(others, default=0) > int(since):
            return "0"
        space.signature = head.signed
        return "1"

    def _foreign(self, key: bytes, ids: Sequence[str]) -> str:
        items = self.spaces[key].items
        return "!foreign" if any(one in items and not items[one].is_ours for one in ids) else ""

    def _check_memory(self) -> None:
        if self.full:
            raise FakeServerError("OOM", "command not allowed when used memory > 'maxmemory'.")

    def _write(self, space: FakeSpace, signed: str, lasts: str, *row: Any) -> str:
        item_id, order, text, fields = row
        space.revision += 1
        space.wrote[signed] = space.revision
        number = str(space.revision)
        own = {"adapter": MARK, "revision": number, "indexed": signed}
        gone_at = self.clock() + int(lasts) / 1000 if lasts else None
        space.items[item_id] = FakeItem(own | fields, float(order), scores_of(text), gone_at)
        return number


class _FakeTransport:
    """The way of one store to a `FakeRedis`."""

    def __init__(self, service: FakeRedis) -> None:
        self._service = service

    async def open(self, setup: Work) -> None:
        await setup(self)

    async def send(self, *calls: Call) -> Sequence[Any]:
        await asyncio.sleep(0)
        answers = [self._service.perform(call) for call in calls]
        await asyncio.sleep(0)
        return answers

    async def close(self) -> None:
        pass  # what is stored belongs to the service
