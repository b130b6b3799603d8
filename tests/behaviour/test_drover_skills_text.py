"""How @drover/skills (S3) reads a SKILL.md."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

import prowess

Put = Callable[..., Path]
Mode = Literal["strict", "lenient"]


def skill_text(more: str = "", *, description: str = "Fills forms.", body: str = "Body.\n") -> str:
    return f"---\nname: pdf\ndescription: {description}\n{more}---\n{body}"


def lenient(more: str) -> prowess.ParsedSkill:
    return prowess.parse_skill(skill_text(more), mode="lenient")


def refused(
    text: str, path: str | None = None, mode: Mode = "strict", *, repair: bool = True
) -> prowess.SkillLoadError:
    with pytest.raises(prowess.SkillLoadError) as caught:
        prowess.parse_skill(text, path, mode, repair=repair)
    return caught.value


def named(found: tuple[prowess.Issue, ...]) -> list[tuple[str, str]]:
    return [(issue.code, issue.field) for issue in found]


@pytest.mark.parametrize("opener", ["---\n", "--- \n", "---\t\r\n", "\n---\n", "\ufeff---\n"])
def test_dashes_open_the_file_after_nothing_but_blanks(opener: str) -> None:
    """S3-1: blanks may follow them; blank lines or a byte order mark may precede them."""
    assert prowess.parse_skill(skill_text().replace("---\n", opener, 1)).skill.name == "pdf"


def test_text_before_the_dashes_is_not_frontmatter() -> None:
    """S3-1: the fields of a quoted example further down are not the file's."""
    assert isinstance(refused("Intro\n" + skill_text()), prowess.NoFrontmatterError)


@pytest.mark.parametrize("closer", ["---foo\n", "----\n", "---# Title\n"])
def test_closing_dashes_are_a_whole_line(closer: str) -> None:
    """S3-2: what begins with dashes does not close."""
    text = f"---\nname: pdf\ndescription: d\n{closer}Body.\n"
    assert isinstance(refused(text), prowess.UnterminatedFrontmatterError)


def test_a_heading_glued_to_the_closing_dashes_is_repaired() -> None:
    """S3-2: lenient loading gives the heading back to the body and warns."""
    parsed = prowess.parse_skill("---\nname: pdf\ndescription: d\n---# Title\nBody.\n", mode="lenient")
    assert (parsed.body, named(parsed.issues)) == ("# Title\nBody.", [("repaired-glued-dashes", "")])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("---\n---\n", "empty-frontmatter"),
        ("---\n\n---\n", "empty-frontmatter"),
        ("---\n# comment\n---\n", "empty-frontmatter"),
        ("---\n- a\n---\n", "yaml-not-a-mapping"),
        ("---\ntext\n---\n", "yaml-not-a-mapping"),
    ],
)
def test_frontmatter_is_a_mapping_with_something_in_it(text: str, code: str) -> None:
    """S3-2: with a line between the dashes or without, nothing, a list and a text are invalid."""
    error = refused(text)
    assert isinstance(error, prowess.InvalidFrontmatterError)
    assert error.code == code


def test_body_and_description_are_trimmed_and_other_texts_are_not() -> None:
    """S3-3: with CRLF as with LF; the frontmatter keeps the description as it was written."""
    text = skill_text('license: " MIT "\ncompatibility: " any "\n', description='"  Fills.  "', body="\n Body. \n\n")
    for written in (text, text.replace("\n", "\r\n")):
        parsed = prowess.parse_skill(written)
        assert (parsed.skill.description, parsed.body) == ("Fills.", "Body.")
        assert (parsed.skill.license, parsed.skill.compatibility) == (" MIT ", " any ")
        assert parsed.skill.frontmatter.description == "  Fills.  "


@pytest.mark.parametrize("mode", ["strict", "lenient"])
@pytest.mark.parametrize("text", ["Body.\n", "---\nname: pdf\n", "---\n- a\n---\n", "---\nname: pdf\nname: pdf\n---\n"])
def test_unreadable_frontmatter_raises_in_both_modes(text: str, mode: Mode) -> None:
    """S3-4: missing, not closed, no mapping, against the YAML rules; such an issue belongs to no field."""
    error = refused(text, mode=mode)
    assert isinstance(error, prowess.InvalidFrontmatterError)
    assert [issue.field for issue in error.issues] == [""]


