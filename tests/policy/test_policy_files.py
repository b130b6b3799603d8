"""Policy files: which count, who may have written them, and what is wrong in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.policy.rules import Revocation, is_source_match

if TYPE_CHECKING:
    from tests.install.conftest import World
    from tests.policy.conftest import Write

DIGEST = "ab" * 32


def test_without_files_everything_is_allowed(world: World) -> None:  # noqa: ARG001 - an empty home
    policy = prowess.current_policy()
    assert policy == prowess.Policy()
    policy.check_source("https://anywhere.example/x")
    policy.check_skill("pdf", DIGEST)
    assert policy.find_run_refusal(DIGEST, "run.scripts") is None


def test_a_changed_file_counts_at_the_next_question(write: Write) -> None:
    assert prowess.current_policy().word("run.scripts") == "ask"
    path = write('[run]\nscripts = "never"\n')
    assert prowess.current_policy().word("run.scripts") == "never"
    Path(path).unlink()
    assert prowess.current_policy().word("run.scripts") == "ask"


def test_the_stricter_word_the_larger_number_and_every_list_count(write: Write) -> None:
    write('[run]\nscripts = "approved"\nsandbox = ["bwrap", "landlock"]\n[versions]\ncooldown-days = 3\n')
    write('[run]\nscripts = "ask"\nsandbox = ["landlock", "none"]\n[versions]\ncooldown-days = 7\n', project=True)
    policy = prowess.current_policy()
    assert policy.word("run.scripts") == "approved"
    assert [kind for kind in ("bwrap", "landlock", "none") if policy.allows_sandbox(kind)] == ["landlock"]
    rule = policy.strictest("versions.cooldown-days")
    assert rule is not None
    assert rule.value == 7


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("[run", "bad-policy", "not TOML"),
        ("run = 1\n", "bad-policy", "has to be a table"),
        ('[run]\nscript = "never"\n', "unknown-rule", "did you mean"),
        ("[signing]\nrequired = true\n", "unknown-rule", "does not know"),
        ("[signing]\n", "unknown-rule", "does not know"),
        ('[run]\nscripts = "nevr"\n', "bad-policy", "one of ask, approved, never"),
        ('[run]\nverify = "true"\n', "bad-policy", "false or true"),
        ('[run]\nsandbox = "bwrap"\n', "bad-policy", "a list"),
        ('[sources]\nallow = ["github.com/acme/*"]\n', "bad-policy", "a list of addresses"),
        ('[run]\nsandbox = ["docker"]\n', "bad-policy", "a list of bwrap"),
        ("[versions]\ncooldown-days = -1\n", "bad-policy", "a whole number"),
        ("[versions]\ncooldown-days = true\n", "bad-policy", "a whole number"),
    ],
)
@pytest.mark.parametrize("project", [False, True])
def test_a_malformed_policy_fails_closed(write: Write, text: str, code: str, said: str, *, project: bool) -> None:
    path = write(text, project=project)
    with pytest.raises(prowess.PolicyError, match=said) as caught:
        prowess.current_policy()
    assert (caught.value.code, caught.value.path) == (code, path)
    assert not prowess.Trust().has(DIGEST)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[[skill]]\nrun = true\n", "approved.toml"),
        (f'[[skill]]\ndigest = "{DIGEST}"\nrun = "yes"\n', "approved.toml"),
        (f'[[skill]]\ndigest = "{DIGEST}"\nexpires = "2027-01-01"\n', "approved.toml"),
        (f'[[skill]]\ndigest = "{DIGEST[:-1]}"\n', "approved.toml"),
        (f'[[skill]]\ndigest = "{DIGEST}"\nexpire = 2027-01-01\n', "approved.toml"),
        ("[[skills]]\n", "approved.toml"),
        ("[[skill]]\n", "revoked.toml"),
        (f'[[skill]]\ndigest = "{DIGEST}"\nsource = "https://x.example"\n', "revoked.toml"),
        ('[[skill]]\nsource = "https://x.example"\nrange = "1.x"\n', "revoked.toml"),
        ('[[skill]]\nsource = "./weekly-report"\n', "revoked.toml"),
        ('[[skill]]\nsource = "git.acme.example/x"\n', "revoked.toml"),
        (f'[[skill]]\ndigest = "{DIGEST}"\naction = "delete"\n', "revoked.toml"),
    ],
)
def test_malformed_entries_fail_closed(write: Write, text: str, name: str) -> None:
    path = write(text, name)
    with pytest.raises(prowess.PolicyError) as caught:
        prowess.current_policy()
    assert caught.value.path == path


def test_approvals_of_a_project_grant_nothing(write: Write) -> None:
    write(f'[[skill]]\ndigest = "{DIGEST}"\nrun = true\n', "approved.toml", project=True)
    assert prowess.current_policy().find_approval(DIGEST) is None
    write(f'[[skill]]\ndigest = "sha256:{DIGEST}"\nrun = true\n', "approved.toml")
    assert prowess.current_policy().may_run_unasked(DIGEST)


def test_an_approval_ends_after_its_last_day(write: Write) -> None:
    today = date.today()  # noqa: DTZ011 - the day of the user
    for day, counts in ((today, True), (today - timedelta(days=1), False)):
        write(f'[[skill]]\ndigest = "{DIGEST}"\nrun = true\nexpires = {day.isoformat()}\n', "approved.toml")
        assert prowess.current_policy().may_run_unasked(DIGEST) is counts


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_a_policy_that_others_may_write_stops_everything(write: Write) -> None:
    path = Path(write('[run]\nscripts = "ask"\n'))
    for target, mode in ((path, 0o666), (path, 0o664), (path.parent, 0o777)):
        target.chmod(mode)
        with pytest.raises(prowess.PolicyError) as caught:
            prowess.current_policy()
        assert caught.value.code == "unsafe-policy"
        path.chmod(0o644)
        path.parent.chmod(0o755)
    prowess.current_policy()


def test_a_policy_that_is_a_link_or_a_folder_is_refused(write: Write, world: World) -> None:
    path = Path(write(""))
    path.unlink()
    path.symlink_to(world.base / "elsewhere.toml")
    with pytest.raises(prowess.PolicyError):
        prowess.current_policy()
    path.unlink()
    path.mkdir()
    with pytest.raises(prowess.PolicyError):
        prowess.current_policy()


def test_a_program_names_the_policy_that_counts(write: Write, tmp_path: Path) -> None:
    write('[run]\nscripts = "never"\n')
    own = tmp_path / "own"
    own.mkdir(mode=0o755)
    (own / "policy.toml").write_text('[run]\nsandbox = ["bwrap"]\n', encoding="utf-8")
    (own / "policy.toml").chmod(0o644)
    loaded = prowess.load_policy(own)
    with prowess.use_policy(loaded):
        assert prowess.current_policy().word("run.scripts") == "ask"
    with prowess.use_policy(prowess.current_policy() & loaded) as both:
        assert both.word("run.scripts") == "never"
        assert not both.allows_sandbox("none")
    assert prowess.current_policy().word("run.scripts") == "never"


@pytest.mark.parametrize(
    ("pattern", "address", "matches"),
    [
        ("https://git.acme.example/**", "https://git.acme.example/team/skills.git", True),
        ("https://git.acme.example/**", "https://GIT.acme.example/team/skills", True),
        ("https://git.acme.example", "https://git.acme.example/team/skills", True),
        ("https://git.acme.example/team/*", "https://git.acme.example/team/skills.git", True),
        ("https://git.acme.example/team/*", "https://git.acme.example/team/a/b", False),
        ("https://*.acme.example/**", "https://git.acme.example/x", True),
        ("https://*.acme.example/**", "https://evil.example/.acme.example/x", False),
        ("https://*.acme.example/**", "https://evil.example?.acme.example/x", False),
        ("https://*.acme.example/**", "https://evil.example#.acme.example/x", False),
        ("https://*.acme.example/**", "https://evil.example\\.acme.example/x", False),
        ("https://**", "https://user@evil.example/x", False),
        ("https://git.acme.example/team/**", "https://git.acme.example/team/../evil/x", False),
        ("https://git.acme.example/team/**", "https://git.acme.example/team/%2E%2E/evil", False),
        ("https://git.acme.example/**", "http://git.acme.example/x", False),
        ("https://git.acme.example/**", "https://git.acme.example.evil/x", False),
        ("git@git.acme.example:team/**", "git@git.acme.example:team/skills.git", True),
        ("ssh://git@git.acme.example/**", "ssh://git@git.acme.example/team/skills", True),
        ("file:///srv/skills/**", "file:///srv/skills/pdf", True),
        ("/srv/skills/**", "file:///srv/skills/pdf", True),
        ("**", "https://anywhere.example/x", True),
    ],
)
def test_a_pattern_matches_whole_hosts_and_parts_of_paths(pattern: str, address: str, *, matches: bool) -> None:
    assert is_source_match(pattern, address) is matches


def test_a_revocation_covers_a_digest_or_versions_of_a_source() -> None:
    by_range = Revocation(source="https://git.acme.example/pdf", range=">=1.0,<1.4")
    assert by_range.covers(DIGEST, "https://git.acme.example/pdf.git", "v1.3.9")
    assert not by_range.covers(DIGEST, "https://git.acme.example/pdf.git", "v1.4.0")
    assert not by_range.covers(DIGEST, "https://git.acme.example/other", "v1.3.9")
    assert by_range.covers(DIGEST, "https://git.acme.example/pdf", "main")
    assert Revocation(source="https://git.acme.example/pdf").covers(DIGEST, "https://git.acme.example/pdf", "main")
    assert Revocation(digest=DIGEST).covers(DIGEST)
    assert not Revocation(digest=DIGEST).covers("cd" * 32)


def test_refs_may_be_bound_to_tags_or_commits(write: Write) -> None:
    commit = "0" * 40
    write('[versions]\nrefs = "tags"\n')
    policy = prowess.current_policy()
    policy.check_ref("v1", "https://x.example", lambda: True)
    policy.check_ref("^1.2", "https://x.example", lambda: False)
    policy.check_ref(commit, "https://x.example", lambda: False)
    for ref in ("", "main"):
        with pytest.raises(prowess.PolicyError, match="a tag or a commit"):
            policy.check_ref(ref, "https://x.example", lambda: False)
    write('[versions]\nrefs = "commits"\n')
    prowess.current_policy().check_ref(commit, "https://x.example", lambda: False)
    with pytest.raises(prowess.PolicyError, match="wants a commit"):
        prowess.current_policy().check_ref("v1", "https://x.example", lambda: True)


def test_a_commit_has_to_be_as_old_as_the_rule_says(write: Write) -> None:
    write("[versions]\ncooldown-days = 7\n")
    policy, day = prowess.current_policy(), 24 * 60 * 60
    policy.check_age(0, "https://x.example", now=7 * day)
    with pytest.raises(prowess.PolicyError, match=r"6\.9 days old"):
        policy.check_age(0, "https://x.example", now=6.9 * day)


WITHOUT_POWERS = """
import os, sys, prowess
prowess.current_policy("/"), prowess.PolicyError  # loaded while it may be read
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for home in sys.argv[1:]:
    os.environ["HOME"] = home
    try:
        print(prowess.current_policy("/").files)
    except prowess.PolicyError as error:
        print(error.code)
