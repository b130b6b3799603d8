"""Too many bytes, files, folders or skills."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from tests.hostile.conftest import Children
    from tests.hostile.invariants import Library

VALID = "---\nname: evil\ndescription: d\n---\nBody.\n"
MIB = 1 << 20
GIB = 1 << 30
GENEROUS = 2.0  # seconds; what is measured takes a fraction of that on an idle machine


MEMORY = Path("/dev/shm")  # noqa: S108 - folders with random names are made in it


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in memory where the system has one: tens of thousands of files are made and removed in no time."""
    if not (MEMORY.is_dir() and os.access(MEMORY, os.W_OK)):
        yield tmp_path_factory.mktemp("sizes")
        return
    base = Path(tempfile.mkdtemp(prefix="prowess-hostile-", dir=MEMORY))
    yield base
    subprocess.run(["rm", "-rf", str(base)], check=True)  # the interpreter's own removal is no deeper than its stack


@pytest.fixture
def library(quick: Path, invariants: ModuleType) -> Iterator[Library]:
    """The usual library, in memory."""
    base = Path(tempfile.mkdtemp(dir=quick))
    built: Library = invariants.Library(base).build()
    yield built
    shutil.rmtree(base)


# -- bytes -------------------------------------------------------------------------------------------------------------


def test_a_huge_resource_is_refused_by_its_size(library: Library, child: Children) -> None:
    """Case 65: a sparse file of one gibibyte is refused, or cut when that was asked for, and never held in memory."""
    library.write(VALID)
    path = library.put("evil/references/huge.md", "text\n" * 100_000)
    os.truncate(path, GIB)
    outcome = child.answer(
        """
skill, name = library.scan()["evil"], "references/huge.md"
calls = (lambda: skill.read_resource(name), lambda: skill.read_bytes(name), skill.digest,
         lambda: prowess.scan(library.root).read_resource("evil", name))
errors = [library.assert_refused(call, "too-large", "too-many-bytes") for call in calls]
cut = skill.read_resource(name, truncate=True)
result = [[error.message for error in errors], len(cut), cut[:5], cut.splitlines()[-1]]
""",
        library,
        memory=128,
    )
    messages, length, begins, ends = outcome.result
    assert all(str(GIB) in message for message in messages)
    assert "65536" in messages[0]
    assert str(10 * MIB) in messages[1]
    assert 65_536 <= length < 66_000
    assert begins == "text\n"
    assert "cut" in ends
    assert outcome.read[str(path)] < MIB
    assert outcome.grown < 16 * MIB
    assert outcome.busy < GENEROUS


def test_the_twin_runs_out_of_memory_on_a_huge_resource(library: Library, child: Children) -> None:
    """Twin of case 65: it reads the whole file."""
    library.write(VALID)
    os.truncate(library.put("evil/references/huge.md", ""), GIB)
    assert child("naive.read(library.evil, 'references/huge.md')", library, memory=256).raised == "MemoryError"


# -- files -------------------------------------------------------------------------------------------------------------

MAKE_FILES = """
at = os.open(library.evil / args[0], os.O_RDONLY)
for number in range(int(args[1])):
    os.close(os.open(f"f{number:07}", os.O_CREAT | os.O_WRONLY, dir_fd=at))
"""
MAKE_FOLDERS = """
at = os.open(library.evil / args[0], os.O_RDONLY)
for number in range(int(args[1])):
    os.mkdir(f"d{number:07}", dir_fd=at)
"""
LIST = """
skill = prowess.scan(library.root)["evil"]
files, resources = skill.files(), skill.resources()
invariants.catch_refusal(skill.digest, "too-many-files")
codes = [[i.code for i in listing.issues] for listing in (files, resources)]
result = [len(files), files.complete, len(resources.paths), codes]
library.check(prowess.scan(library.root))
"""


def test_a_skill_with_too_many_files_is_listed_up_to_the_limit(library: Library, child: Children, full: bool) -> None:
    """Case 68: tens of thousands of files in one folder; the listing ends at 2,000 and says so; no partial digest."""
    library.write(VALID)
    (library.evil / "references").mkdir()
    child.answer(MAKE_FILES, library, "references", "1000000" if full else "30000", kill_after=120)
    outcome = child.answer(LIST, library, memory=256)
    listed, complete, shown, issues = outcome.result
    assert (listed <= 2_000, complete, shown <= 2_000) == (True, False, True)
    assert issues == [["too-many-files"], ["too-many-files"]]
    assert outcome.busy < GENEROUS
    assert outcome.grown < 64 * MIB


