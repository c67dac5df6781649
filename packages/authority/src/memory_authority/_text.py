"""The text of a content, for comparing what was said."""

import unicodedata
from typing import Any, cast

from adapter_core import terms


def text_of(content: Any) -> str:
    """Join every string in a content, depth first; a value under a key reads `key: value`."""
    lines: list[str] = []
    _collect(content, lines)
    return "\n".join(lines)


def _collect(content: Any, lines: list[str]) -> None:
    if isinstance(content, str):
        lines.append(content)
    elif isinstance(content, dict):
        for key, value in cast("dict[str, Any]", content).items():
            if isinstance(value, (dict, list)):
                _collect(value, lines)
            elif value is not None:
                lines.append(f"{key}: {value}")
    elif isinstance(content, (list, tuple)):
        for value in cast("list[Any]", content):
            _collect(value, lines)


def normalised(text: str) -> str:
    """Cut text into its terms and join them by spaces: equal for texts that say the same words."""
    return f" {' '.join(terms(text))} "


def same_text(text: str) -> str:
    """Leave out what makes no other text: case, the width of spaces, a full stop at the end.

    Symbols and punctuation stay: `-5` is not `5`.
    """
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())
    spaced = " ".join(folded.split())
    return spaced.rstrip(". ") or spaced
