"""A file that lists sources."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prowess

Put = Callable[..., Path]
Names = Callable[..., tuple[str, ...]]


@pytest.fixture
def listed(tmp_path: Path) -> Callable[..., prowess.Catalog]:
    """The catalogue of a list of sources that is written first."""

    def load(text: str | bytes, name: str = "sources.yaml") -> prowess.Catalog:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return prowess.Catalog.from_sources(prowess.load_sources(path))

    return load


Listed = Callable[..., prowess.Catalog]

ENTRIES = """
- dir: skills
  mount_as: shown
- path: more
  preload: true
- name: greet
  description: Greets.
  instructions: |
    Say hello.
    Then stop.
"""


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("kind", ["yaml", "json"])
def test_a_list_of_folders_and_inline_skills(wrapped: bool, kind: str, put: Put, listed: Listed) -> None:
    put("skills/pdf")
    put("more/word")
    entries: list[dict[str, object]] = [
        {"dir": "skills", "mount_as": "shown"},
        {"path": "more", "preload": True},
        {"name": "greet", "description": "Greets.", "instructions": "Say hello.\nThen stop."},
    ]
    text = ENTRIES if kind == "yaml" else json.dumps(entries)
    if wrapped:
        text = "skills:" + ENTRIES if kind == "yaml" else json.dumps({"skills": entries})
    catalog = listed(text, f"sources.{kind}")
    assert catalog.names == ("greet", "pdf", "word")
    assert catalog["pdf"].virtual_path == "shown/pdf"
    assert [skill.name for skill in catalog if skill.preload] == ["word"]
    assert catalog.load("greet").instructions == "Say hello.\nThen stop."


def test_the_order_of_the_file_is_the_order_of_the_sources(put: Put, listed: Listed) -> None:
    put("one/pdf", body="first")
    put("two/pdf", body="second")
    assert listed("- dir: one\n- dir: two\n").load("pdf").instructions == "first"
    assert listed("- dir: two\n- dir: one\n").load("pdf").instructions == "second"


def test_dir_wins_over_path(put: Put, listed: Listed) -> None:
    put("one/a")
    put("two/b")
    assert listed("- dir: one\n  path: two\n").names == ("a",)
    assert listed("- dir: ''\n  path: two\n").names == ("b",)


def test_with_a_folder_the_inline_fields_are_ignored(put: Put, listed: Listed) -> None:
    put("one/a")
    assert listed("- dir: one\n  name: b\n  description: d\n  instructions: i\n").names == ("a",)


def test_folders_are_relative_to_the_file(put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put("config/skills/a")
    put("elsewhere/skills/b")
    (tmp_path / "config" / "sources.yaml").write_text("- dir: skills\n- dir: ../elsewhere/skills\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "elsewhere")
    sources = prowess.load_sources("../config/sources.yaml")
    assert prowess.Catalog.from_sources(sources).names == ("a", "b")
    (tmp_path / "config" / "sources.yaml").write_text("- dir: skills\n", encoding="utf-8")
    assert prowess.Catalog.from_sources(prowess.load_sources("../config/sources.yaml")).names == ("a",)


def test_an_absolute_folder_is_taken_as_it_is(put: Put, tmp_path: Path, listed: Listed) -> None:
    put("one/a")
    assert listed(json.dumps([{"dir": str(tmp_path / "one")}]), "sources.json").names == ("a",)


@pytest.mark.parametrize("entry", ["{}", "{preload: true}", "{dir: ''}", "{mount_as: x}"])
def test_an_entry_with_neither_folder_nor_text_is_skipped(entry: str, put: Put, listed: Listed) -> None:
    put("one/a")
    assert listed(f"- {entry}\n- dir: one\n").names == ("a",)


@pytest.mark.parametrize("text", ["", "[]", "skills: []", "skills:", "# nothing\n"])
def test_an_empty_list_is_no_sources(text: str, listed: Listed) -> None:
    assert listed(text).names == ()


@pytest.mark.parametrize(
    ("written", "preload"), [("true", True), ("yes", True), ("false", False), ("no", False), ("''", False)]
)
def test_preload_is_a_yes_or_a_no(written: str, preload: bool, put: Put, listed: Listed) -> None:
    put("one/a")
    assert listed(f"- dir: one\n  preload: {written}\n")["a"].preload is preload


@pytest.mark.parametrize(("value", "preload"), [(True, True), (False, False), (None, False)])
def test_preload_is_a_boolean_in_json(value: object, preload: bool, put: Put, listed: Listed) -> None:
    put("one/a")
    assert listed(json.dumps([{"dir": "one", "preload": value}]), "sources.json")["a"].preload is preload


def test_text_in_yaml_stays_as_it_is_written(put: Put, listed: Listed) -> None:
    put("1.10/a")
    assert listed("- dir: 1.10\n").names == ("a",)
    assert listed("- name: yes\n  description: 1.10\n  instructions: null\n")["yes"].description == "1.10"


# -- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{dir: x, mount: y}", "mount"),
        ("{dir: x, mountAs: y}", "mountAs"),
        ("{name: a, description: d, instructions: i, mount_as: x}", "mount_as"),
        ("{dir: [x]}", "dir"),
        ("{name: {a: b}, description: d, instructions: i}", "name"),
    ],
)
def test_a_bad_entry_is_an_error_with_its_index(entry: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "sources.yaml").write_text(f"- dir: fine\n- {entry}\n", encoding="utf-8")
    with pytest.raises(prowess.SourceError, match=r"sources\[1\]: ") as caught:
        prowess.load_sources(tmp_path / "sources.yaml")
    assert said in caught.value.message


@pytest.mark.parametrize("entry", ["{name: a}", "{description: d}", "{instructions: i}", "{name: a, description: d}"])
def test_half_an_inline_skill_is_an_error_when_it_is_loaded(entry: str, listed: Listed) -> None:
    with pytest.raises(prowess.SourceError, match=r"sources\[1\]: "):
        listed(f"- dir: fine\n- {entry}\n")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("- dir: [x\n", "yaml-syntax"),
        ("- dir: a\n\t- b\n", "yaml-syntax"),
        ("- &a {dir: x}\n- *a\n", "yaml-anchor"),
        ("- dir: x\n  dir: y\n", "yaml-duplicate-key"),
        ("- !!python/object/apply:os.system ['true']\n", "yaml-tag"),
        ("- <<: {dir: x}\n", "yaml-merge-key"),
        ("- dir: x\n---\n- dir: y\n", "yaml-documents"),
        ("[" * 100, "yaml-too-deep"),
    ],
)
def test_yaml_that_no_frontmatter_may_have_is_refused_here_too(text: str, code: str, tmp_path: Path) -> None:
    path = tmp_path / "sources.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(prowess.SourceError) as caught:
        prowess.load_sources(path)
    assert caught.value.code == code
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("text", ["text", "5", "skills: text", "skills: {dir: x}", "- text", "- [x]", "- dir: x\n- y"])
def test_anything_but_a_list_of_entries_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "sources.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(prowess.SourceError):
        prowess.load_sources(tmp_path / "sources.yaml")


@pytest.mark.parametrize("text", ["", "{", "[{]", "[NaN", "[" * 100_000, '["\\', "\ufeff[]", "nul"])
def test_json_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "sources.json").write_text(text, encoding="utf-8")
    with pytest.raises(prowess.SourceError):
        prowess.load_sources(tmp_path / "sources.json")


def test_half_a_character_in_json_never_becomes_a_skill(listed: Listed) -> None:
    text = '[{"name": "a", "description": "\\ud800", "instructions": "i"}]'
    with pytest.raises(prowess.SourceError):
        listed(text, "sources.json")


@pytest.mark.parametrize("name", ["sources.yaml", "sources.json"])
def test_a_file_that_is_not_utf8_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"- dir: caf\xe9\n")
    with pytest.raises(prowess.SourceError) as caught:
        prowess.load_sources(tmp_path / name)
    assert caught.value.code == "not-utf8"


def test_a_file_that_is_missing_or_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(prowess.SourceError) as caught:
        prowess.load_sources(tmp_path / "gone.yaml")
    assert (caught.value.code, str(tmp_path / "gone.yaml") in str(caught.value)) == ("not-found", True)
    with pytest.raises(prowess.SourceError) as caught:
        prowess.load_sources(tmp_path)
    assert caught.value.code == "not-a-regular-file"


def test_a_list_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sources.yaml"
    path.write_text("# " + "x" * 2000 + "\n- dir: x\n", encoding="utf-8")
    assert len(prowess.load_sources(path)) == 1
    with pytest.raises(prowess.SourceError) as caught:
        prowess.load_sources(path, limits=prowess.Limits(max_file_bytes=1000))
    assert caught.value.code == "too-large"


VALUES: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(("dir", "path", "name", "description", "instructions", "mount_as", "preload"))


@given(st.one_of(VALUES, st.lists(st.dictionaries(KEYS, VALUES, max_size=4), max_size=3)))
def test_any_json_is_a_list_of_sources_or_a_source_error(
    tmp_path_factory: pytest.TempPathFactory, value: object
) -> None:
    path = tmp_path_factory.getbasetemp() / "any-sources.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    try:
        sources = prowess.load_sources(path)
    except prowess.SourceError:
        return
    assert all(hasattr(source, "load") for source in sources)


def test_an_entry_that_says_nothing_keeps_its_place_in_messages(listed: Callable[..., prowess.Catalog]) -> None:
    with pytest.raises(prowess.SourceError, match=r"sources\[2\]"):
        listed("- {}\n- dir: one\n- dir: one\n  mount_as: '*'\n")
