"""What stands in the index of an item: its tokens, the levels of its terms, and its place.

An item's place is its number in `memory_items` and in the index alike. It grows with `created_at`:
its high bits are the moment, a 64th of a second, and its low bits tell apart what is of one moment.
So the index, read backwards, gives the newest items first.
"""

import math
from collections.abc import Iterable, Mapping

from adapter_core import MemoryAdapterError, decode_value, encode_value, term_weights

EVERY = "n"
"""The token that every item of a namespace has."""

SEATS = 22
"""How many bits of a place tell apart the items of one moment: room for 4,194,304 of them."""

MOMENTS = 64
"""How many moments a second has."""

LAST_MOMENT = 2**40 - 1
"""In the year 2514; what is later is of this moment."""

SCORE_MEANING = (
    "The sum, over the asked terms, of the term-frequency part of BM25 (k1 = 1.2, b = 0.75, usual "
    "length 100 terms), each rounded down to hundredths. It depends on the item and the text alone."
)

_LEVEL = "_k"  # no escape of a token: k is no hexadecimal digit


def counted(tags: Iterable[str], facets: Iterable[str], terms: Mapping[str, int]) -> dict[str, int]:
    """Give each token of an item its level, which is the hundredths that a term has in a score."""
    weights = term_weights(terms)
    return {
        **dict.fromkeys(tags, 0),
        **dict.fromkeys(facets, 0),
        **{term: int(weight * 100) for term, weight in weights.items()},
    }


def write(levels: Mapping[str, int]) -> str:
    """Write the tokens of an item with their levels, as the item keeps them."""
    return encode_value(levels)


def indexed(ns: int, levels: Mapping[str, int]) -> str:
    """Give the text that the index gets: each token, and each term at its level once more.

    Every word begins with the number of the namespace: no search reads the words of another one.
    """
    words = [EVERY, *levels]
    words += [f"{token}{_LEVEL}{255 - level:02x}" for token, level in levels.items() if token[0] == "w"]
    return f"{ns}{f' {ns}'.join(words)}"


def read(text: str) -> dict[str, int]:
    """Read what `write` wrote; what is not ours to read has no tokens."""
    return decode_value(text) if text else {}


def level_range(term: str) -> tuple[str, str]:
    """Give the words between which those of a term's levels stand, the best level first."""
    return f"{term}{_LEVEL}", f"{term}{_LEVEL}g"


def score(word: str) -> float:
    """Give the score that a term has at the level of a word."""
    return (255 - int(word[-2:], 16)) / 100.0


def moment(created_at: float) -> int:
    """Give the moment of a time; it never falls as the time grows."""
    if created_at <= 0:
        return 0
    if created_at >= LAST_MOMENT / MOMENTS:
        return LAST_MOMENT
    return math.floor(created_at * MOMENTS)


def first_place(created_at: float) -> int:
    """Give the least place of a moment."""
    return moment(created_at) << SEATS


def last_place(created_at: float) -> int:
    """Give the greatest place of a moment."""
    return first_place(created_at) | (1 << SEATS) - 1


def next_place(created_at: float, taken: int | None) -> int:
    """Give the place for a new item.

    Args:
        created_at: The item's.
        taken: The greatest place of its moment that is taken.

    Raises:
        MemoryAdapterError: The moment is full.
    """
    if taken is None:
        return first_place(created_at)
    if taken == last_place(created_at):
        raise MemoryAdapterError(f"the file has no room for more items of one moment than {1 << SEATS:,}")
    return taken + 1
