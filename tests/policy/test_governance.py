"""The days of a security team: a bad one, an ordinary one, and a clone that tries."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.cli.conftest import Command, Ran
from tests.page_snippets import list_blocks, make_reader_project
from tests.sandbox_support import require_sandbox

if TYPE_CHECKING:
    from tests.install.conftest import World
    from tests.repositories import Repository

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "policy.md"


@pytest.fixture
def command(world: World) -> Command:  # noqa: ARG001 - a home and a project come first
    return Command()


def deploy(home: Path, name: str, text: str) -> None:
    """Put a policy file onto a machine, whose user has this home."""
    folder = home / ".config" / "prowess"
    folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    (folder / name).write_text(text, encoding="utf-8")
    (folder / name).chmod(0o644)


class Machine:
    """One of several machines with a user and a project of its own."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.project = home, home / "project"
        self._monkeypatch = monkeypatch
        (self.project / ".git").mkdir(parents=True)

    def run(self, *words: str) -> Ran:
        self._monkeypatch.setenv("HOME", str(self.home))
        self._monkeypatch.setenv("PROWESS_CACHE_DIR", str(self.home / "cache"))
        self._monkeypatch.chdir(self.project)
        return Command()(*words)


def malicious(world: World) -> Repository:
    made = world.repository("mail")
    made.write("scripts/send.py", "print('sent')\n")
    made.commit(tag="v2")
    return made


