"""Whose signature a tag of a repository, or a site, has: read here, and verified by the user's ``ssh-keygen``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from prowess.addresses.skill_ref import is_commit
from prowess.errors import PolicyError
from prowess.fetch.ssh_signature import find_signing_key, is_signed_by
from prowess.text.versions import find_latest_in_range, has_numbers, is_range

if TYPE_CHECKING:
    from prowess.fetch.git.repository import GitCommit, GitRemote
    from prowess.policy.rules import Policy

_GIT_PURPOSE = "git"
_BEGIN = b"-----BEGIN SSH SIGNATURE-----"
_TAG_FIELD = re.compile(rb"^(object|type|tag) (.*)$", re.MULTILINE)


class Signed(NamedTuple):
    """Bytes with an SSH signature, and what the signature is for."""

    payload: bytes
    signature: bytes
    purpose: str

    def find_key(self) -> str:
        """Return the fingerprint of the key; raises ``FetchError`` (``bad-signature``) where it did not sign this."""
        return find_signing_key(self.payload, self.signature, self.purpose)


def read_signed_tag(data: bytes, tag: str, commit: str) -> Signed | None:
    """Return the signed part of a tag object; ``None`` for one without an SSH signature, or of another tag or commit.

    The name counts: an old signed tag must not pass for another version.
    """
    payload, begin, rest = data.partition(_BEGIN)
    head = payload.partition(b"\n\n")[0]
    fields = dict(_TAG_FIELD.findall(head))
    is_meant = fields.get(b"tag") == tag.encode() and fields.get(b"object") == commit.encode()
    if not begin or not is_meant or fields.get(b"type") != b"commit":
        return None
    return Signed(payload, begin + rest, _GIT_PURPOSE)


def find_signed_tag(remote: GitRemote, ref: str, commit: GitCommit, *, searches: bool) -> Signed | None:
    """Return the signed tag of a version; with ``searches``, of a commit the first of its tags that is signed.

    A branch has no tag, and neither has a commit that nobody looks for.
    """
    if is_commit(ref):
        tags = [tag for tag, tagged in remote.list_tags().items() if tagged == commit.id] if searches else []
    elif is_range(ref):
        # What was fetched came with its tag; the server is asked for its tags only where that may be missing.
        known = remote.list_tags() if searches or commit.is_cached else commit.tags
        tags = [tag for tag in (find_latest_in_range(ref, [*known]),) if tag]
    else:
        tags = [ref] if ref else []
    for tag in tags:
        data = commit.tags.get(tag)
        # What came from the cache can lack the tag: then it is fetched, if the version looks like one.
        if data is None and (searches or (commit.is_cached and has_numbers(tag))):
            data = remote.read_tag(tag)
        signed = read_signed_tag(data, tag, commit.id) if data else None
        if signed is not None:
            return signed
    return None


def check_signers(policy: Policy, signed: Signed | None, version: str) -> None:
    """Raise ``PolicyError`` where the policy names signers and none of them signed a version."""
    for rule in policy.find_rules("versions.signers"):
        names = [str(name) for name in rule.value] if isinstance(rule.value, tuple) else []
        if signed is None or not any(is_signed_by(*signed, name, rule.keys) for name in names):
            raise PolicyError(f"{version} is not signed by {' or '.join(names)}: {rule} wants that", rule.file)
