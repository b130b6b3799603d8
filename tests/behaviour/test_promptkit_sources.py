"""Where the skills of PromptKit (S1) come from: folders and inline text in order, mounts, preloading."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]


def load(*sources: prowess.SkillSource) -> prowess.Catalog:
    return prowess.Catalog.from_sources(sources)


@pytest.fixture
def listed(tmp_path: Path) -> Callable[[object], prowess.Catalog]:
    """The catalogue of a file that lists sources."""

    def read(entries: object) -> prowess.Catalog:
        file = tmp_path / "sources.json"
        file.write_text(json.dumps(entries), encoding="utf-8")
        return prowess.Catalog.from_sources(prowess.load_sources(file))

    return read


def test_a_source_is_a_folder_or_a_text(put: Put, tmp_path: Path) -> None:
    """S1-11: both kinds in one list."""
    put("pdf")
    catalog = load(prowess.Source.directory(tmp_path), prowess.Source.inline("greet", "Greets.", "Say hello."))
    assert catalog.names == ("greet", "pdf")
    assert catalog.load("greet").instructions == "Say hello."


def test_a_listed_folder_has_two_keys_and_hides_inline_fields(
    put: Put, listed: Callable[[object], prowess.Catalog]
) -> None:
    """S1-11: with both keys the first counts; what an inline skill would say is ignored."""
    put("one/pdf")
    put("two/csv")
    assert listed([{"path": "two"}]).names == ("csv",)
    both = {"dir": "one", "path": "two", "name": "greet", "description": "Greets.", "instructions": "Say hello."}
    assert listed([both]).names == ("pdf",)


def test_a_listed_source_that_is_neither_is_skipped(listed: Callable[[object], prowess.Catalog]) -> None:
    """S1-11: silently, and the others count."""
    inline = {"name": "greet", "description": "Greets.", "instructions": "Say hello."}
    assert listed({"skills": [{}, {"preload": True}, inline]}).names == ("greet",)


def test_sources_may_be_listed_in_yaml(put: Put, tmp_path: Path) -> None:
    """S1-11: folders are relative to the file, not to the working folder."""
    put("skills/pdf")
    file = tmp_path / "sources.yaml"
    file.write_text("skills:\n  - dir: skills\n    mount_as: team\n    preload: true\n", encoding="utf-8")
    catalog = prowess.Catalog.from_sources(prowess.load_sources(file))
    assert [(skill.virtual_path, skill.preload) for skill in catalog] == [("team/pdf", True)]


def test_a_class_of_ones_own_is_a_source() -> None:
    """S1-11: it needs nothing but load()."""

    class Ours:
        def load(self) -> prowess.Catalog:
            front = prowess.Frontmatter(name="ours", description="From a program.")
            return prowess.Catalog([prowess.Skill(front, body="Do it.")])

    catalog = load(Ours(), prowess.Source.inline("ours", "Theirs.", "Other."))
    assert [(skill.name, skill.description) for skill in catalog] == [("ours", "From a program.")]


def test_the_first_source_of_a_name_wins(put: Put, tmp_path: Path) -> None:
    """S1-12: between folders, and between a folder and a text, whichever comes first; the other is recorded."""
    put("one/pdf", description="First.")
    put("two/pdf", description="Second.")
    one, two = prowess.Source.directory(tmp_path / "one"), prowess.Source.directory(tmp_path / "two")
    inline = prowess.Source.inline("pdf", "Third.", "Inline.")
    assert load(one, two, inline)["pdf"].description == "First."
    assert load(inline, two, one)["pdf"].description == "Third."
    assert [lost.winner for lost in load(one, two).shadowed] == [str(tmp_path / "one/pdf/SKILL.md")]


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True), (True, True)])
def test_preloading_is_upgraded_by_any_source(first: bool, second: bool, put: Put, tmp_path: Path) -> None:
    """S1-12: the skill stays the first one, and is preloaded when either says so."""
    put("skills/pdf", description="First.")
    catalog = load(
        prowess.Source.directory(tmp_path / "skills", preload=first),
        prowess.Source.inline("pdf", "Second.", "Inline.", preload=second),
    )
    assert [loaded.skill.description for loaded in catalog.preloaded()] == ["First."]


def test_preloading_is_kept_when_catalogues_are_merged(put: Put, tmp_path: Path) -> None:
    """S1-12: the first has the text, either of them preloads."""
    put("one/pdf", description="First.")
    put("two/pdf", description="Second.")
    first = load(prowess.Source.directory(tmp_path / "one"))
    second = load(prowess.Source.directory(tmp_path / "two", preload=True))
    for merged in (first | second, second | first, first | second | first):
        assert [skill.preload for skill in merged] == [True]
        assert prowess.Session(merged).active_skills == ("pdf",)
    assert (first | second)["pdf"].description == "First."
    assert not (first | first)["pdf"].preload


def test_nothing_is_preloaded_unless_a_source_says_so(put: Put, tmp_path: Path) -> None:
    """S1-12: and a source speaks only for the names that it has."""
    put("one/pdf")
    put("two/csv")
    catalog = load(prowess.Source.directory(tmp_path / "one"), prowess.Source.directory(tmp_path / "two", preload=True))
    assert [(skill.name, skill.preload) for skill in catalog] == [("csv", True), ("pdf", False)]


def test_within_one_folder_the_first_path_wins(put: Put, tmp_path: Path) -> None:
    """S1-13: in the order of paths, not of discovery."""
    put("b", name="dup", description="From b.")
    put("a", name="dup", description="From a.")
    assert load(prowess.Source.directory(tmp_path))["dup"].description == "From a."


def test_a_missing_folder_is_nothing_or_an_error(tmp_path: Path) -> None:
    """S1-14: an error when that was asked for, which names the folder."""
    missing = tmp_path / "missing"
    assert load(prowess.Source.directory(missing)).names == ()
    with pytest.raises(prowess.SkillError, match="missing"):
        load(prowess.Source.directory(missing, missing="error"))


def test_an_invalid_file_is_recorded_or_an_error(put: Put, tmp_path: Path) -> None:
    """S1-15: it does not cost the others; strict mode raises, and then there is no catalogue at all."""
    bad = put("bad", text="Only text.\n")
    put("good")
    catalog = load(prowess.Source.directory(tmp_path))
    assert catalog.names == ("good",)
    assert [issue.path for issue in catalog.issues] == [str(bad)]
    with pytest.raises(prowess.SkillLoadError) as caught:
        load(prowess.Source.directory(tmp_path, mode="strict"))
    assert caught.value.path == str(bad)


def test_catalogues_accumulate_by_merging(put: Put, tmp_path: Path) -> None:
    """S1-15: a second discovery adds to the first without changing it."""
    put("one/pdf")
    put("two/csv")
    one = load(prowess.Source.directory(tmp_path / "one"))
    both = one | load(prowess.Source.directory(tmp_path / "two"))
    assert (one.names, both.names) == (("pdf",), ("csv", "pdf"))


def test_a_folder_can_be_searched_whole(put: Put, tmp_path: Path) -> None:
    """S1-16: to any depth, in hidden folders and below a skill; only under the exact name of the file."""
    put("a/b/c/d/e/f/g/deep")
    put(".hidden/secret")
    put("outer")
    put("outer/inner")
    put("lower", file="skill.md")
    source = prowess.Source.directory(tmp_path, max_depth=None, nested=True, skip_prefixes=(), mode="strict")
    assert load(source).names == ("deep", "inner", "outer", "secret")


def test_a_root_that_is_a_link_is_entered(put: Put, tmp_path: Path) -> None:
    """S1-16: and a linked folder below it that leads out is not."""
    put("real/pdf")
    put("elsewhere/csv")
    (tmp_path / "root").symlink_to("real")
    (tmp_path / "real/csv").symlink_to("../elsewhere/csv")
    assert load(prowess.Source.directory(tmp_path / "root")).names == ("pdf",)


@pytest.mark.parametrize("mount", ["skills/*", "skill?", "[ab]", "..", "../skills", "skills/../other", "a\\..\\b"])
def test_a_mount_is_a_literal_folder(mount: str, put: Put, tmp_path: Path) -> None:
    """S1-17: no pattern and no two dots; the error has the place of the source in the list."""
    put("pdf")
    with pytest.raises(prowess.SourceError, match=r"sources\[1\]"):
        load(prowess.Source.directory(tmp_path), prowess.Source.directory(tmp_path, mount_as=mount))


@pytest.mark.parametrize("mount", ["/etc", "skills", "skills/", "a..b", "..a/b"])
def test_any_literal_folder_is_a_mount(mount: str, put: Put, tmp_path: Path) -> None:
    """S1-17: absolute ones too; dots within a name are part of it."""
    put("pdf")
    assert load(prowess.Source.directory(tmp_path, mount_as=mount))["pdf"].virtual_path == f"{mount.rstrip('/')}/pdf"


def test_a_mount_is_for_folders_only(listed: Callable[[object], prowess.Catalog]) -> None:
    """S1-17: an inline source with one is an error that has its place in the list."""
    inline = {"name": "greet", "description": "Greets.", "instructions": "Say hello."}
    with pytest.raises(prowess.SourceError, match=r"sources\[1\].*inline"):
        listed([inline, inline | {"mount_as": "skills"}])


def test_a_mounted_skill_keeps_its_place_below_the_source(put: Put, tmp_path: Path) -> None:
    """S1-18: the mount, then the folders between; a skill at the root of the source is the mount itself."""
    put("agentskills/billing/payments")
    catalog = load(prowess.Source.directory(tmp_path / "agentskills", mount_as="skills"))
    assert catalog["payments"].virtual_path == "skills/billing/payments"
    at_root = load(prowess.Source.directory(tmp_path / "agentskills/billing/payments", mount_as="skills"))
    assert at_root["payments"].virtual_path == "skills"


def test_without_a_mount_the_folder_is_the_real_one(put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S1-18: absolute, also when the source was named by a relative path."""
    put("skills/pdf")
    monkeypatch.chdir(tmp_path)
    assert load(prowess.Source.directory("skills"))["pdf"].virtual_path == (tmp_path / "skills/pdf").as_posix()


