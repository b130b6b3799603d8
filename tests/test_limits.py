"""Every bound is named, documented, frozen and sane."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
from pathlib import Path

import pytest

from prowess import Limits, limits

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


@pytest.mark.parametrize("name", FIELDS)
def test_every_bound_is_positive_and_can_be_changed_by_name(name: str) -> None:
    usual = getattr(Limits(), name)
    assert usual > 0
    assert getattr(Limits(**{name: usual + 1}), name) == usual + 1


@pytest.mark.parametrize("name", FIELDS)
def test_every_bound_is_used(name: str) -> None:
    source = Path(limits.__file__).parent
    users = [p for p in source.rglob("*.py") if p.name != "limits.py" and f".{name}" in p.read_text(encoding="utf-8")]
    assert users


def test_limits_cannot_be_changed_in_place() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Limits().head_step = 1  # type: ignore[misc]  # the point of the test
