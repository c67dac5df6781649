"""The results file: one JSON document, from which every table can be made again."""

import json
import re
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from .records import RepeatedKey, unrepeated
from .report import SCHEMA_VERSION, ConformanceReport
from .session import Session

_SURROGATE = re.compile("[\ud800-\udfff]")
_COMPUTED = ("score", "certified")


class BadResults(ValueError):
    """A text is no results file of this schema. The message says why, and shows no values."""


class ResultsFile(BaseModel):
    """The outer shape of the document.

    Attributes:
        schema_version: Of the whole document.
        reports: Each a `ConformanceReport` with its `score` and whether it is `certified`.
        errors: Harnesses that broke, so that they have no report.
    """

    schema_version: int = Field(default=SCHEMA_VERSION, ge=SCHEMA_VERSION, le=SCHEMA_VERSION)
    reports: list[dict[str, Any]]
    errors: list[dict[str, str | None]] = []


def to_json(session: Session) -> str:
    """Write the results of a session."""
    document = ResultsFile(
        reports=[_with_computed(report) for report in session.reports],
        errors=[
            {"adapter": fault.adapter, "environment": fault.environment, "reason": fault.reason}
            for fault in session.faults
        ],
    )
    # A lone surrogate is no JSON for most readers, so its escape is escaped.
    text = _SURROGATE.sub(
        lambda found: f"\\\\u{ord(found[0]):04x}", json.dumps(document.model_dump(), ensure_ascii=False)
    )
    return json.dumps(json.loads(text), indent=2) + "\n"


def reports_from_json(text: str) -> list[ConformanceReport]:
    """Read the reports of a results file.

    Raises:
        BadResults: It is no results file of this schema, or a score or verdict is not what its
            cases say.
    """
    try:
        found = json.loads(text, object_pairs_hook=unrepeated)
    except RepeatedKey as error:
        raise BadResults(str(error)) from None
    except (ValueError, RecursionError):
        raise BadResults("it is not JSON") from None
    if not isinstance(found, dict) or "schema_version" not in found:
        raise BadResults("it has no schema_version")
    if found["schema_version"] != SCHEMA_VERSION:
        raise BadResults(f"its schema_version is not {SCHEMA_VERSION}")
    try:
        return [_read(values) for values in ResultsFile.model_validate(found).reports]
    except ValidationError:
        raise BadResults("its reports are not of this schema") from None


def _with_computed(report: ConformanceReport) -> dict[str, Any]:
    return {**report.model_dump(mode="json"), **{name: getattr(report, name) for name in _COMPUTED}}


def _read(values: dict[str, Any]) -> ConformanceReport:
    plain = {name: value for name, value in values.items() if name not in _COMPUTED}
    report = ConformanceReport.model_validate_json(json.dumps(plain))
    for name in _COMPUTED:
        if values.get(name) != getattr(report, name):
            raise BadResults(f"{report.label} {report.environment}: {name} is not what the cases say")
    return report
