"""Every bound is named, documented, frozen and sane."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
from pathlib import Path
from typing import Any, cast

import pytest

from prowess import Limits, Session, SourceError, Toolset, UnknownSkillError, limits, scan

FIELDS = [field.name for field in dataclasses.fields(Limits)]


def test_every_field_says_what_it_bounds() -> None:
    (body,) = [n.body for n in ast.walk(ast.parse(inspect.getsource(limits))) if isinstance(n, ast.ClassDef)]
    documented = []
    for field, after in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign):
            assert isinstance(after, ast.Expr), ast.unparse(field)
            assert isinstance(after.value, ast.Constant), ast.unparse(field)
            assert len(str(after.value.value)) > 20, ast.unparse(field)
            documented.append(ast.unparse(field.target))
    assert documented == FIELDS


def test_the_bounds_that_the_format_and_the_promises_rest_on() -> None:
    usual = Limits()
    assert usual.head_step == 4096
    assert usual.max_frontmatter_bytes == 65_536
    assert (usual.max_yaml_depth, usual.max_yaml_events, usual.max_scalar_chars) == (16, 4000, 65_536)
    assert usual.max_body_bytes == 1 << 20
    assert usual.max_resource_bytes == 65_536
    assert usual.max_file_bytes == 10 << 20
    assert usual.max_files_per_skill == 2000
    assert usual.max_depth_per_skill == 16
    assert usual.max_dirs_per_root == 200_000
    assert (usual.max_index_bytes, usual.max_index_entries, usual.max_redirects) == (4 << 20, 10_000, 5)
    assert (usual.fetch_idle_seconds, usual.fetch_total_seconds) == (30, 300)
    assert (usual.max_unpacked_bytes, usual.max_archive_entries, usual.max_archive_ratio) == (64 << 20, 2000, 100)


def test_every_bound_is_positive_and_can_be_changed_by_name() -> None:
    for name in FIELDS:
        usual = getattr(Limits(), name)
        assert usual > 0, name
        assert getattr(Limits(**{name: usual + 1}), name) == usual + 1, name


def test_every_bound_is_used() -> None:
    source = Path(limits.__file__).parent
    text = "".join(path.read_text(encoding="utf-8") for path in source.rglob("*.py") if path.name != "limits.py")
    assert [name for name in FIELDS if f".{name}" not in text] == []


def test_limits_cannot_be_changed_in_place() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Limits().head_step = 1  # type: ignore[misc]  # the point of the test


NONSENSE: dict[str, tuple[object, str]] = {
    "no place for a script, so that all wait for ever": (
        {"max_parallel_scripts": 0},
        "max_parallel_scripts must be a whole number from 1, not 0",
    ),
    "no place for a read": ({"max_parallel_reads": 0}, "max_parallel_reads must be a whole number from 1, not 0"),
    "no place for a fork": ({"max_parallel_forks": 0}, "max_parallel_forks must be a whole number from 1, not 0"),
    "no place for a large file": ({"max_large_reads": 0}, "max_large_reads must be a whole number from 1, not 0"),
    "pages without entries": ({"max_page_entries": 0}, "max_page_entries must be a whole number from 1, not 0"),
    "a step of no bytes": ({"head_step": 0}, "head_step must be a whole number from 1, not 0"),
    "a look at the disk without a pause": ({"watch_seconds": 0}, "watch_seconds must be a number above 0, not 0"),
    "a server that may say nothing for no time": (
        {"fetch_idle_seconds": 0.0},
        "fetch_idle_seconds must be a number above 0, not 0.0",
    ),
    "no memory for a script, which would be all there is": (
        {"max_script_memory_bytes": 0},
        "max_script_memory_bytes must be a whole number from 1, not 0",
    ),
    "no process for a script": (
        {"max_script_processes": 0},
        "max_script_processes must be a whole number from 1, not 0",
    ),
    "no room for a script": (
        {"max_script_disk_bytes": 0},
        "max_script_disk_bytes must be a whole number from 1, not 0",
    ),
    "no file for a script": ({"max_script_files": 0}, "max_script_files must be a whole number from 1, not 0"),
    "a text": ({"max_commands": "5"}, "max_commands must be a whole number from 0, not '5'"),
    "a text as seconds": ({"max_scan_seconds": "1"}, "max_scan_seconds must be a number from 0, not '1'"),
    "a yes": ({"max_redirects": True}, "max_redirects must be a whole number from 0, not True"),
    "nothing": ({"max_body_bytes": None}, "max_body_bytes must be a whole number from 0, not None"),
    "less than nothing": ({"max_file_bytes": -1}, "max_file_bytes must be a whole number from 0, not -1"),
    "a part of a file": ({"max_files_per_skill": 2.5}, "max_files_per_skill must be a whole number from 0, not 2.5"),
    "no number": ({"max_script_seconds": float("nan")}, "max_script_seconds must be a number from 0, not nan"),
    "for ever": ({"max_script_seconds": float("inf")}, "max_script_seconds must be a number from 0, not inf"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_a_bound_that_makes_no_sense_is_refused_where_it_is_set(name: str) -> None:
    given, expected = NONSENSE[name]
    changes = cast("dict[str, Any]", given)
    with pytest.raises(SourceError) as made:
        Limits(**changes)
    with pytest.raises(SourceError) as replaced:
        dataclasses.replace(Limits(), **changes)
    assert made.value.message == replaced.value.message == expected
    assert made.value.code == "bad-argument"


def test_a_bound_that_shows_a_mistake_is_bounded_itself() -> None:
    with pytest.raises(SourceError) as caught:
        Limits(max_commands=cast("Any", "five\n" * 10_000))
    assert len(str(caught.value)) < 300


def test_no_bound_takes_a_text_or_less_than_nothing() -> None:
    for name, given in itertools.product(FIELDS, ("1", -1)):
        with pytest.raises(SourceError, match=f"^{name} must be a"):
            Limits(**{name: cast("Any", given)})


def test_nothing_at_all_is_a_bound_where_it_means_something() -> None:
    none = Limits(max_redirects=0, max_waiting_scripts=0, max_commands=0, max_scan_seconds=0)
    assert (none.max_redirects, none.max_waiting_scripts, none.max_commands, none.max_scan_seconds) == (0, 0, 0, 0)


def test_the_names_that_an_error_lists_are_as_many_as_the_session_says(tmp_path: Path) -> None:
    for name in ("one", "three", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: Does it.\n---\nDo.\n", encoding="utf-8"
        )
    session = Session(scan(tmp_path), limits=Limits(max_listed_names=1))
    with pytest.raises(UnknownSkillError) as caught:
        session.activate("four")
    assert caught.value.message == "unknown skill 'four'; available: one and 2 more"
    assert "one and 2 more" in Toolset(session).call("load_skill", {"name": "four"}).content
