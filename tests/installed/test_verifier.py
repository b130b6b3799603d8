"""``verify="lock"``: skills that count only while they are what the lock file says, on every read."""

from __future__ import annotations

import pickle
import shutil
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.repositories import skill_text

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one install that has a reference and a script."""
    source = tmp_path / "pdf"
    for name, text in (("SKILL.md", skill_text("pdf")), ("references/a.md", "a\n"), ("scripts/run.py", "print()\n")):
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    home = tmp_path / "project"
    (home / ".git").mkdir(parents=True)
    base = home / ".prowess" / "skills"
    prowess.Installer(user_dir=tmp_path / "user", project_dir=base).install_local(source, project=True)
    return home


def found(project: Path, **options: object) -> prowess.Catalog:
    return prowess.discover(cwd=project, home=project.parent / "nobody", verify="lock", **options)  # type: ignore[arg-type]


def place(project: Path) -> Path:
    return project / ".prowess" / "skills" / "local" / "pdf"


def test_an_unchanged_skill_loads_and_reads_as_ever(project: Path) -> None:
    catalog = found(project)
    skill = catalog["pdf"]
    assert catalog.issues == ()
    assert skill.load().instructions == "Do it."
    assert skill.read_body() == "Do it.\n"
    assert skill.read_body(strip=True) == "Do it."
    assert skill.read_text() == skill_text("pdf")
    assert skill.read_resource("references/a.md") == "a\n"
    assert skill.read_resource("./references//a.md") == "a\n"
    assert skill.read_bytes("scripts/run.py") == b"print()\n"
    assert skill.read_resource("references/a.md", 1, truncate=True).startswith("a\n[…")
    with pytest.raises(prowess.ResourceTooLargeError):
        skill.read_bytes("scripts/run.py", 3)


@pytest.mark.needs_links
@pytest.mark.parametrize("name", ["SKILL.md", "references/a.md", "scripts/run.py"])
def test_one_changed_byte_anywhere_keeps_a_skill_from_being_found(project: Path, name: str) -> None:
    path = place(project) / name
    path.write_bytes(path.read_bytes() + b" ")
    catalog = found(project)
    assert catalog.names == ()
    (issue,) = catalog.issues
    assert (issue.code, name in issue.message) == ("changed-since-locked", True)
    assert prowess.discover(cwd=project, home=project.parent / "nobody").names == ("pdf",)


@pytest.mark.needs_links
@pytest.mark.parametrize("how", ["extra", "missing", "link", "mode"])
def test_every_other_difference_keeps_a_skill_from_being_found_too(project: Path, how: str) -> None:
    folder = place(project)
    if how == "extra":
        (folder / "more.md").write_text("x", encoding="utf-8")
    elif how == "missing":
        (folder / "references" / "a.md").unlink()
    elif how == "link":
        (folder / "leak").symlink_to("/etc/passwd")
    else:
        (folder / "scripts" / "run.py").chmod(0o755)
    assert [issue.code for issue in found(project).issues] == ["changed-since-locked"]


def test_the_check_is_made_again_on_activation_and_on_each_read(project: Path) -> None:
    catalog = found(project)
    session = prowess.Session(catalog)
    session.activate("pdf")
    (place(project) / "scripts" / "run.py").write_text("import os\n", encoding="utf-8")
    for call in (
        lambda: catalog.load("pdf"),
        lambda: prowess.Session(catalog).activate("pdf"),
    ):
        with pytest.raises(prowess.SkillValidationError) as caught:
            call()
        assert caught.value.code == "changed-since-locked"
    with pytest.raises(prowess.ResourceError) as refused:
        session.read_resource("pdf", "scripts/run.py")
    assert refused.value.code == "changed-since-locked"
    assert session.read_resource("pdf", "references/a.md") == "a\n"
    (place(project) / "references" / "new.md").write_text("x", encoding="utf-8")
    with pytest.raises(prowess.ResourceError):
        session.read_resource("pdf", "references/new.md")


@pytest.mark.parametrize("sent", [False, True])
def test_a_body_that_changed_is_not_read_in_this_process_or_another(project: Path, sent: bool) -> None:
    skill = found(project)["pdf"]
    skill = pickle.loads(pickle.dumps(skill)) if sent else skill  # noqa: S301 - made in the line itself
    (place(project) / "SKILL.md").write_text(skill_text("pdf", "Other.\n"), encoding="utf-8")
    for call in (skill.read_body, skill.load, skill.read_text):
        with pytest.raises(prowess.SkillError) as caught:
            call()
        assert caught.value.code == "changed-since-locked"


def test_what_is_in_no_lock_file_is_refused_in_an_install_base_only(project: Path) -> None:
    for folder in (project / ".prowess" / "skills" / "acme" / "evil", project / ".agents" / "skills" / "own"):
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(skill_text(folder.name), encoding="utf-8")
    catalog = found(project)
    assert catalog.names == ("own", "pdf")
    assert [(issue.code, "evil" in issue.path) for issue in catalog.issues] == [("not-in-lock", True)]


@pytest.mark.needs_links
def test_a_refused_copy_does_not_hide_a_good_one(project: Path) -> None:
    user = project.parent / "nobody" / ".agents" / "skills" / "pdf"
    user.mkdir(parents=True)
    (user / "SKILL.md").write_text(skill_text("pdf", "The user's.\n"), encoding="utf-8")
    (place(project) / "SKILL.md").write_text(skill_text("pdf", "Changed.\n"), encoding="utf-8")
    assert found(project).load("pdf").instructions == "The user's."


@pytest.mark.parametrize("place", ["{home}/.agents/skills/mine", "../nobody/.agents/skills/mine"])
def test_a_lock_file_of_a_project_hides_no_skill_of_the_user(project: Path, place: str) -> None:
    own = project.parent / "nobody" / ".agents" / "skills" / "mine"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text(skill_text("mine"), encoding="utf-8")
    lock = project / "prowess.lock"
    copies = f'copies = ["{place.format(home=project.parent / "nobody")}"]\nlinks = '
    lock.write_text(lock.read_text(encoding="utf-8").replace("links = ", copies), encoding="utf-8")
    assert "mine" in found(project).names


@pytest.mark.needs_links
@pytest.mark.parametrize("text", ["", "version = 2\n", "not toml [", 'version = 1\n[[skill]]\nname = "../x"\n'])
def test_without_a_lock_file_that_makes_sense_nothing_installed_counts(project: Path, text: str) -> None:
    code = "newer-lock" if "2" in text else "not-in-lock"
    (project / "prowess.lock").write_text(text, encoding="utf-8")
    catalog = found(project)
    assert catalog.names == ()
    assert {issue.code for issue in catalog.issues} == {code}


def test_verify_accepts_lock_and_nothing_else(project: Path) -> None:
    with pytest.raises(prowess.SourceError):
        prowess.discover(cwd=project, verify="yes")  # type: ignore[arg-type]


def evil_folder(project: Path, name: str = "pdf") -> Path:
    """A skill that is in no lock file, below ``.prowess`` and outside the install base."""
    folder = project / ".prowess" / "elsewhere" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill_text(name, "Do evil.\n"), encoding="utf-8")
    return folder


@pytest.mark.needs_links
@pytest.mark.parametrize(
    "what", ["install", "organisation", "chain", "chain of folders", "new install", "inner folder"]
)
def test_a_link_in_the_install_base_has_nothing_accepted_that_lies_elsewhere(project: Path, what: str) -> None:
    """Whoever can write below ``.prowess`` replaces an install, or adds one, by a link out of the base."""
    evil = evil_folder(project, "other" if what in {"new install", "inner folder"} else "pdf")
    install = place(project)
    if what == "install":
        shutil.rmtree(install)
        install.symlink_to(evil)
    elif what == "organisation":
        shutil.rmtree(install.parent)
        install.parent.symlink_to(evil.parent)
    elif what == "chain":  # the link that Prowess made where agents look leads to a link that leads elsewhere
        shutil.rmtree(install)
        (evil.parent / "step").symlink_to(evil)
        install.symlink_to("../../elsewhere/step")
    elif what == "chain of folders":
        shutil.rmtree(install.parent)
        (project / ".prowess" / "first").mkdir()
        (project / ".prowess" / "first" / "second").symlink_to(evil.parent)
        install.parent.symlink_to(project / ".prowess" / "first")
    elif what == "new install":
        (install.parent / "other").symlink_to(evil)
    else:
        (install / "other").symlink_to(evil)
    catalog = found(project)
    assert "Do evil." not in [skill.load().instructions for skill in catalog]
    assert "changed-since-locked" in {issue.code for issue in catalog.issues}


def test_an_install_base_that_is_a_skill_itself_is_in_no_lock_file(project: Path) -> None:
    base = place(project).parents[1]
    (base / "SKILL.md").write_text(skill_text("skills", "Do evil.\n"), encoding="utf-8")
    assert "skills" not in found(project).names
