"""Symbolic links in a skill and in place of a skill."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import prowess

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from prowess.literals import OpenMethod
    from tests.hostile.conftest import Children
    from tests.hostile.invariants import Library

VALID = "---\nname: evil\ndescription: d\n---\nBody.\n"


def link(at: Path, to: Path, *, relative: bool = False) -> None:
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(os.path.relpath(to, at.parent) if relative else to)


# -- in a skill --------------------------------------------------------------------------------------------------------


def test_a_link_to_a_file_is_neither_listed_nor_read(
    library: Library, child: Children, open_method: OpenMethod
) -> None:
    """Case 51: links to a secret outside, absolute and relative, beside SKILL.md and in a folder of the skill."""
    library.write(VALID)
    library.put("evil/references/a.md", "fine\n")
    for relative in (False, True):
        link(library.evil / f"references/leak{relative:d}.md", library.outside / "secret.md", relative=relative)
        link(library.evil / f"leak{relative:d}.md", library.outside / "secret.md", relative=relative)
    outcome = child.answer(
        """
skill = library.scan()["evil"]
leaks = [f"{folder}leak{n}.md" for folder in ("", "references/") for n in (0, 1)]
readers = (skill.read_resource, skill.read_bytes)
codes = [library.assert_refused(lambda: read(path)).code for path in leaks for read in readers]
files, resources = skill.files(), skill.resources()
named = {i.field for i in (*files.issues, *resources.issues) if i.code == "link-in-skill"}
digest = library.assert_refused(skill.digest).code
result = [list(files), list(resources.paths), codes, sorted(named), digest]
""",
        library,
        open_method=open_method,
    )
    leaks = ["leak0.md", "leak1.md", "references/leak0.md", "references/leak1.md"]
    files = ["SKILL.md", "references/a.md"]
    assert outcome.result == [files, ["references/a.md"], ["path-escape"] * 8, leaks, "link-in-skill"]
    assert not [path for path in outcome.read if path.startswith(str(library.outside))]


def test_a_link_to_a_file_of_the_same_skill_is_not_followed_either(library: Library) -> None:
    """Case 51: the rule does not depend on where a link leads."""
    library.write(VALID)
    library.put("evil/references/a.md", "fine\n")
    link(library.evil / "references/b.md", library.evil / "references/a.md", relative=True)
    skill = library.scan()["evil"]
    assert skill.files() == ("SKILL.md", "references/a.md")
    library.assert_refused(lambda: skill.read_resource("references/b.md"), "path-escape")


def test_a_link_to_a_folder_is_not_entered(library: Library, child: Children, open_method: OpenMethod) -> None:
    """Case 52: a folder of the skill that leads outside is not listed, and nothing is read through it."""
    library.write(VALID)
    link(library.evil / "references/o", library.outside / "sub")
    link(library.evil / "scripts", library.outside)
    outcome = child.answer(
        """
skill = library.scan()["evil"]
paths = ("references/o/s.md", "scripts/secret.md", "scripts/sub/s.md", "references/o", "scripts")
readers = (skill.read_resource, skill.read_bytes)
codes = [library.assert_refused(lambda: read(path)).code for path in paths for read in readers]
result = [list(skill.files()), list(skill.resources().paths), codes]
""",
        library,
        open_method=open_method,
    )
    assert outcome.result == [["SKILL.md"], [], ["path-escape"] * 10]
    assert not [path for path in outcome.read if path.startswith(str(library.outside))]


def test_the_twin_reads_through_links(library: Library, naive: ModuleType) -> None:
    """Twin of cases 51, 52: the secret is one of the skill's files."""
    library.write(VALID)
    link(library.evil / "references/leak.md", library.outside / "secret.md")
    link(library.evil / "references/o", library.outside / "sub")
    for path in ("references/leak.md", "references/o/s.md"):
        assert "TOPSECRET-MARKER" in naive.read(library.evil, path)
        assert str(library.evil / path) in naive.files(library.evil)


# -- in place of a skill -----------------------------------------------------------------------------------------------


def test_a_skill_file_that_is_a_link_is_rejected(library: Library, child: Children, open_method: OpenMethod) -> None:
    """Case 54: each link gives one issue, wherever it leads."""
    targets = ("outside/SKILL.md", "library/good/SKILL.md", "nowhere", "library/evil3/SKILL.md")
    for number, target in enumerate(targets):
        link(library.root / f"evil{number}/SKILL.md", library.base / target)
        link(library.root / f"evil{number}r/SKILL.md", library.base / target, relative=True)
    outcome = child.answer(
        """
result = [[i.code, i.path] for i in library.scan().issues]
with library.assert_unchanged():
    invariants.catch_refusal(lambda: prowess.scan(library.root, mode="strict"), "link-refused")
    for folder in sorted(library.root.glob("evil*")):
        for mode in invariants.MODES:
            invariants.catch_refusal(lambda: prowess.read_metadata(folder / "SKILL.md", mode=mode), "path-escape")
            invariants.catch_refusal(lambda: prowess.parse_skill_file(folder, mode=mode), "path-escape")
        assert [i.code for i in prowess.validate(folder)] == ["path-escape"]
""",
        library,
        open_method=open_method,
    )
    paths = sorted(str(folder / "SKILL.md") for folder in library.root.glob("evil*"))
    assert len(paths) == 8
    assert outcome.result == [["link-refused", path] for path in paths]
    assert not [path for path in outcome.read if path.startswith(str(library.outside))]


