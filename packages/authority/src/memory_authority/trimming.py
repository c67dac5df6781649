"""Which turns a trim hides. Pure, and the same for every store."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .rows import SessionRow
from .transcript import TrimReason


class Size(NamedTuple):
    """How big a turn is: its messages, and the estimate of its tokens."""

    messages: int
    tokens: int


@dataclass(frozen=True)
class Limits:
    """What is asked for; at least one is given. The strictest decides.

    Attributes:
        keep_turns: Keep so many of the newest turns.
        max_messages: Keep whole turns while they and the leading system messages are no more.
        max_tokens: The same for the estimate of tokens.

    Raises:
        ValueError: None is given, one is negative, or the token budget is below 1.
    """

    keep_turns: int | None
    max_messages: int | None
    max_tokens: int | None

    def __post_init__(self) -> None:
        """Check the values."""
        given = (self.keep_turns, self.max_messages, self.max_tokens)
        if all(value is None for value in given):
            raise ValueError("say what to keep: keep_turns, max_messages or max_tokens")
        if any(value is not None and (type(value) is not int or value < 0) for value in given):
            raise ValueError("a limit is an int that is not negative")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError("max_tokens is at least 1")


class Cut(NamedTuple):
    """How many of the oldest turns in view go, and why."""

    turns: int
    reason: TrimReason


def cut(sizes: Sequence[Size], system: Size, limits: Limits) -> Cut:
    """Say how many of the oldest turns are hidden. The newest one is always kept.

    Args:
        sizes: Of the turns in view, oldest first, without leading system messages.
        system: Of the leading system messages, which stay.
        limits: What is asked for.
    """
    found: list[Cut] = []
    if limits.keep_turns is not None:
        found.append(Cut(max(0, len(sizes) - max(1, limits.keep_turns)), "explicit"))
    if limits.max_messages is not None:
        used = [size.messages for size in sizes]
        found.append(Cut(_over(used, limits.max_messages - system.messages), "message_limit"))
    if limits.max_tokens is not None:
        used = [size.tokens for size in sizes]
        found.append(Cut(_over(used, limits.max_tokens - system.tokens), "token_budget"))
    return max(found, key=lambda one: one.turns)


def _over(used: Sequence[int], left: int) -> int:
    for kept, amount in enumerate(reversed(used)):
        left -= amount
        if left < 0 and kept > 0:
            return len(used) - kept
    return 0


def sizes_of(row: SessionRow, stored: Sequence[tuple[int, int, int]]) -> list[Size]:
    """Give the sizes of stored turns (number, messages, tokens) without leading system messages."""
    return [
        Size(messages - (row.leading_system if turn_no == 0 else 0), tokens)
        for turn_no, messages, tokens in stored
    ]