def test_too_many_files_beside_a_skill_file_are_listed_up_to_the_limit(library: Library, child: Children) -> None:
    """Case 68: the limit holds for what lies beside SKILL.md as it does for the folders of a skill."""
    library.write(VALID)
    child.answer(MAKE_FILES, library, ".", "3000")
    outcome = child.answer(LIST, library, memory=256)
    listed, complete, shown, issues = outcome.result
    assert (listed, complete, issues[0]) == (2_000, False, ["too-many-files"])
    assert shown <= 2_000
    assert issues[1] == ["too-many-files"]


def test_a_skill_with_too_many_folders_is_listed_up_to_the_limit(library: Library, child: Children, full: bool) -> None:
    """Case 68: folders without files cost as much as files, so they count too."""
    library.write(VALID)
    (library.evil / "references").mkdir()
    child.answer(MAKE_FOLDERS, library, "references", "200000" if full else "20500", kill_after=120)
    outcome = child.answer(
        """
files = prowess.scan(library.root)["evil"].files()
result = [list(files), files.complete, [i.code for i in files.issues]]
""",
        library,
        memory=256,
    )
    files, complete, issues = outcome.result
    assert set(files) <= {"SKILL.md"}
    assert not complete
    assert issues == ["too-many-files"]
    assert outcome.listed <= 25_000
    assert outcome.busy < GENEROUS


def test_a_skill_within_the_limits_is_listed_whole(library: Library) -> None:
    """Case 68: the limit itself is allowed."""
    library.write(VALID)
    for number in range(1_999):
        library.put(f"evil/references/f{number:04}", "")
    files = prowess.scan(library.root)["evil"].files()
    assert (len(files), files.complete, files.issues) == (2_000, True, ())


def test_discovery_lists_no_tree_of_a_skill(library: Library, child: Children) -> None:
    """Case 68: finding skills lists the root and nothing below a skill, however much lies there."""
    library.write(VALID)
    for number in range(300):
        library.put(f"evil/references/d{number}/x.md", "")
    outcome = child.answer(
        """
catalog = prowess.scan(library.root)
prowess.render_catalog(catalog)
result = [list(catalog.names), meter.listed]
""",
        library,
    )
    assert outcome.result == [["evil", "good"], 1]


def test_files_beside_the_skills_do_not_hide_a_skill(library: Library) -> None:
    """Case 68: a root full of plain files still gives every skill, or says that it stopped."""
    for number in range(300):
        library.put(f"{number}.txt", "")
    with library.assert_unchanged():
        catalog = prowess.scan(library.root, limits=prowess.Limits(max_dirs_per_root=50, max_entries_per_folder=100))
    assert [i.code for i in catalog.issues] == ["too-many-directories"]
    catalog = prowess.scan(library.root, limits=prowess.Limits(max_dirs_per_root=50))
    assert (catalog.names, catalog.issues) == (("good",), ())


def test_too_many_folders_in_a_root_end_the_scan_with_an_issue(library: Library) -> None:
    """Case 68: what was found until then is listed."""
    for number in range(100):
        (library.root / f"z{number:03}").mkdir()
    with library.assert_unchanged():
        catalog = prowess.scan(library.root, limits=prowess.Limits(max_dirs_per_root=50))
    library.check(catalog)
    assert [i.code for i in catalog.issues] == ["too-many-directories"]


def test_the_twin_lists_everything(library: Library, child: Children) -> None:
    """Twin of case 68: there is no limit, and finding skills means walking through all of them."""
    library.write(VALID)
    (library.evil / "references").mkdir()
    for number in range(300):
        library.put(f"evil/references/d{number}/x.md", "")
    child.answer(MAKE_FILES, library, "references", "3000")
    outcome = child("result = len(naive.files(library.evil)); meter.listed = 0; naive.scan(library.root)", library)
    assert outcome.result == 3_301
    assert outcome.listed > 300


# -- depth -------------------------------------------------------------------------------------------------------------

LEVELS = 1_500
NAME = "deeper-d"  # 1,500 of them are longer than any path may be


@pytest.fixture(scope="module")
def deep(quick: Path, invariants: ModuleType) -> Library:
    """A chain of folders in the skill and another beside it, for all tests that only look."""
    built: Library = invariants.Library(quick / "deep").build()
    built.write(VALID)
    for top in (built.evil, built.root / "chain"):
        top.mkdir(exist_ok=True)
        _dig(top, "---\nname: deepest\ndescription: d\n---\nBody.\n")
    return built


