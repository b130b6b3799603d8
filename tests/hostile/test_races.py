"""Files and folders that are swapped while Prowess reads them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from prowess.literals import OpenMethod
    from tests.hostile.conftest import Children
    from tests.hostile.invariants import Library

VALID = "---\nname: evil\ndescription: d\n---\nBody.\n"
OLD = "old bytes\n"


def prepare(library: Library) -> None:
    """A skill with one reference, and a secret outside under the same name."""
    library.write(VALID)
    library.put("evil/references/a.md", OLD)
    (library.outside / "sub/a.md").write_text("TOPSECRET-MARKER\n", encoding="utf-8")


# -- between two calls -------------------------------------------------------------------------------------------------


def test_a_file_that_became_a_link_since_the_listing_is_refused(
    library: Library, child: Children, open_method: OpenMethod
) -> None:
    """Case 62: the listing shows a file, and the read meets a link. This holds for the body and the whole skill too."""
    prepare(library)
    outcome = child.answer(
        """
skill = library.scan()["evil"]
assert "references/a.md" in skill.files()
for name, target in (("references/a.md", "secret.md"), ("SKILL.md", "SKILL.md")):
    (library.evil / name).unlink()
    (library.evil / name).symlink_to(library.outside / target)
calls = (lambda: skill.read_resource("references/a.md"), lambda: skill.read_bytes("references/a.md"))
calls += (skill.read_body, skill.load, skill.digest)
result = [library.assert_refused(call).code for call in calls]
""",
        library,
        open_method=open_method,
    )
    assert outcome.result == ["path-escape"] * 4 + ["link-in-skill"]


def test_a_folder_that_became_a_link_since_the_listing_is_refused(
    library: Library, child: Children, open_method: OpenMethod
) -> None:
    """Case 63: a folder of the skill, or the folder of the skill itself, leads outside when it is read."""
    prepare(library)
    outcome = child.answer(
        """
skill = library.scan()["evil"]
assert "references/a.md" in skill.files()
os.rename(library.evil / "references", library.base / "kept")
os.symlink(library.outside / "sub", library.evil / "references")
result = [library.assert_refused(lambda: skill.read_resource("references/a.md")).code, list(skill.files())]
os.rename(library.evil, library.base / "evil")
os.symlink(library.outside, library.evil)
result += [library.assert_refused(call).code for call in (
    lambda: skill.read_resource("secret.md"), lambda: skill.read_bytes("sub/s.md"), skill.read_body, skill.load)]
result += [library.assert_refused(skill.files).code != ""]
""",
        library,
        open_method=open_method,
    )
    assert outcome.result == ["path-escape", ["SKILL.md"], *["path-escape"] * 4, True]


def test_a_linked_skill_stays_where_its_link_led(library: Library) -> None:
    """Case 63: a skill that was found through a link is not read from outside when its real folder is swapped."""
    prepare(library)
    store = library.root / "_store/evil"
    store.parent.mkdir()
    library.evil.rename(store)
    library.evil.symlink_to(store)
    catalog = library.scan()
    skill = catalog["evil"]
    assert skill.read_resource("references/a.md") == OLD
    shutil.rmtree(store)
    store.symlink_to(library.outside)
    for call in (lambda: skill.read_resource("secret.md"), skill.read_body, skill.load):
        library.assert_refused(call)


# -- between the check and the open ------------------------------------------------------------------------------------

SWAP_WHEN_OPENED = """
def swap_when(ending, path, target):
    waiting = [True]
    def hook(event, args):
        if waiting and event == "open" and str(args[0]).endswith(ending):
            waiting.clear()
            os.rename(path, str(library.base / "kept"))
            os.symlink(target, path)
    sys.addaudithook(hook)
    return waiting
"""

# What the engine opens last before it stands in the folder that is swapped, by the way in which it opens.
LAST_BEFORE_FOLDER = {"openat2": "/library", "components": "references", "portable": "references/a.md"}
LAST_BEFORE_FILE = {"openat2": "/library", "components": "a.md", "portable": "references/a.md"}


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_swap_at_the_very_moment_of_opening_is_refused(
    library: Library, child: Children, open_method: OpenMethod, what: str
) -> None:
    """Cases 62, 63: a hook swaps the folder, or the file, when the engine has checked and is about to open."""
    prepare(library)
    ending = (LAST_BEFORE_FOLDER if what == "folder" else LAST_BEFORE_FILE)[open_method]
    swapped, target = ("references", "sub") if what == "folder" else ("references/a.md", "sub/a.md")
    outcome = child.answer(
        SWAP_WHEN_OPENED
        + """
