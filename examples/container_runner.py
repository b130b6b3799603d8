"""Run the scripts of skills in a container: ``Scripts(sandbox="docker", runner=ContainerRunner("python:3.13-slim"))``.

Works with every program that takes the command line of docker, such as podman and nerdctl.
"""

from __future__ import annotations

import subprocess
import sys
import uuid
from dataclasses import dataclass

import prowess


@dataclass(frozen=True)
class ContainerRunner:
    """Runs each script in a new container of ``image``, which must have the programs that scripts need."""

    image: str
    program: str = "docker"
    name: str = "docker"
    confirms: tuple[str, ...] = ("timeout", "memory", "processes", "network")

    def run(self, job: prowess.ScriptJob) -> prowess.RunnerResult:
        """Run one script: its skill is mounted read-only, and nothing else of this machine unless ``job.work`` is."""
        container = f"prowess-{uuid.uuid4().hex}"
        words = [self.program, "run", "--rm", "--interactive", "--name", container, "--read-only", "--workdir", "/work"]
        words += ["--volume", f"{job.folder}:/skill:ro", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
        words += ["--tmpfs", "/tmp"]  # noqa: S108 - in the container
        words += ["--volume", f"{job.work}:/work"] if job.work else ["--tmpfs", "/work"]
        words += [] if job.network else ["--network", "none"]
        words += ["--memory", str(job.limits.memory)] if job.limits.memory else []
        words += ["--pids-limit", str(job.limits.processes)] if job.limits.processes else []
        for key, value in {"SKILL_DIR": "/skill", "PYTHONDONTWRITEBYTECODE": "1", **job.env}.items():
            words += ["--env", f"{key}={value}"]
        args = [word.replace("${SKILL_DIR}", "/skill") for word in job.args]
        words += [self.image, job.programs[0], f"/skill/{job.script}", *args]
        try:
            done = subprocess.run(
                words, input=job.stdin, capture_output=True, timeout=job.limits.seconds or None, check=False
            )
        except FileNotFoundError:
            raise prowess.SandboxError(f"{self.program} is not on this machine", code="cannot-start") from None
        except subprocess.TimeoutExpired as ended:
            subprocess.run([self.program, "kill", container], capture_output=True, check=False)
            return prowess.RunnerResult(-9, ended.stdout or b"", ended.stderr or b"", limit="timeout")
        return prowess.RunnerResult(done.returncode, done.stdout, done.stderr)


def main(image: str, skill: str, script: str, *args: str) -> int:
    """Run a script of a skill that was granted, and print what it printed."""
    scripts = prowess.Scripts(sandbox="docker", runner=ContainerRunner(image))
    ran = scripts.run(prowess.discover()[skill], script, args, trust=prowess.Trust())
    print(ran.stdout, end="")
    print(*ran.sandbox_gaps, sep="\n", file=sys.stderr)
    return ran.status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
