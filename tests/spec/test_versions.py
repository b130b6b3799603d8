"""Versions with numbers in them."""

from __future__ import annotations

import pytest

from prowess.spec.versions import find_later_version, has_numbers


@pytest.mark.parametrize("version", ["v1", "1.0", "v1.2.3", "pdf-v2.0", "release/10"])
def test_versions_that_end_in_numbers_can_be_counted_up(version: str) -> None:
    assert has_numbers(version)


@pytest.mark.parametrize("version", ["", "main", "v1.0-rc", "v1.", "1" * 200, "v1.0.0+x"])
def test_versions_without_numbers_at_the_end_cannot_be_counted_up(version: str) -> None:
    assert not has_numbers(version)
    assert find_later_version(version, ["v2", "main", "9"]) == ""


@pytest.mark.parametrize(
    ("version", "others", "expected"),
    [
        ("v1.0.0", ["v1.0.0", "v1.2.0", "v1.10.0"], "v1.10.0"),
        ("v1.0.0", ["1.2.0", "v2", "v2.0.0-rc1", "x-v3.0.0"], ""),
        ("v2.0", ["v1.9"], ""),
        ("pdf-1", ["doc-2", "pdf-3"], "pdf-3"),
    ],
)
def test_the_latest_that_is_written_alike_is_found(version: str, others: list[str], expected: str) -> None:
    assert find_later_version(version, others) == expected
