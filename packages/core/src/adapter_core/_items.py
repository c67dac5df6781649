"""Items and queries: our own classes, and the shapes that a host's classes must have."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple, Protocol, runtime_checkable
from uuid import UUID, uuid4

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


@runtime_checkable
class ItemLike(Protocol):
    """Any object with the five attributes of a memory item."""

    @property
    def id(self) -> UUID: ...
    @property
    def created_at(self) -> float: ...
    @property
    def metadata(self) -> dict[str, Any]: ...
    @property
    def content(self) -> Any: ...
    @property
    def tags(self) -> list[str]: ...


@runtime_checkable
class QueryLike(Protocol):
    """Any object with the four attributes of a memory query."""

    @property
    def text(self) -> str | None: ...
    @property
    def tags(self) -> Sequence[str] | None: ...
    @property
    def filters(self) -> Mapping[str, Any] | None: ...
    @property
    def limit(self) -> int: ...


class ItemFields(NamedTuple):
    """The five fields of an item and nothing else: what codecs and projections work on."""

    id: UUID
    created_at: float
    metadata: dict[str, Any]
    content: Any
    tags: list[str]

    def __repr__(self) -> str:
        """Name the item without its contents."""
        return f"ItemFields(id={self.id!r})"


def _seconds(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return value  # pydantic takes a number in text, and refuses the rest
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    return value


class MemoryItem(BaseModel):
    """One memory. Equality and hash go by `id`; `repr` does not show the contents.

    Attributes:
        id: Identity; a new uuid4 by default. Frozen.
        created_at: Seconds since 1970 in UTC; now by default. Also given as a datetime or an
            ISO 8601 string, of which a naive one is taken as UTC. Frozen.
        metadata: Facts about the memory. Top-level scalars can be filtered by.
        content: The memory itself: JSON values (see `check_item` for the exact types).
        tags: Labels, kept in order with their duplicates.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    id: UUID = Field(default_factory=uuid4, frozen=True)
    created_at: Annotated[float, BeforeValidator(_seconds)] = Field(default_factory=time.time, frozen=True)
    metadata: dict[str, Any] = Field(default_factory=dict)
    content: Any = None
    tags: list[str] = Field(default_factory=list)

    def __eq__(self, other: object) -> bool:
        """Two items with one id are the same memory."""
        return self.id == other.id if isinstance(other, MemoryItem) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        """Keep contents out of logs and tracebacks."""
        return [("id", self.id), ("created_at", self.created_at)]


class MemoryQuery(BaseModel):
    """What to search for: text, tags and filters are combined with AND.

    `filters` and `limit` are kept as given; `search` checks them.

    Attributes:
        text: Every term of it must occur in the content. None or blank: no condition.
        tags: At least one of them must be among the item's tags. Empty or None: no condition.
        filters: Top-level metadata keys and the scalar each must have, an `AnyOf`, and
            `created_after` / `created_before` (seconds, inclusive).
        limit: The most hits to return. 0 gives none.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    text: str | None = None
    tags: list[str] | None = None
    filters: Any = Field(default_factory=dict)
    limit: Any = 20

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        """Keep what is searched for out of logs and tracebacks."""
        return [("limit", self.limit)]


class AnyOf:
    """A filter value: the metadata value must equal one of these scalars.

    `AnyOf()` matches nothing.
    """

    __slots__ = ("values",)

    def __init__(self, *values: bool | int | float | str | None) -> None:
        self.values = values

    def __eq__(self, other: object) -> bool:
        return self.values == other.values if isinstance(other, AnyOf) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.values)

    def __repr__(self) -> str:
        """Give the number of alternatives, not the values."""
        return f"AnyOf(<{len(self.values)} values>)"
