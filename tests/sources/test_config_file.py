"""A file or a mapping that lists sources."""

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
def test_an_empty_list_means_no_sources(text: str, listed: Listed) -> None:
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
def test_a_file_with_broken_json_is_refused(text: str, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("given", [{"dir": "skills"}, {"path": "skills"}, {"sources": [{"dir": "skills"}]}])
def test_an_entry_in_place_of_the_list_and_a_list_under_another_name_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(prowess.SourceError, match="write it as 'skills'"):
        prowess.load_sources(given)


def test_a_file_of_another_tool_may_have_no_list() -> None:
    assert prowess.load_sources({"id": "pack", "name": "Pack", "description": "Says hello.", "prompts": {}}) == []


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


def test_an_empty_entry_keeps_its_place_in_messages(listed: Callable[..., prowess.Catalog]) -> None:
    with pytest.raises(prowess.SourceError, match=r"sources\[2\]"):
        listed("- {}\n- dir: one\n- dir: one\n  mount_as: '*'\n")


# -- how the folders are scanned ---------------------------------------------------------------------------------------


def names_of(given: object, **options: object) -> tuple[str, ...]:
    """The names that the sources of a list have, in a program or in a file."""
    return prowess.Catalog.from_sources(prowess.load_sources(given, **options)).names  # type: ignore[arg-type]


@pytest.fixture
def deep(put: Put, tmp_path: Path) -> Path:
    """A folder with a skill at the top, one inside it, one in a draft, one far down, and one that is not valid."""
    put("skills/top")
    put("skills/top/inner")
    put("skills/_draft/later")
    put("skills/a/b/far")
    put("skills/Odd")
    return tmp_path / "skills"


OPTIONS = [
    ({}, ("Odd", "far", "top")),
    ({"nested": True}, ("Odd", "far", "inner", "top")),
    ({"max_depth": 1}, ("Odd", "top")),
    ({"max_depth": None}, ("Odd", "far", "top")),
    ({"skip_prefixes": ["O"]}, ("far", "later", "top")),
    ({"skip_prefixes": []}, ("Odd", "far", "later", "top")),
    ({"max_depth": 2, "skip_prefixes": [], "nested": True}, ("Odd", "inner", "later", "top")),
]


@pytest.mark.parametrize(("options", "names"), OPTIONS)
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_mapping_in_a_program_lists_sources_and_how_they_are_scanned(
    options: dict[str, object], names: tuple[str, ...], wrapped: bool, deep: Path
) -> None:
    def given(entry: dict[str, object]) -> object:
        return {"skills": [entry]} if wrapped else [entry]

    assert names_of(given({"dir": str(deep)}), **options) == names
    assert names_of(given({"dir": deep, **options})) == names


@pytest.mark.parametrize(("options", "names"), OPTIONS)
@pytest.mark.parametrize("kind", ["json", "yaml"])
@pytest.mark.usefixtures("deep")
def test_a_file_lists_how_each_folder_is_scanned(
    options: dict[str, object], names: tuple[str, ...], kind: str, listed: Listed
) -> None:
    entry = {"dir": "skills", **options}
    rows = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in entry.items())
    text = json.dumps([entry]) if kind == "json" else f"-\n{rows}"
    assert listed(text, f"sources.{kind}").names == names


@pytest.mark.usefixtures("deep")
def test_a_keyword_of_an_entry_counts_before_the_keyword_for_all(put: Put, tmp_path: Path) -> None:
    put("more/x/y/low")
    entries = {"skills": [{"dir": "skills", "max_depth": 1}, {"dir": "more"}]}
    assert names_of(entries, base_dir=tmp_path, max_depth=3) == ("Odd", "low", "top")