def test_bad_yaml_raises_in_lenient_mode_only_without_repair() -> None:
    """S3-4: what real files get wrong is fixed unless repair=False."""
    text = skill_text(description="Use when: asked")
    assert isinstance(refused(text, mode="lenient", repair=False), prowess.InvalidFrontmatterError)
    assert prowess.parse_skill(text, mode="lenient").skill.description == "Use when: asked"


def test_every_violation_of_a_name_is_reported() -> None:
    """S3-5: its characters, its length and its folder at once; the folder only if that is checked."""
    text = f"---\nname: {'A' * 65}\ndescription: d\n---\nBody.\n"
    error = refused(text, "/skills/pdf/SKILL.md")
    assert [issue.code for issue in error.issues] == ["bad-name", "bad-name", "name-mismatch"]
    with pytest.raises(prowess.SkillLoadError) as unchecked:
        prowess.parse_skill(text, "/skills/pdf/SKILL.md", check_dir=False)
    assert [issue.code for issue in unchecked.value.issues] == ["bad-name", "bad-name"]


@pytest.mark.parametrize("name", ["name: ''", "name:", "name: '  '", "other: x"])
def test_a_name_is_required(name: str) -> None:
    """S3-5: absent, empty and blank are the same."""
    assert named(refused(f"---\n{name}\ndescription: d\n---\n").issues) == [("missing-name", "name")]


@pytest.mark.parametrize("description", ["", "''", "'  '", "|\n  \n"])
def test_a_description_that_says_nothing_is_missing(description: str) -> None:
    """S3-6: blanks are not a description."""
    assert named(refused(skill_text(description=description)).issues) == [("missing-description", "description")]


def test_a_description_has_1024_characters_of_any_kind() -> None:
    """S3-6: a character beyond the basic plane counts once."""
    assert prowess.parse_skill(skill_text(description="🖨" * 1024)).issues == ()
    assert named(refused(skill_text(description="🖨" * 1025)).issues) == [("description-too-long", "description")]


@pytest.mark.parametrize("field", ["license", "compatibility"])
@pytest.mark.parametrize("value", ["", " ''", " '  '"])
def test_an_optional_text_is_not_blank_when_it_is_there(field: str, value: str) -> None:
    """S3-7: a key without a value is there."""
    assert named(refused(skill_text(f"{field}:{value}\n")).issues) == [("blank-field", field)]


def test_compatibility_has_500_characters() -> None:
    """S3-7: one more is a violation."""
    assert prowess.MAX_COMPATIBILITY_LENGTH == 500
    assert prowess.parse_skill(skill_text(f"compatibility: {'c' * 500}\n")).issues == ()
    assert named(refused(skill_text(f"compatibility: {'c' * 501}\n")).issues) == [
        ("compatibility-too-long", "compatibility")
    ]


@pytest.mark.parametrize("field", ["license", "compatibility"])
def test_an_optional_text_is_text(field: str) -> None:
    """S3-7: a list is a violation."""
    assert named(refused(skill_text(f"{field}: [a]\n")).issues) == [("wrong-type", field)]


def test_the_word_null_is_text() -> None:
    """S3-7: a license may be called so."""
    assert prowess.parse_skill(skill_text("license: null\n")).skill.license == "null"


def test_metadata_is_text_to_text_as_written() -> None:
    """S3-8: no digit is lost, a key without a value is kept; without metadata the mapping is empty."""
    skill = prowess.parse_skill(skill_text("metadata:\n  a: 1.0\n  b: 1.10\n  c: true\n  d: null\n  e:\n")).skill
    assert skill.metadata == {"a": "1.0", "b": "1.10", "c": "true", "d": "null", "e": ""}
    assert prowess.parse_skill(skill_text()).skill.metadata == {}


def test_a_metadata_value_that_is_not_text_is_a_violation_kept_as_json() -> None:
    """S3-8: the issue names the key; lenient loading keeps what was written."""
    more = "metadata:\n  a: b\n  c:\n    - d\n    - 1\n"
    assert named(refused(skill_text(more)).issues) == [("metadata-not-text", "metadata.c")]
    parsed = lenient(more)
    assert parsed.skill.metadata == {"a": "b", "c": '["d", "1"]'}
    assert named(parsed.issues) == [("metadata-not-text", "metadata.c")]


