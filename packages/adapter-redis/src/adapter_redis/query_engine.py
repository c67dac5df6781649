"""The index of the server's search engine: Redis 8, Redis Stack.

Each item's own hash carries what the engine indexes, in fields that only it reads: `index.o` the order,
`index.t` the tokens of tags and facets, `index.w` those of terms, each as often as the term occurs.
The engine keeps its index in the same step in which the hash is written. All that reaches its query
language are core's tokens of `a-z`, `0-9` and `_`.

A search is one script, which asks the engine and reads the hashes, so nothing happens in between. The
engine would cut a slow answer short and not say so within a script; it is told to take its time
instead, and the client's own time-out bounds the call.
"""

import asyncio
import struct
from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar, Final

from adapter_core import Criteria, MemoryAdapterUnavailable, Record

from .answers import text_of
from .engine import BOUNDED, FIND, FUNCTIONS, MARK_BUILDING, MARK_BUILT, NAME, ORDER, TERMS, TOKENS
from .hashes import Document
from .index import Head, Index, Space
from .transport import Call, Session

MAX_CLAUSES = 64
"""How many conditions the engine is asked; it takes quadratic time for many, so the script checks the rest."""
MAX_REPEATS = 64
"""How often a term is written at most. Its weight in a score has long been reached then."""
BUILD_TIMEOUT = 30.0
"""Seconds that a search waits for an index that is being built over items that are there already."""
DEFAULT_WINDOW = 10_000
"""How many hits one search asks for where the server does not tell its `MAXSEARCHRESULTS`."""

SCORE_MEANING: Final = (
    "BM25 as the server's search engine computes it (scorer BM25STD), over the asked terms and the items"
    " of the namespace. It depends on the other items."
)

_SCHEMA = (
    (b"created_at", b"created_at", b"NUMERIC"),
    (ORDER.encode(), b"o", b"TEXT", b"NOSTEM", b"SORTABLE", b"UNF", b"NOINDEX"),
    (TOKENS.encode(), b"t", b"TAG", b"SEPARATOR", b" ", b"CASESENSITIVE"),
    (TERMS.encode(), b"w", b"TEXT", b"NOSTEM"),
)
"""Of each field: its name in the hash, its name in a query, its type, and options."""

_UNLIMITED = 1_000_000_000
_POLL = 0.02


class QueryEngineIndex(Index):
    """An index of the server's search engine, one for each namespace."""

    name = "query-engine"
    functions = FUNCTIONS
    score_meaning: ClassVar[str] = SCORE_MEANING

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self._find = self.scripts.make("find", FIND)
        self._mark_building = self.scripts.make("building", MARK_BUILDING)
        self._mark_built = self.scripts.make("built", MARK_BUILT)
        self._engine_name = space.base + NAME.encode()
        self._window = DEFAULT_WINDOW

    def text(self, record: Record[Document]) -> str:  # noqa: ARG002 - the engine reads the hash
        """Give nothing: the engine reads the item's hash."""
        return ""

    def fields(self, record: Record[Document]) -> Sequence[str]:
        """Give what the engine indexes."""
        terms = chain.from_iterable([term] * min(count, MAX_REPEATS) for term, count in record.terms.items())
        return (
            *(ORDER, _sortable(-record.created_at) + record.id.hex),
            *(TOKENS, " ".join((*record.tags, *record.facets))),
            *(TERMS, " ".join(terms)),
        )

    @property
    def at_once(self) -> int:
        """How many hits of a large answer one request fetches."""
        return min(super().at_once, self._window)

    async def check(self, session: Session) -> None:
        """Ask the engine for the index; whether it is there does not matter.

        Raises:
            MemoryAdapterUnavailable: The server has no search engine, or an index of another program's has
                the name.
        """
        await self._state(session)

    async def prepare(self, session: Session) -> None:
        """Make the engine's index if it is not there, and wait until it has read what was there before.

        Raises:
            MemoryAdapterUnavailable: The server has no search engine, or takes longer than 30 seconds; the
                index is another program's, or went away meanwhile.
        """
        state = await self._state(session)
        if state is None:
            # said before it is made, so that nobody takes a half-built index for a whole one
            await self._run(session, self._mark_building)
            await self._create(session)
        try:
            async with asyncio.timeout(BUILD_TIMEOUT):
                # the server tells nobody when it is done
                while (state := await self._state(session)) != b"0":
                    if state is None:
                        raise MemoryAdapterUnavailable(
                            "somebody dropped the search index while it was being built; try again"
                        )
                    await asyncio.sleep(_POLL)
        except TimeoutError as error:
            raise MemoryAdapterUnavailable(
                "the search index is still being built; try again later"
            ) from error
        await self._run(session, self._mark_built)
        self._window = await self._read_window(session)

    async def drop(self, session: Session) -> None:
        """Drop the engine's index; the items are gone already. One of another program's stays."""
        info = await self._info(session)
        if info is None or not self._is_ours(info):
            return
        try:
            await session.send(Call("engine", (b"FT.DROPINDEX", self._engine_name)))
        except MemoryAdapterUnavailable:
            raise
        except Exception as error:
            if not _is_no_index(error):
                raise

    async def _ask(
        self, session: Session, criteria: Criteria, head: Head, limit: int, ids: Sequence[str]
    ) -> list[Any]:
        answer = await self._asked(session, criteria, head, limit, ids)
        if answer in (b"!unindexed", b"!building", b"!window"):
            # somebody dropped it, and the items are all there; or the server's limit is another one now
            await self.prepare(session)
            answer = await self._asked(session, criteria, head, limit, ids)
        return self._rows(answer)

    async def _asked(
        self, session: Session, criteria: Criteria, head: Head, limit: int, ids: Sequence[str]
    ) -> Any:
        query, rest = _query(criteria)
        arguments = (
            *head,
            b"%d" % limit,
            query.encode(),
            _bound(criteria.created_after),
            _bound(criteria.created_before),
            b"1" if criteria.terms else b"0",
            b"%d" % self._window,
            " ".join(ids).encode(),
            *(" ".join(group).encode() for group in rest),
        )
        (answer,) = await session.send(Call("find", arguments, self._find, self.space.base))
        return answer

    async def _state(self, session: Session) -> bytes | None:
        """Say whether the engine is still reading items: `0` or `1`; None when there is no index."""
        info = await self._info(session)
        if info is None:
            return None
        if not self._is_ours(info):
            # it would answer that there is nothing
            raise MemoryAdapterUnavailable(
                "a search index of another program has the name of this namespace's, and is not over its items"
            )
        return _value(info, b"indexing") or b""

    async def _info(self, session: Session) -> Any:
        """Give what the engine says of the index; None when there is none."""
        try:
            (answer,) = await session.send(Call("engine", (b"FT.INFO", self._engine_name)))
        except MemoryAdapterUnavailable:
            raise
        except Exception as error:
            if _is_no_index(error):
                return None
            raise _explained(error) from error
        return answer

    def _is_ours(self, info: Any) -> bool:
        """Whether an index is over all items of this namespace, and has our fields."""
        over = _found(info, b"index_definition")
        attributes = _listed(_found(info, b"attributes")) or ()
        names = (b"identifier", b"attribute", b"type")
        return (
            _value(over, b"key_type") == b"HASH"
            and _found(over, b"prefixes") == [self.space.items]
            and _found(over, b"filter") is None
            and {field[:3] for field in _SCHEMA}
            <= {tuple(_value(one, name) for name in names) for one in attributes}
        )

    async def _create(self, session: Session) -> None:
        schema = chain.from_iterable((name, b"AS", *rest) for name, *rest in _SCHEMA)
        command = (b"FT.CREATE", self._engine_name, b"ON", b"HASH", b"PREFIX", b"1", self.space.items)
        try:
            await session.send(Call("engine", (*command, b"STOPWORDS", b"0", b"SCHEMA", *schema)))
        except MemoryAdapterUnavailable:
            raise
        except Exception as error:
            if "already exists" not in str(error).lower():
                raise _explained(error) from error

    async def _read_window(self, session: Session) -> int:
        try:
            (answer,) = await session.send(Call("engine", (b"FT.CONFIG", b"GET", b"MAXSEARCHRESULTS")))
        except MemoryAdapterUnavailable:
            raise
        except Exception:  # noqa: BLE001 - not every account may ask; the default fits every server
            return DEFAULT_WINDOW
        value = _value(_flat(answer), b"MAXSEARCHRESULTS")
        if value == b"unlimited":
            return _UNLIMITED
        return int(value) if value is not None and value.isdigit() and int(value) > 0 else DEFAULT_WINDOW

    async def _run(self, session: Session, script: Any) -> None:
        arguments = (b"", b"", b"0")
        (answer,) = await session.send(Call(script.name, arguments, script, self.space.base))
        text_of(answer)


