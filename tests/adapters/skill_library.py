"""The skills that the tests of every adapter use: one for each row of what an adapter must do, and calls of them."""

from __future__ import annotations

import asyncio
import base64
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from prowess import Policy, Scope, scan
from prowess.policy.rules import Revocation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from prowess import Live, ScopeContext

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A PNG image of one pixel."""
RUN_COUNT = ("run_skill_script", {"name": "count-words", "script": "scripts/count.py", "args": ["a", "b"]})
"""A call of the script of ``count-words``, which prints ``2 words``."""
LISTED = "<available_skills>"
"""How a listing of skills begins."""

_SKILLS = {
    "greet": "description: Greets people. Use when somebody says hello.",
    "count-words": "description: Counts words. Use when asked how long a text is.",
    "review": "description: Reviews a text on its own.\ncontext: fork\nmodel: small\nallowed-tools: look_up",
    "picture": "description: Shows a picture. Use when asked for one.",
    "careful": "description: Works with one tool. Use when asked to be careful.\nallowed-tools: look_up",
}
_BODIES = {
    "greet": "Say hello as references/forms.md says.",
    "count-words": "Run scripts/count.py with the words as arguments.",
    "review": "Review the text. Use look_up for facts.",
    "picture": "Look at assets/pixel.png.",
    "careful": "Use look_up and nothing else.",
}


def require_framework(package: str) -> None:
    """Skip the whole file of tests where a package is not installed.

    The package is not imported: each worker collects every file, and a large framework takes a second.
    """
    if find_spec(package) is None:
        reason = f"NOT TESTED: {package} is not installed; make test-adapters installs it"
        pytest.skip(reason, allow_module_level=True)


def write_library(folder: Path) -> Path:
    """Write the skills below ``folder``; return it."""
    for name, fields in _SKILLS.items():
        place = folder / name
        place.mkdir(parents=True)
        (place / "SKILL.md").write_text(f"---\nname: {name}\n{fields}\n---\n{_BODIES[name]}\n")
    _write(folder / "greet/references/forms.md", "Good morning before noon.\n")
    _write(folder / "count-words/scripts/count.py", "import sys\nprint(len(sys.argv[1:]), 'words')\n")
    _write(folder / "picture/assets/pixel.png", PIXEL)
    return folder


def _write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def add_fresh_skill(library: Path, live: Live) -> None:
    """Write the skill ``fresh`` into a library, and wait until the live catalogue has it."""
    seen = live.catalog
    _write(library / "fresh/SKILL.md", "---\nname: fresh\ndescription: Is new.\n---\nBe new.\n")
    while "fresh" not in live.catalog:  # the folder may be seen before its file
        seen = live.wait_for_change(seen, 20)


async def wait_until(began: asyncio.Event, run: asyncio.Future[Any]) -> None:
    """Wait until a run has come to a step; fail when the run ends before."""
    step = asyncio.ensure_future(began.wait())
    await asyncio.wait([step, run], return_when=asyncio.FIRST_COMPLETED)
    assert step.done(), "the run ended before that step"


def allow_by_user(rights: dict[str, list[str]], find_user: Callable[[Any], str]) -> Callable[[ScopeContext], Scope]:
    """Return a scope that has the skills of the user that ``find_user`` finds in a framework's own context."""
    return lambda context: Scope(allowed=rights[find_user(context.framework)])


def add_needy_skills(library: Path) -> Path:
    """Write one skill that needs the tool ``look_up``, and one that needs an MCP server which nobody has."""
    for name, needs in (("needs-tool", "tools: [look_up]"), ("needs-server", "mcp: [github]")):
        _write(
            library / name / "SKILL.md", f"---\nname: {name}\ndescription: Needs it.\nrequires: {{{needs}}}\n---\nGo.\n"
        )
    return library


def check_needy_skills(system: str) -> None:
    """Check that an agent with ``look_up`` is listed the skill that needs it, and not the other one."""
    assert "<name>needs-tool</name>" in system
    assert "needs-server" not in system


def revoke(library: Path, name: str) -> Policy:
    """Return the policy of a host that revoked a skill, for ``prowess.use_policy`` around a run."""
    return Policy(revocations=(Revocation(scan(library)[name].digest(), file="the host"),))


RIGHTS = {"ann": ["greet", "careful"], "bob": ["picture"]}
"""What two users may have."""


def check_listings(ann: str, bob: str) -> None:
    """Check that what two users were listed is what each of them may have."""
    shown = [{name for name in _SKILLS if f"<name>{name}</name>" in text} for text in (ann, bob)]
    assert shown == [set(RIGHTS["ann"]), set(RIGHTS["bob"])]
