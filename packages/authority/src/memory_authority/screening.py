"""Looking at a text before it is kept, and again before it is shown."""

import re
from collections.abc import Sequence
from typing import Protocol

from .errors import WriteRejected
from .records import MemoryRecord


class ContentScreen(Protocol):
    """Redacts, then scans what would be stored; and scans again on the way out.

    A screen that raises anything is taken for a refusal: the write is rejected, the record withheld.
    """

    def on_write(self, text: str) -> str:
        """Give the text as it may be stored.

        Raises:
            WriteRejected: It may not be stored at all. The message must not quote it.
        """
        ...

    def on_read(self, record: MemoryRecord) -> bool:
        """Whether the record may be shown to a model."""
        ...


class PatternScreen:
    """A screen of regular expressions.

    Args:
        redact: What matches one of these is replaced by `[redacted]` before anything is stored.
        refuse: A text in which one of these still matches is neither stored nor shown.

    Raises:
        re.error: A pattern does not compile; there is no screen then, and no memory.
    """

    def __init__(self, *, redact: Sequence[str] = (), refuse: Sequence[str] = ()) -> None:
        self._redact = [re.compile(pattern) for pattern in redact]
        self._refuse = [re.compile(pattern) for pattern in refuse]

    def on_write(self, text: str) -> str:
        """Redact the text, and refuse it if a refused pattern is left."""
        for pattern in self._redact:
            text = pattern.sub("[redacted]", text)
        if self._is_refused(text):
            raise WriteRejected("the screen refuses the text")
        return text

    def on_read(self, record: MemoryRecord) -> bool:
        """Whether no refused pattern matches the record's text or subject."""
        return not self._is_refused(record.text) and not self._is_refused(record.subject or "")

    def _is_refused(self, text: str) -> bool:
        return any(pattern.search(text) for pattern in self._refuse)
