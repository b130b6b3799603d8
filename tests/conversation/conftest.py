"""Fixtures for the tests of sessions: skills on the disk, their catalogue, scripts that run, marked processes."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypedDict, Unpack
from uuid import uuid4

import pytest

import prowess
from prowess.conversation.acting.sandbox import Kind


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Write a SKILL.md below ``tmp_path/skills`` and get its path; the name is the folder's unless another is given."""

    def write(
        folder: str,
        *,
        tools: str = "",
        body: str = "Do it.",
        extra: str = "",
        name: str | None = None,
        description: str = "Does it.",
    ) -> Path:
        path = tmp_path / "skills" / folder / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [f"name: {path.parent.name if name is None else name}", f"description: {description}"]
        rows += [f"allowed-tools: {tools}"] if tools else []
        rows += [extra] if extra else []
        head = "\n".join(rows)
        path.write_text(f"---\n{head}\n---\n{body}\n", encoding="utf-8")
        return path

    return write


@pytest.fixture
def scanned(tmp_path: Path) -> Callable[..., prowess.Catalog]:
    """Scan ``tmp_path/skills``, mounted as ``skills``; the folders that are named are preloaded."""

    def load(*preloaded: str) -> prowess.Catalog:
        root = tmp_path / "skills"
        return prowess.Catalog.from_sources(
            [
                prowess.Source.directory(root, mount_as="skills"),
                *(prowess.Source.directory(root / folder, preload=True) for folder in preloaded),
            ]
        )

    return load


class Options(TypedDict, total=False):
    """The arguments of ``prowess.Scripts``."""

    sandbox: Kind
    folder: Path
    env: Mapping[str, str]
    network: bool
    limits: prowess.Limits


class Acting:
    """A skill whose scripts are granted and run; nothing that a run made for itself is left afterwards."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.folder = base / "acting" / "act"
        self.temporary = base / "temporary"
        self.temporary.mkdir()
        self.trust = prowess.Trust(base / "trust.json")

    def put(self, files: Mapping[str, str | bytes], body: str = "Do it.") -> prowess.Skill:
        """Write files of the skill; return the skill in its present state, without a grant."""
        head = f"---\nname: act\ndescription: Acts.\n---\n{body}\n"
        for path, content in {"SKILL.md": head, **files}.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        return prowess.scan(self.folder.parent)["act"]

    def granted(self, files: Mapping[str, str | bytes], body: str = "Do it.") -> prowess.Skill:
        """Write files of the skill; return the skill in its present state, with a grant."""
        skill = self.put(files, body)
        self.trust.grant(skill)
        return skill

    def run(
        self,
        script: str,
        content: str | bytes,
        args: Sequence[str] = (),
        *,
        stdin: str | bytes = "",
        **options: Unpack[Options],
    ) -> prowess.ScriptResult:
        """Write a script, grant the skill, run it: without a sandbox unless one is named."""
        skill = self.granted({script: content})
        options.setdefault("sandbox", "none")
        try:
            return prowess.Scripts(**options).run(skill, script, args, stdin=stdin, trust=self.trust)
        finally:
            assert self.left() == []

    def left(self) -> list[str]:
        """Return the names of what runs have left in the folder for temporary files."""
        return sorted(path.name for path in self.temporary.iterdir())


@pytest.fixture
def acting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Acting]:
    """A skill with scripts, and a folder for temporary files that only this test uses."""
    made = Acting(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(made.temporary))
    yield made
    if made.left():  # a failing test: what lies there can be too deep for Python to delete
        subprocess.run(["rm", "-rf", made.temporary], check=False)


def require_sandbox(name: str) -> Kind:
    """Return the sandbox with that name where it works; skip the test where it does not, and report that loudly."""
    for each in prowess.sandbox.available():
        if each.name == name and not each.usable:
            pytest.skip(f"NOT TESTED: scripts in the sandbox {name!r}, which does not work here: {each.why}")
    return name  # type: ignore[return-value]


@pytest.fixture
def bwrap() -> Kind:
    """The sandbox of bubblewrap."""
    return require_sandbox("bwrap")


@pytest.fixture(params=["bwrap", "landlock"])
def jail(request: pytest.FixtureRequest) -> Kind:
    """Each sandbox."""
    return require_sandbox(request.param)


@pytest.fixture(
    params=["bwrap", *(pytest.param(other, marks=pytest.mark.sampled(0.4)) for other in ("landlock", "none"))]
)
def kind(request: pytest.FixtureRequest) -> Kind:
    """The best sandbox, and in a sample the other ones: for behaviour that does not depend on the sandbox."""
    return require_sandbox(request.param)


class Marked:
    """An environment variable that every process of a run inherits, and by which it is found."""

    def __init__(self) -> None:
        self.value = uuid4().hex
        self.env = {"PROWESS_TEST_MARK": self.value}

    def alive(self, also: str = "") -> list[str]:
        """Return the number and command line of each process that carries the mark (and ``also``)."""
        found = (self._row(path, also) for path in Path("/proc").iterdir() if path.name.isdigit())
        return [row for row in found if row]

    def end(self) -> None:
        """End the processes that a failing test has left: only those that carry the mark."""
        for row in self.alive():
            with suppress(ProcessLookupError):
                os.kill(int(row.partition(":")[0]), signal.SIGKILL)

    def _row(self, path: Path, also: str) -> str:
        try:
            environment = (path / "environ").read_bytes()
            if self.value.encode() not in environment or also.encode() not in environment:
                return ""
            command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""
        return f"{path.name}: {command}"


@pytest.fixture
def marked() -> Iterator[Marked]:
    """A mark, where the table of processes can be read; processes that a failing test leaves are ended."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("needs /proc to look for processes that were left behind")
    mark = Marked()
    yield mark
    mark.end()
