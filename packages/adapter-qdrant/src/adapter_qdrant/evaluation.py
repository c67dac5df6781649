"""What conditions, orders and vectors mean, worked out in Python: for the fake."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .points import is_list
from .transport import Filter, Found, Point, Sparse


def meets(point: Point, condition: Filter) -> bool:
    """Whether a point meets a filter of the kinds that the adapter uses."""
    unknown = condition.keys() - {"must", "must_not"}
    if unknown:
        raise NotImplementedError(f"the fake knows no {', '.join(sorted(unknown))}")
    return all(_holds(point, part) for part in condition.get("must", ())) and not any(
        _holds(point, part) for part in condition.get("must_not", ())
    )


def shown(
    point: Point, fields: Sequence[str], *, score: float | None = None, order: float | None = None
) -> Found:
    """Give a point with the payload fields that were asked for."""
    payload = {field: point.payload[field] for field in fields if field in point.payload}
    return Found(point.id, payload, score, order)


def scored(
    hits: Sequence[Point], asked: Sparse | Sequence[float], using: str, corpus: Collection[Point]
) -> list[tuple[Point, float]]:
    """Give the points that have the vector, each with its score."""
    if not isinstance(asked, Sparse):
        found = [(point, point.vectors[using]) for point in hits if using in point.vectors]
        return [(point, _cosine(asked, vector)) for point, vector in found]  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    weights = _weights(asked, using, corpus)
    pairs: list[tuple[Point, float]] = []
    for point in hits:
        own = _sparse(point, using)
        if weights.keys() & own.keys():
            pairs.append((point, sum(weight * own.get(index, 0.0) for index, weight in weights.items())))
    return pairs


def _weights(asked: Sparse, using: str, corpus: Collection[Point]) -> dict[int, float]:
    vectors = [vector for vector in (_sparse(point, using) for point in corpus) if vector]
    weights: dict[int, float] = {}
    for index, value in zip(asked.indices, asked.values, strict=True):
        having = sum(index in vector for vector in vectors)
        # as Qdrant's modifier `idf` does it
        weights[index] = value * math.log((len(vectors) - having + 0.5) / (having + 0.5) + 1)
    return weights


def _sparse(point: Point, using: str) -> dict[int, float]:
    vector = point.vectors.get(using)
    return dict(zip(vector.indices, vector.values, strict=True)) if isinstance(vector, Sparse) else {}


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / math.hypot(*one) / math.hypot(*other)


def _holds(point: Point, part: Mapping[str, Any]) -> bool:
    if "has_id" in part:
        return str(point.id) in part["has_id"]
    if "is_empty" in part:
        return point.payload.get(part["is_empty"]["key"]) in (None, [])
    value: Any = point.payload.get(part["key"])
    values: list[Any] = value if is_list(value) else [] if value is None else [value]
    if "range" in part:
        bounds = part["range"]
        return any(bounds.get("gte", -math.inf) <= one <= bounds.get("lte", math.inf) for one in values)
    match = part["match"]
    wanted: list[Any] = match["any"] if "any" in match else [match["value"]]
    return any(one in values for one in wanted)
