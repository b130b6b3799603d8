"""Real git repositories for tests, made with git itself: nothing of the machine's configuration counts."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ENV = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "c",
    "GIT_COMMITTER_EMAIL": "c@example.com",
    "GIT_TERMINAL_PROMPT": "0",
}
CONFIGURATION = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[uploadpack]
\tallowAnySHA1InWant = true
[maintenance]
\tauto = false
"""


def skill_text(name: str, body: str = "Do it.\n", description: str = "Does what it says.", fields: str = "") -> str:
    """A SKILL.md that nothing is wrong with."""
    return f"---\nname: {name}\ndescription: {description}\n{fields}---\n{body}"


class Repository:
    """A repository with a working tree, and the plumbing for those that no working tree could hold."""

    def __init__(self, path: Path, *options: str) -> None:
        self.path = path
        path.mkdir(parents=True)
        if options:
            self.git("init", "--quiet", "--initial-branch=main", *options, ".")
            self.git("config", "uploadpack.allowAnySHA1InWant", "true")
            return
        # What git makes of an empty folder, without the two processes of it: most repositories of tests are as small.
        for folder in ("objects", "refs/heads", "refs/tags"):
            (path / ".git" / folder).mkdir(parents=True)
        (path / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
        (path / ".git" / "config").write_text(CONFIGURATION, encoding="ascii")

    @property
    def address(self) -> str:
        """What a user types to name it as a repository of this machine, at the default branch."""
        return f"file://{self.path}"

    def git(self, *args: str, stdin: str | bytes | None = None) -> str:
        """What git prints."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        env = {**os.environ, **ENV}
        done = subprocess.run(["git", *args], cwd=self.path, env=env, input=data, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
        return done.stdout.decode("utf-8", "replace").strip()

    def write(self, path: str, content: str | bytes, *, executable: bool = False) -> Path:
        """Write a file of the working tree."""
        where = self.path / path
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_bytes(content.encode() if isinstance(content, str) else content)
        where.chmod(0o755 if executable else 0o644)
        return where

    def skill(self, folder: str, name: str | None = None, body: str = "Do it.\n", fields: str = "") -> Path:
        """Write a skill in a folder (``""``: on top)."""
        called = name or folder.rpartition("/")[2] or self.path.name
        return self.write(f"{folder}/SKILL.md" if folder else "SKILL.md", skill_text(called, body, fields=fields))

    def commit(self, message: str = "change", *, tag: str = "") -> str:
        """Record everything; the commit's id."""
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        head = self.path / ".git" / "refs/heads/main"
        made = self.git("rev-parse", "HEAD") if self._is_elsewhere() else head.read_text(encoding="ascii").strip()
        if tag:
            self.git("tag", tag)
        return made

    def _is_elsewhere(self) -> bool:
        """Whether the working tree is not on the main branch, or the repository not in a folder beside it."""
        head = self.path / ".git" / "HEAD"
        return not head.is_file() or head.read_text(encoding="ascii") != "ref: refs/heads/main\n"

    def add_empty_commits(self, count: int) -> None:
        """Put commits that change nothing on top of the main branch, by one process for all of them."""
        rows = [f"commit refs/heads/main\ncommitter a <a@example.com> {at} +0000\ndata 1\nx\n" for at in range(count)]
        if rows:
            rows[0] += "from refs/heads/main^0\n"
            self.git("fast-import", "--quiet", stdin="".join(rows))

    # -- what git itself would not make ------------------------------------------------------------------------------

    def blob(self, content: str | bytes) -> str:
        """An object with these bytes."""
        return self.git("hash-object", "-w", "--stdin", "-t", "blob", "--literally", stdin=content)

    def tree(self, *entries: tuple[str, str, str]) -> str:
        """A folder of (mode, name, object), whatever they are."""
        raw = b"".join(
            f"{mode} {name}".encode("utf-8", "surrogateescape") + b"\0" + bytes.fromhex(oid)
            for mode, name, oid in entries
        )
        return self.git("hash-object", "-w", "--stdin", "-t", "tree", "--literally", stdin=raw)

    def commit_tree(self, tree: str) -> str:
        """Have the branch be a commit with exactly this tree."""
        commit = self.git("commit-tree", "-m", "made by hand", tree)
        self.git("update-ref", "refs/heads/main", commit)
        return commit
