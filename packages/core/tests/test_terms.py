# ruff: noqa: RUF001 - look-alikes are among the cases
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter_core import MAX_TERMS, TERMS_VERSION, content_strings, terms
from adapter_core._terms import content_terms

steady = settings(derandomize=True, deadline=None, max_examples=300)

# What is written, its terms when indexed, and its terms when asked for if those differ.
RULES = {
    "empty": ("", []),
    "blank": (" \t\n\u3000", []),
    "words": ("Likes green tea.", ["likes", "green", "tea"]),
    "repeats": ("tea, TEA & Tea", ["tea", "tea", "tea"]),
    "apostrophe": ("don't", ["don", "t"]),
    "typographic apostrophe": ("don’t", ["don", "t"]),
    "symbols": ("C++", ["c", "+", "+"]),
    "C sharp": ("C#", ["c"]),
    "minus is no operator": ("-foo", ["foo"]),
    "or is a word": ("a OR b", ["a", "or", "b"]),
    "near is a word": ("NEAR(a b)", ["near", "a", "b"]),
    "wildcard": ("*", []),
    "prefix": ("foo*", ["foo"]),
    "quotes": ('"a b"', ["a", "b"]),
    "column": ("content:x AND NOT y", ["content", "x", "and", "not", "y"]),
    "underscore": ("user_id __x__", ["user", "id", "x"]),
    "price": ("$1.50", ["$", "1", "50"]),
    "every ASCII symbol": ("$+<=>^`|~", ["$", "+", "<", "=", ">", "^", "`", "|", "~"]),
    "no ASCII punctuation": ("!\"#%&'()*,-./:;?@[\\]_{}", []),
    "path": ("/usr/lib/x86_64", ["usr", "lib", "x86", "64"]),
    "mail": ("ann@example.org", ["ann", "example", "org"]),
    "NUL": ("a\x00b", ["a", "b"]),
    "umlaut": ("München", ["munchen"]),
    "umlaut, decomposed": ("Mu\u0308nchen", ["munchen"]),
    "no umlaut": ("Munchen", ["munchen"]),
    "sharp s": ("Straße", ["strasse"]),
    "two s": ("STRASSE", ["strasse"]),
    "capital sharp s": ("STRAẞE", ["strasse"]),
    "dotted capital I": ("İstanbul", ["istanbul"]),
    "stroke is no mark": ("Łódź", ["łodz"]),
    "Greek with final sigma": ("ΣΊΣΥΦΟΣ Σίσυφος", ["σισυφοσ", "σισυφοσ"]),
    "Cyrillic short i": ("Йод", ["иод"]),
    "Vietnamese": ("Tiếng Việt", ["tieng", "viet"]),
    "fullwidth": ("ＦｕｌｌＷｉｄｔｈ１２", ["fullwidth12"]),
    "fi ligature": ("ﬁn", ["fin"]),
    "superscript": ("x²", ["x2"]),
    "half": ("½ cup", ["1", "⁄", "2", "cup"]),
    "Roman numeral": ("Ⅷ", ["viii"]),
    "trade mark": ("Tea™", ["teatm"]),
    "currency": ("€5 £6", ["€", "5", "£", "6"]),
    "emoji": ("😀", ["😀"]),
    "emoji in a word": ("go😀go", ["go", "😀", "go"]),
    "emoji with variation selector": ("❤\ufe0f", ["❤"]),
    "emoji without it": ("❤", ["❤"]),
    "family joined by ZWJ": ("👩\u200d👩\u200d👧", ["👩", "👩", "👧"]),
    "skin tone": ("👍🏽", ["👍", "🏽"]),
    "flag": ("🇩🇪", ["🇩", "🇪"]),
    "keycap": ("1\ufe0f\u20e3", ["1\u20e3"]),
    "lone surrogate": ("\ud83d", []),
    "word cut at a surrogate": ("cut \ud83d", ["cut"]),
    "private use": ("\ue000x", ["x"]),
    "zero width space cuts": ("a\u200bb", ["a", "b"]),
    "soft hyphen cuts": ("a\u00adb", ["a", "b"]),
    "no-break space": ("a\u00a0b", ["a", "b"]),
    "Arabic digits": ("٣٤", ["٣٤"]),
    "Devanagari keeps its marks": ("हिन्दी में", ["हिन्दी", "में"]),
    "Devanagari with ZWJ": ("क्\u200dष", ["क्ष"]),
    "Hebrew points": ("שָׁלוֹם", ["שָׁלוֹם"]),
    "Thai": ("ภาษาไทย", ["ภาษาไทย"]),
    "one Han": ("税", ["税"]),
    "two Han": ("用户", ["用", "户", "用户"], ["用户"]),
    "Han": (
        "用户身份验证",
        ["用", "户", "身", "份", "验", "证", "用户", "户身", "身份", "份验", "验证"],
        ["用户", "户身", "身份", "份验", "验证"],
    ),
    "Han and words": (
        "重跑gen-itgc后50条",
        ["重", "跑", "重跑", "gen", "itgc", "后", "50", "条"],
        ["重跑", "gen", "itgc", "后", "50", "条"],
    ),
    "Han beyond the basic plane": ("𠮷野", ["𠮷", "野", "𠮷野"], ["𠮷野"]),
    "compatibility ideograph": ("\uf9e4", ["理"]),
    "Han cut by punctuation": ("你好，世界", ["你", "好", "你好", "世", "界", "世界"], ["你好", "世界"]),
    "iteration mark": ("時々", ["時", "々", "時々"], ["時々"]),
    "Hangul": ("한국어", ["한", "국", "어", "한국", "국어"], ["한국", "국어"]),
    "Hangul, decomposed": (
        unicodedata.normalize("NFD", "한국어"),
        ["한", "국", "어", "한국", "국어"],
        ["한국", "국어"],
    ),
    "Hiragana with dakuten": ("がく", ["が", "く", "がく"], ["がく"]),
    "Hiragana with dakuten, decomposed": ("か\u3099く", ["が", "く", "がく"], ["がく"]),
    "dakuten that cannot be composed": ("あ\u3099", ["あ", "\u3099", "あ\u3099"], ["あ\u3099"]),
    "Katakana": ("データ", ["デ", "ー", "タ", "デー", "ータ"], ["デー", "ータ"]),
    "halfwidth Katakana": ("ﾃﾞｰﾀ", ["デ", "ー", "タ", "デー", "ータ"], ["デー", "ータ"]),
    "middle dot cuts": ("ア・イ", ["ア", "イ"]),
    "Kana and Han are one run": ("食べる", ["食", "べ", "る", "食べ", "べる"], ["食べ", "べる"]),
    "Yi is no CJK run": ("ꆈꌠ", ["ꆈꌠ"]),
}


