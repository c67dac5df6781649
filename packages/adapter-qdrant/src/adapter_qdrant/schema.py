"""The collection: how it is made, and what it and its namespaces remember.

The collection's metadata says whose it is and of which version. How items are indexed is remembered
for each namespace, by a point of its own: the namespaces of a collection are indexed anew one at a
time, and a call on one changes nothing of another.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from adapter_core import TERMS_VERSION, MemoryAdapterError, MemoryAdapterUnavailable

from .embedding import Embedder
from .points import FIELDS, NAMESPACE, TERMS_VECTOR, dense_name, namespace_id
from .settings import QdrantSettings, majority
from .transport import Acknowledgement, CollectionState, Filter, Found, NewCollection, Point, Transport

ADAPTER = "adapter-qdrant"
"""What the collection's metadata says under `adapter`."""
VERSION = 1
"""The version of the collection's schema, which its metadata says under `schema`."""
OLDEST_SERVER = (1, 19)
"""The first release of Qdrant that is taken.

Older ones leave out without a word what they do not know: the condition of a write until 1.16, and
the corpus of a search until 1.19, without which the other namespaces' words show in the scores.
"""

_NEVER: Filter = {"must": [{"key": "record", "match": {"value": "adapter-qdrant/none"}}]}


def signature(embedder: Embedder | None) -> dict[str, str]:
    """Say how a store with this embedder indexes items."""
    return {
        "layout": "1",
        "terms": str(TERMS_VERSION),
        "embedder": "none" if embedder is None else f"{embedder.name} ({embedder.dimension})",
    }


def signature_text(indexed: Mapping[str, str]) -> str:
    """Write how items are indexed, always in the same way."""
    return json.dumps(dict(indexed), sort_keys=True, separators=(",", ":"))


class Remembered(NamedTuple):
    """What a namespace remembers.

    Attributes:
        indexed_as: How its items are indexed, as `signature_text` writes it.
        unfinished: Whether some still are in another way.
    """

    indexed_as: str
    unfinished: bool


def marker(namespace: str, remembered: Remembered) -> Point:
    """Give the point that remembers how a namespace is indexed."""
    payload: dict[str, Any] = {
        "namespace": namespace,
        "record": NAMESPACE,
        "indexed_as": remembered.indexed_as,
        "unfinished": remembered.unfinished,
    }
    return Point(namespace_id(namespace), payload, {})


MARKER_FIELDS = ("namespace", "record", "indexed_as", "unfinished")
"""What is read of such a point."""


def read_marker(found: Found, namespace: str) -> Remembered | None:
    """Read such a point; None if it is not ours."""
    if not is_marker(found, namespace):
        return None
    payload = found.payload
    indexed_as, unfinished = payload.get("indexed_as"), payload.get("unfinished")
    if type(indexed_as) is not str or type(unfinished) is not bool:
        raise MemoryAdapterError("what the namespace remembers is malformed")
    return Remembered(indexed_as, unfinished)


def is_marker(found: Found, namespace: str) -> bool:
    """Whether it is such a point of ours."""
    return found.payload.get("record") == NAMESPACE and found.payload.get("namespace") == namespace


async def prepare(
    transport: Transport, settings: QdrantSettings, embedder: Embedder | None, namespace: str, ours: str
) -> None:
    """Check the server, and make what is missing of the collection and the namespace.

    Each step looks first, and takes what another store made meanwhile for done; so any number of
    stores may do it at once. Every index is there before the first point that this store writes.

    Raises:
        MemoryAdapterUnavailable: The server does not keep what it acknowledges.
        MemoryAdapterError: It is too old, or the collection is not as this release makes it.
    """
    _check_version(await transport.version())
    if settings.durability != "volatile" and await transport.is_volatile():
        raise MemoryAdapterUnavailable("the data is only in this process, and the store is not volatile")
    dense = {} if embedder is None else {dense_name(embedder.dimension): embedder.dimension}
    state = await transport.describe()
    if state is None:
        metadata = {"adapter": ADAPTER, "schema": VERSION}
        await transport.create(NewCollection(metadata, dense, (TERMS_VECTOR,)))
        state = await transport.describe()
        if state is None:
            raise MemoryAdapterUnavailable(f"the collection {settings.collection} was made and is gone")
    _check_collection(state, settings)
    if state.indexes is not None:
        for field, kind in FIELDS.items():
            if field not in state.indexes:
                await transport.add_index(field, kind)
    for name, size in dense.items():
        await _have_vector(transport, state, name, size)
    await _have_namespace(transport, namespace, ours)


