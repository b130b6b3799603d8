"""Folders that cannot be read, names that collide, skills inside skills, and one name in several places."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

import prowess

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from prowess.literals import OpenMethod
    from tests.hostile.conftest import Children
    from tests.hostile.invariants import Library

VALID = "---\nname: evil\ndescription: d\n---\nBody.\n"


def bound_by_permissions() -> bool:
    """Whether to become nobody first: permissions do not bind root."""
    return os.geteuid() == 0


def skill(name: str, description: str = "d") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\nBody.\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# -- permissions -------------------------------------------------------------------------------------------------------


@pytest.fixture
def nobody(open_library: Library, child: Children) -> bool:
    """Whether children become nobody; a system that does not let them is not silently passed over."""
    if not bound_by_permissions():
        return False
    outcome = child("result = os.getuid()", open_library, nobody=True)
    if outcome.result != 65534:
        pytest.skip("THE TESTS RUN AS ROOT AND CANNOT BECOME ANOTHER USER: nothing was checked")
    return True


def test_a_skill_file_that_may_not_be_read_is_rejected_alone(
    open_library: Library, child: Children, open_method: OpenMethod, nobody: bool
) -> None:
    """Case 71: the issue names the file and says that permission was denied."""
    path = open_library.write(VALID)
    path.chmod(0)
    outcome = child.answer(
        """
catalog = library.scan()
path = library.evil / "SKILL.md"
result = [[i.code, i.path, i.message] for i in catalog.issues]
with library.assert_unchanged():
    invariants.catch_refusal(lambda: prowess.read_metadata(path), "unreadable")
    invariants.catch_refusal(lambda: prowess.parse_skill_file(path), "unreadable")
    invariants.catch_refusal(lambda: prowess.scan(library.root, mode="strict"), "unreadable")
assert [i.code for i in prowess.validate(path)] == ["unreadable"]
""",
        open_library,
        open_method=open_method,
        nobody=nobody,
    )
    [(code, where, message)] = outcome.result
    assert (code, where) == ("unreadable", str(path))
    assert "Permission denied" in message


def test_the_twin_is_stopped_by_a_file_that_may_not_be_read(
    open_library: Library, child: Children, nobody: bool
) -> None:
    """Twin of case 71: it raises a bare PermissionError and lists no skill at all."""
    open_library.write(VALID).chmod(0)
    assert child("naive.scan(library.root)", open_library, nobody=nobody).raised == "PermissionError"


def test_folders_that_may_not_be_read_leave_the_others(
    open_library: Library, child: Children, open_method: OpenMethod, nobody: bool
) -> None:
    """Case 72: a folder or a root may not be read, a root is missing, or a root is a file."""
    open_library.write(VALID, folder="closed/evil")
    (open_library.root / "closed").chmod(0)
    locked = open_library.base / "locked"
    write(locked / "evil/SKILL.md", VALID)
    locked.chmod(0)
    write(open_library.base / "a-file", "text")
    write(open_library.base / "other/another/SKILL.md", skill("another"))
    outcome = child.answer(
        """
roots = [library.base / name for name in ("locked", "missing", "a-file", "library", "other")]
with library.assert_unchanged():
    catalog = prowess.scan(*roots)
    library.check(catalog)
    for root in roots[1:3]:
        invariants.catch_refusal(lambda: prowess.scan(root, missing="error"))
result = [list(catalog.names), [[i.code, os.path.relpath(i.path, library.base)] for i in catalog.issues]]
""",
        open_library,
        open_method=open_method,
        nobody=nobody,
    )
    names, issues = outcome.result
    assert names == ["another", "good"]
    paths = [path for _, path in issues]
    assert ["not-a-directory", "a-file"] in issues
    assert ["unreadable-directory", "library/closed"] in issues
    assert [path for path in paths if path.startswith("locked")]
    assert not [path for path in paths if path.startswith(("other", "library/good"))]


def test_a_folder_of_a_skill_that_may_not_be_read_is_reported(
    open_library: Library, child: Children, open_method: OpenMethod, nobody: bool
) -> None:
    """Case 72: the rest of the skill is listed, the listing is not called complete, and there is no digest."""
    open_library.write(VALID)
    open_library.put("evil/references/a.md", "")
    open_library.put("evil/scripts/b.py", "")
    (open_library.evil / "references").chmod(0)
    outcome = child.answer(
        """
