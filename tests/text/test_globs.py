"""Filters over virtual paths, against a small matcher of another kind."""

import subprocess
import sys
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess.text.globs import is_filter_match

Token = tuple[str, str]


def tokens(pattern: str) -> list[Token] | None:
    """The pattern in parts, ``None`` when it is malformed; sets are as the strategy below writes them."""
    found: list[Token] = []
    at = 0
    while at < len(pattern):
        rest = pattern[at:]
        if rest.startswith("**/"):
            found.append(("folders", ""))
            at += 3
        elif rest.startswith("**"):
            found.append(("anything", ""))
            at += 2
        elif rest[0] == "*":
            found.append(("some", ""))
            at += 1
        elif rest[0] == "?":
            found.append(("one", ""))
            at += 1
        elif rest[0] == "[":
            end = rest.find("]")
            if end < 0:
                return None
            found.append(("set", rest[1:end]))
            at += end + 1
        elif rest[0] == "\\":
            if len(rest) == 1:
                return None
            found.append(("literal", rest[1]))
            at += 2
        else:
            found.append(("literal", rest[0]))
            at += 1
    return found


def in_set(chars: str, char: str) -> bool:
    negated, chars = chars[0] == "^", chars.removeprefix("^")
    inside = chars[0] <= char <= chars[2] if len(chars) == 3 and chars[1] == "-" else char in chars
    return inside != negated


def matches(pattern: str, path: str) -> bool:
    """Whether the whole path fits, by asking of every pair of places."""
    parts = tokens(pattern)
    if parts is None:
        return False

    @cache
    def rest(token: int, at: int) -> bool:
        if token == len(parts):
            return at == len(path)
        kind, what = parts[token]
        if kind == "folders":
            begins = [at, *(i + 1 for i in range(at + 1, len(path)) if path[i] == "/")]
            clean = [i for i in begins if i == at or all(path[at:i].removesuffix("/").split("/"))]
            return any(rest(token + 1, i) for i in clean)
        if kind in {"anything", "some"}:
            if rest(token + 1, at):
                return True
            return at < len(path) and (kind == "anything" or path[at] != "/") and rest(token, at + 1)
        if at == len(path):
            return False
        char = path[at]
        fits = {
            "one": char != "/",
            "set": char != "/" and kind == "set" and in_set(what, char),
            "literal": char == what,
        }
        return fits[kind] and rest(token + 1, at + 1)

    return rest(0, 0)


PARTS = (
    "a",
    "b",
    "-",
    ".",
    "/",
    "a/",
    "/b",
    "*",
    "?",
    "**",
    "**/",
    "/**/",
    "[ab]",
    "[a-c]",
    "[^b]",
    "\\*",
    "\\[",
    "\\a",
)
PATTERNS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=8).map("".join)
PATHS = st.lists(st.sampled_from(("a", "b", "c", "-", "*", "[", ".", "ab")), max_size=6).flatmap(
    lambda parts: st.lists(st.sampled_from(("", "/")), min_size=len(parts), max_size=len(parts)).map(
        lambda joints: "".join(part + joint for part, joint in zip(parts, joints, strict=True)).strip("/")
    )
)


@given(PATTERNS, PATHS)
def test_a_pattern_means_what_an_independent_matcher_says(pattern: str, path: str) -> None:
    literal = not set(pattern) & set("*?[\\")
    trimmed = pattern.rstrip("/")
    expected = matches(trimmed or "/", path) or (literal and path.startswith(trimmed + "/"))
    assert is_filter_match(pattern, path) is expected


@pytest.mark.parametrize("path", ["", "a", "skills/billing/pay", "/etc/x"])
def test_no_pattern_lets_everything_through(path: str) -> None:
    assert is_filter_match("", path)


@pytest.mark.parametrize("word", ["none", "NONE", "None", "nOnE"])
@pytest.mark.parametrize("path", ["", "none", "a", "skills/none"])
def test_the_word_none_lets_nothing_through_in_any_case(word: str, path: str) -> None:
    assert not is_filter_match(word, path)


def test_a_name_that_only_begins_with_none_is_a_folder() -> None:
    assert is_filter_match("nonesuch", "nonesuch/a")
    assert is_filter_match("none/*", "none/a")


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("skills/*", "skills/pay", True),
        ("skills/*", "skills/billing/pay", False),
        ("skills/*", "skills", False),
        ("skills/*/pay", "skills/billing/pay", True),
        ("skills/**", "skills/billing/pay", True),
        ("skills/**", "other/pay", False),
        ("**/pay", "skills/billing/pay", True),
        ("**/pay", "pay", True),
        ("**/pay", "skills/repay", False),
        ("skills/**/pay", "skills/pay", True),
        ("skills/**/pay", "skills/a/b/pay", True),
        ("skills/**/pay", "skillsx/pay", False),
        ("skills/p?y", "skills/pay", True),
        ("skills?pay", "skills/pay", False),
        ("skills/[a-p]ay", "skills/pay", True),
        ("skills/[^p]ay", "skills/pay", False),
        ("skills/[^q]ay", "skills/pay", True),
        ("skills[^a]pay", "skills/pay", False),
        ("*", "", True),
        ("**", "", True),
        ("?", "", False),
        ("PAY", "pay", False),
    ],
)
def test_wildcards_stay_in_a_folder_and_two_stars_cross(pattern: str, path: str, expected: bool) -> None:
    assert is_filter_match(pattern, path) is expected