def test_relative_folders_begin_at_the_base_folder(deep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [{"dir": "skills"}]
    assert names_of(entries, base_dir=tmp_path) == ("Odd", "far", "top")
    assert names_of([{"dir": "b", "base_dir": "skills/a"}], base_dir=tmp_path) == ("far",)
    monkeypatch.chdir(tmp_path)
    assert names_of(entries) == ("Odd", "far", "top")
    assert names_of([{"dir": "b"}], base_dir="skills/a") == ("far",)
    file = tmp_path / "sources.json"
    file.write_text('[{"dir": "b"}]', encoding="utf-8")
    assert (names_of(file), names_of(file, base_dir=deep / "a")) == ((), ("far",))


def test_a_strict_entry_raises_for_a_bad_file_and_a_lenient_one_beside_it_does_not(deep: Path) -> None:
    with pytest.raises(prowess.SkillLoadError, match="Odd"):
        names_of([{"dir": deep, "mode": "strict"}])
    with pytest.raises(prowess.SkillLoadError, match="Odd"):
        names_of([{"dir": deep}], mode="strict")
    assert names_of([{"dir": deep, "mode": "lenient"}], mode="strict") == ("Odd", "far", "top")


def test_a_missing_folder_of_a_list_is_information_or_an_error(tmp_path: Path) -> None:
    entries = [{"name": "greet", "description": "Greets.", "instructions": "Say hello."}, {"dir": "none"}]
    catalog = prowess.Catalog.from_sources(prowess.load_sources(entries, base_dir=tmp_path))
    missing = [("missing-root", "info", str(tmp_path / "none"))]
    assert [(issue.code, issue.severity, issue.path) for issue in catalog.issues] == missing
    for refusing in ([{"dir": "none", "missing": "error"}], [{"dir": "none"}]):
        with pytest.raises(prowess.SourceError, match=r"^[^ ]*none: sources\[0\]: the folder does not exist"):
            names_of(refusing, base_dir=tmp_path, missing="ignore" if len(refusing[0]) > 1 else "error")


def test_limits_hold_for_the_folders_and_an_entry_may_change_some(deep: Path, listed: Listed) -> None:
    few = prowess.Limits(max_dirs_per_root=1)
    assert names_of([{"dir": deep}], limits=few) == ("Odd",)
    assert names_of([{"dir": deep, "limits": few}]) == ("Odd",)
    assert names_of([{"dir": deep, "limits": {"max_dirs_per_root": 200_000}}], limits=few) == ("Odd", "far", "top")
    assert listed("- dir: skills\n  limits: {max_dirs_per_root: 1, max_scan_seconds: 2.5}\n").names == ("Odd",)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"mode": "sloppy"}, "mode must be"),
        ({"mode": 1}, "mode must be a string"),
        ({"missing": "maybe"}, "missing must be"),
        ({"max_depth": -1}, "max_depth must be"),
        ({"max_depth": "deep"}, "max_depth must be a number"),
        ({"max_depth": 1.5}, "max_depth must be a whole number"),
        ({"nested": "perhaps"}, "nested must be true or false"),
        ({"skip_prefixes": "_"}, "skip_prefixes must be a list"),
        ({"limits": 3}, "limits must be a mapping"),
        ({"limits": {"max_everything": 3}}, "there is no limit 'max_everything'"),
        ({"limits": {"max_dirs_per_root": 1.5}}, "max_dirs_per_root must be a whole number"),
        ({"base_dir": 3}, "base_dir must be a string"),
    ],
)
def test_a_scan_keyword_of_an_entry_that_makes_no_sense_names_the_entry(
    entry: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(prowess.SourceError, match=rf"^sources\[1\]: {message}"):
        prowess.load_sources([{"dir": "x"}, {"dir": "y", **entry}], base_dir=tmp_path)


@pytest.mark.parametrize("key", ["nested", "max_depth", "base_dir"])
def test_a_scan_keyword_on_a_text_is_refused(key: str) -> None:
    text = {"name": "greet", "description": "Greets.", "instructions": "Say hello.", key: "1"}
    with pytest.raises(prowess.SourceError, match=rf"^sources\[0\]: {key} is only for folders"):
        prowess.load_sources([text])


@pytest.mark.parametrize("given", [3, {"skills": 3}, ["skills"], {"skills": "skills"}])
def test_a_value_that_is_not_a_list_of_sources_is_refused(given: object) -> None:
    with pytest.raises(prowess.SourceError, match="expected a list of entries"):
        prowess.load_sources(given)  # type: ignore[arg-type]  # on purpose


def test_a_folder_in_place_of_an_entry_is_told_how_to_write_it() -> None:
    with pytest.raises(prowess.SourceError) as caught:
        prowess.load_sources([{"dir": "x"}, "skills"])  # type: ignore[list-item]  # the mistake
    assert caught.value.message == (
        "expected a list of entries with 'dir' or 'name', and sources[1] is 'skills'; write {'dir': 'skills'}"
    )


def test_each_source_of_a_list_knows_its_effective_folder(deep: Path, tmp_path: Path) -> None:
    entries: list[dict[str, object]] = [
        {"dir": "skills", "path": "other", "mount_as": "shown"},
        {"path": "skills/top/SKILL.md"},
        {"name": "greet", "description": "Greets.", "instructions": "Say hello."},
    ]
    sources = prowess.load_sources(entries, base_dir=tmp_path)
    assert [source.dir for source in sources] == [deep, deep / "top", None]  # type: ignore[attr-defined]  # of ours
