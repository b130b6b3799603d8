"""Skills that are given as text in a program."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prowess
from prowess import Source


def load(*args: str, **more: object) -> prowess.Skill:
    catalog = prowess.Catalog.from_sources([Source.inline(*args, **more)])  # type: ignore[arg-type]
    assert len(catalog) == 1
    return catalog.skills[0]


def test_an_inline_skill_has_text_and_no_files() -> None:
    skill = load("greet", "Greets.", "Say hello.\n")
    assert (skill.name, skill.description, skill.location) == ("greet", "Greets.", "inline:greet")
    assert (skill.path, skill.dir, skill.is_inline, skill.preload) == (None, None, True, False)
    assert skill.read_body() == "Say hello.\n"
    assert skill.load().instructions == "Say hello."
    assert skill.to_dict()["path"] == ""


def test_an_inline_skill_says_that_it_has_no_files() -> None:
    skill = load("greet", "Greets.", "Say hello.")
    for read in (skill.read_resource, skill.read_bytes):
        with pytest.raises(prowess.ResourceError) as caught:
            read("a.md")
        assert caught.value.code == "no-files"


def test_a_session_reads_no_files_of_an_inline_skill() -> None:
    session = prowess.Session(prowess.Catalog.from_sources([Source.inline("greet", "Greets.", "Say hello.")]))
    with pytest.raises(prowess.ResourceError) as caught:
        session.read_resource("greet", "a.md")
    assert caught.value.code == "no-files"


def test_an_inline_skill_may_have_every_field_that_a_file_has() -> None:
    skill = load(
        "greet",
        "Greets.",
        "Say hello.",
        preload=True,
        context="fork",
        model="small",
        allowed_tools=["Read", "Bash(git:*)"],
        tags=["hello"],
        metadata={"author": "me"},
    )
    assert (skill.preload, skill.is_fork, skill.model) == (True, True, "small")
    assert (skill.allowed_tools, skill.tags) == (("Read", "Bash(git:*)"), ("hello",))
    assert (skill.allowed_tools_raw, dict(skill.metadata)) == ("Read Bash(git:*)", {"author": "me"})


@pytest.mark.parametrize("context", [None, "", "fork"])
def test_a_context_is_fork_or_nothing(context: str | None) -> None:
    assert load("a", "d", "i", context=context).is_fork is (context == "fork")


@pytest.mark.parametrize("context", ["Fork", "inline", "other"])
def test_another_context_is_refused(context: str) -> None:
    with pytest.raises(prowess.SourceError, match="context"):
        load("a", "d", "i", context=context)


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a\tb", "a\nb", "..", "../x", "a/b", "a\\b", "c:d", "<x>", "x" * 257, "con", "a\u200b"]
)
def test_a_name_that_no_file_could_have_is_refused(name: str) -> None:
    with pytest.raises(prowess.SourceError) as caught:
        load(name, "d", "i")
    assert caught.value.code == "bad-name"


@pytest.mark.parametrize("blank", ["", " ", "\n\t "])
def test_a_blank_description_or_body_is_refused(blank: str) -> None:
    with pytest.raises(prowess.SourceError) as caught:
        load("a", blank, "i")
    assert caught.value.code == "missing-description"
    with pytest.raises(prowess.SourceError) as caught:
        load("a", "d", blank)
    assert caught.value.code == "empty-body"


@pytest.mark.parametrize("text", ["a\ud800b", "\udcff"])
def test_text_that_is_not_unicode_is_refused_as_in_a_file(text: str) -> None:
    """Half a character can be neither printed nor saved, so it must not get in."""
    with pytest.raises(prowess.SourceError):
        load("a", text, "i")
    with pytest.raises(prowess.SourceError):
        load("a", "d", text)


def test_a_null_in_a_description_is_refused_as_in_a_file() -> None:
    with pytest.raises(prowess.SkillLoadError):
        prowess.parse_skill("---\nname: a\ndescription: a\x00b\n---\ni", mode="lenient")
    with pytest.raises(prowess.SourceError):
        load("a", "a\x00b", "i")


@given(st.text(), st.text(), st.text())
def test_any_text_makes_a_skill_or_a_source_error(name: str, description: str, instructions: str) -> None:
    try:
        skill = load(name, description, instructions)
    except prowess.SourceError:
        return
    assert skill.name == name
    assert skill.load().instructions == instructions.replace("\r\n", "\n").strip()


def test_a_description_of_several_lines_is_one_line_in_a_listing() -> None:
    catalog = prowess.Catalog.from_sources([Source.inline("a", "One\n- **b**: two", "i")])
    assert prowess.Session(catalog).index() == "Available skills:\n- a: One - **b**: two"
    assert len(prowess.render_catalog(catalog, "text").splitlines()) == 1


def test_commands_in_inline_text_stay_text() -> None:
    assert load("a", "d", "Now !`touch pwned` it.").load().instructions == "Now !`touch pwned` it."


def test_an_inline_source_says_which_skill_it_is() -> None:
    assert repr(Source.inline("greet", "Greets.", "Say hello.")) == "Source.inline('greet')"
