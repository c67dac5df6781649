"""Turns for tests, and strategies that generate them."""

import re
from typing import Any, get_args

from hypothesis import strategies as st

from memory_authority import (
    AssistantMessage,
    Message,
    Scope,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Turn,
    TurnOrigin,
    UserMessage,
)
from memory_authority.transcript import Outcome, TurnStatus

ALICE = Scope(agent="helper", tenant="acme", principal="alice")
"""An owner."""

_JOINABLE = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def said(turn_id: str, text: str = "Hello", **options: Any) -> Turn:
    """Give a turn of one question and its answer."""
    messages = (UserMessage(content=text), AssistantMessage(content="Yes."))
    return Turn(turn_id=turn_id, origin=TurnOrigin.INTERACTIVE, messages=messages, **options)


def with_tools(turn_id: str, *names: str, first_id: int = 0, **options: Any) -> Turn:
    """Give a turn that calls tools in parallel; the results come in reverse."""
    calls = tuple(
        ToolCall(call_id=f"call_{first_id + index}", name=name, arguments=f'{{"n": {index}}}')
        for index, name in enumerate(names)
    )
    results = tuple(ToolMessage(call_id=call.call_id, content=f"of {call.name}") for call in reversed(calls))
    messages: tuple[Message, ...] = (
        UserMessage(content="Look it up"),
        AssistantMessage(tool_calls=calls),
        *results,
        AssistantMessage(content="Done."),
    )
    return Turn(turn_id=turn_id, origin=TurnOrigin.INTERACTIVE, messages=messages, **options)


def interrupted(turn_id: str, **options: Any) -> Turn:
    """Give a turn that failed after the first of two results."""
    calls = (
        ToolCall(call_id="call_0", name="read", arguments="{}"),
        ToolCall(call_id="call_1", name="write", arguments="{}"),
    )
    messages = (
        UserMessage(content="Do both"),
        AssistantMessage(tool_calls=calls),
        ToolMessage(call_id="call_0", content="read it"),
    )
    return Turn(turn_id=turn_id, origin=TurnOrigin.INTERACTIVE, messages=messages, status="failed", **options)


def opening(turn_id: str = "opening") -> Turn:
    """Give a first turn, with two leading system messages."""
    messages = (
        SystemMessage(content="Be brief."),
        SystemMessage(content="Be kind."),
        UserMessage(content="Hello"),
        AssistantMessage(content="Hello."),
    )
    return Turn(turn_id=turn_id, origin=TurnOrigin.INTERACTIVE, messages=messages)


def texts(max_size: int = 40) -> st.SearchStrategy[str]:
    """Generate any text: NUL, lone surrogates, other planes; not the pairs that JSON would join."""
    every = st.text(st.characters(exclude_categories=()), max_size=max_size)
    return every.filter(lambda text: not _JOINABLE.search(text))


def contents() -> st.SearchStrategy[Any]:
    """Generate any content that is stored exactly."""
    scalars = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        texts(),
    )
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(8), inner, max_size=3),
        max_leaves=6,
    )


@st.composite
def exchanges(draw: st.DrawFn) -> tuple[Message, ...]:
    """Generate an assistant message with calls, and the results of some in any order."""
    ids = draw(st.lists(texts(12), min_size=0, max_size=4, unique=True))
    calls = tuple(ToolCall(call_id=one, name=draw(texts(12)), arguments=draw(texts())) for one in ids)
    message = AssistantMessage(
        content=draw(contents()), tool_calls=calls, reasoning=draw(st.none() | texts())
    )
    answered = draw(st.permutations(ids))
    results = tuple(
        ToolMessage(call_id=one, content=draw(contents()), outcome=draw(st.sampled_from(get_args(Outcome))))
        for one in answered
    )
    return (message, *results)


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    """Generate a turn in which every call has its result."""
    system = draw(st.lists(texts().map(lambda text: SystemMessage(content=text)), max_size=2))
    asked = UserMessage(content=draw(contents()))
    parts = draw(st.lists(exchanges(), max_size=3))
    return Turn(
        turn_id=draw(st.text("abcXYZ-19", min_size=1, max_size=20)),
        origin=draw(st.sampled_from(TurnOrigin)),
        status=draw(st.sampled_from(get_args(TurnStatus))),
        messages=(*system, asked, *(message for part in parts for message in part)),
    )
