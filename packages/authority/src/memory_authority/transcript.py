"""What a conversation consists of: messages, turns, sessions and the loaded transcript."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, model_validator

from .scope import Frozen, Identifier, Scope, SessionMode, TurnOrigin

Outcome = Literal["ok", "error", "denied", "interrupted"]
TurnStatus = Literal["complete", "failed", "cancelled"]
TrimReason = Literal["token_budget", "message_limit", "explicit", "retention"]


class ToolCall(Frozen):
    """A call that the model asks for.

    Attributes:
        call_id: The provider's id. It may come again in another message, not in the same one.
        name: The tool.
        arguments: The text of the arguments exactly as the model gave it; never re-encoded.
    """

    call_id: str
    name: str
    arguments: str = Field(repr=False)


class UserMessage(Frozen):
    """What the user, or whoever speaks to the agent, said."""

    role: Literal["user"] = "user"
    content: Any = Field(repr=False)


class AssistantMessage(Frozen):
    """What the model said, with the calls that it asks for."""

    role: Literal["assistant"] = "assistant"
    content: Any = Field(default=None, repr=False)
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = Field(default=None, repr=False)

    @model_validator(mode="after")
    def _distinct_calls(self) -> "AssistantMessage":
        if len({call.call_id for call in self.tool_calls}) < len(self.tool_calls):
            raise ValueError("two calls of one message have the same id")
        return self


class ToolMessage(Frozen):
    """The result of one call of the assistant message before it.

    Attributes:
        call_id: The id of the call.
        content: What the tool gave back.
        outcome: How the call ended.
        synthesized: True when loading made it to close a call that has no stored result.
    """

    role: Literal["tool"] = "tool"
    call_id: str
    content: Any = Field(repr=False)
    outcome: Outcome = "ok"
    synthesized: bool = False


class SystemMessage(Frozen):
    """An instruction of the host."""

    role: Literal["system"] = "system"
    content: str = Field(repr=False)


Message = Annotated[UserMessage | AssistantMessage | ToolMessage | SystemMessage, Field(discriminator="role")]


class Turn(Frozen):
    """All that one input led to. It is stored whole or not at all.

    Attributes:
        turn_id: The host's id. Appending the same turn again with it changes nothing.
        origin: What started the turn.
        messages: In order. The results of an assistant message stand right after it, in any order.
        status: `failed` and `cancelled` turns are kept too; their last calls may lack a result.
    """

    turn_id: Annotated[Identifier, Field(min_length=1)]
    origin: TurnOrigin
    messages: Annotated[tuple[Message, ...], Field(min_length=1)]
    status: TurnStatus = "complete"

    @model_validator(mode="after")
    def _nothing_synthesized(self) -> "Turn":
        if any(isinstance(message, ToolMessage) and message.synthesized for message in self.messages):
            raise ValueError("a synthesized result is made by loading and never appended")
        return self


class SessionInfo(Frozen):
    """A session without its messages.

    Attributes:
        session_id: Its id, unique within its owner's scope.
        incarnation: New each time that the id is created; binds late writes to what they meant.
        scope: The owner, with `session` set to the id.
        mode: The surface; it never changes.
        external_key: The host's name for it, unique within the owner's scope.
        turns: How many turns were ever appended, hidden ones too.
        version: Grows by one with every change.
        state: A closed session can be read, and neither appended to nor resumed.
        created_at: Seconds since 1970 in UTC.
        last_activity: When the last turn was appended, or the session created.
    """

    session_id: UUID
    incarnation: UUID
    scope: Scope
    mode: SessionMode
    external_key: str | None
    turns: int
    version: int
    state: Literal["open", "closed"]
    created_at: float
    last_activity: float


class TrimReport(Frozen):
    """What one trim hid.

    Attributes:
        dropped_turns: Whole turns that left the loaded view.
        dropped_messages: Their messages; leading system messages stay and do not count.
        kept_turns: Turns still in view after it.
        reason: Why.
        erased: Whether the hidden turns were deleted too.
    """

    dropped_turns: int
    dropped_messages: int
    kept_turns: int
    reason: TrimReason
    erased: bool


class TurnInfo(Frozen):
    """Where a turn stands in the loaded messages, and how it ended.

    Attributes:
        turn_no: Its number in the session, from 0, without gaps.
        turn_id: The host's id.
        origin: What started it.
        status: A status other than `complete` is for the user to see; no message says it.
        created_at: Seconds since 1970 in UTC.
        start: Index of its first message in `Transcript.messages`.
        stop: Index after its last one.
    """

    turn_no: int
    turn_id: str
    origin: TurnOrigin
    status: TurnStatus
    created_at: float
    start: int
    stop: int


class Transcript(Frozen):
    """A session as it goes to the model: valid, and open about what is missing.

    Attributes:
        session: The session.
        messages: Leading system messages, the breadcrumb if turns were trimmed, then the turns.
        trims: Every trim, oldest first.
        repairs: One line for each repair that loading made; the stored rows are as they were.
        turns: The turns in view.
        breadcrumb: Index of the breadcrumb in `messages`. It is told by this alone, never by its
            text. None when nothing was trimmed.
    """

    session: SessionInfo
    messages: tuple[Message, ...]
    trims: tuple[TrimReport, ...]
    repairs: tuple[str, ...]
    turns: tuple[TurnInfo, ...] = ()
    breadcrumb: int | None = None
