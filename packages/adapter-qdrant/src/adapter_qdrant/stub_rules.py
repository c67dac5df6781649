"""For tests: what a server refuses and the client's local mode takes, one check each."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json
from qdrant_client import models

from .stub import Request

ORDERINGS = ("weak", "medium", "strong")
CONSISTENCIES = ("majority", "quorum", "all")
FITTING = {str: ("keyword", "uuid"), bool: ("bool",), int: ("integer",)}
RANGES = ("integer", "float", "datetime")
CLAUSES = ("must", "should", "must_not")
FACTORS = ("shard_number", "replication_factor", "write_consistency_factor")


class Refused(Exception):
    """What the server would answer instead."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def fields(condition: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[str]]]:
    """Give the payload keys that a filter reads, and the kinds of index that serve each."""
    for clause in CLAUSES:
        for part in listed(condition.get(clause)):
            yield from fields(part)
    least: Mapping[str, Any] = condition.get("min_should") or {}
    for part in listed(least.get("conditions")):
        yield from fields(part)
    for empty in ("is_empty", "is_null"):
        if empty in condition and isinstance(condition[empty], Mapping):
            yield condition[empty]["key"], ()
    if "key" in condition:
        yield condition["key"], kinds(condition)


def kinds(condition: Mapping[str, Any]) -> Sequence[str]:
    """Give the kinds of index that fit a condition."""
    match: Mapping[str, Any] = condition.get("match") or {}
    if "text" in match or "phrase" in match:
        return ("text",)
    for word in ("any", "except", "value"):
        if word in match:
            return FITTING[type(next(iter(listed(match[word])), ""))]
    return RANGES if "range" in condition else ()


def listed(value: Any) -> list[Any]:
    """Give the one, the many or none as a list."""
    if value is None:
        return []
    return [*value] if isinstance(value, list) else [value]


def unreliably_tied(points: Sequence[models.Record]) -> list[models.Record]:
    """Turn the points of one order value round: the server promises none among them."""
    values = list(dict.fromkeys(point.order_value for point in points))
    return [
        point for value in values for point in reversed([one for one in points if one.order_value == value])
    ]


def parsed(kind: Any, data: bytes) -> Any:
    """Read a body, or refuse it."""
    try:
        return TypeAdapter[Any](kind).validate_python(from_json(data, allow_inf_nan=False))
    except ValidationError as error:
        raise Refused(400, f"Format error in JSON body: {error.error_count()} errors") from None
    except ValueError as error:
        raise Refused(400, f"Format error in JSON body: {error}") from None


def check_parameters(parameters: Mapping[str, str]) -> None:
    """Refuse what `ordering` and `consistency` may not be."""
    ordering = parameters.get("ordering", "weak")
    consistency = parameters.get("consistency", "1")
    fair = ordering in ORDERINGS and (consistency in CONSISTENCIES or consistency.isdigit())
    timeout = parameters.get("timeout", "1")
    if not fair or parameters.get("wait", "true") not in ("true", "false") or not timeout.isdigit():
        raise Refused(400, "Deserialize error in query parameters")
    if int(timeout) < 1:
        raise Refused(422, "Validation error in query parameters: [timeout: must be 1 or larger]")


def check_id(value: Any) -> None:
    """Refuse what is no point id."""
    if isinstance(value, str):
        try:
            UUID(value)
        except ValueError:
            message = f"Format error in JSON body: value {value} is not a valid point ID"
            raise Refused(400, message) from None


def checked_limit(limit: int | None) -> int:
    """Give a limit, or refuse it."""
    if limit is not None and limit < 1:
        raise Refused(422, f"Validation error in JSON body: [limit: value {limit} invalid]")
    return 10 if limit is None else limit


def updated(request: Request) -> Any:
    """Say that an update is done; without `wait` the server says only that it has it."""
    waited = request.parameters.get("wait") == "true"
    return {"operation_id": 0, "status": "completed" if waited else "acknowledged"}


def plain(value: Any) -> Any:
    """Give a model as JSON values."""
    return TypeAdapter(Any).dump_python(value, mode="json", exclude_none=True)