@pytest.mark.parametrize("name", RULES)
def test_rule(name) -> None:
    text, indexed, *asked = RULES[name]
    assert terms(text) == indexed
    assert terms(text, asked=True) == (asked[0] if asked else indexed)


def test_the_rules_have_a_version() -> None:
    # raise TERMS_VERSION whenever a rule above changes
    assert TERMS_VERSION == 1


alphabets = st.sampled_from(
    [
        "abcXYZ0189",
        "äÖßéñıİŁﬁ½²ａＢ１",
        "ΣσςЙйёה\u05b8ש",
        "用户身份验证𠮷々",
        "がぎカﾞﾃﾞーあ",
        "한국어\u1112\u1161\u11ab",
        "हिन्दी\u200d",
        "😀❤👩🇩+$€<=>",
        "\u0301\u0308\u0323\u3099\ufe0f\u200d\u20e3",
        " -_.,!'\"()\x00\u3000，・\u200b\ud83d\ue000",
    ]
).flatmap(st.sampled_from)
texts = st.text(alphabets, max_size=30) | st.text(max_size=30)


@steady
@given(texts, st.booleans())
def test_terms_do_not_depend_on_how_the_text_is_composed(text, asked) -> None:
    expected = terms(text, asked=asked)
    for form in ("NFC", "NFD"):
        assert terms(unicodedata.normalize(form, text), asked=asked) == expected


