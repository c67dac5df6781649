"""Text: how it is cut into terms, for items and for queries alike."""

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

TERMS_VERSION = 1
"""Raised whenever the rules below change; a namespace remembers which one indexed it."""

MAX_TERMS = 20_000
"""How many distinct terms of one item are indexed."""

# Combining diacritics, variation selectors and the zero-width joiner carry no word.
_IGNORED = re.compile("[\u0300-\u036f\ufe00-\ufe0f\u200d]")
_ASCII = re.compile(r"[a-z0-9]+|[$+<=>^`|~]")
_ASCII_SYMBOLS = b"$+<=>^`|~"
_ASCII_WORDS = bytes(
    ord(chr(byte).lower()) if chr(byte).isalnum() and byte < 128 else 32 for byte in range(256)
)
_CJK = re.compile(
    "["
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U000323af"  # Han
    "\u3041-\u309f\U0001b001-\U0001b11f\U0001b150-\U0001b152"  # Hiragana
    "\u30a0-\u30ff\u31f0-\u31ff\U0001b000\U0001b164-\U0001b167"  # Katakana
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "]"
)


def terms(text: str, *, asked: bool = False) -> list[str]:
    """Cut text into its terms, in order, with repeats.

    The text is normalised (NFKD, case folded, NFKD; diacritics U+0300 to U+036F, variation
    selectors and ZWJ removed; NFC), then cut into runs of letters, marks and digits. Each symbol
    (Unicode category S) is a term. A run of CJK characters is indexed as its characters and
    its overlapping pairs, and asked for as its pairs, or as itself if it is one character. There
    are no stop words, no stemming and no operators.

    Args:
        text: Any string.
        asked: True for a query, False for an item. It makes a difference for CJK only.
    """
    return list(_iter_terms(text, asked))


def content_terms(content: Any) -> dict[str, int]:
    """Count the terms of every string value in a content, depth first; dict keys are left out.

    Returns:
        The first 20,000 distinct terms, in order, and how often each occurs up to the point
        where the next one would have come.
    """
    counts: dict[str, int] = {}
    for text in content_strings(content):
        for term in _ascii_terms(text) if text.isascii() else _iter_terms(text, False):
            if term in counts:
                counts[term] += 1
            elif len(counts) < MAX_TERMS:
                counts[term] = 1
            else:
                return counts
    return counts


def content_strings(content: Any) -> Iterator[str]:
    """Give every string value in a content, depth first; dict keys are left out."""
    pending = [content]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            pending.extend(reversed(value))  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, dict):
            pending.extend(reversed(value.values()))  # pyright: ignore[reportUnknownArgumentType]


def plain_words(content: Any) -> list[str] | None:
    """Cut a content into its terms, with repeats, if its strings are ASCII without symbols.

    Most are, and this is several times as quick as to cut and count them one by one.

    Returns:
        Terms of `a-z` and `0-9` alone, in order; None for any other content.
    """
    text = content if isinstance(content, str) else " ".join(content_strings(content))
    return _words(text.encode("ascii")) if text.isascii() else None


def _words(text: bytes) -> list[str] | None:
    if len(text.translate(None, _ASCII_SYMBOLS)) < len(text):
        return None
    return text.translate(_ASCII_WORDS).decode("ascii").split()


def _ascii_terms(text: str) -> list[str]:
    """Cut ASCII text, as `_iter_terms` does; an item may be long, and this is several times as quick."""
    words = _words(text.encode("ascii"))
    return _ASCII.findall(text.lower()) if words is None else words


def _iter_terms(text: str, asked: bool) -> Iterator[str]:
    if text.isascii():
        for match in _ASCII.finditer(text.lower()):
            yield match.group()
        return
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    normal = unicodedata.normalize("NFC", _IGNORED.sub("", folded))
    run: list[str] = []
    run_is_cjk = False
    for character in normal:
        kind = unicodedata.category(character)[0]
        if kind in "LMN":
            # a mark belongs to the run that it stands in
            is_cjk = run_is_cjk if run and kind == "M" else _CJK.match(character) is not None
            if run and is_cjk != run_is_cjk:
                yield from _run_terms(run, run_is_cjk, asked)
                run = []
            run.append(character)
            run_is_cjk = is_cjk
            continue
        if run:
            yield from _run_terms(run, run_is_cjk, asked)
            run = []
        if kind == "S":
            yield character
    if run:
        yield from _run_terms(run, run_is_cjk, asked)


def _run_terms(run: list[str], is_cjk: bool, asked: bool) -> Iterator[str]:
    if not is_cjk:
        yield "".join(run)
        return
    if not asked or len(run) == 1:
        yield from run
    for first, second in pairwise(run):
        yield first + second
