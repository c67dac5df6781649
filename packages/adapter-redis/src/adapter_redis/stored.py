"""What the fake of a server keeps: hashes, and the numbers that the index has of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .library import HIDDEN, MARK


class FakeServerError(Exception):
    """An error of the fake, with what the driver reads of an error of Redis."""

    def __init__(self, status_code: str, text: str) -> None:
        self.status_code = status_code
        super().__init__(f"{status_code} {text}")


@dataclass(frozen=True)
class FakeItem:
    """The hash of an item, and what is in the sets of the index.

    Attributes:
        fields: Of the hash.
        order: Minus `created_at`.
        scores: Of each token, as its set has it.
        gone_at: When it expires, in seconds of the fake's clock; None: never.
    """

    fields: dict[str, str]
    order: float = 0.0
    scores: dict[str, float] = field(default_factory=dict[str, float])
    gone_at: float | None = None

    @property
    def is_ours(self) -> bool:
        """Whether it bears our mark."""
        return self.fields.get("adapter") == MARK

    @property
    def document(self) -> list[str]:
        """The hash as the scripts answer with it."""
        shown = [
            pair for pair in self.fields.items() if pair[0] != "adapter" and not pair[0].startswith(HIDDEN)
        ]
        return [text for pair in shown for text in pair]


@dataclass
class FakeSpace:
    """The keys of one namespace.

    Attributes:
        signature: How its items are indexed.
        revision: The number of the last write.
        wrote: The number of the last write of each signature.
        items: The hashes by id.
    """

    signature: str
    revision: int
    wrote: dict[str, int] = field(default_factory=dict[str, int])
    items: dict[str, FakeItem] = field(default_factory=dict[str, FakeItem])


def rows_of(arguments: Sequence[str]) -> Iterator[tuple[str, str, str, dict[str, str]]]:
    """Read the items that a script is given."""
    at = 0
    while at < len(arguments):
        item_id, order, text, count = arguments[at : at + 4]
        fields = arguments[at + 4 : at + 4 + int(count)]
        yield item_id, order, text, dict(zip(fields[::2], fields[1::2], strict=True))
        at += 4 + int(count)


def scores_of(text: str) -> dict[str, float]:
    """Read what `index_put` is given."""
    scores: dict[str, float] = {}
    score = 0.0
    for word in text.split():
        if word.startswith("="):
            score = float(word[1:])
        else:
            scores[word] = score
    return scores
