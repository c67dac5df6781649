"""Loss, declared as code: what an item looks like when it comes back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ._items import ItemFields
from ._manifest import MemoryItemField


@dataclass(frozen=True)
class Loss:
    """One named change that an adapter makes to an item.

    Attributes:
        name: Stable name, such as `created-at-milliseconds`.
        field: The item field that is changed.
        operation: The verb whose result shows it.
        description: What happens, in a sentence.
        example: An item to which it really happens; the conformance kit checks that it does.
    """

    name: str
    field: MemoryItemField
    operation: Literal["retrieve", "search"]
    description: str
    example: ItemFields


def unchanged(item: ItemFields) -> ItemFields:
    """Give the item back as it is: the projection of a full adapter."""
    return item


@dataclass(frozen=True)
class Projection:
    """What a stored item looks like when it comes back, for each way of reading it.

    Both functions are pure, and give back new values where they change something.

    Attributes:
        retrieve: The item as `retrieve` and `scan` give it.
        search: The item as a search hit gives it.
        losses: Every change that the two functions make, by name.
    """

    retrieve: Callable[[ItemFields], ItemFields] = unchanged
    search: Callable[[ItemFields], ItemFields] = unchanged
    losses: tuple[Loss, ...] = ()


EXACT = Projection()
"""The projection of an adapter that loses nothing."""


class Preview(NamedTuple):
    """What would come back of an item, for each way of reading it."""

    retrieve: ItemFields
    search: ItemFields
