"""Search tokens: tags, facets and terms as plain ASCII, injectively.

A token uses only `a-z`, `0-9` and `_`, so that no backend's separator, case folding or collation
can change a match. Other bytes of the UTF-8 text are written `_` and two hex digits. After a
token's first letter (its kind), `_` and a letter that is no hex digit is structure. A token that
would be longer than 100 bytes becomes its SHA-256.
"""

# Values are of any type here, so their classes are too.
# pyright: reportUnknownVariableType=false

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

MAX_TOKEN_BYTES = 100

_PLAIN = re.compile("[a-z0-9]*")
_ESCAPES = {byte: f"_{byte:02x}" for byte in range(256)}
_ESCAPED = {byte: text for byte, text in _ESCAPES.items() if not _PLAIN.fullmatch(chr(byte))}


def tag_token(tag: str) -> str:
    """Give the search token of a whole tag."""
    return _bounded("t" + _escape(tag))


def term_token(term: str) -> str:
    """Give the search token of one term, as `terms` cut it."""
    if len(term) < MAX_TOKEN_BYTES and _PLAIN.fullmatch(term):
        return "w" + term  # nearly every term, and an item has many
    return _bounded("w" + _escape(term))


def term_tokens(counts: Mapping[str, int]) -> dict[str, int]:
    """Give the search tokens of counted terms with their counts, in their order."""
    return {term_token(term): count for term, count in counts.items()}


def word_tokens(words: Sequence[str]) -> Mapping[str, int] | None:
    """Give the search tokens of terms of `a-z` and `0-9` alone, and how often each occurs.

    Args:
        words: One term or more, with repeats.

    Returns:
        What `term_tokens` would give; None if a term is too long for that.
    """
    tokens = Counter(("w" + " w".join(words)).split(" "))
    return tokens if max(map(len, tokens)) <= MAX_TOKEN_BYTES else None


def facet_token(key: str, value: bool | int | float | str | None) -> str:
    """Give the search token of a top-level metadata key and the scalar it has.

    Two values give one token exactly if a filter on the one matches the other: `1` and `1.0` are
    equal, `True` is not `1`, `"1"` is not `1`, `-0.0` is `0`.

    Raises:
        TypeError: The value is no scalar.
    """
    return _bounded(f"f{_escape(key)}{_typed(value)}")


def namespace_token(namespace: str) -> str:
    """Give the ASCII name of a namespace, for keys, columns and payloads."""
    return _bounded("n" + _escape(namespace))


def is_scalar(value: Any) -> bool:
    """Whether a checked metadata value is indexed as a facet."""
    return value is None or type(value) in (bool, int, float, str)


def _typed(value: Any) -> str:
    if value is None:
        return "_n"
    kind: type[Any] = type(value)
    if kind is bool:
        return "_t" if value else "_u"
    if kind is str:
        return "_s" + _escape(value)
    if kind is int:
        return f"_i{value:x}".replace("-", "_m")
    if kind is float:
        # hexadecimal is exact and has no limit on digits
        if value.is_integer():
            return f"_i{int(value):x}".replace("-", "_m")
        return "_r" + _escape(value.hex())
    raise TypeError(f"no facet value: {kind.__name__}")


def _escape(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    if text.isascii():
        return text.translate(_ESCAPED)
    data = text.encode("utf-8", "surrogatepass")
    return "".join(chr(byte) if 97 <= byte <= 122 or 48 <= byte <= 57 else _ESCAPES[byte] for byte in data)


def _bounded(token: str) -> str:
    if len(token) <= MAX_TOKEN_BYTES:
        return token
    return f"{token[0]}_h{hashlib.sha256(token.encode('ascii')).hexdigest()}"
