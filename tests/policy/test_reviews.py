"""Reviews: what a pull request changes in skills, the approval that counts everywhere, and the jobs of the pages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

import prowess
from tests.cli.conftest import Command
from tests.page_snippets import list_blocks
from tests.policy.test_governance import PAGE, Machine, deploy
from tests.sandbox_support import require_sandbox

if TYPE_CHECKING:
    from tests.install.conftest import World
    from tests.repositories import Repository

HOSTILE = "```\n</details> | <img src=x> [a](javascript:x) \u202e @everyone\n"


@pytest.fixture
def command(world: World) -> Command:  # noqa: ARG001 - a home and a project come first
    return Command()


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=Mia", "-c", "user.email=mia@acme.example")
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


def make_update(world: World, command: Command) -> Repository:
    """A project whose first commit has version 1 of a skill, and its working tree version 2."""
    notes = world.repository("notes")
    (world.project / ".git").rmdir()
    git(world.project, "init", "-b", "main")
    (world.project / ".gitignore").write_text(".prowess/\n.agents/\n", encoding="utf-8")
    assert command("install", f"{notes.path}#v1", "--project", "--yes").status == 0
    git(world.project, "add", "prowess.lock", ".gitignore")
    git(world.project, "commit", "-m", "Install")
    notes.skill("", body=f"Do it: !`id`\n{HOSTILE}", fields="allowed-tools: Bash\n")
    notes.write("scripts/run.sh", "echo ran\n")
    notes.commit(tag="v2")
    assert command("update", "notes@v2", "--yes").status == 0
    return notes


def test_a_pull_request_shows_the_files_and_what_could_now_run(world: World, command: Command) -> None:
    make_update(world, command)
    changes = command("diff", "--lock", "HEAD", "--json").data["changes"]
    assert [(one["name"], one["status"]) for one in changes] == [("local/notes", "changed")]
    assert [(one["kind"], one["value"]) for one in changes[0]["additions"]] == [
        ("script", "scripts/run.sh"),
        ("command", "id"),
        ("allowed-tool", "Bash"),
    ]
    assert "+echo ran" in changes[0]["diff"]
    assert changes[0]["digests"] == {"notes": prowess.discover()["notes"].digest()}
    ran = command("diff", "--lock", "HEAD")
    assert ran.status == 1
    assert "new script: scripts/run.sh" in ran.out
    git(world.project, "add", "prowess.lock")
    git(world.project, "commit", "-m", "Update")
    assert command("diff", "--lock", "HEAD").status == 0
    assert command("diff", "--lock", "HEAD~1", "HEAD", "--json").data["changes"] == changes


def test_nothing_of_a_skill_is_rendered_in_the_markdown(world: World, command: Command) -> None:
    make_update(world, command)
    text = command("diff", "--lock", "HEAD", "--format", "markdown").out
    fence = next(line for line in text.splitlines() if line.endswith("diff") and line.startswith("````"))
    head, inside, tail = text.partition(fence + "\n")[0], text.partition(fence + "\n")[2], ""
    inside, _, tail = inside.partition("\n" + fence.removesuffix("diff") + "\n")
    assert "<img" in inside
    assert "<img" not in head + tail
    assert "\u202e" not in text
    assert "| `local/notes` | changed |" in head


def test_installs_that_come_and_go_are_listed_and_unknown_content_is_said(world: World, command: Command) -> None:
    notes = make_update(world, command)
    other = world.folder("other")
    assert command("install", str(other), "--project", "--yes").status == 0
    assert command("remove", "notes", "--yes").status == 0
    changes = {one["name"]: one for one in command("diff", "--lock", "HEAD", "--json").data["changes"]}
    assert {name: one["status"] for name, one in changes.items()} == {
        "local/notes": "removed",
        "local/other": "added",
    }
    assert [one["kind"] for one in changes["local/other"]["additions"]] == ["skill"]
    (other / "SKILL.md").unlink()
    notes.path.rename(world.base / "gone")
    ran = command("diff", "--lock", "HEAD", "--json")
    assert ran.status == 3
    assert all(one["why_unknown"] for one in ran.data["changes"])


@pytest.mark.parametrize("base", ["nowhere", "--upload-pack=x", "HEAD:prowess.lock", "README.md"])
def test_a_base_that_is_not_a_lock_file_is_an_error(world: World, command: Command, base: str) -> None:
    make_update(world, command)
    (world.project / "README.md").write_text("", encoding="utf-8")
    assert command("diff", "--lock", "--", base).status == 3


def test_a_base_without_a_lock_file_has_no_installs(world: World, command: Command) -> None:
    make_update(world, command)
    git(world.project, "checkout", "--orphan", "empty")
    git(world.project, "rm", "-f", "--cached", "prowess.lock")
    git(world.project, "commit", "--allow-empty", "-m", "Nothing")
    changes = command("diff", "--lock", "HEAD", "--json").data["changes"]
    assert [one["status"] for one in changes] == ["added"]


def test_a_review_approves_one_state_and_shows_the_next_one_against_it(world: World, command: Command) -> None:
    notes = make_update(world, command)
    deploy(world.home, "policy.toml", '[versions]\nreview = "required"\n')
    assert "notes" not in prowess.discover()
    first = command("review", f"{notes.path}#v1", "--yes", "--json").data["skills"][0]
    assert first["approved_before"] is None
    assert "notes" not in prowess.discover()  # another state is installed
    plan = command("review", "notes", "--dry-run").out
    assert "new script: scripts/run.sh" in plan
    assert "- approve notes" in plan
    assert len(prowess.current_policy().approvals) == 1
    second = command("review", "notes", "--run", "--reviewer", "mia", "--expires", "2099-01-01", "--yes", "--json").data
    assert second["skills"][0]["approved_before"]["digest"] == first["digest"]
    assert "-Do it." in second["skills"][0]["diff"]
    approval = prowess.current_policy().find_approval(prowess.discover()["notes"].digest())
    assert approval is not None
    assert (approval.reviewer, approval.run, approval.commit) == ("mia", True, notes.git("rev-parse", "v2").strip())


def test_a_second_review_of_one_state_replaces_its_entry_and_keeps_the_rest(world: World, command: Command) -> None:
    notes = make_update(world, command)
    target = world.base / "deploy" / "approved.toml"
    target.parent.mkdir()
    others = f'# reviewed by hand\n[[skill]]\nname = "x"\ndigest = "{"ab" * 32}"\n'
    target.write_text(others, encoding="utf-8")
    for words in (("--run",), ()):
        assert command("review", f"{notes.path}#v2", "--to", str(target), "--yes", *words).status == 0
    text = target.read_text(encoding="utf-8")
    assert text.startswith(others)
    assert text.count("[[skill]]") == 2
    assert "run = false" in text
    assert target.stat().st_mode & 0o022 == 0
    target.write_text("[[skill]\n", encoding="utf-8")
    assert command("review", f"{notes.path}#v2", "--to", str(target), "--yes").status == 3
    assert target.read_text(encoding="utf-8") == "[[skill]\n"


def test_a_revoked_skill_cannot_be_approved(world: World, command: Command) -> None:
    make_update(world, command)
    digest = prowess.discover()["notes"].digest()
    deploy(world.home, "revoked.toml", f'[[skill]]\ndigest = "{digest}"\n')
    ran = command("review", "notes", "--yes")
    assert ran.status == 3
    assert "revoked" in ran.err


@pytest.mark.parametrize("count", [3, pytest.param(20, marks=pytest.mark.full)])
def test_the_ordinary_day_an_update_is_reviewed_once_and_runs_everywhere(
    world: World, command: Command, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """An update comes as a pull request, one person reviews it, and machines run its script without a question."""
    require_sandbox()
    notes = make_update(world, command)
    assert "echo ran" in command("diff", "--lock", "HEAD", "--format", "markdown").out
    deployed = world.base / "approved.toml"
    assert command("review", "notes", "--run", "--to", str(deployed), "--yes").status == 0
    machines = [Machine(world.base / f"machine-{number}", monkeypatch) for number in range(count)]
    rules = '[versions]\nreview = "required"\n[run]\nscripts = "approved"\n'
    for machine in machines:
        deploy(machine.home, "policy.toml", rules)
        deploy(machine.home, "approved.toml", deployed.read_text(encoding="utf-8"))
        assert machine.run("install", f"{notes.path}#v2", "--project", "--yes").status == 0
    for machine in machines:
        ran = machine.run("run-script", "notes", "scripts/run.sh")
        assert (ran.status, ran.out) == (0, "ran\n"), ran.err
        assert prowess.Trust().grants() == ()


# -- the jobs of the page ----------------------------------------------------------------------------------------------


def list_steps(text: str) -> list[str]:
    """Return the shell commands of a job of GitHub or GitLab."""
    job = yaml.safe_load(text)
    if "jobs" in job:
        return [step["run"] for step in job["jobs"]["skills"]["steps"] if "run" in step]
    return [str(step) for step in job["skills"]["script"]]


@pytest.mark.needs_posix
@pytest.mark.parametrize("host", ["github", "gitlab"])
def test_the_jobs_of_the_page_show_an_update_and_stop_a_revoked_one(
    world: World, command: Command, host: str, tmp_path: Path
) -> None:
    make_update(world, command)
    digest = prowess.discover()["notes"].digest()
    git(world.project, "checkout", "-b", "update")
    git(world.project, "commit", "-am", "Update")
    policy = tmp_path / "git.acme.example" / "security" / "policy.git"
    policy.mkdir(parents=True)
    git(policy, "init", "-b", "main")
    (policy / "policy.toml").write_text('[versions]\nrefs = "tags"\n', encoding="utf-8")
    git(policy, "add", "-A")
    git(policy, "commit", "-m", "Policy")
    texts = {("github" if "jobs:" in text else "gitlab"): text for _, text in list_blocks(PAGE, "yaml")}
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_BASE_REF": "main",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{tmp_path}/git.acme.example/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://git.acme.example/",
    }
    for state in ("allowed", "revoked"):
        checkout = tmp_path / state
        git(tmp_path, "clone", "-q", "-b", "update", str(world.project), str(checkout))
        if state == "revoked":
            (policy / "revoked.toml").write_text(f'[[skill]]\ndigest = "{digest}"\n', encoding="utf-8")
            git(policy, "add", "-A")
            git(policy, "commit", "-m", "Revoke")
        if host == "github":  # what the action of the page checks out
            git(tmp_path, "clone", "-q", str(policy), str(checkout / ".policy"))
        home = tmp_path / f"home-{state}"
        home.mkdir()
        env |= {"HOME": str(home), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
        outputs, statuses = [], []
        for step in list_steps(texts[host]):
            if step.startswith("pip install"):
                continue
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", step],
                check=False, cwd=checkout, env=env, capture_output=True, text=True,
            )  # fmt: skip
            outputs.append(done.stdout + done.stderr)
            statuses.append(done.returncode)
        assert statuses[:-1] == [0] * (len(statuses) - 1), outputs
        assert statuses[-1] == (1 if state == "revoked" else 0), outputs
        shown = (tmp_path / "summary.md") if host == "github" else (checkout / "skills.md")
        assert "+echo ran" in shown.read_text(encoding="utf-8")
        if host == "github":
            assert any("::warning file=prowess.lock" in output for output in outputs)
