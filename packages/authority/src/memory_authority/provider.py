"""Best-effort recall: prompt enrichment that may fail, and never fails the turn.

`RecallProvider` is a context provider in the shape that lionagi asks for. It is no store: it has no
manifest, is not shared by a session, and promises nothing about what it writes. A caller who relies
on what is kept uses a store, and gets its errors (ADR-0093, D5).
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple, TypeVar, cast
from uuid import UUID

from pydantic import Field

from adapter_core import ItemLike, MemoryItem, MemoryQuery, MemoryStore, QueryLike, SupportsScoredSearch

from ._text import text_of
from .fence import Entry, line_length, render_block
from .matching import Searchable, search_any_word
from .scope import Frozen

logger = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")

CHARS_PER_TOKEN = 4
"""How a token budget is turned into characters: an estimate, no tokenizer is needed."""
MAX_TASK_CHARS = 400
"""How much of the task text is asked for. An inherited default, no rationale recorded."""
MAX_OUTPUT_CHARS = 500
"""How much of a tool's output a written-back record quotes."""
PAIRING_RULE = "fifo-next-non-error-output"
"""How a tool error is paired with what came after it: by order alone."""

# Fewer characters of a text than this say nothing.
_MIN_CUT = 40


class RecallPolicy(Frozen):
    """What a turn may recall. Inherited defaults, no rationale recorded; none is a limit of a store.

    Attributes:
        limit: The most items. Where the store gives no scores, this rank is the only cut.
        min_score: Where the store has scored search: hits below it are left out. It is in the
            store's own unit, see its `score_meaning`.
        max_tokens: The most tokens of recalled text.
        timeout_s: Seconds that recall, and composition, may take; each has as many.
    """

    limit: int = Field(default=5, ge=0)
    min_score: float = Field(default=0.4, allow_inf_nan=False)
    max_tokens: int = Field(default=800, ge=0)
    timeout_s: float = Field(default=3.0, gt=0, allow_inf_nan=False)


class ComposePolicy(Frozen):
    """What composition may add. Inherited defaults, no rationale recorded."""

    enabled: bool = False
    max_tokens: int = Field(default=2_000, ge=0)


class WritebackPolicy(Frozen):
    """What is written back after a turn. Inherited defaults, no rationale recorded.

    Attributes:
        enabled: Off unless asked for.
        salience_cap: Kept with each record as `salience`.
        tags: Labels; `agent:<name of the branch>` unless given.
    """

    enabled: bool = False
    salience_cap: float = Field(default=0.4, ge=0, le=1)
    tags: tuple[str, ...] = ()


class InjectionPolicy(Frozen):
    """When and how much is injected.

    Attributes:
        enabled: Off gives None always.
        cadence: On the first turn of a branch, or on every turn. An inherited default.
        announce_outage: Tell the model that recall failed; otherwise the turn is as if nothing was found.
    """

    enabled: bool = True
    cadence: Literal["first_turn", "every_turn"] = "first_turn"
    announce_outage: bool = False
    recall: RecallPolicy = RecallPolicy()
    compose: ComposePolicy = ComposePolicy()
    writeback: WritebackPolicy = WritebackPolicy()


class _Recalled(NamedTuple):
    id: UUID
    entry: Entry