@steady
@given(texts, st.booleans())
def test_terms_do_not_depend_on_case(text, asked) -> None:
    assert terms(text.casefold(), asked=asked) == terms(text, asked=asked)


@steady
@given(st.text(st.characters(max_codepoint=127), max_size=60), st.booleans())
def test_the_fast_path_for_ascii_gives_what_the_general_one_gives(text, asked) -> None:
    assert terms(text, asked=asked) == terms(text + "\u2028", asked=asked)


@steady
@given(texts)
def test_a_text_is_found_by_itself(text) -> None:
    assert set(terms(text, asked=True)) <= set(terms(text))


@steady
@given(st.lists(texts, max_size=6), st.data())
def test_a_text_is_found_by_any_stretch_of_its_runs(parts, data) -> None:
    first = data.draw(st.integers(0, len(parts)))
    last = data.draw(st.integers(first, len(parts)))
    separator = data.draw(st.sampled_from([" ", "\u3000", ", ", "\x00"]))
    whole, stretch = separator.join(parts), separator.join(parts[first:last])
    assert set(terms(stretch, asked=True)) <= set(terms(whole))


@steady
@given(st.text("用户身份验证한국어がデ", min_size=2, max_size=20), st.data())
def test_a_cjk_run_is_found_by_any_part_of_it(run, data) -> None:
    first = data.draw(st.integers(0, len(run) - 1))
    last = data.draw(st.integers(first + 1, len(run)))
    assert set(terms(run[first:last], asked=True)) <= set(terms(run))


@steady
@given(texts)
def test_a_term_holds_letters_marks_and_digits_or_is_one_symbol(text) -> None:
    for term in terms(text):
        kinds = {unicodedata.category(character)[0] for character in term}
        assert kinds <= set("LMN") or (kinds == {"S"} and len(term) == 1)


def test_content_is_read_depth_first_and_keys_are_left_out() -> None:
    content = {
        "key": "one",
        "list": ["two", {"deep": "three", "more": ["four"]}, "five"],
        "n": 6,
        "last": "seven",
    }
    assert list(content_terms(content)) == ["one", "two", "three", "four", "five", "seven"]


def test_terms_are_counted() -> None:
    assert content_terms(["tea tea", {"tea": "green"}, "Tea"]) == {"tea": 3, "green": 1}


@pytest.mark.parametrize("content", [None, True, 12, 1.5, [], {}, {"key": None}, [[[]]]], ids=repr)
def test_content_without_text_has_no_terms(content) -> None:
    assert content_terms(content) == {}


def test_no_pair_spans_two_strings() -> None:
    assert set(content_terms(["用", "户"])) == {"用", "户"}
    assert "用户" not in content_terms({"a": "用", "b": "户"})


def test_exactly_the_first_twenty_thousand_distinct_terms_are_indexed() -> None:
    words = [f"w{number}" for number in range(MAX_TERMS + 1)]
    assert MAX_TERMS == 20_000
    just = content_terms(" ".join(words[:MAX_TERMS]) + " w0")
    assert len(just) == MAX_TERMS
    assert just["w0"] == 2
    over = content_terms([" ".join(words[:MAX_TERMS]), f"w0 {words[MAX_TERMS]} w0"])
    assert list(over) == words[:MAX_TERMS]
    assert over["w0"] == 2


def test_deep_content_needs_no_recursion(nested) -> None:
    assert content_terms(nested(200, "deep")) == {"deep": 1}


def test_the_strings_of_a_content_come_depth_first_without_keys() -> None:
    content = ["a", {"key": ["b", {"other": "c"}], "none": None}, 5, True, "d"]
    assert list(content_strings(content)) == ["a", "b", "c", "d"]
    assert list(content_strings("one")) == ["one"]
    assert list(content_strings(5)) == []
