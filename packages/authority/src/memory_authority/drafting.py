"""What is to be kept is checked and screened before anything is asked of the store."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from . import envelope
from .errors import WriteRejected
from .records import MemoryKind, MemoryRecord, Provenance
from .scope import Scope
from .screening import ContentScreen

MAX_TEXT_CHARS = 8_000
"""How long the text of one record may be."""
MAX_SUBJECT_CHARS = 200
"""How long a subject may be: it is a key, and is looked for in all that was said."""
MAX_TAGS = 50
"""How many tags one record may have."""
MAX_TAG_CHARS = 200
"""How long one tag may be."""
MAX_PROVENANCE_CHARS = 16_000
"""How long a provenance may be, as JSON."""


@dataclass(frozen=True)
class Drafts:
    """Makes records of one owner that are fit to be stored."""

    scope: Scope
    screen: ContentScreen | None
    clock: Callable[[], float]

    @cached_property
    def owner(self) -> Scope:
        """The scope of what is kept; whom its writer may read is not part of it."""
        return self.scope.model_copy(update={"read_agents": frozenset[str]()})

    def provenance(self, **fields: Any) -> Provenance:
        """Give a provenance of now.

        Raises:
            WriteRejected: A field is missing, or is none that can stand there.
        """
        now = datetime.fromtimestamp(self.clock(), tz=UTC)
        try:
            return Provenance(recorded_at=now, **fields)
        except ValidationError as error:
            raise WriteRejected("a field of the provenance has the wrong type") from error

    def draft(
        self,
        text: str,
        kind: MemoryKind,
        provenance: Provenance,
        subject: str | None,
        tags: Sequence[str],
        expires_at: float | None,
    ) -> MemoryRecord:
        """Check and screen what is to be kept.

        Raises:
            WriteRejected: Something is missing, too long, of the wrong type, or refused by the screen.
        """
        _check_provenance(provenance)
        text = self._screened("text", text, MAX_TEXT_CHARS)
        if not text.strip():
            raise WriteRejected("there is no text to remember")
        if subject is not None:
            subject = self._screened("subject", subject, MAX_SUBJECT_CHARS)
        if not _is_sequence(tags) or len(tags) > MAX_TAGS:
            raise WriteRejected(f"tags are a sequence of at most {MAX_TAGS} strings")
        tags = tuple(self._screened("tag", tag, MAX_TAG_CHARS) for tag in tags)
        owner = self.owner
        try:
            if expires_at is not None and not math.isfinite(expires_at):
                raise WriteRejected("an expiry is a time")
            return MemoryRecord(
                id=envelope.record_id(owner, MemoryKind(kind), text, 0),
                revision=1,
                text=text,
                kind=kind,
                scope=owner,
                provenance=provenance,
                subject=subject,
                tags=tags,
                expires_at=expires_at,
                created_at=self.clock(),
            )
        except (ValidationError, ValueError, TypeError, OverflowError) as error:
            raise WriteRejected("a field of the record has the wrong type") from error

    def _screened(self, what: str, text: str, most: int) -> str:
        # by length before the screen, so that none of its patterns works on a text of megabytes
        if type(text) is not str or len(text) > most:
            raise WriteRejected(f"a {what} is a string of at most {most} characters")
        if self.screen is None or not text:
            return text
        try:
            screened = self.screen.on_write(text)
        except WriteRejected:
            raise
        except Exception as error:
            raise WriteRejected(f"the screen failed with {type(error).__name__}") from error
        if type(screened) is not str:
            raise WriteRejected("the screen gave no text")
        if len(screened) > most:
            raise WriteRejected(f"after the screen, the {what} is longer than {most} characters")
        return screened


def _check_provenance(provenance: Provenance) -> None:
    if type(provenance) is not Provenance:
        raise WriteRejected("a provenance is required")
    if not provenance.actor_id.strip() or not provenance.method.strip():
        raise WriteRejected("provenance names no actor or no method")
    try:
        size = len(provenance.model_dump_json())
    except ValueError as error:  # a lone surrogate: no name has one
        raise WriteRejected("a name in the provenance is no text") from error
    if size > MAX_PROVENANCE_CHARS:
        raise WriteRejected(f"a provenance has at most {MAX_PROVENANCE_CHARS} characters")


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
