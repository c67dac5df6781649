"""What the conformance kit drives: stores over the fake service, and what can happen to them."""

import platform
from typing import Any
from uuid import UUID

from adapter_core import namespace_token
from adapter_core.testing import Engine, Environment, FaultHooks

from .gaps import Gap
from .service import Row, TemplateService
from .store import TemplateMemoryStore

TABLE = namespace_token("default")


class TemplateHarness(FaultHooks):
    """Stores over one fake service; `FaultHooks` has the hooks that only turn a switch of it."""

    adapter = "template"
    environment: Environment = "fake"
    gap: Gap | None = None
    not_staged = {  # noqa: RUF012 - never changed
        "age_index": "the service does not remember how it was indexed",
        "degrade": "a dictionary has no capability that could go away",
    }

    def __init__(self) -> None:
        self.service = TemplateService()
        self.faults = self.service.faults

    async def engine(self) -> Engine:
        return Engine("dict", platform.python_version(), "in process")

    async def make_store(self) -> TemplateMemoryStore[Any]:
        return await self.make_store_with()

    async def make_store_with(self, **options: Any) -> TemplateMemoryStore[Any]:
        return TemplateMemoryStore(self.service, gap=self.gap, **options)

    async def make_search_index_visible(self) -> None:
        self.service.expose()

    async def hold_search_index(self, hold: bool) -> None:
        await super().hold_search_index(hold)
        self.service.expose()

    async def plant_foreign_record(self, item_id: UUID) -> None:
        self.service.plant(TABLE, item_id, Row("foreign", ""))

    async def plant_malformed_record(self, item_id: UUID) -> None:
        self.service.damage(TABLE, item_id)

    async def reset(self) -> None:
        self.service.wipe()

    async def close(self) -> None:
        self.service.wipe()


def _with(gap: Gap) -> tuple[type[TemplateHarness]]:
    members = {"adapter": f"template-{gap}", "gap": gap}
    return (type(f"{gap.title()}Harness", (TemplateHarness,), members),)


TEMPLATE = (TemplateHarness,)
LOSSY, DROPPING, TAGLESS, EVENTUAL = (
    _with("lossy"),
    _with("dropping"),
    _with("tagless"),
    _with("eventual"),
)
