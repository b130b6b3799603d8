"""The manifest says what commands install, update and remove; everything else in it stays."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.install.manifest import load_manifest
from prowess.install.manifest_edits import declare_source
from prowess.installed.scopes import project_scope
from prowess.limits import DEFAULT_LIMITS
from tests.repositories import skill_text

if TYPE_CHECKING:
    from tests.install.conftest import World
    from tests.repositories import Repository

HEAD = """\
# What we need.
skills = [
"""


@pytest.fixture
def many(world: World) -> Repository:
    """A repository with two skills, in two versions that have equal content."""
    made = world.repository("many", "skills/charts", "skills/invoices")
    made.git("tag", "v2")
    return made


def write(world: World, *rows: str) -> None:
    (world.project / "prowess.toml").write_text(HEAD + "".join(f"  {row}\n" for row in rows) + "]\n", encoding="utf-8")


def rows(world: World) -> list[str]:
    text = (world.project / "prowess.toml").read_text(encoding="utf-8")
    assert text.startswith(HEAD)
    return [row.strip() for row in text.removeprefix(HEAD).removesuffix("]\n").splitlines()]


def check_agreement(installer: prowess.Installer) -> None:
    """Nothing is left for a sync to do."""
    assert (installer.sync(locked=True), installer.sync(remove=True), installer.issues) == ((), (), ())


def test_an_install_in_a_project_with_a_manifest_is_declared_there(
    world: World, installer: prowess.Installer, many: Repository
) -> None:
    write(world, '"../../folders/notes",  # ours')
    world.folder("notes")
    installer.sync()
    (world.project / "prowess.toml").chmod(0o640)
    plan = installer.plan(f"{many.address}#v1", project=True, select=["charts"], agents=["claude-code"])
    assert str(plan).splitlines()[-1] == "declare it in prowess.toml"
    installer.apply(plan)
    table = [f'{{ source = "{many.address}#v1", agents = ["claude-code"], skills = [', '"charts",', "] },"]
    assert rows(world) == ['"../../folders/notes",  # ours', *table]
    assert (world.project / "prowess.toml").stat().st_mode & 0o777 == 0o640
    check_agreement(installer)
    installer.install(f"{many.address}#v1@invoices", project=True)
    assert rows(world)[4:] == [f'"{many.address}#v1@invoices",']
    check_agreement(installer)


def test_an_install_is_not_declared_when_that_is_not_wanted_or_there_is_no_manifest(
    world: World, installer: prowess.Installer, many: Repository
) -> None:
    installer.install(many.address, project=True, select="charts")
    assert not (world.project / "prowess.toml").exists()
    write(world)
    plan = installer.plan(many.address, project=True, select="invoices", save=False)
    assert plan.manifest == ""
    installer.install(many.address, project=True, select="invoices", save=False)
    assert rows(world) == []
    check_agreement(installer)


def test_a_folder_is_declared_from_where_the_manifest_is(
    world: World, installer: prowess.Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(world)
    folder = world.folder("notes")
    (world.project / "inner").mkdir()
    monkeypatch.chdir(world.project / "inner")
    installer.install(os.path.relpath(folder), project=True)
    assert rows(world) == ['"../../folders/notes",']
    check_agreement(installer)


def test_agents_that_were_found_are_linked_and_not_declared_and_those_of_the_entry_stay(
    world: World, installer: prowess.Installer, many: Repository
) -> None:
    (world.home / ".claude").mkdir()
    write(world, f'{{ source = "{many.address}#v1@invoices", agents = ["goose"] }},')
    for skill in ("charts", "invoices"):
        plan = installer.plan(f"{many.address}#v1", project=True, select=skill, replace=True, preset=True)
        installer.apply(plan)
        assert (world.project / ".claude/skills" / skill).is_symlink()
    assert rows(world) == [
        *(f'{{ source = "{many.address}#v1", skills = [', '"charts",', "] },"),
        *(f'{{ source = "{many.address}#v1", agents = ["goose"], skills = [', '"invoices",', "] },"),
    ]
    check_agreement(installer)
    assert (world.project / ".goose/skills/invoices").is_symlink()


def test_links_that_were_made_by_hand_stay_when_the_manifest_declares_another_version(
    world: World, installer: prowess.Installer, many: Repository
) -> None:
    write(world, f'{{ source = "{many.address}#v1@charts", agents = ["goose"] }},')
    installer.sync()
    installer.link("@local/charts", ["claude-code"])
    write(world, f'"{many.address}#v2@charts",')
    installer.sync()
    assert (world.project / ".claude/skills/charts").is_symlink()
    assert not (world.project / ".goose/skills/charts").is_symlink()
    check_agreement(installer)


def test_what_is_removed_is_declared_no_more(world: World, installer: prowess.Installer, many: Repository) -> None:
    world.folder("notes")
    write(world, "'../../folders/notes',", f'{{ source = "{many.address}", skills = ["charts", "invoices"] }},  # both')
    installer.sync()
    installer.remove("@local/charts")
    assert rows(world) == ["'../../folders/notes',", f'{{ source = "{many.address}", skills = ["invoices"] }},  # both']
    check_agreement(installer)
    installer.remove("@local/notes")
    installer.remove("@local/invoices")
    assert rows(world) == []
    check_agreement(installer)


@pytest.mark.parametrize(
    ("entry", "after"),
    [
        ('"{}#v1"', '"{}#v2"'),
        ('{{ source = "{}", ref = "v1", agents = ["goose"] }}', '{{ source = "{}", ref = "v2", agents = ["goose"] }}'),
        (
            '{{ source = "{}", ref = "v1", skills = ["charts"] }}',
            '{{ source = "{}", ref = "v2", skills = ["charts"] }}',
        ),
    ],
)
def test_an_update_to_another_version_changes_the_version_that_is_declared(
    world: World, installer: prowess.Installer, many: Repository, entry: str, after: str
) -> None:
    write(world, f"{entry.format(many.address)},  # pinned")
    installer.sync()
    (one,) = installer.list()
    assert installer.update(f"@{one.full_name}@v2")[0].status == "updated"
    assert rows(world) == [f"{after.format(many.address)},  # pinned"]
    check_agreement(installer)


@pytest.mark.parametrize(
    ("written", "moved", "left"),
    [
        ("#v1:skills@charts", ["#v2:skills@charts"], []),
        ("#v1:skills", ["#v2:skills"], []),
        ("#v1@charts,invoices", ["#v1@invoices", "#v2@charts"], ["#v1@invoices"]),
        ("#v1:skills@charts,invoices", ["#v1:skills@invoices", "#v2:skills@charts"], ["#v1:skills@invoices"]),
    ],
)
def test_an_entry_keeps_its_folder_and_stays_one_text_when_one_of_its_skills_moves_or_goes(
    world: World, installer: prowess.Installer, many: Repository, *, written: str, moved: list[str], left: list[str]
) -> None:
    write(world, f'"{many.address}{written}",')
    installer.sync()
    name = installer.list()[0].full_name
    installer.update(f"@{name}@v2")
    assert rows(world) == [f'"{many.address}{parts}",' for parts in moved]
    check_agreement(installer)
    installer.remove(f"@{name}")
    assert rows(world) == [f'"{many.address}{parts}",' for parts in left]
    check_agreement(installer)


@pytest.mark.parametrize(
    ("written", "after"),
    [
        ("https://host.example/team/skills.git#v1:tools@pdf", '"https://host.example/team/skills.git#v2:tools@pdf"'),
        ("git@host.example:team/skills.git#v1:tools", '"git@host.example:team/skills.git#v2:tools"'),
        ("acme/skills:tools@pdf", '{ source = "acme/skills:tools@pdf", ref = "v2" }'),
        ("https://github.com/acme/skills/tree/v1/tools", '{ source = "acme/skills/tools", ref = "v2" }'),
        ("@acme/pdf@v1", '"@acme/pdf@v2"'),
    ],
)
def test_another_version_is_declared_in_the_form_in_which_the_source_was_written(
    world: World, written: str, after: str
) -> None:
    write(world, f'"{written}",')
    manifest = load_manifest(str(world.project), DEFAULT_LIMITS)
    assert manifest is not None
    (declared,) = manifest.declarations
    scope = project_scope(str(world.skills))
    edit = declare_source(manifest, scope, replace(declared.spec, ref="v2"), written=declared.source)
    assert edit.text == HEAD + f"  {after},\n]\n"


def test_one_skill_of_several_that_moves_to_another_version_gets_an_entry_of_its_own(
    world: World, installer: prowess.Installer, many: Repository
) -> None:
    write(world, f'{{ source = "{many.address}", ref = "v1", skills = ["charts", "invoices"] }},')
    installer.sync()
    installer.update("@local/charts@v2")
    assert rows(world) == [
        f'{{ source = "{many.address}", ref = "v1", skills = ["invoices"] }},',
        *(f'{{ source = "{many.address}", ref = "v2", skills = [', '"charts",', "] },"),
    ]
    check_agreement(installer)


@pytest.mark.parametrize("mode", ["", 'mode = "copy"\n'])
def test_a_skill_is_not_taken_out_of_what_the_manifest_declares_as_a_whole(
    world: World, installer: prowess.Installer, many: Repository, mode: str
) -> None:
    manifest = world.project / "prowess.toml"
    manifest.write_text(f'{mode}skills = ["{many.address}#v1"]\n', encoding="utf-8")
    installer.sync()
    with pytest.raises(prowess.NameTakenError, match=r'name the others \(skills = \["invoices"\]\) and sync'):
        installer.install(f"{many.address}#v2@charts", project=True, replace=True)
    check_agreement(installer)
    manifest.write_text(f'{mode}skills = ["{many.address}#v1@invoices"]\n', encoding="utf-8")
    installer.sync(remove=True)
    installer.install(f"{many.address}#v2@charts", project=True)
    check_agreement(installer)


def test_what_made_way_for_an_install_is_declared_no_more(
    world: World, installer: prowess.Installer, many: Repository
) -> None:
    write(world, f'"{many.address}#v1@charts,invoices",', f'"{world.folder("notes")}",')
    installer.sync()
    other = world.folder("other")
    (other / "SKILL.md").write_text(skill_text("charts"), encoding="utf-8")
    installer.install_local(other, project=True, replace=True)
    assert rows(world)[0] == f'"{many.address}#v1@invoices",'
    assert [row.rpartition("/")[2] for row in rows(world)[1:]] == ['notes",', 'other",']
    check_agreement(installer)


@pytest.mark.parametrize("copy", [False, True])
def test_an_update_takes_no_skill_from_another_install(
    world: World, installer: prowess.Installer, many: Repository, *, copy: bool
) -> None:
    installer.install(f"{many.address}#v1", project=True, copy=copy)
    installer.install(f"{many.address}#v1@charts", project=True, replace=True, copy=copy)
    many.skill("skills/charts", body="Newer.\n")
    many.skill("skills/invoices", body="Newer.\n")
    many.commit(tag="v3")
    assert installer.update("@local/many@v3")[0].status == "updated"
    assert "Newer." not in (world.agents / "charts/SKILL.md").read_text(encoding="utf-8")
    assert "Newer." in (world.agents / "invoices/SKILL.md").read_text(encoding="utf-8")
    assert [one.status for one in installer.update()] == ["current", "current"]
    assert installer.verify() == ()


def test_an_install_that_is_not_saved_says_that_a_sync_goes_back_to_what_is_declared(
    world: World, installer: prowess.Installer, many: Repository
) -> None:
    write(world, f'"{many.address}#v1@charts",')
    installer.sync()
    installer.install(f"{many.address}#v2@charts", project=True, replace=True, save=False)
    assert [issue.code for issue in installer.issues] == ["still-declared"]
    installer.install(f"{many.address}#v2@charts", project=True, replace=True)
    assert installer.issues == ()


def test_taking_away_a_link_that_the_manifest_asks_for_says_that_a_sync_brings_it_back(
    world: World, installer: prowess.Installer
) -> None:
    write(world, f'{{ source = "{world.folder("notes")}", agents = ["goose"] }},')
    installer.sync()
    installer.unlink("@local/notes", ["goose"])
    assert [issue.code for issue in installer.issues] == ["still-declared"]


def test_a_manifest_that_cannot_be_edited_is_left_and_said_with_what_it_should_have(
    world: World, installer: prowess.Installer, many: Repository
) -> None:
    text = f'[[skills]]\nsource = "{many.address}"\nskills = ["charts"]\n'
    (world.project / "prowess.toml").write_text(text, encoding="utf-8")
    installer.sync()
    installer.install(many.address, project=True, select="invoices")
    (issue,) = installer.issues
    assert (issue.code, '"invoices"' in issue.message) == ("manifest-not-written", True)
    installer.remove("@local/charts")
    assert [issue.code for issue in installer.issues] == ["manifest-not-written", "still-declared"]
    assert (world.project / "prowess.toml").read_text(encoding="utf-8") == text


def test_a_manifest_that_makes_no_sense_is_refused_before_anything_is_installed(
    world: World, installer: prowess.Installer, many: Repository
) -> None:
    (world.project / "prowess.toml").write_text("skill = []\n", encoding="utf-8")
    with pytest.raises(prowess.InstallError) as caught:
        installer.install(many.address, project=True)
    assert (caught.value.code, installer.list()) == ("bad-manifest", ())


def test_several_are_removed_and_undeclared_together_or_not_at_all(world: World, installer: prowess.Installer) -> None:
    manifest = world.project / "prowess.toml"
    manifest.write_text("skills = []\n", encoding="utf-8")
    for name in ("alpha", "beta", "gamma"):
        installer.install_local(world.folder(name), project=True)
    text = manifest.read_text(encoding="utf-8")
    with pytest.raises(prowess.NotInstalledError, match="delta"):
        installer.remove(["@local/alpha", "@local/delta"])
    assert (manifest.read_text(encoding="utf-8"), len(installer.list())) == (text, 3)
    places = installer.remove(["@local/alpha", "@local/gamma"])
    assert [place.name for place in places] == ["alpha", "gamma"]
    assert [one.name for one in installer.list()] == ["beta"]
    assert "alpha" not in manifest.read_text(encoding="utf-8")
    assert (installer.sync(locked=True), installer.remove("@local/beta").name) == ((), "beta")