def test_a_skill_folder_that_is_a_link_outward_is_rejected(
    library: Library, child: Children, open_method: OpenMethod
) -> None:
    """Case 55: links of every kind to folders outside the scanned roots are refused."""
    link(library.evil, library.outside)
    link(library.root / "evil1", library.outside, relative=True)
    link(library.base / "hop", library.outside)
    link(library.root / "evil2", library.base / "hop")
    (library.base / "many/evil3").mkdir(parents=True)
    (library.base / "many/evil3/SKILL.md").write_text(VALID.replace("d\n", "TOPSECRET-MARKER\n"), encoding="utf-8")
    link(library.root / "evil3", library.base / "many")
    link(library.root / "evil4", library.base.parent)
    outcome = child.answer(
        """
os.symlink("/proc/self", library.root / "evil5")
catalog = library.scan()
os.unlink(library.root / "evil5")
result = [list(catalog.names), [[i.code, os.path.basename(i.path)] for i in catalog.issues]]
""",
        library,
        open_method=open_method,
    )
    names, issues = outcome.result
    assert names == ["good"]
    assert [name for _, name in issues] == ["evil", "evil1", "evil2", "evil3", "evil4", "evil5"]
    assert {code for code, _ in issues} <= {"link-refused", "link-loop"}
    assert not [path for path in outcome.read if not path.startswith(str(library.root))]


def test_a_link_to_a_skill_in_a_scanned_root_is_followed_once(library: Library) -> None:
    """Case 55: installers make such links. The skill appears once, under its own name."""
    library.write(VALID, folder="store/evil")
    link(library.evil, library.root / "store/evil", relative=True)
    link(library.root / "evil1", library.root / "store/evil")
    catalog = library.scan()
    assert catalog.names == ("evil", "good")
    assert catalog.shadowed == ()
    assert catalog.load("evil").instructions == "Body."


def test_a_link_into_the_project_is_followed(library: Library) -> None:
    """Case 55: a folder of skills in a git repository may link to another part of that repository only."""
    project = library.base / "project"
    (project / ".git").mkdir(parents=True)
    (project / "packages/linked").mkdir(parents=True)
    (project / "packages/linked/SKILL.md").write_text(VALID.replace("evil", "linked"), encoding="utf-8")
    link(project / "skills/linked", project / "packages/linked", relative=True)
    link(project / "skills/evil", library.outside)
    catalog = library.scan(project / "skills")
    assert catalog.names == ("good", "linked")
    assert [(i.code, i.path) for i in catalog.issues] == [("link-refused", str(project / "skills/evil"))]


def test_a_developer_may_ask_for_links_to_be_followed(library: Library) -> None:
    """Case 55: ``follow_links`` is for one call, and files of the skill still may not be links."""
    (library.outside / "SKILL.md").write_text(VALID, encoding="utf-8")
    link(library.evil, library.outside)
    link(library.outside / "leak.md", library.base / "library/good/SKILL.md")
    with library.assert_unchanged():
        catalog = prowess.scan(library.root, follow_links=True)
    assert catalog.names == ("evil", "good")
    library.assert_refused(lambda: catalog["evil"].read_resource("leak.md"), "path-escape")
    assert library.scan().names == ("good",)


def test_links_that_go_round_in_circles_end(library: Library) -> None:
    """Case 55: links to themselves, to the folder around them and to each other are not problem."""
    link(library.root / "self", library.root / "self")
    link(library.root / "up", library.root)
    link(library.root / "one", library.root / "two")
    link(library.root / "two", library.root / "one")
    library.put("deep/folder/x.md", "x")
    link(library.root / "deep/folder/up", library.root / "deep")
    catalog = library.scan()
    assert catalog.names == ("good",)
    assert {os.path.basename(i.path) for i in catalog.issues} == {"self", "up", "one", "two"}  # noqa: PTH119


def test_the_twin_lists_what_links_lead_to(library: Library, naive: ModuleType) -> None:
    """Twin of cases 54, 55: the secret is a skill's description."""
    link(library.evil / "SKILL.md", library.outside / "SKILL.md")
    assert "TOPSECRET-MARKER" in naive.render(naive.scan(library.root).values())
    (library.evil / "SKILL.md").unlink()
    library.evil.rmdir()
    link(library.evil, library.outside)
    assert "TOPSECRET-MARKER" in naive.render(naive.scan(library.root).values())