def test_metadata_is_a_mapping() -> None:
    """S3-8: a list or a text is a violation."""
    assert named(refused(skill_text("metadata: [a]\n")).issues) == [("wrong-type", "metadata")]
    assert named(refused(skill_text("metadata: a\n")).issues) == [("wrong-type", "metadata")]


def test_allowed_tools_keep_the_text_or_join_the_list() -> None:
    """S3-9: the raw text is what was written, or the items with single blanks between them."""
    raws = [
        prowess.parse_skill(skill_text(f"allowed-tools: {written}\n")).skill.allowed_tools_raw
        for written in ("Read,  Edit", "[Read, 'Bash(git add:*)']", "[]")
    ]
    assert raws == ["Read,  Edit", "Read Bash(git add:*)", None]


@pytest.mark.parametrize("items", ["  - Read\n  - ''\n", "  - Read\n  - [Edit]\n", "  - Read\n  -\n"])
def test_bad_items_of_allowed_tools_are_a_violation_and_the_good_ones_stay(items: str) -> None:
    """S3-9: empty items and items that are not text."""
    more = f"allowed-tools:\n{items}"
    assert named(refused(skill_text(more)).issues) == [("wrong-type", "allowed-tools")]
    assert lenient(more).skill.allowed_tools == ("Read",)


def test_every_key_that_is_not_the_specifications_is_in_extra_as_written() -> None:
    """S3-10: also the keys that are fields here, and the spelling with an underscore."""
    more = "version: 1.10\ntags: a, b\nmodel: small\ncontext: fork\nallowed_tools: Read\nlicense: MIT\n"
    skill = prowess.parse_skill(skill_text(more)).skill
    assert skill.extra == {
        "version": "1.10",
        "tags": "a, b",
        "model": "small",
        "context": "fork",
        "allowed_tools": "Read",
    }
    assert (skill.version, skill.tags, skill.allowed_tools) == ("1.10", ("a", "b"), ("Read",))


def test_yamls_types_can_be_had() -> None:
    """S3-10: frontmatter.typed() has every key with its type; what is quoted is text."""
    more = "count: 3\nflag: true\nversion: 1.10\nquoted: '3'\nnested:\n  list: [1, two]\n  none: null\n"
    typed = prowess.parse_skill(skill_text(more)).skill.frontmatter.typed()
    assert {key: typed[key] for key in ("count", "flag", "version", "quoted", "nested")} == {
        "count": 3,
        "flag": True,
        "version": 1.1,
        "quoted": "3",
        "nested": {"list": [1, "two"], "none": None},
    }


def test_every_other_key_is_kept_as_text() -> None:
    """S3-10: nested values too, never in metadata, and nothing is converted."""
    skill = prowess.parse_skill(skill_text("count: 3\nflag: true\nnested:\n  list: [1, two]\n  none: null\n")).skill
    assert skill.extra == {"count": "3", "flag": "true", "nested": {"list": ["1", "two"], "none": "null"}}
    assert skill.metadata == {}


def test_warnings_are_the_violations_that_lenient_mode_lives_with() -> None:
    """S3-11: parsed.warnings; there are none in strict mode, and information or an empty body is none."""
    text = "---\nname: Bad\ndescription: d\nlicense: ''\nmodel: m\nodd: 1\n---\n"
    parsed = prowess.parse_skill(text, "/skills/pdf/SKILL.md", mode="lenient")
    assert [(issue.field, issue.code) for issue in parsed.warnings] == [
        ("name", "bad-name"),
        ("name", "name-mismatch"),
        ("license", "blank-field"),
    ]
    assert {issue.code for issue in parsed.issues} > {issue.code for issue in parsed.warnings}
    assert prowess.parse_skill("---\nname: pdf\ndescription: d\nmodel: m\n---\n").warnings == ()


def test_strict_is_the_default_and_raises_with_every_issue() -> None:
    """S3-11: one error with the path and all violations, each with its line."""
    text = "---\nname: Bad\ndescription: ''\nlicense: ''\ncompatibility: []\n---\n"
    with pytest.raises(prowess.SkillLoadError) as caught:
        prowess.parse_skill(text, "/skills/pdf/SKILL.md")
    assert caught.value.path == "/skills/pdf/SKILL.md"
    assert sorted((issue.code, issue.field, issue.line) for issue in caught.value.issues) == [
        ("bad-name", "name", 2),
        ("blank-field", "license", 4),
        ("missing-description", "description", 3),
        ("name-mismatch", "name", 2),
        ("wrong-type", "compatibility", 5),
    ]


