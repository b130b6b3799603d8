"""Placeholders in instructions: which there are, how they are escaped, and that values are only data."""

import re
import string
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prowess
from prowess.format.placeholders import (
    explain_placeholders,
    fill_placeholders,
    parse_argument_hint,
    parse_argument_names,
    split_arguments,
    substitute,
)

WORDS = "one two three four"
AWK = re.compile(r"awk\b[^\n'\"]*'\{[^'\n]*\$\d[^'\n]*'")
FOLDERS = ("SKILL_DIR", "CLAUDE_SKILL_DIR", "CLAUDE_PLUGIN_ROOT", "SKILL_ROOT", "PROWESS_SKILL_DIR")
PLACEHOLDERS = (
    "$ARGUMENTS",
    "$ARGUMENTS[0]",
    "$ARGUMENTS[1]",
    "$0",
    "$1",
    "$file",
    "${SKILL_DIR}",
    "${CLAUDE_SKILL_DIR}",
    "{baseDir}",
    "\\$0",
)
PLAIN = st.text(st.characters(exclude_characters="$\\{"))
# Text that looks like placeholders, in every order, among whatever else.
TRICKY = st.lists(st.one_of(st.sampled_from(PLACEHOLDERS), st.text(max_size=6)), max_size=6).map(" ".join)


# -- each placeholder -----------------------------------------------------------------------------------------------


def test_the_placeholder_for_all_arguments_stands_for_all_of_them() -> None:
    assert substitute("Do $ARGUMENTS now.", "this and  'that'").text == "Do this and  'that' now."
    assert substitute("$ARGUMENTS", "").text == ""
    assert substitute("$ARGUMENTS/$ARGUMENTS", "a b").text == "a b/a b"


@pytest.mark.parametrize(
    "text", ["$ARGUMENTSX", "$ARGUMENTS_X", "$ARGUMENTS2", "$arguments", "$ ARGUMENTS", "ARGUMENTS"]
)
def test_a_longer_or_other_word_is_not_a_placeholder_for_all_arguments(text: str) -> None:
    assert substitute(text, "a b") == (text, False)


@pytest.mark.parametrize("form", ["${}", "$ARGUMENTS[{}]"])
@pytest.mark.parametrize(("place", "word"), [(0, "one"), (1, "two words"), (2, "")])
def test_a_word_is_counted_from_zero_and_quoted_as_in_a_shell(form: str, place: int, word: str) -> None:
    text = form.replace("{}", str(place))
    assert substitute(f"<{text}>", "one 'two words' \"\"").text == f"<{word}>"


@pytest.mark.parametrize(
    "text",
    ["$2", "$9999", "$ARGUMENTS[2]", "$ARGUMENTS[9999]", "$ARGUMENTS[99999]", "$ARGUMENTS[1234567890]", "$12345"],
)
def test_a_missing_word_stays_as_it_is_written(text: str) -> None:
    assert substitute(f"<{text}>", "one two") == (f"<{text}>", False)


@pytest.mark.parametrize("text", ["$0", "$1", "$ARGUMENTS[0]"])
@pytest.mark.parametrize("after", [".", ". Then stop.", ",", ")", ":", "!", "?", ".\n", "/x", "-x"])
def test_a_word_may_be_followed_by_punctuation(text: str, after: str) -> None:
    assert substitute(f"See {text}{after}", "one one").text == f"See one{after}"


@pytest.mark.parametrize("text", ["$1.50", "$0.99", "$1x", "$0_a", "US$1.50 each"])
def test_a_price_or_a_longer_word_is_not_a_placeholder(text: str) -> None:
    assert substitute(text, "one two") == (text, False)


def test_a_named_word_is_the_one_in_its_place() -> None:
    filled = substitute("Copy $from to $to, $from!", "a 'b c'", names=("from", "to"))
    assert filled == ("Copy a to b c, a!", True)


def test_a_missing_named_word_is_empty() -> None:
    assert substitute("<$from|$to>", "a", names=("from", "to")).text == "<a|>"


@pytest.mark.parametrize("text", ["$other", "$fromage", "$from_x", "$From", "$PATH", "$"])
def test_a_name_that_is_not_listed_stays_as_it_is_written(text: str) -> None:
    assert substitute(f"<{text}>", "a b", names=("from", "to")) == (f"<{text}>", False)


def test_a_name_may_hold_a_hyphen_and_may_stand_before_one() -> None:
    assert substitute("$out-file", "x", names=("out-file",)).text == "x"
    assert substitute("$from-$to", "a b", names=("from", "to")).text == "a-b"


@pytest.mark.parametrize("name", FOLDERS)
def test_the_folder_stands_for_each_of_its_spellings(name: str) -> None:
    assert substitute(f"run ${{{name}}}/x.py", folder="/s/pdf") == ("run /s/pdf/x.py", False)


def test_base_dir_in_braces_is_the_folder_too() -> None:
    assert substitute("run {baseDir}/x.py", folder="/s/pdf") == ("run /s/pdf/x.py", False)


