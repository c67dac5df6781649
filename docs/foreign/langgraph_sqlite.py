"""LangGraph's `AsyncSqliteStore`, in memory."""

from langgraph.store.sqlite.aio import AsyncSqliteStore
from langgraph_base import LangGraph


class LangGraphSqlite(LangGraph):
    adapter = "LangGraph AsyncSqliteStore"
    distributions = ("langgraph-checkpoint-sqlite", "aiosqlite")

    async def ready(self) -> None:
        if self.store is None:
            opening = AsyncSqliteStore.from_conn_string(":memory:")
            self.store = await self.stack.enter_async_context(opening)
            await self.store.setup()
