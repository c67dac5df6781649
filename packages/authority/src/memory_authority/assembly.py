"""Prompt assembly: what reaches the model in one turn, in which order, and what was held back."""

import hashlib
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID

from pydantic import Field

from ._text import same_text, text_of
from .conflicts import ConflictDetector, Said, contradicts, repeats
from .fence import Entry, Fence, holds_block, line_length, render_block
from .isolation import Injection, injection, is_from_conversation
from .records import MemoryKind, MemoryRecord, Recall
from .rows import encoded
from .scope import Frozen, TurnOrigin
from .transcript import Message, SystemMessage, Transcript, UserMessage

RECALL_LIMIT = 5
"""How many records a turn asks for. An inherited default, no rationale recorded."""

Reason = Literal[
    "budget",
    "conflicts_with_input",
    "conflicts_with_session",
    "detector_failed",
    "duplicate",
    "from_conversation",
    "isolated_mode",
    "legacy_kind",
    "screened",
]

# Rows of older memory systems that were no knowledge: pictures, tool results.
_LEGACY = ("[image:", "data:image/", "[tool result", "[tool_result", "<tool_result", '"tool_call_id"')


class ContextBudget(Frozen):
    """How much memory a turn may carry. Inherited defaults, no rationale recorded.

    Attributes:
        max_records: Records in the block.
        max_record_chars: Characters of one text; a longer one is cut, and its entry says so.
        max_total_chars: Characters of all entries together, as they are rendered.
        max_source_chars: The same for the sources that the caller gives, which have a block of their own.
    """

    max_records: int = Field(default=4, ge=0)
    max_record_chars: int = Field(default=800, ge=1)
    max_total_chars: int = Field(default=4_000, ge=0)
    max_source_chars: int = Field(default=16_000, ge=0)


class Dropped(Frozen):
    """A record that was recalled and did not reach the prompt.

    Attributes:
        ref: Its id; None when nothing was recalled at all, and for a source.
        reason: Why.
    """

    ref: UUID | None
    reason: Reason


