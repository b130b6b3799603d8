"""Scripts that a host's runner runs elsewhere, with the example for containers and a program that speaks its line."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from examples.container_runner import ContainerRunner
from prowess import (
    Limits,
    NotTrustedError,
    RunnerResult,
    SandboxError,
    ScriptJob,
    Scripts,
    Skill,
    SourceError,
    Trust,
    scan,
)
from prowess.errors import PolicyError
from prowess.policy.files import load_policy, use_policy
from tests.adapters.skill_library import write_library

# A program that takes the command line of docker and runs what it is asked for, with the skill where it is mounted.
CONTAINER_PROGRAM = f"""#!{sys.executable}
import os, subprocess, sys
words = sys.argv[1:]
with open(os.environ["CALLS"], "a") as log:
    print(*words, file=log)
if words[0] == "kill":
    sys.exit()
flags, mounts, env = set(), {{}}, {{}}
words.pop(0)
while words[0].startswith("--"):
    flag = words.pop(0)
    flags.add(flag)
    if flag in {{"--rm", "--interactive", "--read-only"}}:
        continue
    value = words.pop(0)
    if flag == "--volume":
        host, inside = value.split(":")[:2]
        mounts[inside] = host
    if flag == "--env":
        key, _, text = value.partition("=")
        env[key] = text
