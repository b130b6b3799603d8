"""Attacks on installing, updating and removing: hostile names, folders, lock files and moments."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.text.spelling import name_skeleton
from tests.fork_server import fork_server_for
from tests.repositories import skill_text

if TYPE_CHECKING:
    from types import ModuleType

    from tests.hostile.conftest import Children
    from tests.hostile.installer_case import InstallerCase
    from tests.hostile.invariants import Library

INSTALL = Path(__file__).parents[1] / "install"


def source(case: InstallerCase, name: str = "evil", text: str | None = None) -> Path:
    """A folder with a skill, outside of everything that must stay as it is."""
    folder = case.base / "sources" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text or skill_text(name), encoding="utf-8")
    return folder


# -- names -------------------------------------------------------------------------------------------------------------

LOOK_ALIKES = ("p\u0430ypal", "\uff50\uff44\uff46", "\ufb01le", "\u0130stanbul", "\u212aelvin")


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_name_that_is_not_plain_ascii_is_not_installed(case: InstallerCase, name: str) -> None:
    """Case 31: this holds for the name of a skill, for the name of a folder and for a reference."""
    folder = source(case, "evil", skill_text(name))
    case.assert_refused(lambda: case.installer.install_local(folder, project=True), "bad-name")
    case.assert_refused(lambda: case.installer.install(f"@acme/{name}", project=True), "bad-reference")
    case.assert_refused(lambda: case.installer.install(f"acme/{name}", project=True), "bad-reference")


def test_among_other_skills_such_a_name_is_not_linked(case: InstallerCase) -> None:
    """Case 31: the other skills are linked, and an issue reports this one."""
    repo = case.repository("many", skill=False)
    repo.skill("skills/fine")
    repo.skill("skills/odd", "p\u0430ypal")
    repo.commit()
    with case.assert_unharmed():
        case.installer.install(repo.address, project=True)
        assert sorted(path.name for path in (case.project / ".agents" / "skills").iterdir()) == ["fine", "good"]
        assert "bad-name" in {issue.code for issue in case.installer.issues}


def test_a_name_that_looks_like_an_installed_one_is_pointed_out(case: InstallerCase) -> None:
    """Case 31: the two names look alike, differ in one letter, or have two letters swapped."""
    for name in ("g00d", "goood", "godo"):
        with case.assert_unharmed():
            case.installer.install_local(source(case, name), project=True)
            assert "near-name" in {issue.code for issue in case.installer.issues}
            case.installer.remove(f"@local/{name}")


def test_a_naive_comparison_sees_two_names(naive: ModuleType) -> None:
    """Twin of case 31: the two names are different texts, and look alike."""
    fake = naive.frontmatter(skill_text("p\u0430ypal"))["name"]
    assert fake != "paypal"
    assert name_skeleton(fake) == name_skeleton("paypal")


# -- folders to copy ---------------------------------------------------------------------------------------------------


def test_a_link_within_the_skill_refuses_the_install(case: InstallerCase) -> None:
    """Case 53: a link is refused even where it stays inside the skill, in a folder and in a repository."""
    folder = source(case)
    (folder / "references").mkdir()
    (folder / "references" / "a.md").write_text("a", encoding="utf-8")
    (folder / "references" / "b.md").symlink_to("a.md")
    for call in (
        lambda: case.installer.install_local(folder, project=True),
        lambda: case.installer.install_local_into(folder, case.base / "installed" / "mine"),
    ):
        case.assert_refused(call, "link-in-skill")
    repo = case.repository("linked")
    (repo.path / "b.md").symlink_to("SKILL.md")
    repo.commit()
    case.assert_refused(lambda: case.installer.install(repo.address, project=True), "link-in-skill")


def test_a_naive_copy_follows_links(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 53: the link has become a file, and nobody is told."""
    library.write(skill_text("evil"))
    library.put("evil/references/a.md", "a\n")
    (library.evil / "references" / "b.md").symlink_to("a.md")
    copied = naive_installer.install(library.evil, library.base / "copies", "evil")
    assert not (copied / "references" / "b.md").is_symlink()