"""


@pytest.mark.needs_modes
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user")
def test_the_policy_of_another_users_closed_home_does_not_count(world: World) -> None:
    """``sudo -u`` and services can keep the ``HOME`` of root; a closed folder of one's own stops everything."""
    closed, own = world.base / "closed", world.base / "own"
    for home in (closed, own):
        (home / ".config/prowess").mkdir(parents=True)
    closed.chmod(0o700)
    os.chown(own, 65534, 65534)
    os.chown(own / ".config", 65534, 65534)
    (own / ".config").chmod(0)
    for folder in (world.base, *world.base.parents):
        folder.chmod(folder.stat().st_mode | 0o055)
        if folder.name.startswith("pytest-of-"):
            break
    command = [sys.executable, "-c", WITHOUT_POWERS, str(closed), str(own)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["()", "bad-policy"]


ADVISORY = {
    "id": "ACME-2026-1",
    "summary": "it sends mail",
    "affected": [{"ecosystem_specific": {"digests": [DIGEST]}}],
}


def test_advisories_revoke_digests_until_they_are_withdrawn(write: Write) -> None:
    for content in ([ADVISORY], {"advisories": [ADVISORY]}):
        path = write(json.dumps(content), "advisories.json")
        revocation = prowess.current_policy().find_revocation(DIGEST)
        assert revocation is not None
        assert (revocation.reason, revocation.file) == ("ACME-2026-1: it sends mail", path)
    write(json.dumps([{**ADVISORY, "withdrawn": "2026-11-01T00:00:00Z"}]), "advisories.json")
    assert prowess.current_policy().find_revocation(DIGEST) is None
    write(json.dumps([ADVISORY]), "advisories.json", project=True)
    assert prowess.current_policy().find_revocation(DIGEST) is not None


@pytest.mark.parametrize("text", ["{", "[1]", "[{}]", '{"advisories": 1}', '[{"id": "x", "affected": [{}]}]', "null"])
def test_malformed_advisories_fail_closed(write: Write, text: str) -> None:
    path = write(text, "advisories.json")
    with pytest.raises(prowess.PolicyError) as caught:
        prowess.current_policy()
    assert (caught.value.code, caught.value.path) == ("bad-policy", path)
