"""Finding items: the seam that every index fills, and the index of plain sorted sets.

**The seam.** `RedisDriver` writes, reads, deletes, scans and reindexes items by the shared scripts of
`scripts.py`; an `Index` adds what a search needs. It gives

- `functions`: Lua for the shared scripts, the local functions `index_put(id, order, text)`,
  `index_finish()`, `index_remove(id)`, `index_intact(count)`, `index_has(id)` and `index_mend()`. They run
  in the script that writes or deletes the item, so the index is part of the write. A script calls
  `index_put` once for each of its items, all of them different, and then `index_finish`, which does what
  was put off. `order` is minus `created_at` as text, `text` what `text()` made of the record.
  `index_remove` also removes what another index wrote for the item. `index_intact` says whether the index
  has so many items as it should, `index_has` whether it has this one. `index_mend` runs before a damaged
  index is made anew: it lists every item that the index knows, and removes what cannot be kept.
- `fields(record)`: further fields of the item's own hash, whose names begin with `library.HIDDEN`. The
  scripts never answer with them. An index that the server itself keeps over hashes puts here what it
  indexes. The hashes of a namespace are the keys that begin with `space.items`.
- `check(session)`: runs when a store connects, before the namespace is made; it makes nothing, and raises
  `MemoryAdapterUnavailable` where the server cannot serve the index.
- `prepare(session)`: runs then, once the namespace is there; it makes what is missing.
- `find(session, criteria, head)`: the search. `head` is the first three arguments of every script: the
  signature, what to watch, and whether it is time to look. `scripts.make(name, body)` makes a script of
  the index's own, in which `refusal(true)` gives why the call must not be done, `unfit()` why a short
  answer cannot be trusted, `document(key)` an item's hash, `kind(key)` whose a key is, `forget(id)` takes
  an item that is gone out of the index, `purge()` removes what has expired.
  What a script answers goes through `answers.text_of` or `answers.json_of`, which raise what begins
  with `!`. A search that runs a plain command sends such a script with it, in one `send`.
- `drop(session)`: removes what `prepare` made, when the namespace is dropped.

A namespace remembers the index's `name` in its signature, so a store with the other index is refused
until `reindex()` has run.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from adapter_core import SCORE_MEANING, TERMS_VERSION, Criteria, Hit, Record, namespace_token, term_weights

from . import keyspace
from .answers import json_of
from .hashes import Document
from .scripts import Scripts
from .transport import Call, Session

Head = tuple[bytes, bytes, bytes]
"""The first arguments of every script."""

LAYOUT = "1"
"""The version of the keys and fields."""

_WEIGHT = 1_000_000  # a small set is searched from end to end, and reads whole numbers much faster

VERIFIED_AT_ONCE = 1_000
"""How many hits of a large answer one request fetches at most."""


class Space(NamedTuple):
    """The keys of one namespace, all in one slot of a cluster.

    Attributes:
        base: The namespace's own key; every other begins with it.
    """

    base: bytes

    @classmethod
    def of(cls, prefix: str, namespace: str) -> "Space":
        """Name the keys of a namespace."""
        return cls(f"{prefix}:{{{namespace_token(namespace)}}}".encode())

    @property
    def items(self) -> bytes:
        """How the key of every item begins; its id follows."""
        return self.base + b":item:"


class Index(ABC):
    """How the items of a namespace are found. See the docstring of this module.

    Args:
        space: The keys of the namespace.
    """

    name: ClassVar[str]
    functions: ClassVar[str]
    score_meaning: ClassVar[str]

    def __init__(self, space: Space) -> None:
        self.space = space
        self.scripts = Scripts(self.functions)

    @property
    def signature(self) -> Mapping[str, str]:
        """How this index finds items; the namespace remembers it."""
        return {"index": self.name, "layout": LAYOUT, "terms": str(TERMS_VERSION)}

    @abstractmethod
    def text(self, record: Record[Document]) -> str:
        """Give what `index_put` needs of an item, as one text."""

    def fields(self, record: Record[Document]) -> Sequence[str]:  # noqa: ARG002 - for those that have some
        """Give further fields of the item's hash: a name that begins with `HIDDEN`, a value, and so on."""
        return ()

    async def check(self, session: Session) -> None:  # noqa: B027 - most servers can do what is needed
        """See that the server can serve this index; nothing is made."""

    @abstractmethod
    async def prepare(self, session: Session) -> None:
        """Make what is missing, when a store connects; safe when many do it at once."""

    async def find(self, session: Session, criteria: Criteria, head: Head) -> Sequence[Hit[Document]]:
        """Search, as `Driver.find` says it."""
        rows: list[Any] = await self._ask(session, criteria, head, criteria.limit, ())
        documents = {row[0]: row[2] for row in rows if len(row) > 2}
        rest = [row[0] for row in rows if len(row) == 2]
        while rest:
            # the answer to the search names every hit; those that it had no room for are fetched now, if
            # they still meet the conditions
            asked, rest = rest[: self.at_once], rest[self.at_once :]
            more = await self._ask(session, criteria, head, len(asked), asked)
            documents |= {row[0]: row[2] for row in more if len(row) > 2}
            rest = [row[0] for row in more if len(row) == 2] + rest
        return [
            Hit(UUID(row[0]), documents[row[0]], self.score(row[1]) if row[1] else None)
            for row in rows
            if row[0] in documents
        ]

    @abstractmethod
    async def _ask(
        self, session: Session, criteria: Criteria, head: Head, limit: int, ids: Sequence[str]
    ) -> list[Any]:
        """Ask for hits, or which of some ids are hits: id, score as text, and the hash if there was room."""

    @property
    def at_once(self) -> int:
        """How many hits of a large answer one request fetches."""
        return VERIFIED_AT_ONCE

    def score(self, text: str) -> float:
        """Read a score."""
        return float(text)

    @staticmethod
    def _rows(answer: Any) -> list[Any]:
        return json_of(answer) or []

    @abstractmethod
    async def drop(self, session: Session) -> None:
        """Remove what `prepare` made."""


