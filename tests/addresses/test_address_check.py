"""The addresses that git may be given, and those that are refused before git sees them."""

from __future__ import annotations

import pytest

from prowess import BadReferenceError
from prowess.addresses.source_grammar import check_address


@pytest.mark.parametrize("address", ["https://h.example/x.git", "ssh://git@h.example:2222/x", "git@h.example:x.git"])
def test_an_address_of_an_allowed_scheme_stays_as_it_is(address: str) -> None:
    assert check_address(address, ("https", "ssh")) == address


@pytest.mark.parametrize("scheme", ["http", "git", "file", "ftp", "ext", "HTTPX"])
def test_only_schemes_on_the_list_may_be_fetched(scheme: str) -> None:
    with pytest.raises(BadReferenceError) as caught:
        check_address(f"{scheme}://h.example/x.git", ("https", "ssh"))
    assert caught.value.code == "bad-scheme"


def test_the_short_form_of_ssh_needs_ssh_on_the_list() -> None:
    with pytest.raises(BadReferenceError, match="not the address of a repository"):
        check_address("git@h.example:x.git", ("https",))