def test_a_mount_changes_nothing_that_is_read(put: Put, tmp_path: Path) -> None:
    """S1-19: bodies and files come from the real folder, even if the mount is another one with a skill in it."""
    (put("real/pdf", body="Real.\n").parent / "note").write_text("real", encoding="utf-8")
    (put("other/pdf", body="Other.\n").parent / "note").write_text("other", encoding="utf-8")
    mount = (tmp_path / "other").as_posix()
    catalog = load(prowess.Source.directory(tmp_path / "real", mount_as=mount))
    assert catalog["pdf"].virtual_path == f"{mount}/pdf"
    assert (catalog.load_body("pdf"), catalog.read_resource("pdf", "note")) == ("Real.\n", "real")
    assert catalog["pdf"].path == tmp_path / "real/pdf/SKILL.md"


def test_an_inline_skill_has_no_folder() -> None:
    """S1-20: hence no path, no files, and the same text at every load."""
    catalog = load(prowess.Source.inline("greet", "Greets.", " Say hello.\n"))
    skill = catalog["greet"]
    assert (skill.is_inline, skill.path, skill.dir, skill.location) == (True, None, None, "inline:greet")
    assert (skill.files(), skill.resources().paths) == ((), ())
    assert catalog.load("greet") == catalog.load("greet")


