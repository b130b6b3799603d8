"""The lock file: what is written can be read, and a text with invalid values or paths outward is refused."""

from __future__ import annotations

import hashlib
import tomllib
from datetime import UTC

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prowess import InstallError, PathTraversalError
from prowess.files.tree import FileHash, digest_tree
from prowess.installed.other_tools import parse_foreign_lock
from prowess.lockfile.read import LockEntry, parse_lock, parse_lock_file, parse_plain_toml, toml_row
from prowess.lockfile.write import lock_text
from prowess.names import split_relative_path

HASH = hashlib.sha256(b"x").hexdigest()


def entry(name: str = "acme/pdf", **changes: object) -> LockEntry:
    files = {
        "SKILL.md": FileHash(1, executable=False, sha256=HASH),
        "scripts/a b.sh": FileHash(1, executable=True, sha256=HASH),
    }
    values: dict[str, object] = {"source": "https://h.example/x", "files": files, "skills": {"pdf": ""}} | changes
    made = dict(values["files"])  # type: ignore[call-overload]
    return LockEntry(name=name, digest=digest_tree(made), **values)  # type: ignore[arg-type]


def test_a_lock_file_that_is_written_and_read_has_equal_entries() -> None:
    full = entry(
        kind="git",
        ref="v1",
        commit="0" * 40,
        subpath="a/b",
        select="pdf",
        links=(".agents/skills/pdf",),
        copies=(".agents/skills/pdf",),
        agents=("codex",),
        declared='{"source": "a/b"}',
    )
    other = entry("acme/other", skills={'odd "name"': "a/b", "x": ""})
    locked = {one.name: one for one in (full, other)}
    text = lock_text(locked)
    assert text is not None
    assert parse_lock(text) == locked
    assert lock_text(dict(reversed(locked.items()))) == text
    assert lock_text({}) is None


def test_the_name_of_a_chosen_skill_is_written_once() -> None:
    text = lock_text({"acme/pdf": entry(select="pdf")}) or ""
    assert text.count("pdf") == 1
    assert parse_lock(text) == {"acme/pdf": entry(select="pdf")}
    for odd in (
        entry(select="PDF"),
        entry(select="pdf", skills={"pdf": "", "b": "scripts"}),
        entry(select="x", skills={"x": ""}),
        entry(skills={}),
        entry(),
    ):
        assert parse_lock(lock_text({"acme/pdf": odd}) or "") == {"acme/pdf": odd}


def test_each_of_several_skills_has_its_digest_and_each_link_a_line() -> None:
    links = (".agents/skills/pdf", ".agents/skills/run")
    one = entry(skills={"pdf": "", "run": "scripts"}, links=links)
    text = lock_text({"acme/pdf": one}) or ""
    digest = digest_tree({"a b.sh": one.files["scripts/a b.sh"]})
    assert text.endswith(f'[skill.skills]\n"pdf" = ""\n"run" = "{digest} scripts"\n')
    assert 'links = [\n  ".agents/skills/pdf",\n  ".agents/skills/run",\n]\n' in text
    assert parse_lock(text) == {"acme/pdf": one}
    assert parse_plain_toml(text) == tomllib.loads(text)
    with pytest.raises(InstallError, match="digest of the skill 'run' does not fit"):
        parse_lock(text.replace(digest, "0" * 64))