class RecallProvider:
    """Recalls for a turn, and gives text or None. It never raises into the turn.

    What went wrong is in `degradation_reason`, for the task that asked, and in the log; neither holds
    any content. One instance serves concurrent turns.

    Args:
        store: Any memory store. It is not closed here.
        policy: When and how much.
        filters: Conditions of every recall, such as the tenant; written-back records carry those that
            are single values.
        compose: Gives further text for a task, when the policy enables composition.
        feedback: Is told the task and the ids that were injected.
        name: What reports call it.
    """

    def __init__(
        self,
        store: MemoryStore[Any],
        policy: InjectionPolicy | None = None,
        *,
        filters: Mapping[str, Any] | None = None,
        compose: Callable[[str], Awaitable[str | None]] | None = None,
        feedback: Callable[[str, Sequence[UUID]], Awaitable[None]] | None = None,
        name: str = "recall",
    ) -> None:
        self.name = name
        self.policy = policy or InjectionPolicy()
        self._store = store
        self._filters = dict(filters or {})
        self._compose = compose
        self._feedback = feedback
        # By context, so that a turn does not see the reason of another that runs beside it.
        self._reason: ContextVar[str | None] = ContextVar(f"{name}:degradation_reason", default=None)

    @property
    def degradation_reason(self) -> str | None:
        """Why this task's last `provide` gave less than it could, as `what:ErrorClass`, in their order."""
        return self._reason.get()

    async def provide(self, branch: Any, instruction: Any) -> str | None:
        """Give what is known about the instruction, fenced as data, or None."""
        self._reason.set(None)
        try:
            return await self._provided(branch, instruction)
        except Exception as error:  # noqa: BLE001 - enrichment is optional; the reason is kept and logged
            self._degrade("provide", error)
            return None

    async def writeback(self, branch: Any, action_responses: Iterable[Any]) -> int:
        """Keep what followed the tool errors of a turn, if the policy says so.

        Each error is paired with the next output that is none, by order alone; the record says so. The
        first failure ends it and is logged.

        Returns:
            How many records were written.
        """
        written = 0
        try:
            policy = self.policy.writeback
            if not policy.enabled:
                return 0
            tags = list(policy.tags) or [f"agent:{getattr(branch, 'name', None) or 'agent'}"]
            kept = {key: value for key, value in self._filters.items() if _is_scalar(value)}
            for content in _pairs(action_responses):
                metadata = {**kept, "salience": policy.salience_cap, "pairing_rule": PAIRING_RULE}
                item = MemoryItem(content=content, metadata=metadata, tags=tags)
                async with asyncio.timeout(self.policy.recall.timeout_s):
                    await self._store.store(item)
                written += 1
        except Exception as error:  # noqa: BLE001 - enrichment is optional; the reason is kept and logged
            logger.warning("%s: writeback_failed:%s", self.name, type(error).__name__)
        return written

    async def _provided(self, branch: Any, instruction: Any) -> str | None:
        policy = self.policy
        if not policy.enabled or not self._is_due(branch):
            return None
        task = _task_text(instruction)
        if not task.strip():
            return None
        entries = await self._attempt("recall", lambda: self._recalled(task))
        composed = None
        if policy.compose.enabled and self._compose is not None:
            composed = await self._attempt("compose", lambda: self._composed(task))
        if entries is None and composed is None and policy.announce_outage and self.degradation_reason:
            return "Memory could not be asked for this turn; that nothing is recalled says nothing."
        text, injected = self._rendered(entries or [], composed)
        feedback = self._feedback
        if injected and feedback is not None:
            await self._attempt("feedback", lambda: feedback(task, injected))
        return text

    def _is_due(self, branch: Any) -> bool:
        if self.policy.cadence == "every_turn":
            return True
        return getattr(getattr(branch, "msgs", None), "last_response", None) is None

    async def _attempt(self, what: str, call: Callable[[], Awaitable[ResultT]]) -> ResultT | None:
        """Make a call; on any failure note the reason and give None."""
        try:
            async with asyncio.timeout(self.policy.recall.timeout_s):
                return await call()
        except Exception as error:  # noqa: BLE001 - enrichment is optional; the reason is kept and logged
            self._degrade(what, error)
            return None

    def _degrade(self, what: str, error: Exception) -> None:
        reason = f"{what}_failed:{type(error).__name__}"
        before = self._reason.get()
        self._reason.set(reason if before is None else f"{before}, {reason}")
        logger.warning("%s degraded: %s", self.name, reason)

    async def _recalled(self, task: str) -> list[_Recalled]:
        policy = self.policy.recall
        store: Searchable = self._store
        if isinstance(self._store, SupportsScoredSearch):
            store = _AboveFloor(cast("SupportsScoredSearch[Any]", self._store), policy.min_score)
        query = MemoryQuery(text=task, filters=self._filters, limit=policy.limit)
        found = list(await store.search(query))
        if not found and policy.limit > 0:
            found = await search_any_word(store, task, filters=self._filters, limit=policy.limit)
        # what a store gives is read here, where a failure has a name; more than was asked for is cut
        return [_Recalled(item.id, _entry(item)) for item in found[: policy.limit]]

    async def _composed(self, task: str) -> str | None:
        composed = None if self._compose is None else await self._compose(task)
        if composed is not None and type(composed) is not str:
            raise TypeError("a composition is text")
        return composed

    def _rendered(self, recalled: Sequence[_Recalled], composed: str | None) -> tuple[str | None, list[UUID]]:
        """Give the text, and the ids of the items that found room in it."""
        policy, tag = self.policy, secrets.token_hex(8)
        recall = _block("memory", [one.entry for one in recalled], policy.recall.max_tokens, tag)
        further: list[Entry] = [{"text": composed}] if composed else []
        blocks = [recall, _block("sources", further, policy.compose.max_tokens, tag)]
        text = "\n".join(block for block, _ in blocks if block is not None)
        return text or None, [one.id for one in recalled[: recall[1]]]