assert words.pop(0) == "image"
words[0] = sys.executable if words[0] == "python" else words[0]
words = [word.replace("/skill", mounts["/skill"]) for word in words]
sys.exit(subprocess.run(words, env=env, cwd=mounts.get("/work")).returncode)
"""


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    program = tmp_path / "docker"
    program.write_text(CONTAINER_PROGRAM)
    program.chmod(0o755)
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return str(program)


@pytest.fixture
def skill(tmp_path: Path) -> Skill:
    return scan(write_library(tmp_path / "skills"))["count-words"]


@pytest.fixture
def trust(tmp_path: Path, skill: Skill) -> Trust:
    made = Trust(tmp_path / "grants.json")
    made.grant(skill)
    return made


@dataclass
class Recorder:
    """A runner that keeps its jobs, and what it saw of their folders."""

    name: str = "remote"
    confirms: tuple[str, ...] = ()
    jobs: list[ScriptJob] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    result: Any = field(default_factory=lambda: RunnerResult(3, b"x" * 50, b"problem"))

    def run(self, job: ScriptJob) -> Any:
        self.jobs.append(job)
        self.digests.append(next(iter(scan(Path(job.folder), check_dir=False))).digest())
        return self.result


def test_a_script_runs_in_a_container(docker: str, skill: Skill, trust: Trust, tmp_path: Path) -> None:
    scripts = Scripts(sandbox="docker", runner=ContainerRunner("image", docker), env={"CALLS": "none", "TOKEN": "t"})
    ran = scripts.run(skill, "scripts/count.py", ["a", "b c"], trust=trust)
    assert (ran.status, ran.stdout, ran.sandbox, ran.ok) == (0, "2 words\n", "docker", True)
    assert ran.sandbox_gaps == tuple(
        f"docker does not confirm the limit {name!r}" for name in ("output", "files", "disk")
    )
    (call,) = (tmp_path / "calls").read_text().splitlines()
    for words in ("--network none", "--read-only", "--memory", "--pids-limit", "--env TOKEN=t", ":/skill:ro"):
        assert words in call
    assert skill.folder not in call  # a private copy of the hashed files is mounted, not the folder itself


def test_a_container_that_takes_too_long_is_killed(docker: str, skill: Skill, tmp_path: Path) -> None:
    (Path(skill.folder) / "scripts/count.py").write_text("import time\nprint('begun', flush=True)\ntime.sleep(60)\n")
    trust = Trust(tmp_path / "grants.json")
    trust.grant(skill)
    scripts = Scripts(sandbox="docker", runner=ContainerRunner("image", docker), limits=Limits(max_script_seconds=1))
    ran = scripts.run(skill, "scripts/count.py", trust=trust)
    assert ran.limit == "timeout"
    assert not ran.ok
    assert (tmp_path / "calls").read_text().splitlines()[-1].startswith("kill prowess-")


def test_a_missing_container_program_is_reported(skill: Skill, trust: Trust) -> None:
    scripts = Scripts(sandbox="docker", runner=ContainerRunner("image", "no-such-program"))
    with pytest.raises(SandboxError, match="not on this machine"):
        scripts.run(skill, "scripts/count.py", trust=trust)


def test_a_runner_gets_the_hashed_files_the_limits_and_only_the_hosts_variables(skill: Skill, trust: Trust) -> None:
    runner = Recorder()
    scripts = Scripts(sandbox="remote", runner=runner, env={"TOKEN": "t"}, limits=Limits(max_script_output_bytes=20))
    ran = scripts.run(skill, "scripts/count.py", ["${SKILL_DIR}/x"], stdin="in", trust=trust)
    (job,) = runner.jobs
    assert runner.digests == [job.digest] == [skill.digest()]
    assert (job.skill, job.script, job.programs) == ("count-words", "scripts/count.py", ("python",))
    assert (job.args, job.stdin, job.env) == (("${SKILL_DIR}/x",), b"in", {"TOKEN": "t"})
    assert (job.limits.output, job.network, job.work) == (20, False, None)
    assert (ran.status, ran.stdout, ran.stdout_cut, ran.stderr) == (3, "x" * 20, True, "problem")
    assert len(ran.sandbox_gaps) == 7  # six limits and the network
    assert not Path(job.folder).exists()


@pytest.mark.parametrize("sandbox", ["auto", "bwrap", "landlock", "another"])
def test_a_runner_is_not_a_sandbox_unless_it_is_named(sandbox: str) -> None:
    with pytest.raises(SandboxError, match="sandbox='remote'") as caught:
        Scripts(sandbox=sandbox, runner=Recorder())
    assert caught.value.code == "no-sandbox"


def test_a_runner_without_a_sandbox_says_so(skill: Skill, trust: Trust, tmp_path: Path) -> None:
    scripts = Scripts(sandbox="none", runner=Recorder(confirms=("network",)), folder=tmp_path)
    ran = scripts.run(skill, "scripts/count.py", trust=trust)
    assert ran.sandbox == "none"
    assert "remote does not confirm that it protects files of the folder" in ran.sandbox_gaps


def test_nothing_reaches_a_runner_without_trust(skill: Skill, tmp_path: Path) -> None:
    runner = Recorder()
    with pytest.raises(NotTrustedError):
        Scripts(sandbox="remote", runner=runner).run(skill, "scripts/count.py", trust=Trust(tmp_path / "none.json"))
    assert runner.jobs == []


def test_mistakes_of_a_runner_are_reported(skill: Skill, trust: Trust) -> None:
    scripts = Scripts(sandbox="remote", runner=Recorder(result="done"))
    with pytest.raises(SourceError, match="RunnerResult"):
        scripts.run(skill, "scripts/count.py", trust=trust)
    with pytest.raises(SandboxError, match="a name and a method"):
        replace(scripts, runner=object())  # type: ignore[arg-type]
    with pytest.raises(SandboxError, match="no commands"):
        scripts.run_command("ls")


@pytest.mark.parametrize(
    ("allowed", "name", "runs"),
    [
        (["bwrap", "landlock"], "remote", False),
        (["runner:remote"], "remote", True),
        (["runner:other"], "remote", False),
        (["bwrap"], "bwrap", False),
        (["none"], "remote", True),
    ],
)
def test_a_policy_takes_a_runner_for_none_unless_it_names_it(
    skill: Skill, trust: Trust, tmp_path: Path, *, allowed: list[str], name: str, runs: bool
) -> None:
    runner = Recorder(name=name)
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy/policy.toml").write_text(f"[run]\nsandbox = {json.dumps(allowed)}\n")
    with use_policy(load_policy(tmp_path / "policy")):
        if runs:
            Scripts(sandbox=name, runner=runner).run(skill, "scripts/count.py", trust=trust)
        else:
            with pytest.raises(PolicyError, match="'none'"):
                Scripts(sandbox=name, runner=runner).run(skill, "scripts/count.py", trust=trust)
    assert len(runner.jobs) == runs