def test_blanks_around_the_instructions_of_an_inline_skill_are_in_its_body() -> None:
    """S1-20: that system gives them to the model too."""
    catalog = load(prowess.Source.inline("greet", "Greets.", " Say hello.\n"))
    assert (catalog.load("greet").instructions, catalog["greet"].read_body()) == ("Say hello.", " Say hello.\n")


@pytest.mark.parametrize(
    ("name", "description", "instructions"),
    [
        ("", "Greets.", "Say hello."),
        ("a/b", "Greets.", "Say hello."),
        ("..", "Greets.", "Say hello."),
        ("a\nb", "Greets.", "Say hello."),
        ("n" * 257, "Greets.", "Say hello."),
        ("greet", " ", "Say hello."),
        ("greet", "Greets.", "\n"),
    ],
)
def test_an_inline_skill_is_checked_like_a_file(name: str, description: str, instructions: str) -> None:
    """S1-20: what could not be listed or loaded is an error that has the place of the source."""
    with pytest.raises(prowess.SourceError, match=r"sources\[0\]"):
        load(prowess.Source.inline(name, description, instructions))


def test_a_preloaded_inline_skill_needs_no_description() -> None:
    """S1-20: its instructions are in the prompt from the start, so nobody chooses it by what it says of itself."""
    catalog = load(prowess.Source.inline("style", "", "Write short sentences.", preload=True))
    assert [loaded.instructions for loaded in catalog.preloaded()] == ["Write short sentences."]
    for dialect in prowess.DIALECTS:
        toolset = prowess.Toolset(prowess.Session(catalog), dialect)
        assert "Write short sentences." in toolset.prompt()
        assert "None" not in toolset.prompt() + str(toolset.tools()[0].description)