skill = prowess.scan(library.root)["evil"]
ending, swapped, target = args
waiting = swap_when(ending, str(library.evil / swapped), str(library.outside / target))
code = invariants.catch_refusal(lambda: skill.read_resource("references/a.md")).code
assert not waiting, "the hook never saw the file"
result = [code, [i.code for i in skill.files().issues]]
""",
        library,
        ending,
        swapped,
        target,
        open_method=open_method,
    )
    assert outcome.result == ["path-escape", ["link-in-skill"]]


def test_the_twin_leaks_when_a_folder_is_swapped_after_its_check(library: Library, child: Children) -> None:
    """Twin of cases 62, 63: it checks the resolved path and then opens it, and reads the secret."""
    prepare(library)
    outcome = child(
        SWAP_WHEN_OPENED
        + """
swap_when("references/a.md", str(library.evil / "references"), str(library.outside / "sub"))
result = naive.checked_read(library.evil, "references/a.md")
""",
        library,
    )
    assert outcome.result == "TOPSECRET-MARKER\n"


# What discovery opens just before it reads the head of the skill.
LAST_BEFORE_SKILL = {"openat2": "evil", "components": "evil", "portable": "evil/SKILL.md"}


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_skill_that_is_swapped_while_it_is_discovered_is_rejected(
    library: Library, child: Children, open_method: OpenMethod, what: str
) -> None:
    """Case 63: the folder, or its SKILL.md, becomes a link when discovery opens it."""
    prepare(library)
    ending = LAST_BEFORE_SKILL[open_method] if what == "folder" else "SKILL.md"
    outcome = child.answer(
        SWAP_WHEN_OPENED
        + """
ending, what = args
inner = "" if what == "folder" else "SKILL.md"
waiting = swap_when(ending, str(library.evil / inner), str(library.outside / inner))
catalog = prowess.scan(library.root)
assert not waiting, "the hook never saw the file"
library.check(catalog)
result = [list(catalog.names), sorted({i.code for i in catalog.issues}) != []]
""",
        library,
        ending,
        what,
        open_method=open_method,
    )
    assert outcome.result == [["good"], True]


# -- all the time ------------------------------------------------------------------------------------------------------

FLIP_FILE = """
import os, sys, time
path, target = sys.argv[1:]
end = time.monotonic() + 8
print("ready", flush=True)
while time.monotonic() < end:
    os.symlink(target, path + ".link")
    os.rename(path + ".link", path)
    with open(path + ".file", "w") as file:
        file.write("old bytes\\n")
    os.rename(path + ".file", path)
"""
FLIP_FOLDER = """
import os, sys, time
path, target = sys.argv[1:]
end = time.monotonic() + 8
os.symlink(target, path + ".link")
print("ready", flush=True)
while time.monotonic() < end:
    os.rename(path, path + ".kept")
    os.rename(path + ".link", path)
    os.rename(path, path + ".link")
    os.rename(path + ".kept", path)
"""
READ_ON = """
import time
skill = prowess.scan(library.root)["evil"]
seconds, most = float(args[0]), 10_000
end, seen, leaks = time.monotonic() + seconds, {}, 0
for count in range(most):
    if time.monotonic() > end:
        break
    try:
        text = skill.read_resource("references/a.md")
        code = "read" if text == "old bytes\\n" else repr(text)
    except prowess.SkillError as error:
        code = error.code
        leaks += invariants.MARKER in str(error)
    seen[code] = seen.get(code, 0) + 1
    if count % 200 == 0:
        leaks += invariants.MARKER in invariants.text_of(prowess.scan(library.root))
        leaks += invariants.MARKER in "".join(skill.files())
result = [seen, leaks]
"""


@contextmanager
def flipping(code: str, path: Path, target: Path) -> Iterator[None]:
    """Another process swaps ``path`` for a link to ``target``, and back, as fast as it can."""
    command = [sys.executable, "-c", code, str(path), str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def test_a_file_that_flips_all_the_time_never_leaks(library: Library, child: Children, open_method: OpenMethod) -> None:
    """Case 62: thousands of reads against renames from another process give the old bytes or an error."""
    prepare(library)
    with flipping(FLIP_FILE, library.evil / "references/a.md", library.outside / "sub/a.md"):
        outcome = child.answer(READ_ON, library, "2.0" if open_method == "openat2" else "1.0", open_method=open_method)
    seen, leaks = outcome.result
    assert leaks == 0
    assert set(seen) <= {"read", "path-escape", "not-found", "changed-during-read"}
    assert seen.get("read", 0) > 10
    assert seen.get("path-escape", 0) > 10


@pytest.mark.parametrize("open_method", ["openat2", "components"])
def test_a_folder_that_flips_all_the_time_never_leaks(
    library: Library, child: Children, open_method: OpenMethod
) -> None:
    """Case 63: the folder around the file flips. The portable method does not promise to withstand this."""
    prepare(library)
    with flipping(FLIP_FOLDER, library.evil / "references", library.outside / "sub"):
        outcome = child.answer(READ_ON, library, "1.5", open_method=open_method)
    seen, leaks = outcome.result
    assert leaks == 0
    assert set(seen) <= {"read", "path-escape", "not-found", "changed-during-read"}
    assert seen.get("read", 0) > 10
    assert seen.get("path-escape", 0) > 10
