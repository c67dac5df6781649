"""The report of one run: one document, from which every table is made."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from .harness import Environment

SCHEMA_VERSION = 1
"""Of the JSON document; raised whenever a field changes its meaning."""

Status = Literal["passed", "failed", "not_staged", "error"]


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ClaimSeen(_Document):
    """A manifest field: what is declared, and what was seen."""

    field: str
    declared: str
    observed: str


class CaseResult(_Document):
    """How one case ended.

    Attributes:
        id: Such as `C08`.
        name: Such as `limit`.
        status: `not_staged`: this environment cannot stage it. `error`: the harness failed.
        reason: Why it did not pass.
        claims: The manifest fields that it judged.
        notes: What else was seen, such as the lag of a search index.
        figures: What was measured, by name with its unit, such as `lag_p50_seconds`.
        seconds: How long it took.
    """

    id: str
    name: str
    status: Status
    reason: str = ""
    claims: tuple[ClaimSeen, ...] = ()
    notes: tuple[str, ...] = ()
    figures: dict[str, float] = {}
    seconds: float


def labelled(adapter: str, variant: str) -> str:
    """Name an adapter with its variant."""
    return f"{adapter}-{variant}" if variant else adapter


class LossNamed(_Document):
    """A named loss of the projection."""

    name: str
    field: str
    operation: str
    description: str


class ConformanceReport(_Document):
    """What one run over one harness found.

    Attributes:
        adapter: The entry point's name.
        variant: Which of the adapter's ways of working was run; empty where it has one.
        environment: fake, embedded or live.
        engine: What stood behind the adapter, with the version that it gave itself.
        image: The container image of a live service, by name and digest; empty for a URL.
        adapter_version: The adapter's distribution, and its version.
        drivers: The client libraries that it requires, each with the version that is installed.
        manifest: What the adapter declares.
        cases: Every case, in the order of the inventory.
        text_meaning: What a query's text means, where it is not that every term occurs; else empty.
        text_meaning_with: The same of a store that is made with one more option, by its name.
        options: Constructor options that every store was made with, beside the adapter's defaults.
        not_run: Why nothing was run at all; then there are no cases.
        required: How many matrix cases there are.
        released: It was not run here: the adapter's wheel carries it.
    """

    schema_version: int = SCHEMA_VERSION
    adapter: str
    variant: str = ""
    environment: Environment
    engine: str = ""
    engine_version: str = ""
    engine_note: str = ""
    image: str = ""
    kit_version: str
    adapter_version: str = ""
    drivers: tuple[str, ...] = ()
    inventory_digest: str
    manifest_digest: str = ""
    seed: int
    options: dict[str, str] = {}
    date: str
    manifest: dict[str, object] | None = None
    losses: tuple[LossNamed, ...] = ()
    durability: str = ""
    extensions: tuple[str, ...] = ()
    text_meaning: str = ""
    text_meaning_with: dict[str, str] = {}
    cases: tuple[CaseResult, ...] = ()
    not_run: str = ""
    required: int
    released: bool = False

    @property
    def label(self) -> str:
        """The adapter with its variant, such as `redis-keyspace`."""
        return labelled(self.adapter, self.variant)

    @property
    def certified(self) -> bool:
        """Whether the claims hold: every case ran and passed, or could not be staged.

        The fake must pass the whole matrix. A case that was not staged is never counted as a
        pass, and no cases are no pass.
        """
        matrix = self.matrix
        ids = {case.id for case in matrix}
        if not len(ids) == len(matrix) == self.required or any(
            c.status in ("failed", "error") for c in self.cases
        ):
            return False
        passed = sum(case.status == "passed" for case in matrix)
        return passed == self.required if self.environment == "fake" else passed > 0

    @property
    def matrix(self) -> tuple[CaseResult, ...]:
        """The results of the seventeen required cases."""
        return tuple(case for case in self.cases if case.id.startswith("C"))

    @property
    def score(self) -> str:
        """Such as `17/17` or `15/17, 2 not staged`."""
        if self.not_run:
            return f"not run: {self.not_run}"
        passed = sum(case.status == "passed" for case in self.matrix)
        text = f"{passed}/{self.required}"
        for status, word in (("failed", "failed"), ("error", "errors"), ("not_staged", "not staged")):
            count = sum(case.status == status for case in self.matrix)
            text += f", {count} {word}" if count else ""
        beside = [c.id for c in self.cases if c.status in ("failed", "error") and c.id[0] != "C"]
        return text + (f", also failed: {' '.join(beside)}" if beside else "")

    @property
    def false_claims(self) -> tuple[ClaimSeen, ...]:
        """The manifest fields that were seen to differ from what is declared."""
        seen = [claim for case in self.cases for claim in case.claims]
        return tuple(claim for claim in seen if claim.declared != claim.observed)
