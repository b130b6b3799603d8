"""What an attacker tried on policies: from a clone, from a sandboxed program, and by the ways around a rule."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.policy import files as policy_files
from prowess.policy.rules import is_source_match
from tests.cli.conftest import Command
from tests.policy.test_governance import deploy
from tests.sandbox_support import require_sandbox

if TYPE_CHECKING:
    from tests.install.conftest import World
    from tests.policy.conftest import Write


def test_a_clone_cannot_move_what_is_the_users_own(world: World, write: Write) -> None:
    source = world.folder("mine")
    by_hand = world.home / ".claude" / "skills" / "mine"
    shutil.copytree(source, by_hand)
    in_project = world.project / ".claude" / "skills" / "mine"
    shutil.copytree(source, in_project)
    digest = prowess.read_metadata(source).digest()
    write(f'[[skill]]\ndigest = "{digest}"\n[[skill]]\nsource = "**"\n', "revoked.toml", project=True)
    assert Command()("audit", "--fix").status == 0
    assert (by_hand / "SKILL.md").exists()
    assert not in_project.exists()


def test_what_is_refused_and_not_removed_stays_on_the_disk(world: World) -> None:
    by_hand = world.home / ".claude" / "skills" / "mine"
    shutil.copytree(world.folder("mine"), by_hand)
    digest = prowess.read_metadata(by_hand).digest()
    deploy(world.home, "revoked.toml", f'[[skill]]\ndigest = "{digest}"\naction = "refuse"\n')
    assert Command()("audit").status == 1
    Command()("audit", "--fix")
    assert (by_hand / "SKILL.md").exists()
    with pytest.raises(prowess.PolicyError):
        prowess.read_metadata(by_hand).load()


@pytest.mark.parametrize("kind", ["bwrap", "landlock"])
def test_a_sandboxed_program_cannot_change_the_policy_of_its_folder(world: World, write: Write, kind: str) -> None:
    if kind not in {one.name for one in prowess.sandbox.available() if one.usable}:
        pytest.skip(f"NOT TESTED: {kind} does not work here")
    require_sandbox()
    path = Path(write('[run]\nscripts = "ask"\n', project=True))
    scripts = prowess.Scripts(sandbox=kind, folder=world.project)
    scripts.run_command("rm -f policy.toml; echo > policy.toml; mv policy.toml gone")
    assert path.read_text(encoding="utf-8") == '[run]\nscripts = "ask"\n'


def test_a_project_in_a_project_stays_under_the_policy_around_it(
    world: World, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write('[run]\nscripts = "never"\n', project=True)
    inner = world.project / "pkg"
    inner.mkdir()
    (inner / "prowess.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(inner)
    assert prowess.current_policy().word("run.scripts") == "never"


def test_a_locked_sync_puts_nothing_back_that_a_rule_refuses(
    world: World, installer: prowess.Installer, write: Write
) -> None:
    pdf = world.repository("pdf")
    installer.install(f"{pdf.path}#v1", project=True)
    for name, text in (
        ("revoked.toml", f'[[skill]]\nsource = "file://{pdf.path}"\nrange = "<2"\n'),
        ("policy.toml", '[versions]\nrefs = "commits"\n'),
    ):
        path = Path(write(text, name))
        shutil.rmtree(world.skills, ignore_errors=True)
        with pytest.raises(prowess.PolicyError):
            installer.sync(locked=True)
        path.unlink()
    installer.sync(locked=True)
    assert "pdf" in prowess.discover()


@pytest.mark.parametrize("path", ["..%2fevil", "..%5Cevil", "..\\evil", "..;/evil", "%252e%252e/evil", "x%2F..%2Fevil"])
def test_no_spelling_of_a_path_leads_out_of_a_listed_folder(path: str) -> None:
    assert not is_source_match("https://git.acme.example/acme/**", f"https://git.acme.example/acme/{path}")


def test_a_policy_folder_that_cannot_be_looked_into_stops_everything(
    world: World, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("[run]\n")
    folder = world.base / "machine"
    monkeypatch.setattr(policy_files, "machine_folder", lambda: str(folder))
    monkeypatch.setattr(policy_files, "_places", {})
    prowess.current_policy()
    for case in ("a link that leads nowhere", "a file", "a folder that others may write to"):
        if case == "a file":
            folder.write_text("", encoding="utf-8")
        elif case == "a link that leads nowhere":
            folder.symlink_to(world.base / "nowhere")
        else:
            folder.mkdir()
            folder.chmod(0o777)
        with pytest.raises(prowess.PolicyError):
            prowess.current_policy()
        if folder.is_dir() and not folder.is_symlink():
            folder.rmdir()
        else:
            folder.unlink()


def test_an_approval_file_of_a_project_is_not_even_parsed(write: Write) -> None:
    write("this is not TOML", "approved.toml", project=True)
    prowess.current_policy()