skill = library.scan()["evil"]
files, resources = skill.files(), skill.resources()
library.assert_refused(skill.digest, "unreadable-directory")
library.assert_refused(lambda: skill.read_resource("references/a.md"), "unreadable")
result = [list(files), files.complete, list(resources.paths)]
result += [[[i.code, i.field] for i in listing.issues] for listing in (files, resources)]
""",
        open_library,
        open_method=open_method,
        nobody=nobody,
    )
    issues = [["unreadable-directory", "references"]]
    assert outcome.result == [["SKILL.md", "scripts/b.py"], False, ["scripts/b.py"], issues, issues]


SICK = """
import errno
real, code = os.scandir, int(args[0])
class Sick:
    def __init__(self, found): self.found = found
    def __enter__(self): return self
    def __exit__(self, *rest): self.found.close()
    def close(self): self.found.close()
    def __iter__(self): return self
    def __next__(self): raise OSError(code, os.strerror(code))
def scandir(path="."):
    name = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.fspath(path)
    return Sick(real(path)) if "sick" in os.path.basename(name) else real(path)
os.scandir = scandir
"""


@pytest.mark.parametrize("error", ["EIO", "ESTALE"])
def test_a_folder_that_fails_while_listed_leaves_the_others(library: Library, child: Children, error: str) -> None:
    """Case 72: a disk or a network fails in the middle of a listing of a root or a skill."""
    library.put("sick/evil/SKILL.md", VALID)
    library.write(VALID)
    library.put("evil/sick/x.md", "")
    library.put("evil/scripts/b.py", "")
    write(library.base / "sick-root/lost/SKILL.md", skill("lost"))
    outcome = child.answer(
        SICK
        + """
catalog = prowess.scan(library.base / "sick-root", library.root)
library.check(catalog)
issues = [[i.code, os.path.relpath(i.path, library.base), i.message] for i in catalog.issues]
files = catalog["evil"].files()
invariants.catch_refusal(catalog["evil"].digest, "unreadable-directory")
result = [list(catalog.names), issues, list(files), files.complete, [[i.code, i.field] for i in files.issues]]
""",
        library,
        str(getattr(errno, error)),
    )
    names, issues, files, complete, in_skill = outcome.result
    assert names == ["evil", "good"]
    assert [issue[:2] for issue in issues] == [
        ["unreadable-directory", "library/sick"],
        ["unreadable-directory", "sick-root"],
    ]
    assert all(os.strerror(getattr(errno, error)) in issue[2] for issue in issues)
    assert (files, complete) == (["SKILL.md", "scripts/b.py"], False)
    assert in_skill == [["unreadable-directory", "sick"]]


def test_the_twin_gives_up_on_a_missing_or_failing_folder(library: Library, child: Children, naive: ModuleType) -> None:
    """Twin of case 72: a missing root passes for an empty one, and a failing folder is a bare OSError."""
    assert naive.scan(library.base / "missing") == {}
    library.write(VALID)
    library.put("evil/sick/x.md", "")
    outcome = child(SICK + "naive.files(library.evil)", library, "5")
    assert outcome.raised == "OSError"


# -- collisions --------------------------------------------------------------------------------------------------------


def test_two_spellings_of_the_file_name_give_the_right_one_and_an_issue(library: Library) -> None:
    """Case 73: SKILL.md wins over skill.md. On some systems they are one file, so the choice is fixed."""
    for name, text in (("skill.md", "wrong"), ("SKILL.md", "right"), ("Skill.md", "wrong")):
        library.put(f"evil/{name}", skill("evil", text))
    catalog = library.scan()
    assert catalog["evil"].description == "right"
    [issue] = catalog.issues
    assert (issue.code, issue.path) == ("filename-collision", str(library.evil / "SKILL.md"))
    assert "skill.md" in issue.message
    assert "Skill.md" in issue.message


LISTED_LAST = """
real = os.scandir
class Sorted(list):
    def __enter__(self): return iter(self)
    def __exit__(self, *rest): pass
def scandir(path="."):
    with real(path) as found:
        return Sorted(sorted(found, key=lambda entry: (entry.name == "skill.md", entry.name)))
