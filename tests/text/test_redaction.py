"""Secrets taken out of addresses, wherever they stand and whatever they hold."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess.addresses.source_spec import parse_source
from prowess.errors import BadReferenceError
from prowess.text.redaction import hide_secrets, scrub_text, show_address

HEAD, TAIL = "Zq7vKx", "Kp9wXv"
PLACES = (
    "https://me:{}@host.example/acme/pdf.git",
    "https://{}@host.example/acme/pdf.git",
    "https://mirror.example/https://me:{}@host.example/acme/pdf.git",
    "HTTPS://me:{}@host.example:8443/acme",
    "ssh://git:{}@host.example:2222/acme/pdf.git",
    "git:{}@host.example:acme/pdf.git",
    "https://host.example/pdf.zip?token={}",
    "https://host.example/pdf.zip?{}",
    "https://host.example/acme/pdf.git?token={}#v1",
    "https://host.example/acme/pdf.git#token={}",
    "git@host.example:acme/pdf.git?token={}",
    "acme/pdf?token={}",
    "file:///acme/pdf.git?token={}",
)


MARKS = (*string.punctuation, "%40", "%3F", "\N{EURO SIGN}", "@/", "/@", "?@", "#@", "://")
ENDS_HOST = frozenset(("/", "?", "#", "/@", "?@", "#@", "://"))
"""Behind a user without a password these end the host, so what follows is not part of the secret."""


@pytest.mark.parametrize("place", PLACES)
def test_no_part_of_a_secret_is_left_whatever_it_holds(place: str) -> None:
    for mark in MARKS:
        if "//{}@" in place and mark in ENDS_HOST:
            continue
        address = place.format(f"{HEAD}{mark}{TAIL}")
        shown = [hide_secrets(address), show_address(address)]
        if "://" in place:  # in a text, only what is written so is known to be an address
            shown.append(scrub_text(f"cannot use '{address}': no"))
        assert not any(part in text for text in shown for part in (HEAD, TAIL)), mark


@pytest.mark.parametrize(
    "address",
    [
        *("https://host.example/acme/pdf.git", "https://host.example:8443/@team/x", "https://[::1]:8443/x", "acme/pdf"),
        *("git@host.example:acme/pdf.git", "git@host.example:acme/pdf.git#v1@skill", "ssh://git@host.example:22/x"),
        *("acme/pdf#v1@skill", "github:acme/pdf@skill", "gitlab:acme/pdf#v2@skill", "@acme/pdf@v1", "file:///a@b/x"),
        *("./x?y=z", "/a:b@c/x?y", "~/a?b", "..", "C:\\a@b?c", "https://host.example/x#feature/a+b"),
    ],
)
def test_an_address_without_a_secret_stays_as_it_is(address: str) -> None:
    assert hide_secrets(address) == address


def test_an_address_in_a_part_of_another_is_shown_without_its_secret() -> None:
    assert show_address("acme/pdf#v1@https://me:secret@host.example") == "'acme/pdf#v1@https://host.example'"


@pytest.mark.parametrize("piece", [".", "a", "a:", "@", "://", "https://", "a:b@c:", "'", "https://a:b@c,"])
def test_a_long_text_of_a_hostile_server_takes_no_longer_than_its_length(piece: str) -> None:
    """A quadratic search would take minutes here, and the test would not end."""
    text = piece * (1_000_000 // len(piece))
    assert len(scrub_text(f"fatal: {text} x")) <= len(text) + 10
    assert len(show_address(text)) <= 200


def test_an_address_that_is_too_long_to_be_one_is_not_shown() -> None:
    assert show_address(f"https://{HEAD * 2000}@host.example/x") == "'https://'"


@given(st.text(max_size=60) | st.text(alphabet="ab:/@?#=&[].%", max_size=30))
def test_hiding_secrets_never_fails_and_a_second_time_changes_nothing(text: str) -> None:
    hidden = hide_secrets(text)
    assert hide_secrets(hidden) == hidden
    assert scrub_text(scrub_text(text)) == scrub_text(text)
    assert show_address(text).isprintable()


TOKENS = tuple(
    f"{prefix}16C7e42F292c6912E7710c838347Ae178B4a"
    for prefix in (
        *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-", "glcbt-"),
        *("hf_", "npm_", "pypi-", "ATATT3", "ATCTT3", "ATBB", "dop_v1_", "gitea_"),
    )
)


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_in_place_of_the_user_of_ssh_is_a_secret(token: str) -> None:
    for address in (f"{token}@host.example:acme/pdf.git", f"ssh://{token}@host.example/acme/pdf.git"):
        said = (hide_secrets(address), show_address(address), scrub_text(f"fatal: '{address}': no"))
        assert not any(token[-12:] in text for text in said)
        with pytest.raises(BadReferenceError) as caught:
            parse_source(address)
        assert (caught.value.code, token[-12:] in str(caught.value)) == ("secret-in-address", False)


@pytest.mark.parametrize("user", ["git", "hf_user", "npm_bot", "ghp", "glpat-x", "org-123456", "pypi-mirror"])
def test_a_user_of_ssh_whose_name_begins_like_a_token_is_not_a_secret(user: str) -> None:
    address = f"{user}@host.example:acme/pdf.git"
    assert (hide_secrets(address), parse_source(address).address) == (address, address)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("fatal: https://u:p@h/x and ssh://git:p@h/y failed", "fatal: https://h/x and ssh://git@h/y failed"),
        ("unable to access 'https://u:p@h/x.git?t=p/': 403", "unable to access 'https://h/x.git': 403"),
        ("redirect: https://h/x.git?sig=p#p=p", "redirect: https://h/x.git"),
        ("see https://u:p@h/x,https://u:p@h/y,ssh://u:p@h/z", "see https://h/x,https://h/y,ssh://u@h/z"),
        ("(https://u:p@h,https://u:p@h2)", "(https://h2)"),
        ("source=https://m/https://u:p@h/x.", "source=https://m/https://h/x."),
        ("no such thing: me:p@h:x.git", "no such thing: me@h:x.git"),
        ("git@h:x.git, github:a/b@c and line 3: a@b stay", "git@h:x.git, github:a/b@c and line 3: a@b stay"),
    ],
)
def test_no_address_in_a_message_keeps_its_secret(said: str, shown: str) -> None:
    assert scrub_text(said) == shown