def _check_version(version: str) -> None:
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < OLDEST_SERVER:
        oldest = ".".join(map(str, OLDEST_SERVER))
        raise MemoryAdapterError(f"Qdrant {oldest} or newer is needed; the server says {version[:20]!r}")


def _check_collection(state: CollectionState, settings: QdrantSettings) -> None:
    name = settings.collection
    if state.metadata.get("adapter") != ADAPTER:
        raise MemoryAdapterError(f"the collection {name} is not this adapter's")
    version: Any = state.metadata.get("schema")
    if type(version) is not int or version < 1:
        raise MemoryAdapterError(f"the metadata of the collection {name} is not as this adapter wrote it")
    if version > VERSION:
        raise MemoryAdapterError(
            f"the collection {name} is of version {version}, newer than version {VERSION}, the latest "
            "that this release knows"
        )
    if TERMS_VECTOR not in state.sparse:
        raise MemoryAdapterError(f"the collection {name} has no sparse vector {TERMS_VECTOR}")
    needed = majority(state.replicas)
    if settings.read_consistency == "quorum" and state.required_writes < needed:
        raise MemoryAdapterError(
            f"the collection {name} has {state.replicas} replicas and acknowledges a write that "
            f"{state.required_writes} of them applied: a write_consistency_factor of {needed} is needed, "
            "or a read_consistency that was chosen for it"
        )


async def _have_vector(transport: Transport, state: CollectionState, name: str, size: int) -> None:
    if name not in state.dense:
        await transport.add_vector(name, size)
        again = await transport.describe()
        if again is None or name not in again.dense:
            raise MemoryAdapterUnavailable(f"the dense vector {name} was made and is gone")
        state = again
    if state.dense[name] != size:
        raise MemoryAdapterError(
            f"the dense vector {name} of the collection has {state.dense[name]} numbers, "
            f"those of the embedder have {size}"
        )


async def _have_namespace(transport: Transport, namespace: str, ours: str) -> None:
    if await remembered(transport, namespace) is None:
        written = [marker(namespace, Remembered(ours, unfinished=False))]
        check_done(await transport.upsert(written, only_over=_NEVER, mode="insert_only"))


async def remembered(transport: Transport, namespace: str) -> Remembered | None:
    """Read what a namespace remembers; None if there is no such namespace.

    Raises:
        MemoryAdapterError: A point that is not ours stands in its place.
    """
    found = await transport.retrieve([namespace_id(namespace)], MARKER_FIELDS)
    if not found:
        return None
    known = read_marker(found[0], namespace)
    if known is None:
        raise MemoryAdapterError("a point that is not this adapter's stands in the place of the namespace")
    return known


def check_done(acknowledgement: Acknowledgement) -> None:
    """See that a write was applied.

    Raises:
        MemoryAdapterUnavailable: It is unknown whether it was, or will be.
    """
    if acknowledgement.status != "completed":
        raise MemoryAdapterUnavailable(
            "the server took the write and did not say that it was applied; it may be, later on",
            outcome_unknown=True,
        )


def read_signature(known: Remembered) -> Mapping[str, str]:
    """Read how a namespace is indexed.

    Raises:
        MemoryAdapterError: It is malformed.
    """
    try:
        indexed: Any = json.loads(known.indexed_as)
    except ValueError as error:
        raise MemoryAdapterError("what the namespace remembers is malformed") from error
    if type(indexed) is not dict:
        raise MemoryAdapterError("what the namespace remembers is malformed")
    found: dict[str, str] = {str(key): str(value) for key, value in indexed.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return {**found, "reindex": "unfinished"} if known.unfinished else found
