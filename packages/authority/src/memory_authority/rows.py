"""Rows: how a turn is written, exactly, and read again.

The same rows are kept by every store, in memory too, so that one test suite covers the encoding.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import ValidationError

from adapter_core import (
    ItemFields,
    UnrepresentableItem,
    check_item,
    decode_value,
    encode_value,
)

from .errors import UnpairedToolResult, UnreadableTranscript
from .scope import Scope
from .transcript import (
    AssistantMessage,
    Message,
    SessionInfo,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Turn,
    UserMessage,
)

CHARACTERS_PER_TOKEN = 4
"""How many characters a token is taken for; an estimate, inherited without recorded evidence."""
TOKENS_PER_MESSAGE = 4
"""What a message costs beside its text; likewise."""

_NO_ID = UUID(int=0)
_JOINABLE = re.compile("[\ud800-\udbff][\udc00-\udfff]")


class SessionRow(NamedTuple):
    """A session, in the order of the columns that are read."""

    incarnation: UUID
    session_id: UUID
    tenant: str
    principal: str
    agent: str
    external_key: str | None
    mode: str
    state: str
    version: int
    next_turn: int
    first_visible_turn: int
    leading_system: int
    leading_tokens: int
    trims: int
    created_at: float
    last_activity: float
    closed_at: float | None = None

    @property
    def info(self) -> SessionInfo:
        """The session as callers see it."""
        return SessionInfo.model_validate(
            {
                "session_id": self.session_id,
                "incarnation": self.incarnation,
                "scope": Scope(
                    agent=self.agent, tenant=self.tenant, principal=self.principal, session=self.session_id
                ),
                "mode": self.mode,
                "external_key": self.external_key,
                "turns": self.next_turn,
                "version": self.version,
                "state": self.state,
                "created_at": self.created_at,
                "last_activity": self.last_activity,
            }
        )


class TurnRow(NamedTuple):
    """A turn without its messages; `digest` is empty once it is erased."""

    turn_no: int
    turn_id: str
    origin: str
    status: str
    digest: str
    messages: int
    tokens: int
    created_at: float


class MessageRow(NamedTuple):
    """A message; the last two say which call a result answers."""

    turn_no: int
    pos: int
    role: str
    content: str
    reasoning: str | None
    outcome: str | None
    call_message: int | None
    call_index: int | None


class CallRow(NamedTuple):
    """A call of an assistant message."""

    turn_no: int
    message_pos: int
    call_index: int
    call_id: str
    name: str
    arguments: str


class TrimRow(NamedTuple):
    """What one trim hid."""

    from_turn: int
    to_turn: int
    dropped_messages: int
    kept_turns: int
    reason: str
    erased: bool


@dataclass(frozen=True)
class EncodedTurn:
    """A checked turn, ready to be written; its number is not known yet.

    Attributes:
        turn: The turn itself.
        messages: Its rows, numbered 0.
        calls: Their calls, numbered 0.
        tokens: The estimate for each message.
        leading: How many system messages it begins with.
        digest: SHA-256 of all of it, in hexadecimal.
    """

    turn: Turn
    messages: tuple[MessageRow, ...]
    calls: tuple[CallRow, ...]
    tokens: tuple[int, ...]
    leading: int
    digest: str


def encode_turn(turn: Turn) -> EncodedTurn:
    """Check a turn and write it as rows.

    Raises:
        UnpairedToolResult: A result does not answer a call of the message that it stands after.
        UnrepresentableItem: Something in it would not come back equal.
    """
    messages: list[MessageRow] = []
    calls: list[CallRow] = []
    tokens: list[int] = []
    open_calls: dict[str, int] = {}
    asked_at = 0
    for pos, given in enumerate(turn.messages):
        where = f"messages[{pos}]"
        content = encoded(given.content, f"{where}.content")
        size = len(given.content) if isinstance(given.content, str) else len(content)
        reasoning = outcome = call_message = call_index = None
        if isinstance(given, ToolMessage):
            call_index = open_calls.pop(given.call_id, None)
            if call_index is None:
                raise UnpairedToolResult(f"{where}: the message before it asks for no such call")
            call_message, outcome = asked_at, given.outcome
        else:
            open_calls, asked_at = {}, pos
        if isinstance(given, AssistantMessage):
            for index, asked in enumerate(given.tool_calls):
                calls.append(_call_row(asked, pos, index, f"{where}.tool_calls[{index}]"))
                open_calls[asked.call_id] = index
                size += len(asked.name) + len(asked.arguments)
            if given.reasoning is not None:
                reasoning = encoded(given.reasoning, f"{where}.reasoning")
                size += len(given.reasoning)
        messages.append(MessageRow(0, pos, given.role, content, reasoning, outcome, call_message, call_index))
        tokens.append(TOKENS_PER_MESSAGE + math.ceil(size / CHARACTERS_PER_TOKEN))
    leading = next(
        (pos for pos, row in enumerate(messages) if row.role != "system"),
        len(messages),
    )
    digest = _digest(turn, messages, calls)
    return EncodedTurn(turn, tuple(messages), tuple(calls), tuple(tokens), leading, digest)


def _call_row(asked: ToolCall, pos: int, index: int, where: str) -> CallRow:
    return CallRow(
        *(0, pos, index),
        encoded(asked.call_id, f"{where}.call_id"),
        encoded(asked.name, f"{where}.name"),
        encoded(asked.arguments, f"{where}.arguments"),
    )


def encoded(value: Any, where: str) -> str:
    """Write a content as JSON text.

    Raises:
        UnrepresentableItem: It would not come back equal; `where` is the path that the error names.
    """
    if type(value) is str:
        if not value.isascii() and _JOINABLE.search(value):
            raise UnrepresentableItem(where, "a high surrogate next to a low one: JSON would join them")
    elif value is not None:
        try:
            check_item(ItemFields(_NO_ID, 0.0, {}, value, []))
        except UnrepresentableItem as error:
            raise UnrepresentableItem(where + error.path.removeprefix("content"), error.reason) from None
    return encode_value(value)


def _digest(turn: Turn, messages: Iterable[MessageRow], calls: Iterable[CallRow]) -> str:
    # every part is ASCII without a NUL or comes from a closed list, but for the id, which is first
    parts = [turn.turn_id, turn.origin.value, turn.status]
    for row in (*messages, *calls):
        parts += ["" if part is None else str(part) for part in row]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def decode_messages(
    messages: Sequence[MessageRow], calls: Iterable[CallRow]
) -> list[tuple[MessageRow, Message | None]]:
    """Read rows; a result whose call is gone is None.

    Raises:
        UnreadableTranscript: A row does not decode. The message says where, and shows no content.
    """
    asked: dict[tuple[int, int], dict[int, ToolCall]] = {}
    place = "a tool call"
    try:
        for row in calls:
            place = f"turn {row.turn_no}, message {row.message_pos}, call {row.call_index}"
            of_message = asked.setdefault((row.turn_no, row.message_pos), {})
            of_message[row.call_index] = ToolCall(
                call_id=decode_value(row.call_id),
                name=decode_value(row.name),
                arguments=decode_value(row.arguments),
            )
        decoded: list[tuple[MessageRow, Message | None]] = []
        for message in messages:
            place = f"turn {message.turn_no}, message {message.pos}"
            decoded.append((message, _message(message, asked)))
    except (ValueError, TypeError) as error:  # pydantic's errors are ValueErrors
        reason = f"{place}: stored rows do not decode ({type(error).__name__})"
        if isinstance(error, ValidationError):
            raise UnreadableTranscript(reason) from None  # its text may hold what is stored
        raise UnreadableTranscript(reason) from error
    return decoded


def _message(row: MessageRow, asked: dict[tuple[int, int], dict[int, ToolCall]]) -> Message | None:
    content = decode_value(row.content)
    if row.role == "user":
        return UserMessage(content=content)
    if row.role == "assistant":
        calls = asked.get((row.turn_no, row.pos), {})
        return AssistantMessage(
            content=content,
            tool_calls=tuple(calls[index] for index in sorted(calls)),
            reasoning=None if row.reasoning is None else decode_value(row.reasoning),
        )
    if row.role == "system":
        return SystemMessage(content=content)
    if row.role != "tool":
        raise ValueError("not a role")
    if row.call_message is None or row.call_index is None:
        return None
    answered = asked.get((row.turn_no, row.call_message), {}).get(row.call_index)
    if answered is None:
        return None
    return ToolMessage.model_validate(
        {"call_id": answered.call_id, "content": content, "outcome": row.outcome}
    )
