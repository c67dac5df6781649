"""When a record is held back because the session, or the input, says something else.

Curated memory never overrides the conversation (ADR-010). What counts as a conflict is pluggable;
the default goes by the record's subject.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from adapter_core import terms

from ._text import normalised, text_of
from .records import MemoryRecord
from .transcript import Message, SystemMessage, Transcript, UserMessage

# What may stand between a subject and what is said of it: "timezone has been set to", "timezone ="
_LINK = (
    r"""["'*_`)\]]*\s*(?:(?:has|have|had|been|was|were|now|changed|switched|moved|set|should|must)\s+){0,4}"""
    r"""(?:[=:\u2192]|[-=]>|\b(?:is|are|was|were|be|to|now|equals)\b)\s*"""
)
_VALUE = r"""(?P<value>[^\n!?;]*?)(?P<end>[!?;\n]|\.(?=\s|$)|$)"""
# What `terms` leaves out: diacritics, variation selectors, the zero-width joiner.
_WORDLESS = re.compile("[\u0300-\u036f\ufe00-\ufe0f\u200d]")
_RUN_OR_MARK = re.compile(r"[^\W_]+|[^\s]")
MAX_VALUE_TERMS = 12
"""How many terms of a statement are compared; the rest of a long sentence says something else."""


class ConflictDetector(Protocol):
    """Decides whether a record conflicts with the conversation."""

    def conflicts(self, record: MemoryRecord, transcript: Transcript, current: UserMessage) -> bool:
        """Whether the record must be held back. One that raises holds the record back too."""
        ...


class SubjectConflict:
    """The default: the conversation states the record's subject, and states it differently.

    A statement is the subject followed by `=`, `:`, an arrow, or a form of "is", "set to" or "now",
    and a value; also a key of a structured content. A question states nothing. The newest statement
    decides, and it agrees when all of its words occur in the record's text. The words between are
    English: a host of another language brings a detector of its own.
    """

    def conflicts(self, record: MemoryRecord, transcript: Transcript, current: UserMessage) -> bool:
        """Whether the newest statement of the record's subject differs from the record."""
        return contradicts(record, Said(transcript, current))


class Said:
    """What the conversation holds, folded, the newest first.

    Each text is folded once, when somebody first gets as far: a long session is compared with several
    records.
    """

    def __init__(self, transcript: Transcript, current: UserMessage) -> None:
        self._coming = _newest_first(transcript, current)
        self._folded: list[str] = []

    def __iter__(self) -> Iterator[str]:
        place = 0
        while True:
            if place == len(self._folded):
                text = next(self._coming, None)
                if text is None:
                    return
                self._folded.append(_folded(text))
            yield self._folded[place]
            place += 1


def contradicts(record: MemoryRecord, said: Iterable[str]) -> bool:
    """Whether the newest statement of the record's subject differs from the record."""
    words = _words(record.subject or "")
    if not words:
        return False
    longest, statement = max(words, key=len), _statement(words)
    known = set(terms(record.text))
    for text in said:
        if longest not in text:  # quicker than the pattern, and most texts end here
            continue
        values = [
            terms(match["value"])[:MAX_VALUE_TERMS]
            for match in statement.finditer(text)
            if match["end"] != "?"
        ]
        stated = [value for value in values if value]
        if stated:
            return not known.issuperset(stated[-1])
    return False


def repeats(record: MemoryRecord, said: Iterable[str]) -> bool:
    """Whether the conversation holds the record's text already, word for word."""
    words = normalised(record.text)
    longest = max(words.split(), key=len, default="")
    if not longest:
        return False
    # cheaper than cutting a long text into terms; folding keeps a term a substring
    return any(longest in text and words in normalised(text) for text in said)


def _newest_first(transcript: Transcript, current: UserMessage) -> Iterator[str]:
    yield text_of(current.content)
    for place in range(len(transcript.messages) - 1, -1, -1):
        message = transcript.messages[place]
        if place != transcript.breadcrumb and _is_said(message):
            yield text_of(message.content)


def _is_said(message: Message) -> bool:
    # The host's instructions govern by themselves; only what was said is compared.
    return not isinstance(message, SystemMessage)


def _folded(text: str) -> str:
    """Fold as `terms` does, so that a term of a text is a part of the folded text."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", _WORDLESS.sub("", folded))


def _words(subject: str) -> list[str]:
    """Cut a subject into runs of letters and digits, and symbols; punctuation is left out."""
    found = _RUN_OR_MARK.findall(_folded(subject))
    return [word for word in found if word.isalnum() or unicodedata.category(word[0])[0] in "LMNS"]


def _statement(words: Sequence[str]) -> re.Pattern[str]:
    between = r"[\W_]*".join(map(re.escape, words))
    # In scripts without spaces a word begins in the middle of a run.
    begin = "" if unicodedata.category(words[0][0]) == "Lo" else r"(?<![^\W_])"
    return re.compile(f"{begin}{between}{_LINK}{_VALUE}")