def test_lenient_returns_the_skill_with_warnings() -> None:
    """S3-11: a name it can list is kept, a text of the wrong type is left out, one that is too long stays whole."""
    text = f"---\nname: Bad\ndescription: d\nlicense: [a]\ncompatibility: {'c' * 501}\n---\nBody.\n"
    parsed = prowess.parse_skill(text, "/skills/pdf/SKILL.md", mode="lenient")
    assert (parsed.skill.name, parsed.skill.license, parsed.skill.compatibility) == ("Bad", None, "c" * 501)
    assert sorted(named(parsed.issues)) == [
        ("bad-name", "name"),
        ("compatibility-too-long", "compatibility"),
        ("name-mismatch", "name"),
        ("wrong-type", "license"),
    ]
    assert {issue.severity for issue in parsed.issues} == {"warning"}


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", "..", "<b>", "'a\u200bb'", "n" * 257])
def test_lenient_never_lists_a_harmful_name(name: str) -> None:
    """S3-11: the folder's is used instead, and without a folder a slug with digits of the name's digest."""
    text = f"---\nname: {name}\ndescription: d\n---\nBody.\n"
    parsed = prowess.parse_skill(text, "/skills/pdf/SKILL.md", mode="lenient")
    assert (parsed.skill.name, named(parsed.issues)) == ("pdf", [("bad-name", "name")])
    slug = prowess.parse_skill(text, mode="lenient").skill.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*-[0-9a-f]{8}", slug)
    assert len(slug) <= prowess.MAX_NAME_LENGTH


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("description: d\n", ("missing-name", "name")),
        ("name: A\ndescription: d\n", ("bad-name", "name")),
        ("name: other\ndescription: d\n", ("name-mismatch", "name")),
        ("name: pdf\n", ("missing-description", "description")),
        (f"name: pdf\ndescription: {'d' * 1025}\n", ("description-too-long", "description")),
        (f"name: pdf\ndescription: d\ncompatibility: {'c' * 501}\n", ("compatibility-too-long", "compatibility")),
        ("name: pdf\ndescription: d\nlicense: ''\n", ("blank-field", "license")),
        ("name: pdf\ndescription: d\nmetadata: x\n", ("wrong-type", "metadata")),
        ("name: pdf\ndescription: d\nmetadata:\n  k: []\n", ("metadata-not-text", "metadata.k")),
        ("name: pdf\ndescription: d\nallowed-tools: {a: b}\n", ("wrong-type", "allowed-tools")),
        ("name: [a]\ndescription: d\n", ("wrong-type", "name")),
    ],
)
def test_each_rule_has_a_code_and_a_field(fields: str, expected: tuple[str, str]) -> None:
    """S3-12: and every issue has a message and a hint for people."""
    error = refused(f"---\n{fields}---\nBody.\n", "/skills/pdf/SKILL.md")
    assert expected in named(error.issues)
    assert all(issue.message and issue.hint for issue in error.issues)


def test_a_file_is_parsed_strictly_unless_told_otherwise(put: Put) -> None:
    """S3-13: the same rules as for text, and the body comes with it."""
    good, bad = put("pdf"), put("other", name="Bad")
    assert prowess.parse_skill_file(good).skill.name == "pdf"
    with pytest.raises(prowess.SkillLoadError):
        prowess.parse_skill_file(bad)
    assert prowess.parse_skill_file(bad, "lenient").skill.name == "Bad"


@pytest.mark.parametrize(
    ("raw", "tools"),
    [
        ("Read Edit,Write\tGlob\nGrep", ("Read", "Edit", "Write", "Glob", "Grep")),
        ("Bash(git add:*) Read", ("Bash(git add:*)", "Read")),
        ("Bash(a, (b c)), Read", ("Bash(a, (b c))", "Read")),
        ("Read) Edit", ("Read)", "Edit")),
        ("Bash(git add Read", ("Bash(git add Read",)),
        ("Read Read", ("Read", "Read")),
        (" , ", ()),
        ("", ()),
        (None, ()),
    ],
)
def test_tools_are_separated_outside_parentheses_only(raw: str | None, tools: tuple[str, ...]) -> None:
    """S3-14: by blanks, commas, tabs and line ends; an open parenthesis takes the rest; repeats stay."""
    assert prowess.parse_allowed_tools(raw) == tools