def _dig(top: Path, text: str) -> None:
    at = os.open(top, os.O_RDONLY)
    for _ in range(LEVELS):
        os.mkdir(NAME, dir_fd=at)
        inner = os.open(NAME, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    file = os.open("SKILL.md", os.O_CREAT | os.O_WRONLY, dir_fd=at)
    os.write(file, text.encode())
    os.close(file)
    os.close(at)


def test_a_very_deep_tree_below_a_skill_ends_at_the_limit(deep: Library, child: Children) -> None:
    """Case 69: 1,500 levels in a skill, longer than a path may be; the listing stops at 16 and says so."""
    outcome = child.answer(
        """
skill = prowess.scan(library.root, max_depth=1)["evil"]
files = skill.files()
invariants.catch_refusal(skill.digest, "too-deep")
result = [list(files), files.complete, [i.code for i in files.issues], [i.code for i in prowess.validate(library.evil)]]
""",
        deep,
        memory=128,
    )
    assert outcome.result == [["SKILL.md"], False, ["too-deep"], ["too-deep"]]
    assert outcome.listed <= 2 * 20 * 2
    assert outcome.busy < GENEROUS


@pytest.mark.parametrize("depth", ["6", "None", "10000"])
def test_a_very_deep_tree_below_a_root_ends_at_the_limit(deep: Library, child: Children, depth: str) -> None:
    """Case 69: a limit that ends the walk is an error. The depth that a caller asks for is not."""
    outcome = child.answer(
        f"""
catalog = prowess.scan(library.root, max_depth={depth})
library.check(catalog)
result = [list(catalog.names), [(i.code, i.severity) for i in catalog.issues]]
nested = prowess.scan(library.root, max_depth={depth}, nested=True)
assert "deepest" not in nested
""",
        deep,
        memory=128,
    )
    assert outcome.result == [["evil", "good"], [["too-deep", "info" if depth == "6" else "error"]]]
    assert outcome.busy < GENEROUS


def test_the_twin_falls_off_the_end_of_a_deep_tree(deep: Library, child: Children) -> None:
    """Twin of case 69: too deep for its own stack, or for the system's paths."""
    outcome = child("naive.files(library.evil)", deep)
    assert outcome.raised in {"RecursionError", "OSError"}


# -- skills ------------------------------------------------------------------------------------------------------------

BROKEN = [
    "",
    "no frontmatter\n",
    "---\nname: x\n",
    "---\nname: x\n---\n",
    "---\ndescription: [a]\n---\n",
    "---\na: &a [*a]\ndescription: d\n---\n",
    "---\ndescription: d\ndescription: e\n---\n",
    "---\ndescription: !!set {a}\n---\n",
    "---\ndescription: a\0b\n---\n",
    "\x00",
]


def test_one_broken_skill_in_fifty_costs_one_issue_and_no_other_skill(library: Library, child: Children) -> None:
    """Case 70: of 5,000 skills 100 are broken in ten ways; 4,900 are listed, 100 issues say why, in time."""
    for number in range(4_899):
        library.put(
            f"skill-{number:04}/SKILL.md", f"---\nname: skill-{number:04}\ndescription: Does {number}.\n---\nBody.\n"
        )
    for number in range(100):
        library.put(f"broken-{number:03}/SKILL.md", BROKEN[number % len(BROKEN)])
    outcome = child.answer(
        """
catalog = prowess.scan(library.root)
listing = prowess.render_catalog(catalog)
result = [len(catalog), [os.path.dirname(i.path) for i in catalog.issues if i.severity == "error"], len(catalog.issues)]
assert catalog.load("good").instructions == "Do good."
""",
        library,
    )
    listed, issues, total = outcome.result
    assert listed == 4_900
    assert issues == [str(library.root / f"broken-{number:03}") for number in range(100)]
    assert total == 100
    assert outcome.busy < GENEROUS
    assert outcome.peak < 150 * MIB


def test_the_twin_loses_every_skill_to_a_broken_one(library: Library, child: Children) -> None:
    """Twin of case 70: one file ends the scan, whichever of the ten ways it is broken in."""
    outcome = child(
        """
result = 0
for text in json.loads(args[0]):
    library.write(text)
    try:
        naive.scan(library.root)
    except Exception:
        result += 1
""",
        library,
        json.dumps(BROKEN),
    )
    assert outcome.result >= 5  # the others it takes for skills