class AssembledContext(Frozen):
    """What goes to the model, in the order of its fields. No part of it is stored.

    Attributes:
        system: The leading system messages of the session; they do not vary with recall.
        history: The rest of the session.
        sources: The excerpts that the caller gave, fenced.
        memory: The recalled records, fenced.
        current: The input, as it was given.
        dropped: What was held back, and why.
        fence: The random tag of the blocks; None when there is none.
        digest: SHA-256 over all of it but the random tag, in hexadecimal. A cache of model answers
            must be keyed with it, since it covers what was recalled.
    """

    system: tuple[SystemMessage, ...]
    history: tuple[Message, ...]
    sources: UserMessage | None
    memory: UserMessage | None
    current: UserMessage
    dropped: tuple[Dropped, ...]
    fence: str | None
    digest: str

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages in their order; the current one is last."""
        blocks = tuple(block for block in (self.sources, self.memory) if block is not None)
        return (*self.system, *self.history, *blocks, self.current)


class MemorySource(Protocol):
    """The memory side: anything that recalls records, such as `CuratedMemory`."""

    async def recall(self, query: str, *, limit: int = RECALL_LIMIT) -> Recall:
        """Give the records for a query, the best first.

        Raises:
            MemoryAdapterError: The authority failed. It is never answered with an empty recall.
        """
        ...


class HistorySource(Protocol):
    """The history side: one session, such as `ConversationHistory`."""

    async def resume(self) -> Transcript:
        """Give the transcript of the session."""
        ...


class ReadScreen(Protocol):
    """Looks at a record before it is shown."""

    def on_read(self, record: MemoryRecord) -> bool:
        """Whether the record may be shown. One that raises holds the record back."""
        ...


@dataclass(frozen=True)
class _Turn:
    turn_id: str
    query: str
    recalled: Recall
    tag: str


class _Conversation:
    """What records are compared with, in one turn."""

    def __init__(self, transcript: Transcript, current: UserMessage) -> None:
        self.transcript = transcript
        self.nothing_said = transcript.model_copy(update={"messages": (), "turns": (), "breadcrumb": None})
        self.current = current
        self.said = Said(transcript, current)
        self.input = Said(self.nothing_said, current)


class ContextAssembler:
    """Puts one turn together: system, history, sources, memory, and the current input last.

    The session's stored mode and the turn's origin decide whether memory is asked at all; a caller can
    only ask for less. Memory is asked once in a turn. A record that the conversation contradicts or
    repeats is held back, and the reason is in `AssembledContext.dropped`. A failure of the memory's
    authority is raised: best-effort recall is another thing, see `RecallProvider`.

    Nothing is stored here, so a block never becomes history, and a retried turn has one block.

    Args:
        history: The session.
        memory: Where records come from; None for a host without memory.
        budget: How much of them a turn may carry.
        conflicts: Detectors that stand beside the default one, which goes by subject.
        fence: How texts are marked as data.
        screen: Looks at each record once more before it is shown.
        new_tag: Gives a tag of sixteen hexadecimal digits that nobody can guess.
    """

    def __init__(
        self,
        history: HistorySource,
        memory: MemorySource | None = None,
        *,
        budget: ContextBudget | None = None,
        conflicts: Sequence[ConflictDetector] = (),
        fence: Fence = "delimit",
        screen: ReadScreen | None = None,
        new_tag: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self._history = history
        self._memory = memory
        self._budget = budget or ContextBudget()
        self._detectors = tuple(conflicts)
        self._fence: Fence = fence
        self._screen = screen
        self._new_tag = new_tag
        self._last: _Turn | None = None

    async def assemble(
        self,
        current: UserMessage,
        *,
        origin: TurnOrigin,
        sources: Sequence[str] = (),
        memory: bool = True,
        query: str | None = None,
        turn_id: str | None = None,
    ) -> AssembledContext:
        """Put the turn together.

        Args:
            current: The input; it is passed on unchanged, whatever it looks like.
            origin: What started the turn.
            sources: Excerpts that the caller chose for this turn. They are fenced like memory, stand
                in isolated sessions too, and turn no recall on.
            memory: False leaves memory out of a turn that could have it. True opens nothing.
            query: What to recall by; the text of the input unless given.
            turn_id: Names the turn, so that a retry of it gets the block of the first try and memory
                is not asked again.

        Raises:
            UnrepresentableItem: The input could not be kept in a session either; nothing was asked.
            MemoryAdapterError: The session or the memory's authority could not be read.
        """
        encoded(current.content, "current.content")
        transcript = await self._history.resume()
        allowed = injection(transcript.session.mode, origin) if memory else Injection.NONE
        text = text_of(current.content) if query is None else query
        turn = await self._recalled(allowed, text, turn_id)
        dropped: list[Dropped] = []
        if allowed is Injection.NONE and self._memory is not None:
            dropped.append(Dropped(ref=None, reason="isolated_mode"))
        chosen = self._choose(turn.recalled, allowed, transcript, current, dropped)
        entries = self._entries(chosen, dropped)
        excerpts = self._excerpts(sources, dropped)
        system, history = _split(transcript)
        return AssembledContext(
            system=system,
            history=history,
            sources=self._block(excerpts, turn.tag, "sources"),
            memory=self._block(entries, turn.tag, "memory"),
            current=current,
            dropped=tuple(dropped),
            fence=turn.tag if entries or excerpts else None,
            digest=_digest(system, history, excerpts, entries, current),
        )

    async def _recalled(self, allowed: Injection, query: str, turn_id: str | None) -> _Turn:
        last = self._last
        if last is not None and (last.turn_id, last.query) == (turn_id, query):
            return last
        recalled = Recall(records=())
        if self._memory is not None and allowed is not Injection.NONE and query.strip():
            recalled = await self._memory.recall(query, limit=RECALL_LIMIT)
        turn = _Turn(turn_id or "", query, recalled, self._new_tag())
        if turn_id is not None and allowed is not Injection.NONE:
            self._last = turn
        return turn

    def _choose(
        self,
        recalled: Recall,
        allowed: Injection,
        transcript: Transcript,
        current: UserMessage,
        dropped: list[Dropped],
    ) -> list[MemoryRecord]:
        if allowed is Injection.NONE:
            return []
        chosen: list[MemoryRecord] = []
        seen: set[str] = set()
        conversation = _Conversation(transcript, current)
        for record in recalled.records:
            text = same_text(record.text)
            reason = self._reason_against(record, allowed, conversation)
            if reason is None and text in seen:
                reason = "duplicate"
            if reason is not None:
                dropped.append(Dropped(ref=record.id, reason=reason))
                continue
            seen.add(text)
            chosen.append(record)
        return chosen

    def _reason_against(
        self, record: MemoryRecord, allowed: Injection, conversation: "_Conversation"
    ) -> Reason | None:
        if _is_legacy(record):
            return "legacy_kind"
        if allowed is Injection.NOT_FROM_CONVERSATIONS and is_from_conversation(record):
            return "from_conversation"
        if not self._passes_screen(record):
            return "screened"
        try:
            return self._conflict(record, conversation)
        except Exception:  # noqa: BLE001 - the detector is the host's; a record it cannot judge is held back
            return "detector_failed"

    def _passes_screen(self, record: MemoryRecord) -> bool:
        if self._screen is None:
            return True
        try:
            return self._screen.on_read(record)
        except Exception:  # noqa: BLE001 - the screen is the host's; a record it cannot judge is held back
            return False

    def _conflict(self, record: MemoryRecord, about: "_Conversation") -> Reason | None:
        def is_against(said: Said, transcript: Transcript) -> bool:
            return contradicts(record, said) or any(
                detector.conflicts(record, transcript, about.current) for detector in self._detectors
            )

        if is_against(about.input, about.nothing_said):
            return "conflicts_with_input"
        if is_against(about.said, about.transcript):
            return "conflicts_with_session"
        return "duplicate" if repeats(record, about.said) else None

    def _entries(self, records: Sequence[MemoryRecord], dropped: list[Dropped]) -> list[Entry]:
        entries: list[Entry] = []
        left = self._budget.max_total_chars
        for record in records:
            entry = _entry(record, self._budget.max_record_chars)
            length = line_length(entry, self._fence)
            if len(entries) >= self._budget.max_records or length > left:
                dropped.append(Dropped(ref=record.id, reason="budget"))
                continue
            left -= length
            entries.append(entry)
        return entries

    def _excerpts(self, sources: Sequence[str], dropped: list[Dropped]) -> list[Entry]:
        entries: list[Entry] = []
        left = self._budget.max_source_chars
        for number, text in enumerate(sources, start=1):
            entry: Entry = {"source": number, "text": text}
            length = line_length(entry, self._fence)
            if length > left:
                dropped.append(Dropped(ref=None, reason="budget"))
                continue
            left -= length
            entries.append(entry)
        return entries

    def _block(
        self, entries: Sequence[Entry], tag: str, name: Literal["memory", "sources"]
    ) -> UserMessage | None:
        if not entries:
            return None
        return UserMessage(content=render_block(entries, tag=tag, name=name, fence=self._fence))


def _is_legacy(record: MemoryRecord) -> bool:
    # A source may build records without the checks of the model.
    if record.kind not in frozenset(MemoryKind):
        return True
    folded = record.text.casefold()
    return holds_block(record.text) or any(mark in folded for mark in _LEGACY)


def _entry(record: MemoryRecord, max_chars: int) -> Entry:
    source = record.provenance
    entry: dict[str, str | int | bool | None] = {
        "id": str(record.id),
        "kind": str(record.kind),
        "source": f"{source.actor} {source.actor_id}",
        "time": source.recorded_at.isoformat(),
    }
    if len(record.text) > max_chars:
        entry["cut_from_chars"] = len(record.text)
    entry["text"] = record.text[:max_chars]
    return entry


def _split(transcript: Transcript) -> tuple[tuple[SystemMessage, ...], tuple[Message, ...]]:
    system: list[SystemMessage] = []
    for place, message in enumerate(transcript.messages):
        if place == transcript.breadcrumb or not isinstance(message, SystemMessage):
            break
        system.append(message)
    return tuple(system), transcript.messages[len(system) :]


def _digest(
    system: Sequence[SystemMessage],
    history: Sequence[Message],
    excerpts: Sequence[Entry],
    entries: Sequence[Entry],
    current: UserMessage,
) -> str:
    messages = [message.model_dump() for message in (*system, *history, current)]
    parts = {"messages": messages, "sources": excerpts, "memory": entries}
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