def test_skills_are_listed_by_name_all_or_those_under_a_folder(put: Put, tmp_path: Path) -> None:
    """S1-22: by virtual path and whole segments; the folder itself counts, and inline skills only in the whole list."""
    for folder in ("billing/refund", "billing/deep/audit", "billing-x/other"):
        put(f"src/{folder}")
    catalog = load(
        prowess.Source.directory(tmp_path / "src", mount_as="skills"),
        prowess.Source.inline("greet", "Greets.", "Say hello."),
    )
    assert [skill.name for skill in catalog.under("")] == ["audit", "greet", "other", "refund"]
    assert [skill.name for skill in catalog.under("skills/billing")] == ["audit", "refund"]
    assert [skill.name for skill in catalog.under("skills/billing/refund")] == ["refund"]
    assert catalog.under("skills/bill") == ()


def test_a_folder_to_list_is_relative_to_the_working_folder(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1-22: real and mounted skills alike."""
    put("skills/pdf")
    monkeypatch.chdir(tmp_path)
    assert [skill.name for skill in prowess.scan("skills").under("skills")] == ["pdf"]
    assert prowess.scan("skills").under("other") == ()


def test_loading_reads_the_file_of_now(put: Put, tmp_path: Path) -> None:
    """S1-23: an unknown name is an error; a name that changed on disk is that of the loaded skill, not of the key."""
    put("pdf", body="Old.\n")
    catalog = load(prowess.Source.directory(tmp_path, mount_as="skills"))
    put("pdf", name="forms", body="New.\n")
    loaded = catalog.load("pdf")
    assert (loaded.instructions, loaded.skill.name, loaded.skill.virtual_path) == ("New.", "forms", "skills/pdf")
    with pytest.raises(prowess.UnknownSkillError, match="pdf"):
        catalog.load("forms")


def test_preloaded_skills_come_with_their_instructions(put: Put, tmp_path: Path) -> None:
    """S1-24: sorted by name; membership is asked of the catalogue."""
    put("one/b", body="Do b.\n")
    put("one/a", body="Do a.\n")
    put("two/c")
    catalog = load(prowess.Source.directory(tmp_path / "one", preload=True), prowess.Source.directory(tmp_path / "two"))
    assert [(loaded.skill.name, loaded.instructions) for loaded in catalog.preloaded()] == [
        ("a", "Do a."),
        ("b", "Do b."),
    ]
    assert "c" in catalog
    assert "d" not in catalog


def test_a_preloaded_skill_that_cannot_be_loaded_is_left_out(put: Put, tmp_path: Path) -> None:
    """S1-24: the others are there."""
    path = put("gone")
    put("good")
    catalog = load(prowess.Source.directory(tmp_path, preload=True))
    path.unlink()
    assert [loaded.skill.name for loaded in catalog.preloaded()] == ["good"]
    assert prowess.Session(catalog).active_skills == ("good",)


def test_a_source_need_not_compare_names_with_folders(put: Put, tmp_path: Path) -> None:
    """S1-7, S1-16: a strict source finds every skill of every folder, whatever the folders are called."""
    put("skills/folder", name="other")
    put("skills/folder/inner", name="nested")
    put("skills/.hidden", name="hidden")
    put("skills/node_modules/x", name="packed")
    put("skills/a/b/c/d/e/f/g/deep")
    with pytest.raises(prowess.SkillLoadError, match="is not the name of its folder"):
        prowess.Source.directory(tmp_path / "skills", mode="strict").load()
    source = prowess.Source.directory(
        tmp_path / "skills", mode="strict", check_dir=False, max_depth=None, nested=True, skip_prefixes=()
    )
    catalog = source.load()
    assert catalog.names == ("deep", "hidden", "nested", "other", "packed")
    assert catalog.issues == ()


def test_a_list_of_sources_need_not_compare_names_with_folders(put: Put, tmp_path: Path) -> None:
    """S1-7: for all entries, or for one of them, also in lenient mode, where it is not a warning then."""
    put("skills/folder", name="other")
    listed = [{"dir": str(tmp_path / "skills")}]
    assert [issue.code for issue in prowess.Catalog.from_sources(prowess.load_sources(listed)).issues] == [
        "name-mismatch"
    ]
    for sources in (
        prowess.load_sources(listed, check_dir=False),
        prowess.load_sources([{**listed[0], "check_dir": "no"}]),
    ):
        catalog = prowess.Catalog.from_sources(sources)
        assert (catalog.names, catalog.issues) == (("other",), ())
