"""What a store can be told about its server, its collection and its connections."""

import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

from adapter_core import Durability, MemoryAdapterError

REQUEST_TIMEOUT = 30
"""Seconds to connect, and seconds that a request may wait for its answer."""
POOL_SIZE = 16
"""How many connections one store opens at most."""

ReadConsistency = Literal["majority", "quorum", "all"]
WriteOrdering = Literal["weak", "medium", "strong"]

_LAST_PORT = 65_535
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,199}")


@dataclass(frozen=True, slots=True)
class QdrantSettings:
    """Settings of a store; each has a default.

    Attributes:
        collection: The collection, made when it is missing. Many namespaces share it.
        durability: What an acknowledged write survives: `crash` on a server and on a path,
            `volatile` for `:memory:`, where it is taken so by itself. Checked when connecting.
        timeout: Seconds to connect, and seconds that a request may wait for its answer.
        pool_size: How many connections the store opens at most, when they are needed.
        grpc_port: The port of the server, often 6334, where every request goes by gRPC, over one
            connection; None: by REST.
        shard_number: How many shards a new collection has; None: as the server has it set.
        replication_factor: How many replicas each shard of a new collection has; None: as the
            server has it set.
        write_consistency_factor: How many replicas must have applied a write, in a new collection;
            None: the majority of `replication_factor`.
        read_consistency: How many replicas answer a read where a shard has several: `quorum` gives
            what most of all replicas have, and so every acknowledged write. A number, or another
            word of Qdrant, asks for that instead.
        write_ordering: `strong` sends the writes of a shard with several replicas through one of
            them, so that two writes of an id come in one order everywhere.

    Raises:
        MemoryAdapterError: A value is not legal.
    """

    collection: str = "memories"
    durability: Durability = "crash"
    timeout: int = REQUEST_TIMEOUT
    pool_size: int = POOL_SIZE
    grpc_port: int | None = None
    shard_number: int | None = None
    replication_factor: int | None = None
    write_consistency_factor: int | None = None
    read_consistency: ReadConsistency | int = "quorum"
    write_ordering: WriteOrdering = "strong"

    def __post_init__(self) -> None:
        """Check the values."""
        if type(self.collection) is not str or not _NAME.fullmatch(self.collection):
            raise MemoryAdapterError(
                "collection must be a name of ASCII letters, digits, _ and -, of at most 200 characters"
            )
        if self.durability not in ("crash", "volatile"):
            raise MemoryAdapterError(
                'durability is "crash" or "volatile": Qdrant writes its log to the disk some time later'
            )
        _check_count("timeout", self.timeout)
        _check_count("pool_size", self.pool_size)
        for option in ("grpc_port", "shard_number", "replication_factor", "write_consistency_factor"):
            if getattr(self, option) is not None:
                _check_count(option, getattr(self, option))
        if self.grpc_port is not None and self.grpc_port > _LAST_PORT:
            raise MemoryAdapterError(f"grpc_port must be at most {_LAST_PORT}")
        if self.read_consistency not in get_args(ReadConsistency):
            _check_count("read_consistency", self.read_consistency)
        if self.write_ordering not in get_args(WriteOrdering):
            raise MemoryAdapterError(f"write_ordering is one of {', '.join(get_args(WriteOrdering))}")

    @property
    def required_writes(self) -> int | None:
        """How many replicas of a new collection must have applied a write; None: the server's choice."""
        if self.write_consistency_factor is None and self.replication_factor is not None:
            return majority(self.replication_factor)
        return self.write_consistency_factor


def majority(replicas: int) -> int:
    """Give how many of so many replicas are more than half."""
    return replicas // 2 + 1


def _check_count(option: str, value: Any) -> None:
    if type(value) is not int or value < 1:
        raise MemoryAdapterError(f"{option} must be an int of at least 1")