class KeyspaceIndex(Index):
    """An index of sorted sets, for any Redis or Valkey from version 6.2 of the commands on.

    Each token has a set, of tags and facets by time and of terms by their weight. A search walks the
    smallest one in its order and asks the others, within the server.
    """

    name = "keyspace"
    functions = keyspace.FUNCTIONS
    score_meaning = SCORE_MEANING

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self._find = self.scripts.make("find", keyspace.FIND)

    async def prepare(self, session: Session) -> None:
        """Do nothing: a set is made by its first member."""

    async def drop(self, session: Session) -> None:
        """Do nothing: a set goes with its last member."""

    def text(self, record: Record[Document]) -> str:
        """Write every token behind the score that it has in its set: `=SCORE token token =SCORE ...`."""
        parts = [f"={order_of(record.created_at)}", *record.tags, *record.facets]
        by_weight: dict[float, list[str]] = {}
        for term, weight in term_weights(record.terms).items():
            by_weight.setdefault(weight, []).append(term)
        for weight, terms in by_weight.items():
            parts.append(f"={-round(weight * _WEIGHT)}")
            parts += terms
        return " ".join(parts)

    async def _ask(
        self, session: Session, criteria: Criteria, head: Head, limit: int, ids: Sequence[str]
    ) -> list[Any]:
        required: list[str] = []
        groups: list[bytes] = []
        for group in (*criteria.facets, *((criteria.tags,) if criteria.tags else ())):
            if len(group) == 1:
                required.append(group[0])
            else:
                groups.append(" ".join(group).encode())
        arguments = (
            *head,
            b"%d" % limit,
            order_of(criteria.created_before).encode(),
            order_of(criteria.created_after).encode(),
            " ".join(dict.fromkeys(required)).encode(),
            " ".join(criteria.terms).encode(),
            " ".join(ids).encode(),
            *groups,
        )
        (answer,) = await session.send(Call("find", arguments, self._find, self.space.base))
        return self._rows(answer)

    def score(self, text: str) -> float:
        """Read a score: minus a weight, in whole numbers."""
        return -float(text) / _WEIGHT


def order_of(created_at: float) -> str:
    """Give the score by which the newest come first and equal ones by id."""
    return repr(-created_at)
