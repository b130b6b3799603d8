"""Installed skills as a source: found by reference, the project's first, optionally only while unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import prowess
from tests.repositories import skill_text

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def bases(tmp_path: Path) -> dict[str, Any]:
    """The bases of a user and a project that both have ``@local/pdf``."""
    made: dict[str, Any] = {"user_dir": tmp_path / "user", "project_dir": tmp_path / "project"}
    installer = prowess.Installer(**made)
    for location in ("user", "project"):
        source = tmp_path / location / "source" / "pdf"
        source.mkdir(parents=True)
        (source / "SKILL.md").write_text(skill_text("pdf", f"The {location}'s.\n"), encoding="utf-8")
        installer.install_local(source, project=location == "project")
    return made


def test_the_install_of_the_project_wins_and_another_version_is_a_warning(bases: dict[str, Any]) -> None:
    catalog = prowess.Source.installed("@local/pdf", **bases).load()
    assert catalog.load("pdf").instructions == "The project's."
    assert catalog.issues == ()
    catalog = prowess.Source.installed("@local/pdf@v9", **bases).load()
    assert [issue.code for issue in catalog.issues] == ["version-mismatch"]
    assert catalog.load("pdf").instructions == "The project's."


def test_an_install_can_be_mounted_and_preloaded(bases: dict[str, Any]) -> None:
    (skill,) = prowess.Source.installed("@local/pdf", mount_as="team", preload=True, **bases).load()
    assert (skill.virtual_path, skill.preload) == ("team", True)


def test_with_verify_a_changed_skill_is_refused(bases: dict[str, Any]) -> None:
    source = prowess.Source.installed("@local/pdf", verify="lock", **bases)
    skill = source.load()["pdf"]
    path = bases["project_dir"] / "local" / "pdf" / "SKILL.md"
    path.write_text(skill_text("pdf", "Changed.\n"), encoding="utf-8")
    with pytest.raises(prowess.SkillValidationError):
        skill.load()
    assert source.load().names == ()
    with pytest.raises(prowess.SourceError):
        prowess.Source.installed("@local/pdf", verify="x", **bases).load()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ref", "code"), [("@local/none", "not-installed"), ("local/pdf", "bad-reference"), ("@../pdf", "bad-reference")]
)
def test_a_bad_reference_or_a_missing_install_is_a_source_error(bases: dict[str, Any], ref: str, code: str) -> None:
    with pytest.raises(prowess.SourceError) as caught:
        prowess.Catalog.from_sources([prowess.Source.installed(ref, **bases)])
    assert caught.value.code == code
    assert "sources[0]" in caught.value.message


def test_a_source_says_what_it_is() -> None:
    assert repr(prowess.Source.installed("@acme/pdf")) == "Source.installed('@acme/pdf')"
