"""A policy in force: what is installed, listed, loaded, read and run, and what a clone cannot gain."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.sandbox_support import require_sandbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.install.conftest import World
    from tests.policy.conftest import Write

REVIEW = '[versions]\nreview = "required"\n'
YEAR = 365 * 24 * 60 * 60


def revoke(write: Write, digest: str, **more: str) -> str:
    rows = "".join(f'{key} = "{value}"\n' for key, value in more.items())
    return write(f'[[skill]]\ndigest = "{digest}"\n{rows}', "revoked.toml")


def approve(write: Write, digest: str, *, run: bool = False, **more: str) -> str:
    rows = "".join(f'{key} = "{value}"\n' for key, value in more.items())
    return write(f'[[skill]]\ndigest = "{digest}"\nrun = {str(run).lower()}\n{rows}', "approved.toml")


# -- sources and versions --------------------------------------------------------------------------------------------


def test_a_source_that_is_not_listed_is_neither_installed_nor_asked(
    world: World, installer: prowess.Installer, write: Write
) -> None:
    pdf = world.repository("pdf")
    path = write('[sources]\nallow = ["https://git.acme.example/**"]\n')
    with pytest.raises(prowess.PolicyError, match="does not list it") as caught:
        installer.install(pdf.address, project=True)
    assert (caught.value.code, caught.value.path) == ("policy", path)
    with pytest.raises(prowess.PolicyError):
        installer.install_into(pdf.address, world.base / "into")
    assert not world.lock.exists()
    write(f'[sources]\nallow = ["file://{world.base}/repositories/**"]\n')
    installer.install(pdf.address, project=True)
    write('[sources]\nallow = ["https://git.acme.example/**"]\n')
    pdf.skill("", body="New.\n")
    pdf.commit()
    assert installer.update(location="project")[0].status == "failed"
    shutil.rmtree(world.skills)
    with pytest.raises(prowess.PolicyError):
        installer.sync()


def test_a_branch_is_refused_where_tags_are_wanted(world: World, installer: prowess.Installer, write: Write) -> None:
    pdf = world.repository("pdf")
    write('[versions]\nrefs = "tags"\n')
    for ref in ("", "#main", "#master"):
        with pytest.raises(prowess.PolicyError, match="a tag or a commit"):
            installer.install(f"{pdf.address}{ref}", project=True)
    installer.install(f"{pdf.address}#v1", project=True)
    shutil.rmtree(world.skills)
    installer.sync(locked=True)
    assert [skill.name for skill in installer.list(location="project")] == ["pdf"]


def test_a_young_commit_is_refused_until_it_is_old_enough(
    world: World, installer: prowess.Installer, write: Write
) -> None:
    pdf = world.repository("pdf")
    days = int((time.time() - YEAR) // (24 * 60 * 60))
    write(f"[versions]\ncooldown-days = {days}\n")
    with pytest.raises(prowess.PolicyError, match="days old"):
        installer.install(pdf.address, project=True)
    write("[versions]\ncooldown-days = 0\n")
    installer.install(pdf.address, project=True)


def test_only_reviewed_skills_are_installed_updated_and_offered(
    world: World, installer: prowess.Installer, write: Write
) -> None:
    pdf = world.repository("pdf")
    digest = prowess.read_metadata(pdf.path).digest()
    write(REVIEW)
    with pytest.raises(prowess.PolicyError) as caught:
        installer.install(pdf.address, project=True)
    assert caught.value.code == "not-reviewed"
    approve(write, digest)
    installer.install(pdf.address, project=True)
    assert "pdf" in prowess.discover()
    pdf.skill("", body="Changed.\n")
    pdf.commit()
    assert installer.update(location="project")[0].status == "failed"
    approve(write, "ab" * 32)
    catalog = prowess.discover()
    assert "pdf" not in catalog
    assert "not-reviewed" in {issue.code for issue in catalog.issues}


def test_verify_cannot_be_switched_off_where_the_policy_wants_it(
    world: World, installer: prowess.Installer, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = installer.install(world.repository("pdf").address, project=True)
    (place / "SKILL.md").write_text("---\nname: pdf\ndescription: Forged.\n---\nbody\n", encoding="utf-8")
    monkeypatch.setenv("PROWESS_VERIFY", "0")
    assert "pdf" in prowess.discover()
    write("[run]\nverify = true\n")
    assert "pdf" not in prowess.discover()


def test_a_site_or_a_server_that_is_not_listed_is_not_asked(write: Write) -> None:
    write('[sources]\nallow = ["mcp:docs", "https://skills.acme.example"]\n')
    for source in (prowess.Source.url("https://skills.example"), prowess.Source.mcp("other", command=["false"])):
        with pytest.raises(prowess.PolicyError, match="does not list it"):
            source.load()
        with pytest.raises(prowess.PolicyError):
            prowess.Catalog.from_sources([source])
    with pytest.raises(prowess.PolicyError):
        prowess.Source.mcp("docs", url="https://mcp.example").load()
    assert prowess.Source.mcp("docs", command=["false"]).load().issues  # listed, and not reached
    write('[[skill]]\nsource = "https://skills.acme.example"\n', "revoked.toml")
    with pytest.raises(prowess.PolicyError) as caught:
        prowess.Source.url("https://skills.acme.example").load()
    assert caught.value.code == "revoked"


# -- running ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def scripted(world: World) -> prowess.Skill:
    folder = world.folder("notes", body="Run !`echo ran` first.\n")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "hello.py").write_text("print('ran')\n", encoding="utf-8")
    return prowess.scan(folder)["notes"]


def test_a_rule_for_scripts_overrules_every_grant_and_every_yes(scripted: prowess.Skill, write: Write) -> None:
    require_sandbox()
    trust = prowess.Trust()
    trust.grant(scripted)
    assert prowess.Scripts().run(scripted, "scripts/hello.py", trust=trust).stdout == "ran\n"
    asked: list[str] = []

    def say_yes(request: prowess.TrustRequest) -> bool:
        asked.append(request.script)
        return True

    for word in ("never", "approved"):
        path = write(f'[run]\nscripts = "{word}"\n')
        for one in (trust, prowess.Trust(ask=say_yes)):
            with pytest.raises(prowess.PolicyError) as caught:
                prowess.Scripts().run(scripted, "scripts/hello.py", trust=one)
            assert caught.value.path == path
        session = prowess.Session(prowess.Catalog([scripted]), trust=trust)
        assert "ran" in session.activate("notes").instructions  # the rule is for scripts alone
    assert asked == []


def test_a_rule_for_commands_leaves_scripts_alone(scripted: prowess.Skill, write: Write) -> None:
    require_sandbox()
    trust = prowess.Trust()
    trust.grant(scripted)
    write('[run]\ncommands = "never"\n')
    activation = prowess.Session(prowess.Catalog([scripted]), trust=trust).activate("notes")
    assert "!`echo ran`" in activation.instructions
    assert prowess.Scripts().run(scripted, "scripts/hello.py", trust=trust).ok


def test_a_reviewed_script_runs_on_every_machine_without_a_question(scripted: prowess.Skill, write: Write) -> None:
    require_sandbox()
    write('[run]\nscripts = "approved"\n')
    approve(write, scripted.digest(), run=True)
    assert prowess.Scripts().run(scripted, "scripts/hello.py", trust=prowess.Trust()).stdout == "ran\n"
    assert prowess.Trust().grants() == ()
    approve(write, scripted.digest(), run=False)
    with pytest.raises(prowess.PolicyError):
        prowess.Scripts().run(scripted, "scripts/hello.py", trust=prowess.Trust())


def test_no_option_takes_a_sandbox_that_the_policy_does_not_allow(scripted: prowess.Skill, write: Write) -> None:
    trust = prowess.Trust()
    trust.grant(scripted)
    write('[run]\nsandbox = ["bwrap", "landlock"]\n')
    with pytest.raises(prowess.PolicyError, match="allows bwrap, landlock"):
        prowess.Scripts(sandbox="none").run(scripted, "scripts/hello.py", trust=trust)
    write("[run]\nsandbox = []\n")
    for kind in ("auto", "bwrap", "landlock", "none"):
        with pytest.raises((prowess.PolicyError, prowess.SandboxError)):
            prowess.Scripts(sandbox=kind).run(scripted, "scripts/hello.py", trust=trust)


# -- revocation ------------------------------------------------------------------------------------------------------


def test_a_revoked_skill_is_refused_at_every_use(scripted: prowess.Skill, write: Write) -> None:
    trust = prowess.Trust()
    trust.grant(scripted)
    catalog = prowess.Catalog([scripted])
    session = prowess.Session(catalog, trust=trust)
    session.activate("notes")
    path = revoke(write, scripted.digest(), reason="it sends mail")
    uses: list[Callable[[], object]] = [
        lambda: catalog.load("notes"),
        lambda: catalog.load_body("notes"),
        lambda: catalog.read_resource("notes", "scripts/hello.py"),
        lambda: session.activate("notes"),
        lambda: session.read_resource("notes", "scripts/hello.py"),
        lambda: scripted.read_bytes("SKILL.md"),
        lambda: prowess.Scripts(sandbox="none").run(scripted, "scripts/hello.py", trust=trust),
    ]
    for use in uses:
        with pytest.raises(prowess.PolicyError, match="it sends mail") as caught:
            use()
        assert (caught.value.code, caught.value.path) == ("revoked", path)
    result = prowess.Toolset(prowess.Session(catalog)).call("load_skill", {"name": "notes"})
    assert result.is_error
    assert "revoked" in result.content
    assert not trust.is_trusted(scripted)


def test_a_revoked_install_is_neither_installed_again_nor_listed(
    world: World, installer: prowess.Installer, write: Write
) -> None:
    pdf = world.repository("pdf")
    installer.install(pdf.address, project=True)
    revoke(write, prowess.discover()["pdf"].digest())
    catalog = prowess.discover()
    assert "pdf" not in catalog
    assert "revoked" in {issue.code for issue in catalog.issues}
    shutil.rmtree(world.skills)
    with pytest.raises(prowess.PolicyError) as caught:
        installer.sync()
    assert caught.value.code == "revoked"
    with pytest.raises(prowess.PolicyError):
        installer.install(pdf.address, project=True, replace=True)


def test_versions_of_a_source_are_revoked_by_a_range(world: World, installer: prowess.Installer, write: Write) -> None:
    pdf = world.repository("pdf")
    pdf.skill("", body="Newer.\n")
    pdf.commit(tag="v2")
    write(f'[[skill]]\nsource = "file://{pdf.path}"\nrange = "<2"\n', "revoked.toml")
    with pytest.raises(prowess.PolicyError):
        installer.install(f"{pdf.path}#v1", project=True)
    installer.install(f"{pdf.path}#v2", project=True)


def test_a_live_catalogue_drops_a_revoked_skill_within_a_poll(scripted: prowess.Skill, write: Write) -> None:
    with prowess.live(Path(scripted.location).parent, every=0.05, notice="stat") as live:
        assert "notes" in live
        revoke(write, scripted.digest())
        fresh = live.wait_for_change(live.catalog, timeout=30) if "notes" in live else live.catalog
        assert "notes" not in fresh
        assert "revoked" in {issue.code for issue in fresh.issues}


def test_acall_refuses_too(scripted: prowess.Skill, write: Write) -> None:
    toolset = prowess.Toolset(prowess.Session(prowess.Catalog([scripted])))
    revoke(write, scripted.digest())
    result = asyncio.run(toolset.acall("load_skill", {"name": "notes"}))
    assert result.is_error


# -- a clone ---------------------------------------------------------------------------------------------------------


def test_a_clone_gains_nothing_by_its_policy_files(world: World, scripted: prowess.Skill, write: Write) -> None:
    digest = scripted.digest()
    write('[run]\nscripts = "approved"\nsandbox = ["bwrap", "landlock"]\n[versions]\nreview = "required"\n')
    write('[run]\nscripts = "ask"\nsandbox = ["none"]\n[versions]\nreview = "none"\n', project=True)
    write(f'[[skill]]\ndigest = "{digest}"\nrun = true\n', "approved.toml", project=True)
    (world.project / ".config" / "prowess").mkdir(parents=True)
    (world.project / ".config" / "prowess" / "approved.toml").write_text(
        f'[[skill]]\ndigest = "{digest}"\nrun = true\n', encoding="utf-8"
    )
    policy = prowess.current_policy()
    assert not policy.may_run_unasked(digest)
    assert policy.word("run.scripts") == "approved"
    assert policy.word("versions.review") == "required"
    assert not any(policy.allows_sandbox(kind) for kind in ("bwrap", "landlock", "none"))
    with pytest.raises(prowess.PolicyError):
        prowess.Scripts(sandbox="none").run(scripted, "scripts/hello.py", trust=prowess.Trust())