os.scandir = scandir
"""


def test_another_spelling_does_not_hide_behind_many_files(library: Library, child: Children) -> None:
    """Case 73: an issue reports the other spelling, or that Prowess did not look at every file."""
    path = library.write(VALID)
    for number in range(2_100):
        library.put(f"evil/{number:04}.md", "")
    library.put("evil/skill.md", VALID)
    outcome = child.answer(
        LISTED_LAST + "result = [[i.code, i.path] for i in prowess.scan(library.root).issues]", library
    )
    assert outcome.result in ([["filename-collision", str(path)]], [["too-many-files", str(path)]])


def test_a_lower_case_file_name_alone_is_a_skill_with_a_warning(library: Library) -> None:
    """Case 73: it would be found on systems that ignore case, so it is found here."""
    path = library.put("evil/skill.md", VALID)
    catalog = library.scan()
    assert catalog["evil"].path == path
    assert [(i.code, i.severity) for i in catalog.issues] == [("filename-case", "warning")]


def test_folders_that_differ_in_case_are_both_kept_in_a_fixed_order(library: Library) -> None:
    """Case 73: Evil/ and evil/ hold skills with the same name. An issue names the second in byte order."""
    library.put("evil/SKILL.md", skill("evil", "lower"))
    library.put("Evil/SKILL.md", skill("evil", "upper"))
    catalog = library.scan()
    assert catalog["evil"].description == "upper"
    assert [s.location for s in catalog.shadowed] == [str(library.evil / "SKILL.md")]
    assert ("duplicate-name", str(library.evil / "SKILL.md")) in [(i.code, i.path) for i in catalog.issues]


@pytest.mark.parametrize(
    ("one", "other"), [("evil", "Evil"), ("caf\u00e9", "cafe\u0301"), ("stra\u00dfe", "strasse"), ("x/y", "X/y")]
)
def test_folders_that_are_one_elsewhere_are_reported(library: Library, one: str, other: str) -> None:
    """Case 73: the folders differ in case or in Unicode form only, and hold skills of different names."""
    library.put(f"{one}/SKILL.md", skill("first"))
    library.put(f"{other}/SKILL.md", skill("second"))
    catalog = library.scan()
    assert catalog.names == ("first", "good", "second")
    codes = [i.code for i in catalog.issues if i.code == "folder-collision"]
    assert codes == ["folder-collision"]


def test_composed_and_decomposed_folders_are_told_apart_the_same_way_every_time(library: Library) -> None:
    """Case 73: two folders have both Unicode forms with the same name, and so have their skills."""
    for name in ("caf\u00e9", "cafe\u0301"):
        library.put(f"{name}/SKILL.md", skill(name))
    catalogs = [library.scan() for _ in range(3)]
    assert len({catalog.names for catalog in catalogs}) == 1
    assert "folder-collision" in [i.code for i in catalogs[0].issues]


def test_the_twin_lets_the_order_of_a_listing_decide(library: Library, naive: ModuleType) -> None:
    """Twin of case 73: of three files in one folder whichever comes last wins, and nobody is told."""
    for name in ("skill.md", "SKILL.md", "Skill.md"):
        library.put(f"evil/{name}", skill("evil", name))
    listed = [name for name in os.listdir(library.evil) if name.lower() == "skill.md"]  # noqa: PTH208
    assert naive.scan(library.root)["evil"]["description"] == listed[-1]


# -- skills inside skills, and where none should be --------------------------------------------------------------------

HIDDEN_PLACES = [
    ".git",
    "node_modules",
    "__pycache__",
    ".hidden",
    ".venv",
    "node_modules.old",
    "_drafts",
    ".git/modules/x",
]


def test_a_skill_inside_a_skill_is_not_discovered(library: Library) -> None:
    """Case 75: what lies below a skill belongs to it; ``nested`` finds it, once."""
    library.write(VALID)
    library.put("evil/references/inner/SKILL.md", skill("inner"))
    library.put("evil/evil/SKILL.md", skill("evil", "inner copy"))
    assert library.scan().names == ("evil", "good")
    assert library.scan().shadowed == ()
    nested = library.scan(nested=True)
    assert nested.names == ("evil", "good", "inner")
    assert nested["evil"].description == "d"


def test_a_skill_in_a_root_that_is_scanned_twice_appears_once(library: Library) -> None:
    """Case 75: overlapping roots do not make a skill shadow itself."""
    library.write(VALID)
    catalog = library.scan(library.root, library.evil)
    assert catalog.names == ("evil", "good")
    assert catalog.shadowed == ()


@pytest.mark.parametrize("place", HIDDEN_PLACES)
def test_hidden_and_generated_folders_are_not_searched(library: Library, place: str) -> None:
    """Case 75: version control, packages, caches and hidden folders hold no skills of their own."""
    library.put(f"{place}/evil/SKILL.md", VALID)
    library.put(f"{place}/SKILL.md", VALID)
    library.put(f"group/{place}/evil/SKILL.md", VALID)
    catalog = library.scan(nested=True)
    assert catalog.names == ("good",)
    assert {(issue.code, issue.severity) for issue in catalog.issues} <= {("skipped-directory", "info")}


def test_the_twin_discovers_skills_everywhere(library: Library, naive: ModuleType) -> None:
    """Twin of case 75: it finds skills in version control, in packages and in other skills."""
    library.put(".git/x/SKILL.md", skill("in-git"))
    library.put("node_modules/x/SKILL.md", skill("in-packages"))
    library.put("good/inner/SKILL.md", skill("inner"))
    assert set(naive.scan(library.root)) == {"good", "in-git", "in-packages", "inner"}


# -- the same name in several places -----------------------------------------------------------------------------------


def test_the_first_root_wins_and_the_loser_is_named(library: Library) -> None:
    """Case 76: project, user and plugin folders hold a skill with the same name. The issue has both paths."""
    roots = [library.base / name for name in ("project", "user", "plugin")]
    paths = [write(root / "pdf/SKILL.md", skill("pdf", root.name)) for root in roots]
    with library.assert_unchanged():
        catalog = prowess.scan(*roots, library.root)
    library.check(catalog)
    assert catalog["pdf"].description == "project"
    assert [(s.location, s.winner) for s in catalog.shadowed] == [(str(path), str(paths[0])) for path in paths[1:]]
    issues = [i for i in catalog.issues if i.code == "duplicate-name"]
    assert {i.path for i in issues} == {str(path) for path in paths[1:]}
    assert all(str(paths[0]) in i.message for i in issues)


def test_other_precedence_is_the_callers_to_choose(library: Library) -> None:
    """Case 76: the last skill may win, or a repeat may be an error. The result is never left to chance."""
    roots = [library.base / name for name in ("one", "two")]
    for root in roots:
        write(root / "pdf/SKILL.md", skill("pdf", root.name))
    assert prowess.scan(*roots, on_duplicate="last")["pdf"].description == "two"
    error = library.assert_refused(lambda: prowess.scan(*roots, on_duplicate="error"), "duplicate-name")
    assert str(roots[0]) in error.message
    assert str(roots[1]) in error.message


def test_a_project_that_shadows_the_users_skill_is_reported(library: Library) -> None:
    """Case 76: in the standard places the project wins, and an issue tells the user."""
    home, project = library.base / "home", library.base / "home/project"
    (project / ".git").mkdir(parents=True)
    mine = write(home / ".agents/skills/pdf/SKILL.md", skill("pdf", "mine"))
    theirs = write(project / ".claude/skills/pdf/SKILL.md", skill("pdf", "theirs"))
    with library.assert_unchanged():
        catalog = prowess.discover(project, home)
        assert catalog["pdf"].description == "theirs"
        [issue] = catalog.issues
        assert (issue.code, issue.path, issue.severity) == ("shadowed-by-project", str(mine), "warning")
        assert str(theirs) in issue.message
        assert prowess.discover(project, home, project=False)["pdf"].description == "mine"


def test_the_twin_silently_prefers_the_last_place(library: Library, naive: ModuleType) -> None:
    """Twin of case 76: whoever comes last replaces the user's skill, and nobody is told."""
    roots = [library.base / name for name in ("user", "project")]
    for root in roots:
        write(root / "pdf/SKILL.md", skill("pdf", root.name))
    assert naive.scan(*roots)["pdf"]["description"] == "project"