def test_the_bad_day(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed and trusted skill turns out to be malicious: it is gone everywhere, and stays away."""
    address = malicious(world).address
    machines = [Machine(tmp_path / f"machine-{number}", monkeypatch) for number in range(3)]
    for number, machine in enumerate(machines):
        more = ("--copy",) if number == 2 else ()
        assert machine.run("install", address, "--project", "--yes", "--agent", "claude-code", *more).status == 0
        assert machine.run("trust", "grant", "mail", "--yes").status == 0
        by_hand = machine.home / ".claude" / "skills" / "mine"
        shutil.copytree(machine.project / ".claude" / "skills" / "mail", by_hand)
    digest = machines[0].run("inventory", "--json").data["skills"][0]["digest"]
    # A service that runs already, on the first machine.
    machines[0].run("list")
    toolset = prowess.Toolset(prowess.Session(prowess.discover(), trust=prowess.Trust()))
    assert not toolset.call("load_skill", {"name": "mail"}).is_error

    for machine in machines:
        deploy(machine.home, "revoked.toml", f'[[skill]]\ndigest = "{digest}"\nreason = "it sends mail"\n')
    monkeypatch.setenv("HOME", str(machines[0].home))
    refused = toolset.call("load_skill", {"name": "mail"})
    assert refused.is_error
    assert "it sends mail" in refused.content

    for machine in machines:
        # What a lock file records is not offered any more. The copy that nobody recorded is refused when it is loaded.
        listed = [skill["location"] for skill in machine.run("list", "--json").data["skills"]]
        assert [place for place in listed if str(machine.project) in place] == []
        assert machine.run("read", "mail").status == 3
        found = machine.run("audit", "--json")
        assert found.status == 1
        assert {Path(one["folder"]).name for one in found.data["revoked"]} == {"mail", "mine"}
        locked = (machine.project / "prowess.lock").read_bytes()
        assert machine.run("audit", "--fix").status == 0
        assert machine.run("audit").status == 0
        assert (machine.project / "prowess.lock").read_bytes() == locked
        assert machine.run("inventory", "--json").data["skills"] == []
        left = [path for path in machine.home.rglob("SKILL.md") if ".backup" not in path.parts]
        assert left == []
        assert not any(path.is_symlink() for path in machine.home.rglob("*"))
        assert machine.run("sync", "--locked").status == 3
        checked = machine.run("policy", "check")
        assert checked.status == 1
        assert "revoked.toml" in checked.out
        assert "do not put it back" in machine.run("backups").out


def test_one_of_many_skills_of_an_install_is_taken_off(
    world: World, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(world.base / "cache"))
    address = world.repository("many", "one", "two", "three").address
    assert command("install", address, "--project", "--yes").status == 0
    digest = prowess.discover()["two"].digest()
    deploy(world.home, "revoked.toml", f'[[skill]]\ndigest = "{digest}"\n')
    assert command("audit", "--fix").status == 0
    assert {"one", "three"} <= set(prowess.discover().names)
    assert not (world.agents / "two").is_symlink()
    assert (world.agents / "one").is_symlink()


@pytest.mark.parametrize("form", ["file://{0}", "{0}"])
def test_a_source_of_this_machine_is_revoked_in_every_form(
    world: World, command: Command, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(world.base / "cache"))
    folder = world.folder("notes")
    for source in (os.path.relpath(folder), str(folder)):
        assert command("install", source, "--project", "--yes", "--replace").status == 0
        toolset = prowess.Toolset(prowess.Session(prowess.discover()))
        assert not toolset.call("load_skill", {"name": "notes"}).is_error
        deploy(world.home, "revoked.toml", f'[[skill]]\nsource = "{form.format(folder)}"\n')
        assert command("policy", "check").status == 1
        assert "notes" not in prowess.discover()
        assert command("install", source, "--project", "--yes", "--replace").status == 3
        assert command("audit").status == 1
        (world.home / ".config" / "prowess" / "revoked.toml").unlink()


def test_the_ordinary_day(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A skill that was reviewed once runs its script on every machine, and nobody is asked."""
    require_sandbox()
    address = malicious(world).address
    digest = ""
    for number in range(5):
        machine = Machine(tmp_path / f"machine-{number}", monkeypatch)
        deploy(machine.home, "policy.toml", '[run]\nscripts = "approved"\n')
        assert machine.run("install", address, "--project", "--yes").status == 0
        if number == 0:
            digest = machine.run("inventory", "--json").data["skills"][0]["digest"]
            refused = machine.run("run-script", "mail", "scripts/send.py")
            assert (refused.status, "approved.toml" in refused.err) == (3, True)
        deploy(machine.home, "approved.toml", f'[[skill]]\ndigest = "{digest}"\nrun = true\n')
        ran = machine.run("run-script", "mail", "scripts/send.py")
        assert (ran.status, ran.out) == (0, "sent\n"), ran.err


def test_a_clone_with_every_policy_file_gains_nothing(
    world: World, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_sandbox()
    assert command("install", malicious(world).address, "--project", "--yes").status == 0
    digest = command("inventory", "--json").data["skills"][0]["digest"]
    deploy(world.home, "policy.toml", '[run]\nscripts = "approved"\nsandbox = ["bwrap", "landlock"]\n')
    approved = f'[[skill]]\ndigest = "{digest}"\nrun = true\n'
    for folder in (".", ".prowess", ".config/prowess", "etc/prowess", "prowess"):
        path = world.project / folder
        path.mkdir(parents=True, exist_ok=True)
        for name, text in (("policy.toml", '[run]\nscripts = "ask"\n'), ("approved.toml", approved)):
            (path / name).write_text(text, encoding="utf-8")
    monkeypatch.setenv("PROWESS_SANDBOX", "none")
    for words in (("--sandbox", "none"), ()):
        assert command("run-script", "mail", "scripts/send.py", *words).status == 3


def test_policy_check_names_each_rule_that_a_lock_file_breaks(world: World, command: Command) -> None:
    assert command("install", world.repository("pdf").address, "--project", "--yes").status == 0
    assert command("policy", "check").status == 0
    rules = '[sources]\nallow = ["https://git.acme.example/**"]\n[versions]\nrefs = "tags"\nreview = "required"\n'
    deploy(world.home, "policy.toml", rules)
    checked = command("policy", "check", "--json")
    assert checked.status == 1
    assert [issue["code"] for issue in checked.data["issues"]] == ["policy", "not-reviewed"]
    annotations = command("policy", "check", str(world.lock), "--format", "github").out.splitlines()
    assert [line.partition(" ")[0] for line in annotations] == ["::error", "::error"]
    shown = json.loads(command("policy", "show", "--json").out)
    assert [rule["rule"] for rule in shown["rules"]] == ["sources.allow", "versions.refs", "versions.review"]


def test_the_commands_of_the_page_work_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_reader_project(tmp_path, monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    rules, approved, revoked = [text for _, text in list_blocks(PAGE, "toml")]
    deploy(tmp_path / "home", "policy.toml", rules)
    deploy(tmp_path / "home", "approved.toml", approved)
    deploy(tmp_path / "home", "revoked.toml", revoked)
    assert {rule.key for rule in prowess.current_policy().rules} == set(prowess.policy.rules.RULES)
    for _, text in list_blocks(PAGE, "sh"):
        for line in text.splitlines():
            ran = Command()(*line.split()[1:])
            assert ran.status == 0, (line, ran.err)