def test_another_name_of_somebody_elses_file_is_not_read(open_library: Library, child: Children) -> None:
    """Case 56: a hard link is neither read nor copied where the file and the folder have different owners."""
    if os.geteuid() != 0:
        pytest.skip("needs files of two owners")
    open_library.write(skill_text("evil"))
    open_library.put("evil/references/a.md", "a\n")
    os.link(open_library.outside / "secret.md", open_library.evil / "references" / "hl.md")
    for path in (open_library.evil, *open_library.evil.rglob("*")):
        if path.name != "hl.md":
            os.chown(path, 65534, 65534)
    outcome = child.answer(
        """
skill = library.scan()["evil"]
installer = prowess.Installer(user_dir=args[0], project_dir=args[0] + "/p")
calls = (lambda: skill.read_resource("references/hl.md"), lambda: skill.read_bytes("references/hl.md"))
codes = [library.assert_refused(call).code for call in (*calls, lambda: installer.install_local(library.evil))]
result = [codes, skill.read_resource("references/a.md")]
""",
        open_library,
        str(open_library.base / "installed"),
    )
    assert outcome.result == [["hard-link", "hard-link", "hard-link"], "a\n"]


def test_another_name_of_ones_own_file_is_pointed_out_and_copied(case: InstallerCase) -> None:
    """Case 56: people make hard links to their own files. The installed copy is a file of its own."""
    folder = source(case)
    own = case.base / "own.md"
    own.write_text("mine", encoding="utf-8")
    os.link(own, folder / "hl.md")
    assert "hard-link" in {issue.code for issue in prowess.validate(folder)}
    with case.assert_unharmed():
        path = case.installer.install_local(folder, project=True)
        assert {p.stat().st_nlink for p in path.iterdir()} == {1}
        assert "hard-link" not in {issue.code for issue in prowess.validate(path)}


def test_a_naive_read_of_another_name_reads_the_secret(library: Library, naive: ModuleType) -> None:
    """Twin of case 56: a hard link is a regular file below the folder, so the secret is read."""
    library.write(skill_text("evil"))
    os.link(library.outside / "secret.md", library.evil / "hl.md")
    assert "TOPSECRET-MARKER" in naive.checked_read(library.evil, "hl.md")


def _links_out(folder: Path, case: InstallerCase) -> None:
    (folder / "leak.md").symlink_to(case.library.outside / "secret.md")


def _folder_out(folder: Path, case: InstallerCase) -> None:
    (folder / "out").symlink_to(case.library.outside)


def _pipe(folder: Path, _: InstallerCase) -> None:
    os.mkfifo(folder / "pipe")


def _socket(folder: Path, _: InstallerCase) -> None:
    here = Path.cwd()
    os.chdir(folder)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("socket")
    finally:
        os.chdir(here)


def _huge(folder: Path, _: InstallerCase) -> None:
    with (folder / "huge.bin").open("wb") as file:
        file.truncate(5 << 30)


def _many(folder: Path, _: InstallerCase) -> None:
    for number in range(60):
        (folder / str(number)).write_text("x", encoding="utf-8")


def _deep(folder: Path, _: InstallerCase) -> None:
    folder.joinpath(*"abcdefghijklmnopqrstuvwxyz").mkdir(parents=True)


ODD = {
    "link": (_links_out, "link-in-skill"),
    "folder": (_folder_out, "link-in-skill"),
    "pipe": (_pipe, "special-file"),
    "socket": (_socket, "special-file"),
    "huge": (_huge, "too-large"),
    "many": (_many, "too-many-files"),
    "deep": (_deep, "too-deep"),
}


@pytest.mark.parametrize("how", ODD)
def test_a_folder_with_what_no_skill_may_hold_is_not_copied(
    case: InstallerCase, invariants: ModuleType, how: str
) -> None:
    """Case 94: the install is refused, and the source stays as it is."""
    folder = source(case)
    make, code = ODD[how]
    make(folder, case)
    before = invariants.snapshot(folder)
    installer = case.make(limits=prowess.Limits(max_install_files=50))
    case.assert_refused(lambda: installer.install_local(folder, project=True), code)
    case.assert_refused(lambda: installer.install_local_into(folder, case.base / "installed" / "mine"), code)
    assert invariants.snapshot(folder) == before