@pytest.mark.parametrize("pattern", ["skills/billing", "skills/billing/", "skills/billing//"])
def test_a_literal_folder_means_everything_under_it_and_itself(pattern: str) -> None:
    assert is_filter_match(pattern, "skills/billing")
    assert is_filter_match(pattern, "skills/billing/pay")
    assert is_filter_match(pattern, "skills/billing/pay/deep")
    assert not is_filter_match(pattern, "skills/billing-x")
    assert not is_filter_match(pattern, "skills/billing-x/pay")
    assert not is_filter_match(pattern, "skills")
    assert not is_filter_match(pattern, "other/skills/billing")


@pytest.mark.parametrize("pattern", ["/", "//"])
def test_the_root_folder_means_every_absolute_path(pattern: str) -> None:
    assert is_filter_match(pattern, "/")
    assert is_filter_match(pattern, "/etc/skills/pay")
    assert not is_filter_match(pattern, "skills/pay")
    assert not is_filter_match(pattern, ""), "a skill without a folder lies in none"


@pytest.mark.parametrize("char", list("*?[]{}()|^$+.\\"))
def test_a_backslash_takes_the_next_character_literally(char: str) -> None:
    assert is_filter_match(f"a\\{char}b", f"a{char}b")
    assert not is_filter_match(f"a\\{char}b", "aXb")


@pytest.mark.parametrize("char", list("]^-\\"))
def test_a_backslash_takes_the_next_character_literally_in_a_set_too(char: str) -> None:
    assert is_filter_match(f"a[x\\{char}z]b", f"a{char}b")
    assert is_filter_match(f"a[x\\{char}z]b", "azb")
    assert not is_filter_match(f"a[x\\{char}z]b", "ayb")


@pytest.mark.parametrize("char", list("{}()|^$+."))
def test_signs_of_regular_expressions_mean_themselves(char: str) -> None:
    assert is_filter_match(f"a{char}b*", f"a{char}bc")
    assert not is_filter_match(f"a{char}b*", "aXbc")
    assert not is_filter_match(f"a{char}b*", "abc")


@pytest.mark.parametrize("pattern", ["[", "[a", "a/[b", "[]", "[^]", "[z-a]", "a\\", "*\\", "[a-"])
def test_a_malformed_pattern_matches_nothing(pattern: str) -> None:
    paths = ("", "[", "[a", "a", "a/[b", "]", "^", "a\\", "x")
    assert [path for path in paths if is_filter_match(pattern, path)] == []


@given(st.text(), st.text())
def test_any_pattern_over_any_path_is_answered(pattern: str, path: str) -> None:
    assert is_filter_match(pattern, path) in {True, False}


@given(st.text(alphabet="ab*?[]^!-\\/&|~.", max_size=12), st.text(alphabet="ab/]-", max_size=12))
def test_any_mix_of_signs_is_answered(pattern: str, path: str) -> None:
    assert is_filter_match(pattern, path) in {True, False}


@given(st.text(alphabet=st.characters(exclude_characters="/"), min_size=1, max_size=20))
def test_a_path_escaped_sign_by_sign_matches_itself_only(path: str) -> None:
    pattern = "".join("\\" + char for char in path)
    assert is_filter_match(pattern, path)
    assert not is_filter_match(pattern, path + "x")
    assert not is_filter_match(pattern, "x" + path)


BACKTRACKING = [
    ("a*" * 40 + "b", "a" * 400),
    ("*a" * 40 + "b", "a" * 400),
    ("**/" * 40 + "b", "a/" * 400 + "c"),
    ("**a" * 40 + "b", "a" * 400),
    ("**/*" * 30 + "b", "a/" * 200 + "c"),
    ("[a-z]*" * 40 + "1", "a" * 400),
    ("[ -\U0010ffff]" * 40 + "b", "a" * 400),
]


@pytest.mark.parametrize(("pattern", "path"), BACKTRACKING, ids=[pattern[:8] for pattern, _ in BACKTRACKING])
def test_no_pattern_takes_much_time_or_memory_over_a_long_path(pattern: str, path: str) -> None:
    code = (
        "import contextlib, sys; from prowess.text.globs import is_filter_match\n"
        "with contextlib.suppress(ImportError):\n"
        "    import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))\n"
        "sys.exit(is_filter_match(sys.argv[1], sys.argv[2]))"
    )
    done = subprocess.run([sys.executable, "-c", code, pattern, path], timeout=10, check=False)
    assert done.returncode == 0


def test_any_folder_at_the_front_also_means_none_before_an_absolute_path() -> None:
    assert is_filter_match("**/a", "/a")
    assert is_filter_match("**/a", "/elsewhere/a")
    assert is_filter_match("**/skills/*", "/elsewhere/skills/a")
    assert not is_filter_match("skills/*", "/skills/a")
