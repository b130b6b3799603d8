"""Approvals are kept in a file of the user's, each for one state of a skill."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

import prowess

if TYPE_CHECKING:
    from pathlib import Path

WHERE = "mcp:docs:skill://pdf/SKILL.md"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "approvals.json"
    path.write_text(json.dumps({"version": 1, "approvals": {WHERE: "state", "other": "x"}}), encoding="utf-8")
    path.chmod(0o600)
    return path


def test_an_approval_holds_for_its_state_alone(file: Path) -> None:
    approvals = prowess.Approvals(file)
    assert approvals.is_approved(WHERE, "state")
    assert not approvals.is_approved("mcp:other:skill://pdf/SKILL.md", "state")
    assert not approvals.is_approved(WHERE, "another state")
    assert not approvals.is_approved(WHERE, "state"), "it ended with the other state"
    assert json.loads(file.read_text(encoding="utf-8"))["approvals"] == {"other": "x"}


def test_only_skills_of_servers_are_approved(tmp_path: Path) -> None:
    skill = prowess.Skill(prowess.Frontmatter(name="x", description="X."), body="X.")
    with pytest.raises(prowess.SourceError, match="not a skill of an MCP server"):
        prowess.Approvals(tmp_path / "a.json").approve(skill)
    assert not (tmp_path / "a.json").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 1}', b'{"version": 1, "approvals": 7}', b"\xff"])
def test_a_damaged_file_approves_nothing(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(prowess.NotTrustedError) as caught:
        prowess.Approvals(file).is_approved(WHERE, "state")
    assert caught.value.code == "approval-store"


def test_a_file_of_another_version_approves_nothing(file: Path) -> None:
    file.write_text(json.dumps({"version": 2, "approvals": {WHERE: "state"}}), encoding="utf-8")
    assert not prowess.Approvals(file).is_approved(WHERE, "state")


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_file_that_others_may_write_to_approves_nothing(file: Path) -> None:
    file.chmod(0o666)
    with pytest.raises(prowess.NotTrustedError, match="others"):
        prowess.Approvals(file).is_approved(WHERE, "state")


def test_the_file_is_the_owner_s_alone(tmp_path: Path) -> None:
    approvals = prowess.Approvals(tmp_path / "new" / "approvals.json")
    assert repr(approvals).endswith("approvals.json')")
    approvals._update_file(lambda rows: {**rows, WHERE: "state"})  # noqa: SLF001 - as approving does
    assert (tmp_path / "new" / "approvals.json").stat().st_mode & 0o777 == 0o600
    assert approvals.is_approved(WHERE, "state")
