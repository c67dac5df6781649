"""Redis with its search engine: our store with `index="query-engine"`, the raw client, and the peers.

The servers are containers of the image that `ADAPTER_REDIS_IMAGE` names. See `on_redis` for what raw does.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from adapter_core import MemoryQuery, facet_token, tag_token, term_token, terms
from adapter_redis.query_engine import QueryEngineIndex
from adapter_redis.transport import Script
from benchmarks import on_redis
from benchmarks.bars import REDIS_QUERY_ENGINE
from benchmarks.contender import Contender
from benchmarks.machine import installed
from benchmarks.redis_peers import peers

BARS = REDIS_QUERY_ENGINE

_DISTRIBUTIONS = ("adapter-redis", "redis", "langgraph-checkpoint-redis", "redisvl", "py-key-value-aio")


def contenders() -> list[Contender]:
    """Give all that are installed."""
    servers = on_redis.containers()
    return [
        on_redis.Ours("ours", servers, QueryEngineIndex, coalesce=True),
        on_redis.Ours("not coalescing", servers, QueryEngineIndex, coalesce=False),
        Raw(servers, QueryEngineIndex),
        *peers(servers, engine=True),
    ]


def versions() -> dict[str, str]:
    """Give the versions of the server and of the distributions."""
    return {"server": asyncio.run(on_redis.containers().version())} | installed(_DISTRIBUTIONS)


def not_run_reason() -> str | None:
    """Say why there is no server to measure with; None if there is."""
    return on_redis.no_container_reason()


class Raw(on_redis.Raw):
    """The searches of `QueryEngineIndex`."""

    _index: QueryEngineIndex

    async def _open(self, url: str) -> None:
        await super()._open(url)
        answer: Any = await self._client.execute_command("FT.CONFIG", "GET", "MAXSEARCHRESULTS")
        self._window: bytes = dict(answer)[b"MAXSEARCHRESULTS"]

    def _finding(self) -> Script:
        return self._index._find  # pyright: ignore[reportPrivateUsage]

    def _by_tokens(self, query: MemoryQuery) -> Sequence[Any]:
        assert query.tags
        (tag,) = query.tags
        ((key, value),) = query.filters.items()
        asked = f"@t:{{{facet_token(key, value)}}} @t:{{{tag_token(tag)}}}"
        return query.limit, asked, "-inf", "inf", "0", self._window, ""

    def _by_term(self, query: MemoryQuery) -> Sequence[Any]:
        assert query.text
        (term,) = terms(query.text, asked=True)
        return query.limit, f"@w:({term_token(term)})", "-inf", "inf", "1", self._window, ""
