"""The text of a content, for comparing what was said."""

import unicodedata
from typing import Any, cast

from adapter_core import terms


def text_of(content: Any) -> str:
    """Join every string in a content, depth first; a value under a key reads `key: value`."""
    lines: list[str] = []
    pending: list[Any] = [content]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            lines.append(value)
        elif isinstance(value, dict):
            fields = cast("dict[str, Any]", value).items()
            pending.extend(_field(key, one) for key, one in reversed(fields) if one is not None)
        elif isinstance(value, (list, tuple)):
            pending.extend(reversed(cast("list[Any]", value)))
    return "\n".join(lines)


def _field(key: str, value: Any) -> Any:
    is_nested = isinstance(value, (dict, list))
    return cast("Any", value) if is_nested else f"{key}: {value}"


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