def _query(criteria: Criteria) -> tuple[str, Sequence[Sequence[str]]]:
    """Write the query, and give the groups that the engine is not asked."""
    groups = [(term,) for term in criteria.terms]
    of_tokens = [*criteria.facets, *((criteria.tags,) if criteria.tags else ())]
    # the engine must be asked a term where it ranks by them
    asked_tokens = of_tokens[: MAX_CLAUSES // 2]
    asked_terms = groups[: MAX_CLAUSES - len(asked_tokens)]
    clauses = [f"@t:{{{'|'.join(group)}}}" for group in asked_tokens]
    clauses += [f"@w:({term})" for (term,) in asked_terms]
    if (criteria.created_after, criteria.created_before) != (float("-inf"), float("inf")):
        clauses.append(BOUNDED)
    rest = [*of_tokens[len(asked_tokens) :], *groups[len(asked_terms) :]]
    return " ".join(clauses) or "*", rest


def _bound(created_at: float) -> bytes:
    return repr(created_at).encode()


def _sortable(number: float) -> str:
    """Write a float as 16 hexadecimal digits whose order as text is its order as a number."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", number + 0.0))  # -0.0 is 0.0
    return f"{bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 1 << 63):016x}"


def _is_no_index(error: Exception) -> bool:
    text = str(error).lower()
    return "no such index" in text or "unknown index" in text


def _explained(error: Exception) -> Exception:
    if "unknown command" not in str(error).lower():
        return error
    return MemoryAdapterUnavailable(
        "the server has no search engine (FT.* commands): Redis 8 and Redis Stack have one;"
        ' index="keyspace" works on any server'
    )


def _flat(answer: Any) -> Any:
    """Give RESP2's pairs and RESP3's map as one flat list."""
    pairs = _listed(answer)
    return list(chain.from_iterable(pairs)) if pairs and isinstance(pairs[0], list) else answer


def _found(answer: Any, name: bytes) -> Any:
    """Give one value of an answer of names and values: RESP2's list, or RESP3's map."""
    flat = _listed(answer)
    if flat is not None:
        return flat[flat.index(name) + 1] if name in flat else None
    return answer.get(name) if isinstance(answer, dict) else None  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]


def _value(answer: Any, name: bytes) -> bytes | None:
    """Give one value, as bytes."""
    found = _found(answer, name)
    values = _listed(found)
    if values is not None:
        found = values[0] if values else None
    if found is None:
        return None
    return found if isinstance(found, bytes) else str(found).encode()


def _listed(answer: object) -> list[Any] | None:
    return answer if isinstance(answer, list) else None  # pyright: ignore[reportUnknownVariableType]
