"""What Prowess decides by the system on which it runs: names and sandboxes, as processes on every platform."""

from __future__ import annotations

import sys
import unicodedata
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.platforms.conftest import Machine


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_name_with_accents_verifies_on_the_disk_of_this_system(machine: Machine, form: str) -> None:
    """A disk of macOS lists such a name in a form of its own choice."""
    name = unicodedata.normalize(form, "résumé.md")  # type: ignore[arg-type]
    (machine.skill() / name).write_bytes(b"x\n")
    machine.must("install", str(machine.sources / "unit"), "--project", "--copy", "--yes")
    assert machine.must("verify")["issues"] == []
    assert machine.must("sync", "--locked")["installed"] == []
    assert machine.must("list")["skills"][0]["marks"] == ["verified"]


@pytest.mark.skipif(sys.platform.startswith("linux"), reason="Linux has sandboxes")
def test_a_script_runs_in_no_sandbox_that_was_never_tried(machine: Machine) -> None:
    machine.skill(into=machine.project / ".agents" / "skills")
    machine.must("trust", "grant", "unit", "--yes")
    ran = machine.run("run-script", "unit", "scripts/measure.py", "--json")
    assert ran.status != 0
    assert b'"no-sandbox"' in ran.err
