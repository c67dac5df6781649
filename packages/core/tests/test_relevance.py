import math

from adapter_core import term_weights


def test_a_term_weighs_its_part_of_bm25() -> None:
    # k1 = 1.2, b = 0.75: at the usual length of 100 terms the damping is k1 itself
    assert term_weights({"a": 1, "b": 99}) == {"a": 2.2 / 2.2, "b": 99 * 2.2 / 100.2}


def test_more_often_weighs_more_and_never_reaches_the_bound() -> None:
    weights = [term_weights({"a": count, "b": 100 - count})["a"] for count in (1, 2, 10, 99)]
    assert weights == sorted(weights)
    assert all(weight < 2.2 for weight in weights)


def test_the_same_count_weighs_less_in_a_longer_text() -> None:
    assert term_weights({"a": 1})["a"] > term_weights({"a": 1, "b": 500})["a"] > 0


def test_no_terms_have_no_weights() -> None:
    assert term_weights({}) == {}
    assert math.isfinite(term_weights({"a": 10**6})["a"])