def test_a_folder_with_a_file_that_may_not_be_read_is_not_copied(open_library: Library, child: Children) -> None:
    """Case 94: the test runs as a user whom permissions bind."""
    open_library.write(skill_text("evil"))
    open_library.put("evil/closed.md", "TOPSECRET-MARKER").chmod(0)
    into = open_library.base / "installed"
    into.mkdir()
    into.chmod(0o777)
    outcome = child.answer(
        """
installer = prowess.Installer(user_dir=args[0] + "/u", project_dir=args[0] + "/p")
result = [library.assert_refused(lambda: installer.install_local(library.evil)).code, len(installer.list())]
""",
        open_library,
        str(into),
        nobody=os.geteuid() == 0,
    )
    assert outcome.result == ["unreadable", 0]


def test_a_naive_copy_copies_secrets(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 94: it copies the secret through the link."""
    library.write(skill_text("evil"))
    (library.evil / "leak.md").symlink_to(library.outside / "secret.md")
    copied = naive_installer.install(library.evil, library.base / "copies", "evil")
    assert "TOPSECRET-MARKER" in (copied / "leak.md").read_text(encoding="utf-8")


# -- names that become paths -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["{victim}", "../../victim", "notes", "..", "con"])
def test_what_a_skill_calls_itself_leads_nowhere(case: InstallerCase, name: str) -> None:
    """Case 96: a folder at that path, or with that name among the temporary files, is not touched."""
    victims = (case.base / "victim", Path(tempfile.gettempdir()) / "notes")
    for victim in victims:
        victim.mkdir()
        (victim / "kept").write_text("kept", encoding="utf-8")
    folder = source(case, "evil", skill_text(name.format(victim=victims[0])))
    repo = case.repository("packed", skill=False)
    shutil.copytree(folder, repo.path / "skills" / "evil")
    repo.commit()
    with case.assert_unharmed():
        for given, select in ((str(folder), None), (repo.address, "evil")):
            try:
                case.installer.install(given, project=True, replace=True, select=select)
            except prowess.InstallError as error:
                assert error.code in {"bad-name", "unknown-skill"}  # noqa: PT017 - either way is right
        names = {path.name for path in (case.project / ".agents" / "skills").iterdir()}
        assert names <= {"good", "notes", "evil"}
    for victim in victims:
        assert (victim / "kept").read_text(encoding="utf-8") == "kept"
        shutil.rmtree(victim)


def test_a_naive_install_deletes_what_the_name_says(
    library: Library, naive: ModuleType, naive_installer: ModuleType
) -> None:
    """Twin of case 96: the folder that the name leads to is gone."""
    victim = library.base / "victim"
    victim.mkdir()
    (victim / "kept").write_text("kept", encoding="utf-8")
    library.write(skill_text(str(victim)))
    naive_installer.install(library.evil, library.base / "copies", naive.skill(library.evil / "SKILL.md")["name"])
    assert not (victim / "kept").exists()


@pytest.mark.parametrize(
    "name", ["..", ".", "/", "", "a/../b", "@../..", "@./.", "@/", "@local/..", "@local/../x", "@a/b/c", "~"]
)
def test_removing_takes_names_only(case: InstallerCase, name: str) -> None:
    """Case 97: this holds for text, and for a reference that a program made."""
    case.assert_refused(lambda: case.installer.remove(name), "bad-reference", "not-installed")
    org, _, rest = name.lstrip("@").partition("/")
    case.assert_refused(lambda: case.installer.remove(prowess.SkillRef(org, rest)), "bad-reference", "not-installed")


def test_of_a_link_only_the_link_is_removed(case: InstallerCase) -> None:
    """Case 97: the folder of an install, of its organisation or of its agent may be a link. Its target stays."""
    base = case.project / ".prowess" / "skills"
    (base / "local" / "linked").symlink_to(case.library.outside)
    with case.assert_unharmed():
        case.installer.remove("@local/linked")
        assert not os.path.lexists(base / "local" / "linked")
    (base / "other").symlink_to(case.library.base / "outside")
    case.assert_refused(lambda: case.installer.remove("@other/sub"), "link-refused")
    spec = prowess.SourceSpec("folder", str(source(case)), "other", "new", local=True)
    case.assert_refused(lambda: case.installer.install(spec, project=True), "link-refused")
    (base / "other").unlink()


HOSTILE_LOCKS = {
    "links": ('links = [".agents/skills/good"]', 'links = ["{victim}"]'),
    "relative": ('links = [".agents/skills/good"]', 'links = ["../../../victim"]'),
    "copies": ('links = [".agents/skills/good"]', 'links = ["src/victim"]\ncopies = ["src/victim"]'),
    "name": ('name = "local/good"', 'name = "../../victim"'),
}


@pytest.mark.parametrize("how", HOSTILE_LOCKS)
def test_a_lock_file_of_somebody_else_leads_nowhere(case: InstallerCase, how: str) -> None:
    """Case 97: a cloned project brings its lock file. Prowess accepts only plain names in known folders from it."""
    victim = case.base / "victim"
    for path in (victim, case.project / "src" / "victim"):
        path.mkdir(parents=True)
        (path / "kept").write_text("kept", encoding="utf-8")
    lock = case.project / "prowess.lock"
    text = lock.read_text(encoding="utf-8")
    old, new = HOSTILE_LOCKS[how]
    assert old in text
    lock.write_text(text.replace(old, new.format(victim=victim)), encoding="utf-8")
    for call in (
        lambda: case.installer.remove("@local/good"),
        case.installer.sync,
        case.installer.verify,
    ):
        with pytest.raises(prowess.InstallError) as caught:
            call()
        assert caught.value.code == "bad-lock"
    assert (victim / "kept").exists()
    assert (case.project / "src" / "victim" / "kept").exists()


@pytest.mark.parametrize("how", ["move", "link", "not json", "link to a journal", "store"])
def test_a_journal_of_somebody_else_leads_nowhere(case: InstallerCase, how: str) -> None:
    """Case 97: a journal that came with a project, or a store that is a link, leads nowhere."""
    victim = case.base / "victim"
    victim.mkdir()
    (victim / "kept").write_text("kept", encoding="utf-8")
    store = case.project / ".prowess" / "skills" / ".store"
    journal = case.project / ".prowess.journal"
    moves = {
        "move": [{"name": "../../victim", "token": "x", "old": os.lstat(victim).st_ino}],
        "link": [{"name": str(victim), "token": "../x", "old": os.lstat(victim).st_ino, "link": True}],
    }
    here = [os.lstat(folder).st_ino for folder in (case.project, store.parent)]
    text = json.dumps({"version": 2, "here": here, "moves": moves.get(how, []), "lock": None})
    if how == "store":
        store.symlink_to(victim)
        with pytest.raises(prowess.InstallError) as caught:
            case.make().sync()
        assert caught.value.code == "link-refused"
        store.unlink()
    elif how == "link to a journal":
        (victim / "journal.json").write_text(text, encoding="utf-8")
        journal.symlink_to(victim / "journal.json")
    else:
        journal.write_text("{" if how == "not json" else text, encoding="utf-8")
    installer = case.make()
    with case.assert_unharmed():
        installer.sync()
        assert [issue.code for issue in installer.issues] == ([] if how == "store" else ["bad-journal"])
    assert not os.path.lexists(journal)
    left = ["journal.json", "kept"] if how == "link to a journal" else ["kept"]
    assert sorted(path.name for path in victim.iterdir()) == left


@pytest.mark.parametrize("where", [".agents", ".agents/skills", ".prowess", ".prowess/skills", ".claude"])
def test_a_folder_of_a_project_that_is_a_link_out_of_it_is_not_written_to(case: InstallerCase, where: str) -> None:
    """Case 97: a project that was cloned may hold such links."""
    project = case.base / "cloned"
    (project / where).parent.mkdir(parents=True)
    (project / where).symlink_to(case.library.outside)
    installer = prowess.Installer(user_dir=case.base / "u", project_dir=project / ".prowess" / "skills")
    folder = source(case)
    case.assert_refused(lambda: installer.install_local(folder, project=True, agents=["claude-code"]), "link-refused")


def test_a_naive_remove_follows_the_name(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 97: the folders around it are gone."""
    base = library.base / "skills"
    (base / "org").mkdir(parents=True)
    (base / "other" / "kept").mkdir(parents=True)
    naive_installer.remove(base, "org/../other")
    assert not (base / "other").exists()


# -- moments -----------------------------------------------------------------------------------------------------------


def run(program: str, *arguments: object) -> list[object]:
    """What one of the programs of the matrices answers."""
    done = fork_server_for(INSTALL / program).run(*arguments, seconds=600)
    assert done.returncode == 0, done.stderr
    answer: list[object] = json.loads(done.stdout)
    return answer


@pytest.mark.sampled(0.3, always={"update"})
@pytest.mark.parametrize("operation", ["install", "update", "remove"])
def test_a_process_that_dies_in_the_middle_leaves_the_old_or_the_new(library: Library, operation: str) -> None:
    """Case 98: the process dies before and after the calls that matter most. tests/install tries every call."""
    (points,) = run("dying.py", str(library.base / "dying"), [["points", operation]])
    assert isinstance(points, list)
    names = [name for name, _ in points]
    wanted = {at for at, name in enumerate(names, 1) if name in {"exchange", "rename"}}
    request = [["die", operation, at, moment] for at in sorted(wanted) for moment in ("before", "after")]
    answers = run("dying.py", str(library.base / "dying"), request)
    assert [wrong for wrong in answers if wrong] == []


def test_a_naive_update_that_dies_in_the_middle_has_lost_the_old(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 98: a part of the new version is there."""
    dest = library.base / "copies" / "good"
    shutil.copytree(library.root / "good", dest)
    steps = naive_installer.install_in_steps(library.root / "good", dest)
    assert next(steps) == "deleted"
    next(steps)
    assert sorted(p.name for p in dest.rglob("*")) != sorted(p.name for p in (library.root / "good").rglob("*"))


MOMENTS = (
    ("create", "SKILL.md"),  # a file of the new version is begun
    ("write", "SKILL.md"),
    ("fsync", "SKILL.md"),
    ("rename", ".prowess.journal"),  # from here on the change is meant
    ("exchange", "pdf"),  # the new version takes the place of the old one
    ("rename", "prowess.lock"),
    ("unlink", ".prowess.journal"),  # it is done
)


@pytest.mark.sampled(0.2, always={"ENOSPC"})
@pytest.mark.parametrize("code", ["ENOSPC", "EDQUOT", "EIO", "EACCES", "EROFS", "EMFILE"])
def test_a_full_or_broken_disk_is_a_typed_error_and_the_old_stays(library: Library, code: str) -> None:
    """Case 99: the calls that matter most fail. tests/install tries every call."""
    (made,) = run("dying.py", str(library.base / "dying"), [["moments", "update"]])
    assert isinstance(made, list)
    request = [
        ["fail", "update", made.index([call, name]) + 1, code, {"on": on}]
        for call, name in MOMENTS
        for on in (False, True)
    ]
    answers = run("dying.py", str(library.base / "dying"), request)
    assert [wrong for wrong in answers if wrong] == []


def test_a_naive_update_on_a_full_disk_has_lost_the_old(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 99: the disk is full after the first file, and the old version is gone."""
    dest = library.base / "copies" / "good"
    shutil.copytree(library.root / "good", dest)
    steps = naive_installer.install_in_steps(library.root / "good", dest)
    next(steps)
    next(steps)
    with pytest.raises(OSError, match="full"):
        steps.throw(OSError(28, "full"))
    assert not (dest / "SKILL.md").exists() or not (dest / "references" / "a.md").exists()


@pytest.mark.sampled(0.3, always={"list"})
@pytest.mark.parametrize("scenario", ["same", "versions", "list"])
def test_many_processes_at_once_end_with_one_whole_version(library: Library, scenario: str) -> None:
    """Case 100: sixteen processes install or read. tests/install runs more rounds."""
    assert run("crowd.py", str(library.base / "crowd"), scenario, 1) == []


def test_naive_processes_see_each_others_halves(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 100: a reader in between sees half a skill, and the second installer fails."""
    dest = library.base / "copies" / "good"
    one = naive_installer.install_in_steps(library.root / "good", dest)
    next(one)
    assert dest.exists()
    assert len(list(dest.rglob("*.md"))) < 2
    with pytest.raises(FileExistsError):
        dest.mkdir()


# -- what is there -----------------------------------------------------------------------------------------------------


def test_local_edits_are_not_overwritten(case: InstallerCase) -> None:
    """Case 102: an update is refused. With force it keeps a backup."""
    folder = source(case, "mine")
    path = case.installer.install_local(folder, project=True)
    (path / "SKILL.md").write_text("edited", encoding="utf-8")
    (folder / "SKILL.md").write_text(skill_text("mine", "Newer.\n"), encoding="utf-8")
    with pytest.raises(prowess.LocalEditsError):
        case.installer.update("@local/mine")
    assert (path / "SKILL.md").read_text(encoding="utf-8") == "edited"
    with case.assert_unharmed():
        case.installer.update("@local/mine", force=True)
        (backup,) = (case.project / ".prowess" / "skills" / ".backup").iterdir()
        assert (backup / "SKILL.md").read_text(encoding="utf-8") == "edited"


def test_a_naive_update_overwrites_edits(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 102: the edits are gone."""
    installed = naive_installer.install(library.root / "good", library.base / "copies", "good")
    (installed / "SKILL.md").write_text("edited", encoding="utf-8")
    naive_installer.install(library.root / "good", library.base / "copies", "good")
    assert "edited" not in (installed / "SKILL.md").read_text(encoding="utf-8")


def test_a_name_of_another_source_is_taken_only_on_request(case: InstallerCase) -> None:
    """Case 103: the message shows both origins."""
    other = source(case, "good", skill_text("good", "Evil.\n"))
    error = case.assert_refused(lambda: case.installer.install_local(other, project=True), "name-taken")
    assert "library/good" in error.message
    assert "sources/good" in error.message
    repo = case.repository("other", skill=False)
    repo.skill("skills/good")
    repo.commit()
    error = case.assert_refused(lambda: case.installer.install(repo.address, project=True), "name-taken")
    assert "library/good" in error.message
    assert "repositories/other" in error.message


@pytest.mark.parametrize("name", ["good-", "goo", "gooood", "g00d", "anthropic-good"])
def test_a_name_that_resembles_an_installed_one_is_pointed_out(case: InstallerCase, name: str) -> None:
    """Case 103: the names differ in one letter, look alike, or share a vendor's word. Other names are fine."""
    if name == "good-":  # agents would find it under the very same name
        folder = source(case, "source", skill_text(name))
        case.assert_refused(lambda: case.installer.install_local(folder, project=True), "name-taken")
        return
    with case.assert_unharmed():
        case.installer.install_local(source(case, "source", skill_text(name)), project=True)
        codes = {issue.code for issue in case.installer.issues if issue.code == "near-name"}
        assert codes == (set() if name == "gooood" else {"near-name"})


def test_a_naive_install_replaces_another_source(library: Library, naive_installer: ModuleType) -> None:
    """Twin of case 103: it replaces the skill without a word."""
    library.write(skill_text("good", "Evil.\n"))
    naive_installer.install(library.root / "good", library.base / "copies", "good")
    installed = naive_installer.install(library.evil, library.base / "copies", "good")
    assert "Evil." in (installed / "SKILL.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["SKILL.md", "references/a.md"])
def test_one_changed_byte_is_found_and_refused(case: InstallerCase, name: str) -> None:
    """Case 105: ``verify`` names the file; with ``verify="lock"`` the skill is neither found nor activated."""
    found = prowess.discover(cwd=case.project, home=case.base / "nobody", verify="lock")
    path = case.good / name
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    (issue,) = case.installer.verify()
    assert (issue.code, issue.path) == ("changed-file", str(path))
    with pytest.raises(prowess.SkillValidationError) as caught:
        prowess.Session(found).activate("good")
    assert caught.value.code == "changed-since-locked"
    again = prowess.discover(cwd=case.project, home=case.base / "nobody", verify="lock")
    assert again.names == ()
    assert [i.code for i in again.issues] == ["changed-since-locked"]


def test_a_naive_load_takes_changed_bytes(library: Library, naive: ModuleType) -> None:
    """Twin of case 105: it loads the changed file as if nothing had happened."""
    path = library.root / "good" / "SKILL.md"
    path.write_text(path.read_text(encoding="utf-8").replace("Do good.", "Do evil."), encoding="utf-8")
    assert "Do evil." in naive.scan(library.root)["good"]["text"]