class _AboveFloor:
    """A scored search without the hits below a score."""

    def __init__(self, store: SupportsScoredSearch[Any], least: float) -> None:
        self._store = store
        self._least = least

    async def search(self, query: QueryLike) -> list[ItemLike]:
        """Give the items of the hits that reach it."""
        hits = await self._store.search_scored(query)
        return [hit.item for hit in hits if hit.score is not None and hit.score >= self._least]


def _block(
    name: Literal["memory", "sources"], entries: Sequence[Entry], tokens: int, tag: str
) -> tuple[str | None, int]:
    """Render what fits into so many tokens; give how many entries did."""
    room = tokens * CHARS_PER_TOKEN - len(render_block([], tag=tag, name=name)) - 1
    fitting = _fitting(entries, room)
    return (render_block(fitting, tag=tag, name=name) if fitting else None), len(fitting)


def _entry(item: ItemLike) -> Entry:
    return {"id": str(item.id), "time": item.created_at, "text": text_of(item.content)}


def _fitting(entries: Iterable[Entry], room: int) -> list[Entry]:
    """Take entries while they fit; the first that does not is cut, and says so."""
    taken: list[Entry] = []
    for entry in entries:
        size = line_length(entry)
        if size <= room:
            taken.append(entry)
            room -= size
            continue
        text = str(entry["text"])
        cut: Entry = {**entry, "cut_from_chars": len(text), "text": ""}
        # an escaped character takes up to six, so what fits is tried from what could
        length = room - line_length(cut)
        while length >= _MIN_CUT and line_length({**cut, "text": text[:length]}) > room:
            length -= max(1, (line_length({**cut, "text": text[:length]}) - room) // 6)
        if length >= _MIN_CUT:
            taken.append({**cut, "text": text[:length]})
        break
    return taken


def _task_text(instruction: Any) -> str:
    rendered = getattr(instruction, "rendered", instruction)
    text = rendered if isinstance(rendered, str) else text_of(rendered)
    return text[:MAX_TASK_CHARS]


def _pairs(action_responses: Iterable[Any]) -> list[str]:
    """Pair each tool error with the next output that is none; an output of None is neither."""
    pending: list[tuple[str, str]] = []
    found: list[str] = []
    for response in action_responses:
        function = str(getattr(response, "function", None))
        output: Any = getattr(response, "output", None)
        if isinstance(output, dict) and "error" in output:
            failed = cast("dict[str, Any]", output)
            pending.append((function, _quoted(failed["error"])))
        elif output is not None and pending:
            failed_function, error = pending.pop(0)
            found.append(
                f"The tool {failed_function} failed with {error}. The next output without an error in that"
                f" turn came from {function}: {_quoted(output)}. They are paired by order alone; this"
                " does not say that the second repaired the first."
            )
    return found


def _quoted(value: Any) -> str:
    text = text_of(value) or repr(value)
    return text if len(text) <= MAX_OUTPUT_CHARS else f"{text[:MAX_OUTPUT_CHARS]}…"


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))
