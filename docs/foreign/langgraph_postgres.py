"""LangGraph's `AsyncPostgresStore`, over a server of our own."""

from langgraph.store.postgres.aio import AsyncPostgresStore
from langgraph_base import LangGraph

from adapter_postgres import embedded


class LangGraphPostgres(LangGraph):
    adapter = "LangGraph AsyncPostgresStore"
    distributions = ("langgraph-checkpoint-postgres", "psycopg")

    async def ready(self) -> None:
        if self.store is None:
            opening = AsyncPostgresStore.from_conn_string(embedded.shared_server().url())
            self.store = await self.stack.enter_async_context(opening)
            await self.store.setup()
