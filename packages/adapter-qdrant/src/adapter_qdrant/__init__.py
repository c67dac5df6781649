"""A memory store on Qdrant: exact retrieval, eventual search whose hits carry no tags."""

from .driver import MAX_REQUEST, QdrantDriver
from .embedding import Embedder
from .settings import POOL_SIZE, REQUEST_TIMEOUT, QdrantSettings
from .store import QdrantMemoryStore
from .transport import ClientTransport, Transport

__all__ = [
    # the store
    "Embedder",
    "QdrantMemoryStore",
    "QdrantSettings",
    # what it is made of
    "ClientTransport",
    "QdrantDriver",
    "Transport",
    # values that the README explains
    "MAX_REQUEST",
    "POOL_SIZE",
    "REQUEST_TIMEOUT",
]
