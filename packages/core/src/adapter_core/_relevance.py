"""Relevance without a corpus: the term-frequency part of BM25, for backends that have no better."""

from collections.abc import Mapping

SCORE_MEANING = (
    "The sum, over the asked terms, of the term-frequency part of BM25 (k1 = 1.2, b = 0.75, "
    "usual length 100 terms). It depends on the item and the text alone."
)
"""What a sum of `term_weights` means."""

_K1, _B, _USUAL_LENGTH = 1.2, 0.75, 100


def term_weights(terms: Mapping[str, int]) -> dict[str, float]:
    """Give the part that each term of an item has in a score; the score of a text is their sum.

    The inverse document frequency is left out: every hit has every asked term, and a score should
    not depend on other items, still less on those of another namespace.

    Args:
        terms: How often each term occurs, as `Record.terms` has it.
    """
    damping = _K1 * (1 - _B + _B * sum(terms.values()) / _USUAL_LENGTH)
    # few counts are different, and an item has many terms
    weights = {count: count * (_K1 + 1) / (count + damping) for count in set(terms.values())}
    return {term: weights[count] for term, count in terms.items()}
