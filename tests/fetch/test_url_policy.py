"""Which addresses are public, and how a URL is parsed."""

from __future__ import annotations

import pytest

import prowess
from prowess.fetch.url_policy import (
    Origin,
    UrlPolicy,
    check_address,
    display_url,
    is_public,
    parse_origin,
    resolve_host,
)

PUBLIC = ["1.1.1.1", "93.184.216.34", "8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
PRIVATE = [
    *("127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),  # noqa: S104
    *("100.64.0.1", "100.127.255.254", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
    *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12:3456::1", "ff02::1", "2001:db8::1", "fec0::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::"),
    *("2001:0:7f00:1::", "not an address", ""),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_a_machine_on_the_internet_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_every_other_address_is_not_public_even_inside_an_ipv6_address(address: str) -> None:
    assert not is_public(address)
    with pytest.raises(prowess.FetchError) as caught:
        check_address(address, UrlPolicy(), Origin("https", "skills.example", 443))
    assert caught.value.code == "address-refused"
    check_address(address, UrlPolicy(private=True), Origin("https", "skills.example", 443))


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "0", "0x7f000001", "2130706433", "017700000001", "localhost", "localhost.", "LOCALHOST",
     "a.localhost", "::1", "::ffff:127.0.0.1", "10.0.0.1", "169.254.169.254"],
)  # fmt: skip
def test_no_spelling_of_a_private_host_is_resolved(host: str) -> None:
    with pytest.raises(prowess.FetchError) as caught:
        resolve_host(Origin("https", host.lower(), 443), UrlPolicy())
    assert caught.value.code == "address-refused"


@pytest.mark.parametrize("host", ["x" * 300 + ".example", "a..b", "-.invalid"])
def test_a_host_name_that_cannot_exist_is_not_resolved(host: str) -> None:
    with pytest.raises(prowess.FetchError) as caught:
        resolve_host(Origin("https", host, 443), UrlPolicy())
    assert caught.value.code == "fetch-failed"


def test_an_origin_is_scheme_host_and_port() -> None:
    assert (
        parse_origin("https://Skills.Example/x")
        == parse_origin("https://skills.example:443/y?z")
        != parse_origin("http://skills.example")
    )
    assert parse_origin("https://[::1]:8443/").display == "[::1]:8443"
    assert parse_origin("https://skills.example:443/").display == "skills.example"


def test_messages_show_no_password_query_or_odd_character() -> None:
    assert display_url("https://name:secret@host/path?token=secret#secret") == "'https://host/path'"
    assert display_url("https://h/\x1b[2J\u202e") == "'https://h/\\x1b[2J\\u202e'"
    assert len(display_url("https://h/" + "x" * 9999)) < 250
