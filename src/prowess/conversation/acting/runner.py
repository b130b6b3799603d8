"""Running scripts elsewhere: what a host's runner gets, what it returns, and what it does not promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from prowess.arguments import check_instance
from prowess.errors import SandboxError
from prowess.policy.files import current_policy
from prowess.policy.rules import RUNNER_MARK

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from prowess.conversation.acting.supervised import LimitName, ProcessLimits

LIMIT_NAMES: tuple[LimitName, ...] = ("timeout", "output", "memory", "processes", "files", "disk")
"""What ``ScriptRunner.confirms`` may name, and ``"network"`` and ``"protect"`` besides."""


@dataclass(frozen=True, slots=True)
class ScriptJob:
    """One run of a script, for a runner."""

    skill: str
    """The name of the skill."""
    digest: str
    """The digest of the skill whose files are in ``folder``; ``""`` for a command of no skill."""
    folder: str
    """A private copy of the skill's files, which were hashed when they were copied. It is deleted after the run."""
    script: str
    """The path of the script in ``folder``; ``""`` for a command."""
    programs: tuple[str, ...]
    """The programs that run this kind of script, best first, such as ``("bash", "sh")``."""
    args: tuple[str, ...]
    """The arguments, in which ``${SKILL_DIR}`` is as the model wrote it: the runner knows where it puts the files."""
    stdin: bytes
    env: Mapping[str, str]
    """The variables that the host gives to scripts, and no others of this machine."""
    limits: ProcessLimits
    network: bool
    work: str | None
    """The host's folder in which the script works and may write; ``None``: the runner makes an empty one."""


@dataclass(frozen=True, slots=True)
class RunnerResult:
    """What came of a job."""

    status: int
    stdout: bytes = b""
    stderr: bytes = b""
    limit: LimitName = ""
    """Which limit ended the script."""


class ScriptRunner(Protocol):
    """Runs scripts elsewhere, such as in a container or on another machine."""

    @property
    def name(self) -> str:
        """The name, by which ``Scripts(sandbox=…)`` takes the runner for a sandbox."""

    @property
    def confirms(self) -> Collection[str]:
        """What the runner enforces: names of limits, ``"network"`` and ``"protect"``; all else is reported as a gap."""

    def run(self, job: ScriptJob) -> RunnerResult:
        """Run a script to its end; raise ``SandboxError`` (code ``cannot-start``) where that is not possible."""


def check_policy(runner: ScriptRunner) -> None:
    """Raise ``PolicyError`` where a policy asks for a sandbox: a runner that it does not name counts as none."""
    policy = current_policy()
    if not policy.allows_sandbox(f"{RUNNER_MARK}{runner.name}"):
        policy.check_sandbox("none")


def check_runner(runner: ScriptRunner, sandbox: str) -> None:
    """Raise ``SandboxError`` unless the host named the runner as its sandbox, or asked for none."""
    if not callable(getattr(runner, "run", None)) or not isinstance(getattr(runner, "name", None), str):
        raise SandboxError("runner has a name and a method run(job)", code="bad-argument")
    if sandbox not in {runner.name, "none"}:
        message = (
            f"the runner {runner.name!r} counts as no sandbox while the sandbox {sandbox!r} is asked for: "
            f"pass sandbox={runner.name!r} if it isolates scripts, or sandbox='none' if it need not"
        )
        raise SandboxError(message, code="no-sandbox")


def run_elsewhere(runner: ScriptRunner, job: ScriptJob) -> tuple[RunnerResult, tuple[str, ...]]:
    """Return what a runner gives for a job, and what it does not promise."""
    result = runner.run(job)
    check_instance(result, "what runner.run returns", RunnerResult, remedy="return prowess.RunnerResult(…)")
    confirmed = set(runner.confirms)
    gaps = [f"{runner.name} does not confirm the limit {name!r}" for name in LIMIT_NAMES if name not in confirmed]
    if not job.network and "network" not in confirmed:
        gaps.append(f"{runner.name} does not confirm that scripts have no network")
    if job.work is not None and "protect" not in confirmed:
        gaps.append(f"{runner.name} does not confirm that it protects files of the folder")
    return result, tuple(gaps)
