"""Git repositories for tests. Git itself makes them, and the machine's own configuration of git does not count."""

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
    """Return the text of a valid SKILL.md."""
    return f"---\nname: {name}\ndescription: {description}\n{fields}---\n{body}"


class Repository:
    """A repository with a working tree, and methods that write objects which no working tree could hold."""

    def __init__(self, path: Path, *options: str) -> None:
        self.path = path
        path.mkdir(parents=True)
        if options:
            self.git("init", "--quiet", "--initial-branch=main", *options, ".")
            self.git("config", "uploadpack.allowAnySHA1InWant", "true")
            return
        # What ``git init`` and ``git config`` would write. Most tests need no more, and this saves two processes.
        for folder in ("objects", "refs/heads", "refs/tags"):
            (path / ".git" / folder).mkdir(parents=True)
        (path / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
        (path / ".git" / "config").write_text(CONFIGURATION, encoding="ascii")

    @property
    def address(self) -> str:
        """The address that a user types for this repository at its default branch."""
        return f"file://{self.path}"

    def git(self, *args: str, stdin: str | bytes | None = None) -> str:
        """Run git in the working tree, and return what it prints."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        env = {**os.environ, **ENV}
        done = subprocess.run(["git", *args], cwd=self.path, env=env, input=data, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
        return done.stdout.decode("utf-8", "replace").strip()

    def write(self, path: str, content: str | bytes, *, executable: bool = False) -> Path:
        """Write a file of the working tree, and return its path."""
        where = self.path / path
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_bytes(content.encode() if isinstance(content, str) else content)
        where.chmod(0o755 if executable else 0o644)
        return where

    def skill(self, folder: str, name: str | None = None, body: str = "Do it.\n", fields: str = "") -> Path:
        """Write a skill into a folder, or into the root for ``""``, and return the path of its SKILL.md."""
        called = name or folder.rpartition("/")[2] or self.path.name
        return self.write(f"{folder}/SKILL.md" if folder else "SKILL.md", skill_text(called, body, fields=fields))

    def commit(self, message: str = "change", *, tag: str = "") -> str:
        """Commit every file, and return the id of the commit."""
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        head = self.path / ".git" / "refs/heads/main"
        made = self.git("rev-parse", "HEAD") if self._is_elsewhere() else head.read_text(encoding="ascii").strip()
        if tag:
            self.git("tag", tag)
        return made

    def _is_elsewhere(self) -> bool:
        """Return whether the working tree is on another branch than main, or ``.git`` is not a folder in it."""
        head = self.path / ".git" / "HEAD"
        return not head.is_file() or head.read_text(encoding="ascii") != "ref: refs/heads/main\n"

    def add_empty_commits(self, count: int) -> None:
        """Add commits that change nothing to the main branch. One process makes them all."""
        rows = [f"commit refs/heads/main\ncommitter a <a@example.com> {at} +0000\ndata 1\nx\n" for at in range(count)]
        if rows:
            rows[0] += "from refs/heads/main^0\n"
            self.git("fast-import", "--quiet", stdin="".join(rows))

    # -- what git itself would not make ------------------------------------------------------------------------------

    def blob(self, content: str | bytes) -> str:
        """Write a blob with these bytes, and return its id."""
        return self.git("hash-object", "-w", "--stdin", "-t", "blob", "--literally", stdin=content)

    def tree(self, *entries: tuple[str, str, str]) -> str:
        """Write a tree of entries (mode, name, object), valid or not, and return its id."""
        raw = b"".join(
            f"{mode} {name}".encode("utf-8", "surrogateescape") + b"\0" + bytes.fromhex(oid)
            for mode, name, oid in entries
        )
        return self.git("hash-object", "-w", "--stdin", "-t", "tree", "--literally", stdin=raw)

    def commit_tree(self, tree: str) -> str:
        """Set the main branch to a commit with exactly this tree, and return the id of the commit."""
        commit = self.git("commit-tree", "-m", "made by hand", tree)
        self.git("update-ref", "refs/heads/main", commit)
        return commit