@pytest.mark.parametrize("text", ["${SKILL_DIR}", "{baseDir}", "${CLAUDE_SKILL_DIR}"])
def test_without_a_folder_its_placeholders_stay(text: str) -> None:
    assert substitute(f"run {text}/x.py").text == f"run {text}/x.py"


def test_variables_of_the_caller_are_filled_and_others_stay() -> None:
    text = "${PROJECT_DIR} ${HOME} ${UNKNOWN_THING} ${lower}"
    assert substitute(text, variables={"PROJECT_DIR": "/p"}).text == "/p ${HOME} ${UNKNOWN_THING} ${lower}"


# -- escaping -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["$ARGUMENTS", "$ARGUMENTS[0]", "$0", "$file", "${SKILL_DIR}"])
def test_a_backslash_keeps_a_placeholder_literal(text: str) -> None:
    filled = substitute(f"<\\{text}>", "one two", names=("file",), folder="/s")
    assert filled == (f"<{text}>", False)


def test_an_escaped_placeholder_stays_beside_one_that_is_filled() -> None:
    assert substitute("\\$0 is $0", "one").text == "$0 is one"


# -- values are data ------------------------------------------------------------------------------------------------


@given(PLAIN, TRICKY, PLAIN)
def test_the_arguments_stand_verbatim_where_their_placeholder_stood(before: str, arguments: str, after: str) -> None:
    filled = substitute(f"{before} $ARGUMENTS {after}", arguments, names=("file",), folder="/s")
    assert filled == (f"{before} {arguments} {after}", True)


@given(TRICKY)
def test_the_folder_stands_verbatim_where_its_placeholder_stood(folder: str) -> None:
    filled = substitute("<${SKILL_DIR}|{baseDir}>", "one two", names=("file",), folder=folder or "/s")
    assert filled.text == f"<{folder or '/s'}|{folder or '/s'}>"


@given(st.lists(TRICKY.filter(lambda word: "\x00" not in word), min_size=2, max_size=4))
def test_a_word_stands_verbatim_where_its_placeholder_stood(words: list[str]) -> None:
    quoted = " ".join("'" + word.replace("'", "'\"'\"'") + "'" for word in words)
    filled = substitute("<$0|$ARGUMENTS[1]|$file>", quoted, names=("file",), folder="/s")
    assert filled.text == f"<{words[0]}|{words[1]}|{words[0]}>"


@given(st.text(st.characters(exclude_characters="$")).filter(lambda text: "{baseDir}" not in text), TRICKY)
def test_text_without_placeholders_is_left_alone(text: str, arguments: str) -> None:
    assert substitute(text, arguments, names=("file",), folder="/s") == (text, False)


@given(st.text(), st.text(), st.lists(st.text(string.ascii_letters, min_size=1), max_size=3))
def test_any_text_with_any_arguments_is_filled(text: str, arguments: str, names: list[str]) -> None:
    assert isinstance(substitute(text, arguments, names=names, folder="/s").text, str)


def test_a_filled_folder_alone_does_not_count_as_using_the_arguments() -> None:
    assert not substitute("${SKILL_DIR} \\$0 $9", "one", folder="/s").used_arguments
    assert substitute("${SKILL_DIR} $0", "one", folder="/s").used_arguments


# -- words ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", ()),
        ("  ", ()),
        ("a  b\tc\nd", ("a", "b", "c", "d")),
        ("'a b' \"c d\"", ("a b", "c d")),
        ("a\\ b", ("a b",)),
        ("it's fine", ("it's", "fine")),
        ('say "hello', ("say", '"hello')),
        ("a#b #c", ("a#b", "#c")),
        ("$(x) `y` ;", ("$(x)", "`y`", ";")),
        ("''", ("",)),
    ],
)
def test_arguments_are_split_as_a_shell_does_or_by_blanks(arguments: str, words: tuple[str, ...]) -> None:
    assert split_arguments(arguments) == words


@given(st.text())
def test_any_arguments_are_split(arguments: str) -> None:
    assert all(isinstance(word, str) for word in split_arguments(arguments))


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (None, ()),
        ("", ()),
        ("from to", ("from", "to")),
        ("from, to", ("from", "to")),
        (["from", "to"], ("from", "to")),
        (["from", {"to": "x"}], ("from",)),
        ({"from": "to"}, ()),
    ],
)
def test_argument_names_are_a_list_or_words(value: object, names: tuple[str, ...]) -> None:
    assert parse_argument_names(value) == names  # type: ignore[arg-type]


# -- which are placeholders -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["It costs $1 or $0.", "local file=$1", "Copy $from.", "`$B$6`"])
def test_a_text_that_takes_no_arguments_keeps_its_dollar_signs(text: str) -> None:
    made = fill_placeholders(text, "one two", names=("from",), declared=False)
    assert (made.text, made.used_arguments, made.placeholders) == (text, False, ())


def test_a_text_that_uses_the_arguments_takes_words_too() -> None:
    made = fill_placeholders("$0 of $ARGUMENTS", "one two", declared=False)
    assert (made.text, made.placeholders) == ("one of one two", ("$0", "$ARGUMENTS"))
    escaped = fill_placeholders("\\$ARGUMENTS costs $0", "one", declared=False)
    assert escaped.text == "$ARGUMENTS costs $0"


