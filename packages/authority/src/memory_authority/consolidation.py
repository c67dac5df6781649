"""Consolidation: what a named, bounded policy may take out of one turn."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Protocol, cast

from pydantic import Field, ValidationError

from ._text import text_of
from .errors import WriteRejected
from .records import MemoryKind, MemoryRecord
from .scope import Frozen, Identifier, Scope
from .transcript import AssistantMessage, Message, Turn


class ConsolidationLimits(Frozen):
    """The bounds of one consolidation. Inherited defaults, no rationale recorded.

    Attributes:
        max_records: Records that are kept; further ones are counted and dropped.
        max_chars: Characters of one record; a longer one is counted and dropped.
        max_input_chars: Characters of the turn's text that the policy is given.
        timeout_s: Seconds that the policy may take.
    """

    max_records: int = Field(default=5, ge=0)
    max_chars: int = Field(default=500, ge=1)
    max_input_chars: int = Field(default=4_000, ge=0)
    timeout_s: float = Field(default=20.0, gt=0, allow_inf_nan=False)


class Candidate(Frozen):
    """What a policy proposes to keep. Its scope and provenance are the layer's to set.

    Attributes:
        text: What to remember.
        kind: What it is.
        subject: The key it is about.
        tags: Labels.
        expires_at: Seconds since 1970 in UTC.
        scope: If given, it must be the scope that the turn belongs to.
    """

    text: str = Field(repr=False)
    kind: MemoryKind
    subject: str | None = None
    tags: tuple[str, ...] = ()
    expires_at: float | None = None
    scope: Scope | None = None


class ConsolidationPolicy(Protocol):
    """Decides what of a turn is worth keeping. Its name stands in every record it leads to."""

    @property
    def name(self) -> str:
        """A name, kept as provenance."""
        ...

    @property
    def limits(self) -> ConsolidationLimits:
        """The bounds; the layer enforces them."""
        ...

    async def extract(self, turn: Turn, existing: Sequence[MemoryRecord]) -> Sequence[Candidate]:
        """Propose what to keep.

        Args:
            turn: The turn, its text cut to `max_input_chars`.
            existing: Records of the same owner that speak of the same things.
        """
        ...


class Consolidation(Frozen):
    """What one consolidation led to.

    Attributes:
        records: The records, in the order of the candidates; one that was there already is among them.
        rejected: How many candidates were not kept, by reason.
        input_cut: Characters of the turn that the policy did not see.
    """

    records: tuple[MemoryRecord, ...]
    rejected: Mapping[str, int] = Field(default_factory=dict)
    input_cut: int = Field(default=0, ge=0)


class _Bounded(Frozen):
    name: Annotated[Identifier, Field(min_length=1)]
    limits: ConsolidationLimits


async def propose(
    policy: ConsolidationPolicy, turn: Turn, existing: Sequence[MemoryRecord], scope: Scope
) -> tuple[list[Candidate], Counter[str], int]:
    """Ask a policy, and hold it to its bounds.

    Returns:
        The candidates to keep, the others counted by reason, and the characters that were cut.

    Raises:
        WriteRejected: The policy has no name or no limits, failed, took too long, or gave something
            else than candidates of this scope. Nothing of it is kept then.
    """
    limits = bounds_of(policy)
    shown, cut = cut_turn(turn, limits.max_input_chars)
    try:
        async with asyncio.timeout(limits.timeout_s):
            given = await policy.extract(shown, existing)
    except TimeoutError as error:
        raise WriteRejected(f"the policy {policy.name} took longer than {limits.timeout_s:g} s") from error
    except Exception as error:
        raise WriteRejected(f"the policy {policy.name} failed with {type(error).__name__}") from error
    candidates = _checked(policy.name, given, scope)
    rejected: Counter[str] = Counter()
    kept: list[Candidate] = []
    for candidate in candidates:
        if len(candidate.text) > limits.max_chars:
            rejected["too_long"] += 1
        elif len(kept) >= limits.max_records:
            rejected["too_many"] += 1
        else:
            kept.append(candidate)
    return kept, rejected, cut


def bounds_of(policy: ConsolidationPolicy) -> ConsolidationLimits:
    """Give a policy's limits.

    Raises:
        WriteRejected: It is no policy with a name and limits.
    """
    try:
        return _Bounded(name=policy.name, limits=policy.limits).limits
    except (AttributeError, ValidationError) as error:
        raise WriteRejected("a consolidation needs a policy with a name and limits") from error


def _checked(name: str, given: object, scope: Scope) -> list[Candidate]:
    if not isinstance(given, (list, tuple)):
        raise WriteRejected(f"the policy {name} gave no list of candidates")
    candidates: list[Candidate] = []
    for candidate in cast("Sequence[object]", given):
        if not isinstance(candidate, Candidate) or not candidate.text.strip():
            raise WriteRejected(f"the policy {name} gave something that is no candidate")
        if candidate.scope is not None and candidate.scope != scope:
            raise WriteRejected(f"the policy {name} gave a candidate of another scope")
        candidates.append(candidate)
    return candidates


def cut_turn(turn: Turn, max_chars: int) -> tuple[Turn, int]:
    """Cut the text of a turn's messages, the last ones first; reasoning and arguments are text too.

    Returns:
        The turn, and how many characters were cut. A cut content becomes text.
    """
    left, cut = max_chars, 0

    def fitting(text: str) -> str:
        nonlocal left, cut
        shown = text[:left]
        left -= len(shown)
        cut += len(text) - len(shown)
        return shown

    messages: list[Message] = []
    for message in turn.messages:
        change: dict[str, Any] = {}
        text = text_of(message.content)
        if (shown := fitting(text)) != text:
            change["content"] = shown
        if isinstance(message, AssistantMessage):
            if message.reasoning is not None:
                change["reasoning"] = fitting(message.reasoning)
            change["tool_calls"] = tuple(
                call.model_copy(update={"arguments": fitting(call.arguments)}) for call in message.tool_calls
            )
        messages.append(message.model_copy(update=change))
    return (turn if cut == 0 else turn.model_copy(update={"messages": tuple(messages)})), cut
