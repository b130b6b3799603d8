"""Versions with numbers in them."""

from __future__ import annotations

import pytest

from prowess.text.versions import find_later_version, find_latest_in_range, has_numbers, is_range


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


TAGS = (
    *("v0.2.0", "v0.2.9", "v0.3.0", "v1.0", "v1.2.0", "1.2.5", "v1.10.0", "v1.11.0-rc.1", "v2.0.0", "2.0.0.1"),
    *("pdf-v1.99", "latest", "v1.2.3.4.5", "release/1.50", "v1.\u0663"),
)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("^1.2", "v1.10.0"),
        ("^v1.2", "v1.10.0"),
        ("^1", "v1.10.0"),
        ("^0.2", "v0.2.9"),
        ("^0.2.0", "v0.2.9"),
        ("^0", "v0.3.0"),
        ("^0.0.3", ""),
        ("~1.2", "1.2.5"),
        ("~1.2.0", "1.2.5"),
        ("~1", "v1.10.0"),
        (">=1.0,<2", "v1.10.0"),
        (">=1.0,<1.2", "v1.0"),
        (">1.0,<=1.2", "v1.2.0"),
        (">2.0.0", "2.0.0.1"),
        ("<0.3", "v0.2.9"),
        (">=1,>=1.5,<3,<2", "v1.10.0"),
        ("^3", ""),
        (">2,<1", ""),
    ],
)
def test_a_range_chooses_the_latest_release_in_it(wanted: str, expected: str) -> None:
    assert is_range(wanted)
    assert find_latest_in_range(wanted, TAGS) == expected
    assert find_latest_in_range(wanted, reversed(TAGS)) == expected


@pytest.mark.parametrize(
    "version",
    [
        *("", "^", "1.2", "v1.2.0", "^1.2,", ",^1", "^1.2.3.4.5", "=1.2", ">= 1", ">=1 <2", "^main", "^1.x", "^1.2-rc"),
        *("^{/x}", "+x:y", "~1\n", "^\u0661", ">" + "9" * 10, ",".join(["^1"] * 9)),
    ],
)
def test_what_is_not_written_like_a_range_is_none(version: str) -> None:
    assert not is_range(version)