VALUES = st.recursive(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
    | st.integers()
    | st.floats()
    | st.booleans()
    | st.datetimes(timezones=st.none() | st.just(UTC)).map(lambda when: when.replace(fold=0))
    | st.dates()
    | st.times().map(lambda when: when.replace(fold=0)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab ."é', max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(VALUES)
def test_any_value_of_a_field_that_is_not_known_is_written_as_it_was_read(value: object) -> None:
    text = lock_text({"acme/pdf": entry(unknown=(toml_row("a field", value),))}, [toml_row("head", value)]) or ""
    assert repr(tomllib.loads(text)["skill"][0]["a field"]) == repr(value)
    file = parse_lock_file(text)
    assert lock_text(file.entries, file.unknown) == text


def test_fields_and_tables_that_are_not_known_are_kept_wherever_they_are() -> None:
    text = (lock_text({"acme/pdf": entry(), "acme/x": entry("acme/x")}) or "").replace(
        'name = "acme/x"', '[skill.seal]\nby = "me"\n\n[[skill]]\nname = "acme/x"\nsize = 1.5', 1
    )
    text = text.replace("[[skill]]\n[skill.seal]", "[skill.seal]")
    file = parse_lock_file(f"{text}\n[meta]\nby = 1\n")
    assert file.unknown == ("meta = { by = 1 }",)
    assert [one.unknown for one in file.entries.values()] == [('seal = { by = "me" }',), ("size = 1.5",)]


def test_a_newer_format_says_to_upgrade() -> None:
    with pytest.raises(InstallError, match="format 2, and this one reads 1: upgrade Prowess") as caught:
        parse_lock('version = 2\n[[skill]]\nname = ["of another kind"]\n')
    assert caught.value.code == "newer-lock"


def _is_path(text: str) -> bool:
    try:
        return "/".join(split_relative_path(text)) == text
    except PathTraversalError:
        return False


def _is_plain(source: str) -> bool:
    """Whether a source is one line, without the signs of a query, a fragment or a password."""
    return source.isprintable() and not any(sign in source for sign in "?#@:")


@given(st.text(min_size=1, max_size=30).filter(_is_path), st.text(max_size=30).filter(_is_plain))
def test_any_name_of_a_file_and_any_source_without_a_secret_survive(path: str, source: str) -> None:
    one = entry(files={path: FileHash(1, executable=True, sha256=HASH)}, source=source)
    text = lock_text({one.name: one})
    assert text is not None
    assert parse_lock(text) == {one.name: one}


BAD = {
    "name": ('name = "acme/pdf"', 'name = "../pdf"'),
    "no org": ('name = "acme/pdf"', 'name = "pdf"'),
    "file": ("SKILL.md", "../SKILL.md"),
    "absolute": ("SKILL.md", "/SKILL.md"),
    "hash": (HASH, HASH[:-1]),
    "mode": (" - 1 ", " ? 1 "),
    "digest": ("digest = ", "digest = 1 #"),
    "other digest": (f"{HASH} - 1 SKILL", f"{'0' * 64} - 1 SKILL"),
    "folder": ('"pdf" = ""', '"pdf" = "../x"'),
    "skill": ('"pdf" = ""', '"../x" = ""'),
    "links": ('source = "', 'links = "x"\nsource = "'),
    "source": ("source = ", "source = 1 #"),
    "NUL in a path": ('source = "', 'copies = [".claude/skills/a\\u0000"]\nsource = "'),
    "NUL in a text": ('source = "', 'declared = "\\u0000"\nsource = "'),
    "an option in place of a commit": ('source = "', 'commit = "--all"\nsource = "'),
}


@pytest.mark.parametrize("how", BAD)
def test_an_entry_with_an_invalid_value_or_a_path_outward_is_refused(how: str) -> None:
    text = lock_text({"acme/pdf": entry()})
    assert text is not None
    old, new = BAD[how]
    assert old in text
    with pytest.raises(InstallError) as caught:
        parse_lock(text.replace(old, new))
    assert caught.value.code == "bad-lock"


@pytest.mark.parametrize(
    "text", ["", "version = 0", 'version = "2"', "version = 1\nskill = 1", "version = 1\n[[skill", "a = " + "[" * 5000]
)
def test_a_string_that_is_not_a_lock_file_is_refused(text: str) -> None:
    with pytest.raises(InstallError) as caught:
        parse_lock(text)
    assert caught.value.code == "bad-lock"


def test_two_entries_of_one_name_are_refused() -> None:
    text = lock_text({"acme/pdf": entry(), "acme/x": entry("acme/x")})
    assert text is not None
    with pytest.raises(InstallError):
        parse_lock(text.replace('"acme/x"', '"acme/PDF"'))


def test_a_file_that_somebody_wrote_by_hand_is_read_as_toml() -> None:
    text = lock_text({"acme/pdf": entry(links=(".agents/skills/pdf",)), "acme/x": entry("acme/x")})
    assert text is not None
    others = (
        text.replace('name = "acme/pdf"', "name = 'acme/pdf'  # mine"),
        text.replace("version = 1", "version=1"),
        text.replace('  "', '    "'),
        text.replace("[[skill]]", "[[ skill ]]"),
        text.replace("\n", "\r\n"),
    )
    for other in others:
        assert other != text
        assert parse_lock(other) == parse_lock(text)


@pytest.mark.parametrize("row", ['name = "acme/pdf"', "files = [\n]", "[skill.skills]", "nonsense", 'a.b = "c"'])
def test_the_fast_parser_accepts_nothing_that_toml_refuses_or_reads_otherwise(row: str) -> None:
    text = lock_text({"acme/pdf": entry()})
    assert text is not None
    odd = text.replace('kind = "git"\n', f'kind = "git"\n{row}\n')
    assert odd != text
    try:
        tomllib.loads(odd)
    except tomllib.TOMLDecodeError:
        with pytest.raises(InstallError):
            parse_lock(odd)
    else:
        assert parse_lock(odd)["acme/pdf"].unknown == ('a = { b = "c" }',)


WRITTEN = lock_text({"acme/pdf": entry()}) or ""
ROWS = st.sampled_from(
    [
        *WRITTEN.splitlines(),
        *(
            "[skill]",
            "[skill.skills]",
            "[[skill]]",
            "[a]",
            "files = [",
            "]",
            '  "x",',
            "skill = 1",
            "skills = []",
            "a.b = 1",
        ),
        *(
            "a = null",
            "a = NaN",
            "a = -Infinity",
            "a = {}",
            'a = {"b": 1}',
            "a = [null]",
            "a = true",
            "a = 1.0",
            "a = 01",
        ),
        *('a = "\\/"', 'a = "\\ud83d\\ude00"', 'a = "\\u0041"', '"\\/" = 1', "\u00e9 = 1", '"\u00e9" = 1', "a-b = 1"),
        *(
            "# \x01",
            "# \x7f",
            "# a\rb",
            'a = "\x01"',
            'a = "\t"',
            '  "\x02",',
            "\r",
            "a = 1 # b",
            'a = "b" # "c"',
            " a = 1",
        ),
        *(
            "version = true",
            "version = 1.0",
            "a = " + "9" * 5_000,
            "a = 1e5",
            "a = 1E400",
            "a = -0",
            "a = [1, [2]]",
            '"a = 1',
        ),
    ]
)
TEXTS = st.lists(ROWS, max_size=12).map("\n".join) | st.text(max_size=60)


@given(TEXTS)
@example("version = 1\n[[skill]]\n[skill.skills]\n[skill.skills]\n")
@example("version = 1\n# a\rb\n[[skill]]\n")
@example("version = 1\n[[skill]]\na = null\n")
@example("version = 1\n[[skill]]\n\u00e9 = 1\n")
@example('version = 1\n[[skill]]\na = "\\/"\n')
def test_the_fast_parser_gives_what_a_toml_parser_gives_or_nothing(text: str) -> None:
    parsed = parse_plain_toml(text)
    if parsed is not None:
        assert parsed == tomllib.loads(text)


@given(TEXTS)
@example("version = " + "9" * 5_000)
@example("[" * 5_000)
def test_any_text_is_a_lock_file_or_a_typed_refusal(text: str) -> None:
    for parse in (parse_lock, parse_foreign_lock):
        try:
            parse(text)
        except InstallError as error:
            assert error.code == "bad-lock"  # noqa: PT017 - either way is right
