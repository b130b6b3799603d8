"""What a source offers: fetched and shown before anybody decides, without changing anything here."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.fetch.packing import FILES, zipped
from tests.install.test_scale import count_calls, count_calls_of
from tests.repositories import Repository, skill_text

if TYPE_CHECKING:
    from tests.install.conftest import World

WHEN = "Does what it says. Use it when asked to."


@pytest.fixture
def shop(world: World) -> Repository:
    """A repository with a plain skill, one that could run something, one that hides text, and other files."""
    made = Repository(world.base / "repositories" / "shop")
    made.skill("skills/plain", fields="license: MIT\n")
    made.skill("skills/acting", body="See !`git status` first.\n", fields="hooks:\n  PreToolUse: run me\n")
    made.write("skills/acting/scripts/run.sh", "#!/bin/sh\n", executable=True)
    made.skill("skills/odd", body="Do\u200b it.\n")
    made.skill("skills/inner", fields="metadata:\n  internal: true\n")
    made.write("README.md", "# Shop\n")
    made.commit(tag="v1")
    return made


def test_an_offer_says_what_each_skill_is_costs_and_could_run(installer: prowess.Installer, shop: Repository) -> None:
    offer = installer.offers(shop.address)
    assert isinstance(offer, prowess.Offer)
    assert offer.commit == shop.git("rev-parse", "HEAD")
    assert offer.date == datetime.fromtimestamp(int(shop.git("log", "-1", "--format=%ct")), UTC)
    skills = {skill.name: skill for skill in offer.skills}
    assert list(skills) == ["acting", "inner", "odd", "plain"]
    acting, plain = skills["acting"], skills["plain"]
    assert isinstance(acting, prowess.OfferedSkill)
    assert (acting.commands, acting.scripts, acting.powers) == (("git status",), ("scripts/run.sh",), ("hooks",))
    assert acting.acts
    assert (plain.commands, plain.scripts, plain.powers, plain.acts) == ((), (), (), False)
    assert (plain.folder, plain.description) == ("skills/plain", "Does what it says.")
    assert plain.listing_tokens > 10
    assert plain.body_tokens == prowess.estimate_tokens("Do it.")
    assert [skill.name for skill in offer.skills if skill.is_internal] == ["inner"]
    assert [(issue.code, issue.severity) for issue in offer.issues] == [("outside-skills", "info")]


def test_the_bytes_are_those_of_the_skills_not_of_the_repository(
    installer: prowess.Installer, shop: Repository
) -> None:
    shop.write("data/large.bin", b"x" * 100_000)
    shop.commit()
    offer = installer.offers(shop.address)
    assert offer.files == 5
    assert offer.bytes == sum(skill.bytes for skill in offer.skills)
    assert offer.bytes == sum(file.stat().st_size for file in (shop.path / "skills").rglob("*") if file.is_file())
    assert offer.is_complete


def test_an_offered_skill_has_its_findings(installer: prowess.Installer, shop: Repository) -> None:
    shop.write("skills/leaky/SKILL.md", f"---\nname: other\ndescription: {WHEN}\n---\nghp_{'aB3dE5gH7j' * 4}\n")
    shop.commit()
    skills = {skill.folder: skill for skill in installer.offers(shop.address).skills}
    assert "hidden-text" in [issue.code for issue in skills["skills/odd"].issues]
    leaky = skills["skills/leaky"].issues
    assert {"name-mismatch", "secret-in-skill"} <= {issue.code for issue in leaky}
    assert {issue.path for issue in leaky} == {"skills/leaky/SKILL.md"}
    assert [issue for issue in skills["skills/plain"].issues if issue.severity != "info"] == []


def test_a_link_in_a_skill_is_told_before_the_install_refuses_it(
    installer: prowess.Installer, shop: Repository
) -> None:
    (shop.path / "skills/plain/passwords").symlink_to("/etc/passwd")
    shop.commit()
    plain = installer.offers(shop.address, select="plain").skills[0]
    assert [(issue.code, issue.path) for issue in plain.issues if issue.severity == "error"] == [
        ("link-in-skill", "skills/plain/passwords")
    ]


def test_what_cannot_be_loaded_is_an_issue_of_the_offer(installer: prowess.Installer, shop: Repository) -> None:
    shop.write("skills/broken/SKILL.md", "no frontmatter\n")
    shop.commit()
    offer = installer.offers(shop.address)
    assert "skills/broken" not in [skill.folder for skill in offer.skills]
    assert [issue.path for issue in offer.issues if issue.severity == "error"] == ["skills/broken/SKILL.md"]


def test_only_the_skills_that_were_chosen_are_offered(installer: prowess.Installer, shop: Repository) -> None:
    assert [skill.name for skill in installer.offers(shop.address, select="plain").skills] == ["plain"]
    assert [skill.name for skill in installer.offers(shop.address, ["odd", "inner"]).skills] == ["odd", "inner"]
    with pytest.raises(prowess.InstallError) as caught:
        installer.offers(shop.address, select="plane")
    assert caught.value.code == "unknown-skill"
    assert "plain" in caught.value.message
    with pytest.raises(prowess.InstallError, match="a version is written #v1"):
        installer.offers(shop.address, select="v1")


def test_a_skill_chosen_by_name_is_not_another_whose_folder_has_that_name(
    installer: prowess.Installer, world: World
) -> None:
    """A person saw both, and chose by name."""
    shop = Repository(world.base / "repositories" / "shop")
    shop.write("skills/pdf/SKILL.md", skill_text("evil"))
    shop.write("skills/z/SKILL.md", skill_text("pdf"))
    shop.commit()
    assert [skill.name for skill in installer.offers(shop.address).skills] == ["evil", "pdf"]
    assert [skill.folder for skill in installer.offers(shop.address, select="pdf").skills] == ["skills/z"]
    installer.install(shop.address, project=True, select="pdf")
    assert world.agents.joinpath("pdf/SKILL.md").read_text(encoding="utf-8") == skill_text("pdf")
    assert [skill.name for skill in installer.offers(shop.address, select="z").skills] == ["pdf"]


def test_an_archive_and_a_folder_make_offers_too(installer: prowess.Installer, world: World) -> None:
    archive = world.base / "pdf.zip"
    archive.write_bytes(zipped(FILES))
    for source in (str(archive), str(world.folder("notes"))):
        offer = installer.offers(source)
        assert (len(offer.skills), offer.commit, offer.date, offer.is_complete) == (1, "", None, True)


def test_an_offer_changes_nothing_here(installer: prowess.Installer, world: World, shop: Repository) -> None:
    installer.offers(shop.address)
    assert not world.lock.exists()
    assert not world.skills.exists()
    assert installer.list() == ()


def test_a_source_that_is_not_text_is_refused_by_name(installer: prowess.Installer, world: World) -> None:
    for act in (installer.offers, installer.plan, installer.install):
        with pytest.raises(prowess.SkillError, match="source") as caught:
            act(world.base)  # type: ignore[arg-type]
        assert caught.value.code == "bad-argument"


def test_a_source_that_cannot_be_reached_makes_no_offer(installer: prowess.Installer, world: World) -> None:
    for source in (f"file://{world.base}/nowhere", "./nowhere"):
        with pytest.raises(prowess.SkillError):
            installer.offers(source)


def test_what_was_shown_is_installed_though_the_branch_has_moved(
    installer: prowess.Installer, world: World, shop: Repository
) -> None:
    offer = installer.offers(shop.address)
    shop.skill("skills/plain", body="Do evil.\n")
    shop.commit()
    installer.apply(installer.plan(shop.address, project=True, select="plain", offer=offer))
    assert "Do it." in (world.agents / "plain" / "SKILL.md").read_text()
    (outdated,) = installer.outdated()
    assert outdated.current == offer.commit


@pytest.mark.parametrize("of_archive", [True, False])
def test_the_files_that_were_shown_are_installed_though_an_archive_or_a_folder_has_changed(
    installer: prowess.Installer, world: World, of_archive: bool
) -> None:
    folder = world.folder("pdf")
    archive = world.base / "pdf.zip"
    archive.write_bytes(zipped(FILES))
    source = str(archive if of_archive else folder)
    offer = installer.offers(source)
    archive.unlink()
    (folder / "SKILL.md").write_bytes((folder / "SKILL.md").read_bytes() + b"Something else.\n")
    installer.apply(installer.plan(source, project=True, offer=offer))
    assert b"Something else." not in (world.agents / "pdf" / "SKILL.md").read_bytes()


@pytest.mark.parametrize("select", [None, "plain"])
def test_a_plan_of_an_offer_refuses_a_name_that_another_source_has(
    installer: prowess.Installer, world: World, shop: Repository, select: str | None
) -> None:
    installer.install(str(world.folder("plain")), project=True)
    offer = installer.offers(shop.address)
    with pytest.raises(prowess.NameTakenError) as caught:
        installer.plan(shop.address, project=True, select=select, offer=offer)
    assert "local/plain" in caught.value.message
    replacing = installer.plan(shop.address, project=True, select=select, offer=offer, replace=True)
    assert "replace what came from" in str(replacing)


def test_a_plan_refuses_a_folder_of_the_users_own_in_the_place_of_an_offered_skill(
    installer: prowess.Installer, world: World, shop: Repository
) -> None:
    (world.agents / "odd").mkdir(parents=True)
    offer = installer.offers(shop.address)
    with pytest.raises(prowess.NameTakenError, match="is not what Prowess put there"):
        installer.plan(shop.address, project=True, offer=offer)
    assert installer.plan(shop.address, project=True, select="plain", offer=offer).offer is offer


def test_a_chosen_skill_that_is_installed_is_refused_before_anything_is_fetched(
    installer: prowess.Installer, shop: Repository
) -> None:
    installer.install(shop.address, project=True, select="plain")
    with pytest.raises(prowess.AlreadyInstalledError):
        installer.plan(shop.address, project=True, select=["odd", "plain"])
    assert "the same source" in str(installer.plan(shop.address, project=True, select="plain", replace=True))


def test_a_skill_that_is_offered_and_installed_is_parsed_once(installer: prowess.Installer, shop: Repository) -> None:
    def install() -> None:
        with installer.keeping_source():
            offer = installer.offers(shop.address)
            installer.apply(installer.plan(shop.address, offer=offer))

    calls = count_calls(install)
    assert count_calls_of("parse_head", calls) == len(("acting", "inner", "odd", "plain"))


def test_an_offer_of_another_source_makes_no_plan(installer: prowess.Installer, world: World, shop: Repository) -> None:
    with pytest.raises(prowess.SkillError) as caught:
        installer.plan(str(world.folder("notes")), offer=installer.offers(shop.address))
    assert caught.value.code == "bad-argument"


def test_an_offer_cannot_be_changed(installer: prowess.Installer, shop: Repository) -> None:
    offer = installer.offers(shop.address)
    with pytest.raises(dataclasses.FrozenInstanceError):
        offer.commit = ""  # type: ignore[misc]


def test_another_skill_of_the_same_name_is_named_and_a_copy_of_it_is_not(
    world: World, installer: prowess.Installer
) -> None:
    source = world.base / "source"
    for folder, body in (("skills/pdf", "One.\n"), (".claude/skills/pdf", "One.\n"), ("skills/more/pdf", "Two.\n")):
        (source / folder).mkdir(parents=True)
        (source / folder / "SKILL.md").write_text(skill_text("pdf", body), encoding="utf-8")
    offer = installer.offers(str(source))
    assert len(offer.skills) == 1
    assert [issue.code for issue in offer.issues] == ["duplicate-name"]
    assert offer.skills[0].folder in offer.issues[0].message
