"""Grants: what a person grants, what ends a grant, where grants are kept, and what a damaged file does."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Literal

import pytest

import prowess

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Put = Callable[..., Path]

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs owners and modes of files")


class Person:
    """A person who gives one answer to every request, and remembers the requests."""

    def __init__(self, answer: bool | Literal["always"]) -> None:
        self.answer = answer
        self.asked: list[prowess.TrustRequest] = []

    def __call__(self, request: prowess.TrustRequest) -> bool | Literal["always"]:
        self.asked.append(request)
        return self.answer


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "config" / "prowess" / "trust.json"


@pytest.fixture
def trust(store: Path) -> prowess.Trust:
    return prowess.Trust(store)


@pytest.fixture
def skill(put: Put) -> prowess.Skill:
    """A skill with a command, a script and a hidden file."""
    folder = put("report", body="Now: !`echo ran`").parent
    (folder / "scripts").mkdir()
    (folder / "scripts" / "run.sh").write_text("#!/bin/sh\necho hi\n", encoding="utf-8")
    (folder / ".env").write_text("A=1\n", encoding="utf-8")
    return scan_one(folder)


def scan_one(folder: Path) -> prowess.Skill:
    return prowess.scan(folder.parent)[folder.name]


def folder_of(skill: prowess.Skill) -> Path:
    assert skill.dir is not None
    return skill.dir


def instructions(skill: prowess.Skill, trust: prowess.Trust) -> str:
    return prowess.Session(prowess.Catalog([skill]), trust=trust).activate(skill.name).instructions


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# -- grants ---------------------------------------------------------------------------------------------------------


def test_nothing_is_trusted_at_first(trust: prowess.Trust, skill: prowess.Skill, store: Path) -> None:
    assert (trust.is_trusted(skill), trust.grants(), list(trust)) == (False, (), [])
    assert not store.parent.exists()


def test_a_grant_is_for_the_present_state_of_the_skill(trust: prowess.Trust, skill: prowess.Skill) -> None:
    grant = trust.grant(skill)
    assert (grant.digest, grant.name, grant.location) == (skill.digest(), "report", skill.location)
    assert trust.is_trusted(skill)
    assert trust.grants() == (grant,) == tuple(trust)


def test_a_grant_outlives_the_object_that_recorded_it(trust: prowess.Trust, skill: prowess.Skill, store: Path) -> None:
    grant = trust.grant(skill)
    assert prowess.Trust(store).grants() == (grant,)
    assert prowess.Trust(str(store)).is_trusted(scan_one(folder_of(skill)))


def test_granting_a_skill_again_records_one_grant(trust: prowess.Trust, skill: prowess.Skill) -> None:
    trust.grant(skill)
    trust.grant(skill)
    assert len(trust.grants()) == 1


def test_grants_are_sorted_by_name(trust: prowess.Trust, put: Put) -> None:
    for name in ("cc", "aa", "bb"):
        trust.grant(scan_one(put(name).parent))
    assert [grant.name for grant in trust.grants()] == ["aa", "bb", "cc"]


def test_the_same_content_elsewhere_has_the_same_grant(trust: prowess.Trust, skill: prowess.Skill, put: Put) -> None:
    """It is the content that a person looked at."""
    twin = put("elsewhere/report", body="Now: !`echo ran`").parent
    assert not trust.is_trusted(scan_one(twin))
    for path in ("scripts/run.sh", ".env"):
        (twin / path).parent.mkdir(exist_ok=True)
        (twin / path).write_bytes((folder_of(skill) / path).read_bytes())
    trust.grant(skill)
    assert trust.is_trusted(scan_one(twin))


def test_a_skill_without_a_folder_cannot_be_granted(trust: prowess.Trust, store: Path) -> None:
    inline = prowess.Catalog.from_sources([prowess.Source.inline("greet", "Greets.", "Say !`id`.")])["greet"]
    with pytest.raises(prowess.NotTrustedError) as caught:
        trust.grant(inline)
    assert caught.value.code == "not-local"
    assert not trust.is_trusted(inline)
    assert not store.exists()


def test_a_skill_that_cannot_be_hashed_cannot_be_granted(
    trust: prowess.Trust, skill: prowess.Skill, store: Path
) -> None:
    (folder_of(skill) / "link").symlink_to("SKILL.md")
    with pytest.raises(prowess.SkillValidationError) as caught:
        trust.grant(skill)
    assert caught.value.code == "link-in-skill"
    assert not trust.is_trusted(skill)
    assert not store.exists()


# -- many at once ---------------------------------------------------------------------------------------------------


def test_all_skills_below_a_folder_are_granted_as_they_are_now(trust: prowess.Trust, put: Put, tmp_path: Path) -> None:
    for name in ("aa", "deep/bb"):
        put(name)
    found = trust.grant_all(tmp_path / "skills")
    assert ([grant.name for grant in found.granted], found.issues) == (["aa", "bb"], ())
    assert trust.grants() == found.granted
    put("later")
    put("aa", body="Do something else.")
    trusted = {skill.name: trust.is_trusted(skill) for skill in prowess.scan(tmp_path / "skills")}
    assert trusted == {"aa": False, "bb": True, "later": False}


def test_a_skill_that_cannot_be_granted_is_an_issue_and_the_others_are_granted(
    trust: prowess.Trust, put: Put, tmp_path: Path
) -> None:
    put("good")
    odd = put("odd")
    (odd.parent / "link").symlink_to("SKILL.md")
    found = trust.grant_all(tmp_path / "skills")
    assert [grant.name for grant in found.granted] == ["good"]
    assert [(issue.code, issue.path) for issue in found.issues] == [("link-in-skill", str(odd))]
    assert [grant.name for grant in trust.grants()] == ["good"]


def test_granting_all_keeps_what_was_granted_before(trust: prowess.Trust, skill: prowess.Skill, tmp_path: Path) -> None:
    before = trust.grant(skill)
    (tmp_path / "empty").mkdir()
    assert trust.grant_all(tmp_path / "empty").granted == ()
    assert trust.grants() == (before,)


# -- what ends it ---------------------------------------------------------------------------------------------------


def change_a_byte(folder: Path) -> None:
    data = (folder / "SKILL.md").read_bytes()
    (folder / "SKILL.md").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def change_a_hidden_byte(folder: Path) -> None:
    (folder / ".env").write_text("A=2\n", encoding="utf-8")


def add_a_byte(folder: Path) -> None:
    with (folder / "scripts" / "run.sh").open("ab") as file:
        file.write(b"\n")


def remove_a_byte(folder: Path) -> None:
    data = (folder / "scripts" / "run.sh").read_bytes()
    (folder / "scripts" / "run.sh").write_bytes(data[:-1])


def add_an_empty_file(folder: Path) -> None:
    (folder / "scripts" / "new.sh").touch()


def remove_a_file(folder: Path) -> None:
    (folder / ".env").unlink()


def rename_a_file(folder: Path) -> None:
    (folder / ".env").rename(folder / ".venv")


def make_executable(folder: Path) -> None:
    (folder / "scripts" / "run.sh").chmod(0o755)


def add_a_link(folder: Path) -> None:
    (folder / "link").symlink_to("SKILL.md")


def remove_it_all(folder: Path) -> None:
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "change",
    [
        change_a_byte,
        change_a_hidden_byte,
        add_a_byte,
        remove_a_byte,
        add_an_empty_file,
        remove_a_file,
        rename_a_file,
        pytest.param(make_executable, marks=POSIX),
        add_a_link,
        remove_it_all,
    ],
)
def test_any_change_of_the_skill_ends_its_grant(
    change: Callable[[Path], None], trust: prowess.Trust, skill: prowess.Skill
) -> None:
    trust.grant(skill)
    assert trust.is_trusted(skill)
    change(folder_of(skill))
    assert not trust.is_trusted(skill)


def test_undoing_the_change_makes_the_grant_count_again(trust: prowess.Trust, skill: prowess.Skill) -> None:
    trust.grant(skill)
    change_a_byte(folder_of(skill))
    assert not trust.is_trusted(skill)
    change_a_byte(folder_of(skill))
    assert trust.is_trusted(skill)


def test_changes_outside_of_the_digest_keep_the_grant(trust: prowess.Trust, skill: prowess.Skill) -> None:
    trust.grant(skill)
    (folder_of(skill) / ".git").mkdir()
    (folder_of(skill) / ".git" / "HEAD").write_text("ref\n", encoding="utf-8")
    (folder_of(skill) / "SKILL.md").touch()
    (folder_of(skill) / "SKILL.md").chmod(0o600)
    assert trust.is_trusted(skill)
    assert instructions(skill, trust) == "Now: ran"


# -- taken back -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["skill", "digest", "name", "location"])
def test_a_grant_can_be_revoked(by: str, trust: prowess.Trust, skill: prowess.Skill, put: Put) -> None:
    grant = trust.grant(skill)
    other = trust.grant(scan_one(put("other").parent))
    assert trust.revoke(skill if by == "skill" else getattr(grant, by)) == 1
    assert not trust.is_trusted(skill)
    assert trust.grants() == (other,)


def test_revoking_a_skill_revokes_every_state_of_it(trust: prowess.Trust, skill: prowess.Skill) -> None:
    trust.grant(skill)
    change_a_byte(folder_of(skill))
    trust.grant(skill)
    add_a_byte(folder_of(skill))
    assert (len(trust.grants()), trust.revoke(skill), trust.grants()) == (2, 2, ())


def test_revoking_a_skill_revokes_a_grant_of_its_copy_elsewhere(trust: prowess.Trust, put: Put) -> None:
    here, there = put("a/twin"), put("b/twin")
    trust.grant(scan_one(here.parent))
    assert trust.revoke(scan_one(there.parent)) == 1


def test_revoking_a_skill_without_a_grant_changes_nothing(trust: prowess.Trust, skill: prowess.Skill) -> None:
    grant = trust.grant(skill)
    assert [trust.revoke(what) for what in ("", "nobody", "rep", grant.digest[:-1])] == [0, 0, 0, 0]
    assert trust.grants() == (grant,)


@pytest.mark.parametrize("change", [add_a_link, remove_it_all])
def test_a_skill_that_can_no_longer_be_hashed_can_be_revoked(
    change: Callable[[Path], None], trust: prowess.Trust, skill: prowess.Skill
) -> None:
    """Its state comes back as soon as the link is gone, and with it the grant."""
    trust.grant(skill)
    change(folder_of(skill))
    assert trust.revoke(skill) == 1
    assert trust.grants() == ()


# -- the file -------------------------------------------------------------------------------------------------------


@POSIX
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_only_its_owner_can_read_the_file_of_grants(
    mask: int, trust: prowess.Trust, skill: prowess.Skill, store: Path
) -> None:
    before = os.umask(mask)
    try:
        trust.grant(skill)
    finally:
        os.umask(before)
    assert (mode(store), mode(store.parent)) == (0o600, 0o700)
    assert {mode(path) for path in store.parent.iterdir()} == {0o600}


def test_the_file_of_grants_is_readable_json(trust: prowess.Trust, skill: prowess.Skill, store: Path) -> None:
    grant = trust.grant(skill)
    row = {"digest": grant.digest, "name": "report", "location": skill.location, "granted": grant.granted}
    text = store.read_text(encoding="utf-8")
    data = json.loads(text)
    assert {
        **data,
        "grants": [{**one, **row} for one in data["grants"]],
    } == data  # and who granted it
    assert (data["version"], len(data["grants"])) == (1, 1)
    assert '\n      "name": "report",\n' in text


def test_an_edit_of_the_file_of_grants_counts(
    trust: prowess.Trust, skill: prowess.Skill, store: Path, put: Put
) -> None:
    trust.grant(skill)
    other = trust.grant(scan_one(put("other").parent))
    data = json.loads(store.read_text(encoding="utf-8"))
    data["grants"] = [row for row in data["grants"] if row["name"] != "report"]
    store.write_text(json.dumps(data), encoding="utf-8")
    assert trust.grants() == (other,)


def test_no_other_file_is_left_beside_the_grants(trust: prowess.Trust, skill: prowess.Skill, store: Path) -> None:
    trust.grant(skill)
    trust.revoke(skill)
    assert {path.name for path in store.parent.iterdir()} == {"trust.json"}


GRANT = """
import sys, prowess
trust, name = prowess.Trust(sys.argv[1]), sys.argv[3]
sys.stdin.readline()
trust.grant(prowess.scan(sys.argv[2])[name])
assert trust.is_trusted(prowess.scan(sys.argv[2])[name])
"""


def test_eight_processes_that_grant_at_once_lose_nothing(
    store: Path, trust: prowess.Trust, put: Put, tmp_path: Path
) -> None:
    names = [f"skill-{number}" for number in range(8)]
    for name in names:
        put(name)
    command = [sys.executable, "-c", GRANT, str(store), str(tmp_path / "skills")]
    started = [subprocess.Popen([*command, name], stdin=subprocess.PIPE, text=True) for name in names]
    for process in started:  # all are there before the first may go on
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.close()
    assert [process.wait(60) for process in started] == [0] * 8
    assert sorted(grant.name for grant in trust.grants()) == sorted(names)


# -- where it is ----------------------------------------------------------------------------------------------------


def test_the_file_of_grants_is_in_the_users_configuration(
    skill: prowess.Skill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    trust = prowess.Trust()
    trust.grant(skill)
    assert trust.path == str(tmp_path / "xdg" / "prowess" / "trust.json")
    assert (tmp_path / "xdg" / "prowess" / "trust.json").is_file()
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("named", [None, "", "relative/config"])
def test_without_a_folder_for_configuration_the_grants_are_below_the_home_folder(
    named: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    if named is None:
        monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CONFIG_HOME", named)
    assert prowess.Trust().path == str(tmp_path / "home" / ".config" / "prowess" / "trust.json")


def test_a_relative_path_of_the_grants_is_resolved_when_trust_is_made(
    skill: prowess.Skill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trust = prowess.Trust("trust.json")
    monkeypatch.chdir("/")
    trust.grant(skill)
    assert (tmp_path / "trust.json").is_file()
    assert repr(trust) == f"Trust({str(tmp_path / 'trust.json')!r}, policy='granted')"


# -- a store that cannot be believed --------------------------------------------------------------------------------

ROW = {"digest": "0" * 64, "name": "a", "location": "/a/SKILL.md", "granted": "2026-01-01T00:00:00Z"}
DAMAGED = {
    "empty": b"",
    "cut": b'{"version": 1, "grants": [{"dig',
    "not UTF-8": b"\xff\xfe{}",
    "a list": b"[]",
    "text": b'"grants"',
    "deep": b"[" * 100_000,
    "no grants": b'{"version": 1}',
    "no version": b'{"grants": []}',
    "a later version": json.dumps({"version": 2, "grants": [ROW], "more": 1}).encode(),
    "grants that are not list": b'{"version": 1, "grants": 5}',
    "a grant that is not an object": b'{"version": 1, "grants": ["a"]}',
    "a grant without a digest": b'{"version": 1, "grants": [{"name": "a"}]}',
    "a grant with more": json.dumps({"version": 1, "grants": [{**ROW, "more": 1}]}).encode(),
    "a digest that is not text": json.dumps({"version": 1, "grants": [ROW, {**ROW, "digest": 5}]}).encode(),
    "a name that is not text": json.dumps(
        {"version": 1, "grants": [ROW, {**ROW, "digest": "1" * 64, "name": None}]}
    ).encode(),
}


def refusals(trust: prowess.Trust, skill: prowess.Skill) -> list[str]:
    """The codes with which everything that needs the grants is refused."""
    calls: tuple[Callable[[], object], ...] = (
        trust.grants,
        lambda: trust.grant(skill),
        lambda: trust.grant_all(folder_of(skill).parent),
        lambda: trust.revoke(skill),
        lambda: list(trust),
    )
    codes = []
    for call in calls:
        with pytest.raises(prowess.NotTrustedError) as caught:
            call()
        assert str(trust.path) in str(caught.value)
        codes.append(caught.value.code)
    return codes


def assert_nothing_runs(trust: prowess.Trust, skill: prowess.Skill) -> None:
    activation = prowess.Session(prowess.Catalog([skill]), trust=trust).activate(skill.name)
    assert activation.instructions == "Now: !`echo ran`"
    assert [issue.code for issue in activation.issues] == ["trust-store"]
    assert not trust.is_trusted(skill)


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_store_is_an_error_and_stays_as_it_is(
    damage: str, trust: prowess.Trust, skill: prowess.Skill, store: Path
) -> None:
    """Somebody may still fix it, or a later version of Prowess read it: nothing is written over it."""
    trust.grant(skill)
    store.write_bytes(DAMAGED[damage])
    assert refusals(trust, skill) == ["trust-store"] * 5
    assert_nothing_runs(trust, skill)
    assert store.read_bytes() == DAMAGED[damage]


@POSIX
@pytest.mark.parametrize("bits", [0o602, 0o620, 0o666])
def test_a_store_that_others_may_write_to_is_an_error(
    bits: int, trust: prowess.Trust, skill: prowess.Skill, store: Path
) -> None:
    trust.grant(skill)
    before = store.read_bytes()
    store.chmod(bits)
    assert refusals(trust, skill) == ["trust-store"] * 5
    assert_nothing_runs(trust, skill)
    assert (store.read_bytes(), mode(store)) == (before, bits)


@POSIX
def test_a_store_of_somebody_else_is_an_error(trust: prowess.Trust, skill: prowess.Skill, store: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    trust.grant(skill)
    before = store.read_bytes()
    os.chown(store, 65534, 65534)
    assert refusals(trust, skill) == ["trust-store"] * 5
    assert_nothing_runs(trust, skill)
    assert (store.read_bytes(), store.stat().st_uid) == (before, 65534)


@pytest.mark.parametrize("there", [True, False])
def test_a_store_that_is_a_link_is_an_error(
    there: bool, trust: prowess.Trust, skill: prowess.Skill, store: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.json"
    trust.grant(skill)
    if there:
        target.write_bytes(store.read_bytes())
    store.unlink()
    store.symlink_to(target)
    assert refusals(trust, skill) == ["trust-store"] * 5
    assert_nothing_runs(trust, skill)
    assert (store.is_symlink(), target.exists()) == (True, there)


def test_a_folder_in_its_place_is_an_error(trust: prowess.Trust, skill: prowess.Skill, store: Path) -> None:
    store.mkdir(parents=True)
    assert refusals(trust, skill) == ["trust-store"] * 5
    assert_nothing_runs(trust, skill)


def test_a_store_below_a_file_is_an_error(skill: prowess.Skill, tmp_path: Path) -> None:
    """As a home folder that cannot be written to is."""
    (tmp_path / "file").touch()
    trust = prowess.Trust(tmp_path / "file" / "prowess" / "trust.json")
    with pytest.raises(prowess.NotTrustedError) as caught:
        trust.grant(skill)
    assert caught.value.code == "trust-store"


# -- policies -------------------------------------------------------------------------------------------------------


def test_granted_skills_run_and_no_others(trust: prowess.Trust, skill: prowess.Skill) -> None:
    assert trust.policy == "granted"
    assert "!`echo ran`" in instructions(skill, trust)
    trust.grant(skill)
    assert instructions(skill, trust) == "Now: ran"


def test_never_runs_nothing_whatever_was_granted(trust: prowess.Trust, skill: prowess.Skill, store: Path) -> None:
    trust.grant(skill)
    never = prowess.Trust(store, policy="never")
    assert not never.is_trusted(skill)
    assert instructions(skill, never) == "Now: !`echo ran`"


@pytest.mark.parametrize("policy", ["never", "granted"])
def test_other_policies_ask_nobody(policy: Literal["never", "granted"], skill: prowess.Skill, store: Path) -> None:
    person = Person(answer=True)
    assert instructions(skill, prowess.Trust(store, policy=policy, ask=person)) == "Now: !`echo ran`"
    assert person.asked == []


def test_the_policy_ask_needs_a_callback(store: Path) -> None:
    with pytest.raises(prowess.NotTrustedError) as caught:
        prowess.Trust(store, policy="ask")
    assert caught.value.code == "bad-argument"


def test_who_is_asked_sees_exactly_what_would_run(skill: prowess.Skill, store: Path) -> None:
    person = Person(answer=False)
    instructions(skill, prowess.Trust(store, ask=person))
    request = person.asked[0]
    assert (request.skill.location, request.digest) == (skill.location, skill.digest())
    assert (request.commands, request.script, request.arguments) == (("echo ran",), "", ())
    assert request.files == (".env", "SKILL.md", "scripts/run.sh")
    shown = str(request).splitlines()
    assert [skill.location in shown[0], "echo ran" in shown[1]] == [True, True]
    assert ["scripts/run.sh" in shown[-2], request.digest in shown[-1]] == [True, True]


def test_a_yes_counts_for_one_call(skill: prowess.Skill, store: Path) -> None:
    person = Person(answer=True)
    trust = prowess.Trust(store, ask=person)
    assert trust.policy == "ask"
    assert [instructions(skill, trust) for _ in range(2)] == ["Now: ran"] * 2
    assert [request.digest for request in person.asked] == [skill.digest()] * 2
    assert not trust.is_trusted(skill)
    assert not store.exists()


def test_the_answer_always_is_recorded_as_a_grant(skill: prowess.Skill, store: Path) -> None:
    person = Person("always")
    trust = prowess.Trust(store, ask=person)
    assert [instructions(skill, trust) for _ in range(2)] == ["Now: ran"] * 2
    assert len(person.asked) == 1
    assert [grant.digest for grant in prowess.Trust(store).grants()] == [skill.digest()]


def test_a_no_leaves_the_text_alone(skill: prowess.Skill, store: Path) -> None:
    trust = prowess.Trust(store, ask=lambda _: False)
    assert instructions(skill, trust) == "Now: !`echo ran`"
    assert not store.exists()


@pytest.mark.parametrize("answer", ["no", "never", "once", "ALWAYS", object(), ["always"]])
def test_an_answer_that_is_neither_true_nor_always_runs_nothing(
    answer: object, skill: prowess.Skill, store: Path
) -> None:
    trust = prowess.Trust(store, ask=lambda _: answer)  # type: ignore[arg-type, return-value]  # what nobody should give
    assert instructions(skill, trust) == "Now: !`echo ran`"
    assert not store.exists()


def test_nobody_is_asked_about_a_granted_skill(trust: prowess.Trust, skill: prowess.Skill, store: Path) -> None:
    trust.grant(skill)
    person = Person(answer=False)
    assert instructions(skill, prowess.Trust(store, ask=person)) == "Now: ran"
    assert person.asked == []


def test_an_exception_of_ask_is_raised(skill: prowess.Skill, store: Path, tmp_path: Path) -> None:
    (folder_of(skill) / "SKILL.md").write_text(
        f"---\nname: report\ndescription: d\n---\n!`touch '{tmp_path}/ran'`", encoding="utf-8"
    )

    def ask(_request: prowess.TrustRequest) -> bool:
        raise EOFError("the terminal was closed")

    with pytest.raises(EOFError):
        instructions(scan_one(folder_of(skill)), prowess.Trust(store, ask=ask))
    assert not (tmp_path / "ran").exists()