def test_shell_code_keeps_what_it_has_between_single_quotes() -> None:
    text = "Sum `$0`: `awk '{print $0}' $0`, as '$0'.\n```sh\nawk -F',' '$1 ~ /$0/ {print $name}' \"$0\"\n```\n"
    expected = text.replace("`$0`", "`f`").replace("' $0`", "' f`").replace("'$0'.", "'f'.").replace('"$0"', '"f"')
    assert substitute(text, "f g", names=("name",)).text == expected


def test_the_whole_request_is_filled_between_single_quotes_too() -> None:
    """Other clients do, and authors write requests to servers that way."""
    text = '`curl -d \'{"q": "$ARGUMENTS", "at": "${SKILL_DIR}"}\'`'
    assert substitute(text, "x", folder="/s").text == '`curl -d \'{"q": "x", "at": "/s"}\'`'


@pytest.mark.parametrize("text", ["$1,000", "$50,000 a year", "$1.50"])
def test_an_amount_with_thousands_is_not_a_placeholder(text: str) -> None:
    assert substitute(text, "one two").text == text


def test_a_backslash_before_anything_else_is_the_authors() -> None:
    text = r'echo "\$HOME \$(date) \$5"'
    assert fill_placeholders(text, "one", declared=False).text == text


def test_without_arguments_placeholders_stay_and_are_named() -> None:
    made = fill_placeholders("${SKILL_DIR}: $0, $0, $ARGUMENTS, $to-$other", None, names=("to",), folder="/s")
    assert made.text == "/s: $0, $0, $ARGUMENTS, $to-$other"
    assert made.placeholders == ("$0", "$ARGUMENTS", "$to")


def test_arguments_of_which_a_word_has_no_place_do_not_count_as_used() -> None:
    assert not substitute("Read $0.", "one two").used_arguments
    assert not substitute("To $to.", "one", names=("from", "to")).used_arguments
    assert substitute("$1 $0", "one two").used_arguments


@given(TRICKY, st.text("`'\"$0{}\n ", max_size=20))
def test_the_output_of_a_command_stays_and_decides_nothing_about_the_text(arguments: str, output: str) -> None:
    """Neither a fence nor a quote in it changes what the author's text means."""
    before, after = "Got ", " for `awk '{print $0}' $0` and $ARGUMENTS."
    text = before + output + after
    made = fill_placeholders(text, arguments, outputs=[(len(before), len(before) + len(output))])
    alone = substitute(before + after, arguments).text
    assert made.text == alone[: len(before)] + output + alone[len(before) :]
    assert made.spans[0] == (len(before), len(before) + len(output))


def test_placeholders_are_explained_with_what_the_author_expects() -> None:
    said = explain_placeholders(["$ARGUMENTS", "$0", "$1", "$from"], "[file]\n[format]")
    for part in ("$ARGUMENTS stands", "$0, $1 stand", "$from stands", "(expected: [file] [format])"):
        assert part in said
    assert explain_placeholders([]) == ""


@pytest.mark.parametrize(
    ("value", "hint"), [("[a] <b>", "[a] <b>"), (["a", "b"], "[a] [b]"), (None, ""), ({"a": "b"}, "")]
)
def test_a_hint_is_one_text_also_where_yaml_reads_a_list(value: object, hint: str) -> None:
    assert parse_argument_hint(value) == hint  # type: ignore[arg-type]


# -- real skills -------------------------------------------------------------------------------------------------------


def test_the_rule_leaves_real_skills_whole(shared: Path) -> None:
    """Prices, cells and shell parameters stay in skills that take no arguments; awk's fields stay everywhere."""
    seen = {"takes none": 0, "takes some": 0, "awk": 0}
    with tarfile.open(shared / "corpus" / "skills.tar.xz") as archive:
        for member in archive:
            if not member.name.lower().endswith("/skill.md") or not member.isfile():
                continue
            file = archive.extractfile(member)
            assert file is not None
            try:
                parsed = prowess.parse_skill(file.read(), mode="lenient", check_dir=False)
            except prowess.SkillError:
                continue
            extra, body = parsed.skill.extra, parsed.body
            declared = "arguments" in extra or "argument-hint" in extra
            uses_whole = re.search(r"(?<!\\)\$ARGUMENTS\b", body) is not None
            names = parse_argument_names(extra.get("arguments"))
            made = fill_placeholders(body, WORDS, names=names, declared=declared)
            as_if_declared = fill_placeholders(body, WORDS, names=names).text
            for program in AWK.findall(body):
                seen["awk"] += 1
                assert program in as_if_declared, member.name
            if not declared and not uses_whole:
                seen["takes none"] += "$" in body
                assert made.text == body, member.name
            elif uses_whole:
                seen["takes some"] += 1
                assert WORDS in made.text
                assert len(re.findall(r"(?<!\\)\$ARGUMENTS\b(?!\[)", made.text)) == 0, member.name
    assert min(seen.values()) > 3, seen
