"""A folder as a source, and the virtual folder under which it may be shown."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import prowess
from prowess import Source

Put = Callable[..., Path]


def loaded(*sources: prowess.SkillSource) -> prowess.Catalog:
    return prowess.Catalog.from_sources(sources)


def test_a_mount_keeps_the_folders_below_the_source(put: Put, tmp_path: Path) -> None:
    put("agentskills/billing/payments")
    catalog = loaded(Source.directory(tmp_path / "agentskills", mount_as="skills"))
    assert catalog["payments"].virtual_path == "skills/billing/payments"


def test_a_skill_at_the_root_of_the_source_gets_exactly_the_mount(put: Put, tmp_path: Path) -> None:
    put("pdf")
    assert loaded(Source.directory(tmp_path / "pdf", mount_as="skills/docs"))["pdf"].virtual_path == "skills/docs"


def test_without_a_mount_the_virtual_path_is_the_real_folder(put: Put, tmp_path: Path) -> None:
    put("skills/pdf")
    skill = loaded(Source.directory(tmp_path / "skills"))["pdf"]
    assert skill.virtual_path == (tmp_path / "skills" / "pdf").as_posix()


def test_an_absolute_mount_is_kept(put: Put, tmp_path: Path) -> None:
    put("real/pdf")
    assert loaded(Source.directory(tmp_path / "real", mount_as="/etc"))["pdf"].virtual_path == "/etc/pdf"


@pytest.mark.parametrize("mount", ["skills", "skills/", "./skills", "skills//", "skills/."])
def test_spellings_of_one_mount_are_one_mount(mount: str, put: Put, tmp_path: Path) -> None:
    put("real/billing/pay")
    catalog = loaded(Source.directory(tmp_path / "real", mount_as=mount))
    assert catalog["pay"].virtual_path == "skills/billing/pay"
    assert [skill.name for skill in catalog.under("skills/billing")] == ["pay"]
    assert prowess.Session(catalog, filter="skills/billing/*").activate("pay").skill.name == "pay"


@pytest.mark.parametrize("mount", [None, 5, ["skills"]])
def test_a_mount_is_a_string(mount: str, put: Put, tmp_path: Path) -> None:
    put("pdf")
    with pytest.raises(prowess.SourceError, match="mount_as"):
        loaded(Source.directory(tmp_path, mount_as=mount))


def test_a_scope_may_be_named_by_its_value(put: Put, tmp_path: Path) -> None:
    put("pdf")
    value: Any = "user"
    assert loaded(Source.directory(tmp_path, scope=value))["pdf"].scope is prowess.SkillScope.USER
    with pytest.raises(prowess.SourceError, match="scope"):
        Source.directory(tmp_path, scope=Path("user"))  # type: ignore[arg-type]


def test_mounting_changes_nothing_that_is_read(put: Put, tmp_path: Path) -> None:
    path = put("real/pdf", body="The real text.\n")
    (path.parent / "references").mkdir()
    (path.parent / "references" / "a.md").write_text("real", encoding="utf-8")
    decoy = put("skills/pdf", body="The decoy.\n")
    (decoy.parent / "references").mkdir()
    (decoy.parent / "references" / "a.md").write_text("decoy", encoding="utf-8")
    mounts = (str(tmp_path / "skills"), "/etc", "skills")
    for mount in mounts:
        catalog = loaded(Source.directory(tmp_path / "real", mount_as=mount))
        session = prowess.Session(catalog, base_dir=tmp_path)
        skill = catalog["pdf"]
        assert (skill.path, skill.dir, skill.location) == (path, path.parent, str(path))
        assert catalog.load("pdf").instructions == "The real text."
        assert catalog.load("pdf").skill.virtual_path == f"{mount}/pdf"
        assert session.activate("pdf").instructions == "The real text."
        assert session.read_resource("pdf", "references/a.md") == "real"
        assert skill.files() == ("SKILL.md", "references/a.md")
        assert skill.digest() == prowess.scan(tmp_path / "real")["pdf"].digest()


def test_a_mounted_skill_still_reads_nothing_outside_its_folder(put: Put, tmp_path: Path) -> None:
    put("real/pdf")
    (tmp_path / "real" / "secret").write_text("secret", encoding="utf-8")
    catalog = loaded(Source.directory(tmp_path / "real", mount_as="skills"))
    with pytest.raises(prowess.PathTraversalError):
        catalog.read_resource("pdf", "../secret")


def test_the_virtual_path_is_what_programs_are_shown(put: Put, tmp_path: Path) -> None:
    put("real/pdf")
    shown = loaded(Source.directory(tmp_path / "real", mount_as="skills"))["pdf"].to_dict()
    assert (shown["path"], shown["location"]) == ("skills/pdf", str(tmp_path / "real" / "pdf" / "SKILL.md"))


def test_the_scope_is_the_sources(put: Put, tmp_path: Path) -> None:
    put("real/pdf")
    scope = prowess.SkillScope.USER
    assert loaded(Source.directory(tmp_path / "real", scope=scope))["pdf"].scope is scope
    assert loaded(Source.directory(tmp_path / "real"))["pdf"].scope is None


def test_preload_marks_every_skill_of_the_source(put: Put, tmp_path: Path) -> None:
    put("real/a")
    put("real/b")
    assert [skill.preload for skill in loaded(Source.directory(tmp_path / "real", preload=True))] == [True, True]
    assert [skill.preload for skill in loaded(Source.directory(tmp_path / "real"))] == [False, False]


def test_a_source_takes_the_keywords_of_scan(put: Put, tmp_path: Path) -> None:
    put("real/a")
    put("real/a/inner")
    put("real/.hidden/b")
    put("real/x/y/deep")
    assert loaded(Source.directory(tmp_path / "real")).names == ("a", "deep")
    assert loaded(Source.directory(tmp_path / "real", nested=True)).names == ("a", "deep", "inner")
    assert loaded(Source.directory(tmp_path / "real", max_depth=1)).names == ("a",)
    assert loaded(Source.directory(tmp_path / "real", skip_prefixes=())).names == ("a", "b", "deep")
    assert loaded(Source.directory(tmp_path / "real", filename="OTHER.md")).names == ()


def test_a_strict_source_refuses_a_bad_file(put: Put, tmp_path: Path) -> None:
    put("real/good")
    put("real/Bad_Name")
    assert "good" in loaded(Source.directory(tmp_path / "real"))
    with pytest.raises(prowess.SkillLoadError):
        loaded(Source.directory(tmp_path / "real", mode="strict"))


def test_a_source_gives_what_lies_there_when_it_is_loaded(put: Put, tmp_path: Path) -> None:
    source = Source.directory(tmp_path / "real")
    assert loaded(source).names == ()
    put("real/pdf")
    assert loaded(source).names == ("pdf",)


def test_a_source_says_what_it_is(tmp_path: Path) -> None:
    assert repr(Source.directory(tmp_path)) == f"Source.directory({str(tmp_path)!r})"
    assert repr(Source.directory("x", mount_as="skills")) == "Source.directory('x', mount_as='skills')"


def test_an_empty_path_is_not_a_folder(put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put("pdf")
    monkeypatch.chdir(tmp_path)
    assert loaded(Source.directory("")).names == ()
    assert loaded(Source.directory(".")).names == ("pdf",)


def test_a_source_knows_its_effective_folder(put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = put("real/pdf")
    monkeypatch.chdir(tmp_path)
    sources = [Source.directory("real", mount_as="skills"), Source.directory(file), Source.directory("gone")]
    monkeypatch.chdir("/")
    assert [source.dir for source in sources] == [tmp_path / "real", tmp_path / "real/pdf", tmp_path / "gone"]
    assert Source.directory("").dir is None
    assert Source.inline("greet", "Greets.", "Say hello.").dir is None


def test_a_source_may_skip_what_is_invalid_and_tell_its_issues(put: Put, tmp_path: Path) -> None:
    put("real/good")
    put("real/Bad_Name")
    heard: list[str] = []
    source = Source.directory(tmp_path / "real", invalid="skip", on_issue=lambda issue: heard.append(issue.code))
    assert (loaded(source).names, heard) == (("good",), ["bad-name"])
