"""The one place where stored rows become a transcript, and where it is repaired."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from .errors import UnreadableTranscript
from .rows import CallRow, MessageRow, SessionRow, TrimRow, TurnRow, decode_messages
from .scope import TurnOrigin
from .transcript import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
    Transcript,
    TrimReport,
    TurnInfo,
)

INTERRUPTED = "The call was interrupted; its result is not known."
"""The content of a result that loading makes for a call that has none."""


def first_loaded(row: SessionRow, last_turns: int | None) -> int:
    """Give the number of the first turn to load."""
    if last_turns is None:
        return row.first_visible_turn
    return max(row.first_visible_turn, row.next_turn - last_turns)


def transcript(
    row: SessionRow,
    first: int,
    turns: Sequence[TurnRow],
    messages: Sequence[MessageRow],
    calls: Sequence[CallRow],
    leading: Sequence[MessageRow],
    trims: Sequence[TrimRow],
) -> Transcript:
    """Build what goes to the model, with every repair listed. No clock and no chance is in it.

    Args:
        row: The session.
        first: The number of the first turn in view.
        turns: The turns from there on.
        messages: Their messages, in order.
        calls: Their calls.
        leading: The system messages that the session begins with, when the first turn is not in view.
        trims: All trims, oldest first.

    Raises:
        UnreadableTranscript: Rows are missing, or do not decode.
    """
    if [turn.turn_no for turn in turns] != list(range(first, row.next_turn)):
        raise UnreadableTranscript("stored turns are missing")
    if len(leading) != (row.leading_system if first > 0 else 0):
        raise UnreadableTranscript("stored system messages are missing")
    view: list[Message] = [_present(found) for _, found in decode_messages(leading, ())]
    shown = {
        turn_no: list(group)
        for turn_no, group in groupby(decode_messages(messages, calls), lambda pair: pair[0].turn_no)
    }
    repairs: list[str] = []
    infos: list[TurnInfo] = []
    breadcrumb: int | None = None
    if row.trims:
        breadcrumb = len(view)
        view.append(_breadcrumb(row, trims))
    for turn in turns:
        found = shown.get(turn.turn_no, [])
        if [message.pos for message, _ in found] != list(range(turn.messages)):
            raise UnreadableTranscript(f"turn {turn.turn_no}: stored messages are missing")
        start = len(view)
        view += _repaired(found, repairs)
        infos.append(
            TurnInfo.model_validate(
                {
                    "turn_no": turn.turn_no,
                    "turn_id": turn.turn_id,
                    "origin": TurnOrigin(turn.origin),
                    "status": turn.status,
                    "created_at": turn.created_at,
                    "start": start,
                    "stop": len(view),
                }
            )
        )
    return Transcript(
        session=row.info,
        messages=tuple(view),
        trims=tuple(map(trim_report, trims)),
        repairs=tuple(repairs),
        turns=tuple(infos),
        breadcrumb=breadcrumb,
    )


def trim_report(trim: TrimRow) -> TrimReport:
    """Give a stored trim as callers see it."""
    return TrimReport.model_validate(
        {
            "dropped_turns": trim.to_turn - trim.from_turn,
            "dropped_messages": trim.dropped_messages,
            "kept_turns": trim.kept_turns,
            "reason": trim.reason,
            "erased": trim.erased,
        }
    )


def _present(message: Message | None) -> Message:
    if message is None:
        raise UnreadableTranscript("a leading system message does not decode")
    return message


def _breadcrumb(row: SessionRow, trims: Sequence[TrimRow]) -> SystemMessage:
    messages = sum(trim.dropped_messages for trim in trims)
    return SystemMessage(
        content=f"[Trimmed: {row.first_visible_turn} earlier turns with {messages} messages are not shown.]"
    )


def _repaired(found: Iterable[tuple[MessageRow, Message | None]], repairs: list[str]) -> list[Message]:
    """Drop results that answer no call, and close calls that have no result."""
    view: list[Message] = []
    asked: AssistantMessage | None = None
    asked_row: MessageRow | None = None
    answered: set[int] = set()

    def close_calls() -> None:
        if asked is None or asked_row is None:
            return
        for index, call in enumerate(asked.tool_calls):
            if index not in answered:
                view.append(
                    ToolMessage(
                        call_id=call.call_id, content=INTERRUPTED, outcome="interrupted", synthesized=True
                    )
                )
                repairs.append(
                    f"turn {asked_row.turn_no}: closed call {index} of message {asked_row.pos} as interrupted"
                )

    for row, message in found:
        if row.role == "tool":
            if message is None or asked_row is None or row.call_message != asked_row.pos:
                repairs.append(f"turn {row.turn_no}: dropped message {row.pos}, a result without its call")
                continue
            answered.add(row.call_index if row.call_index is not None else -1)
            view.append(message)
            continue
        close_calls()
        asked, asked_row, answered = None, row, set()
        if isinstance(message, AssistantMessage):
            asked = message
        view.append(_present(message))
    close_calls()
    return view
