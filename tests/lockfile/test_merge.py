"""Two versions of a lock file become one, entry by entry; git's markers are recognised wherever a lock file is read."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prowess
from prowess.files.tree import FileHash, digest_tree
from prowess.lockfile.read import LockEntry, parse_lock
from prowess.lockfile.write import EMPTY_LOCK_TEXT, lock_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NAMES = ("acme/alpha", "acme/beta", "acme/gamma", "local/delta")


def entry(name: str, version: str) -> LockEntry:
    """An entry whose files, digest and commit follow from its version."""
    content = hashlib.sha256(f"{name} {version}".encode()).hexdigest()
    files = {
        "SKILL.md": FileHash(10, executable=False, sha256=content),
        "a.txt": FileHash(3, executable=False, sha256="a" * 64),
    }
    return LockEntry(
        name,
        f"https://github.com/{name}",
        ref=version,
        commit=content[:40],
        skills={name.partition("/")[2]: ""},
        digest=digest_tree(files),
        files=files,
    )


def lock(**versions: str) -> str:
    """The text of a lock file with these skills of acme, each at a version."""
    return lock_text({f"acme/{name}": entry(f"acme/{name}", version) for name, version in versions.items()}) or ""


def git_merged(folder: Path, base: str, ours: str, theirs: str, *style: str) -> str:
    """What git itself makes of three texts."""
    for name, text in (("base", base), ("ours", ours), ("theirs", theirs)):
        (folder / name).write_text(text, encoding="utf-8")
    words = ["git", "merge-file", "--stdout", *style, "ours", "base", "theirs"]
    return subprocess.run(words, cwd=folder, capture_output=True, check=False).stdout.decode()


# -- merging -----------------------------------------------------------------------------------------------------------


def test_what_each_side_alone_added_updated_or_removed_is_taken() -> None:
    base = lock(alpha="v1", beta="v1", gamma="v1")
    ours = lock(alpha="v2", beta="v1", gamma="v1", mine="v1")
    theirs = lock(alpha="v1", beta="v1", their="v1")
    merged = prowess.merge_locks(base, ours, theirs)
    assert isinstance(merged, prowess.LockMerge)
    assert merged == prowess.LockMerge(lock(alpha="v2", beta="v1", mine="v1", their="v1"), ())
    assert merged == prowess.merge_locks(base, theirs, ours)


def declared(name: str, version: str, **changes: object) -> LockEntry:
    """An entry that the manifest declares, among others of its source, at the entry's version."""
    values: dict[str, Any] = {"declared": f"acme/x#{version}", **changes}
    return replace(entry(f"acme/{name}", version), **values)


def texts_of(*sides: Iterable[LockEntry]) -> list[str]:
    return [lock_text({one.name: one for one in side}) or "" for side in sides]


def test_how_the_manifest_declares_a_skill_is_not_a_conflict_with_an_update() -> None:
    base, ours = declared("alpha", "v1"), declared("alpha", "v1", declared="github:acme/x#v1")
    theirs = declared("alpha", "v1", commit="f" * 40)
    texts = texts_of([base], [ours], [theirs], [replace(theirs, declared=ours.declared)])
    assert prowess.merge_locks(*texts[:3]) == prowess.LockMerge(texts[3], ())
    assert prowess.merge_locks(texts[0], texts[2], texts[1]) == prowess.LockMerge(texts[3], ())


def test_a_skill_that_one_side_declares_and_the_other_removes_is_a_conflict() -> None:
    """Its name is in the merged manifest, so a lock file without it would be out of date."""
    texts = texts_of([declared("alpha", "v1", declared="")], [declared("alpha", "v1")], [])
    assert [one.name for one in prowess.merge_locks(*texts).conflicts] == ["acme/alpha"]


@pytest.mark.parametrize(
    "changed",
    [
        {"version": "v2"},
        {"version": "v1", "declared": '{"mode": "copy", "source": "acme/x#v1"}', "mode": "copy"},
        {"version": "v1", "agents": ("codex",), "links": (".codex/skills/alpha",)},
    ],
    ids=["version", "mode", "agents"],
)
def test_a_skill_added_to_what_the_other_side_declares_otherwise_now_is_a_conflict(changed: dict[str, Any]) -> None:
    """Both changes of the manifest merge by lines, and ask for the new skill as the other side declares it."""
    old, new = declared("alpha", "v1"), declared("beta", "v1")
    texts = texts_of([old], [declared("alpha", **changed)], [old, new])
    merged = prowess.merge_locks(*texts)
    (conflict,) = merged.conflicts
    assert (conflict.name, conflict.ours) == ("acme/beta", "another declaration of its source")
    assert conflict.theirs.startswith("v1, commit ")
    assert [one.name for one in prowess.merge_locks(texts[0], texts[2], texts[1]).conflicts] == ["acme/beta"]
    for side, count in (("ours", 1), ("theirs", 2)):
        choices: dict[str, Any] = {"acme/beta": side}
        assert len(parse_lock(prowess.merge_locks(*texts, choices=choices).text)) == count


def test_an_agent_that_a_person_linked_does_not_change_the_declaration() -> None:
    old, new = declared("alpha", "v1"), declared("beta", "v1")
    linked = declared("alpha", "v1", agents=("codex",), extra_agents=("codex",), links=(".codex/skills/alpha",))
    texts = texts_of([old], [linked], [old, new], [linked, new])
    assert prowess.merge_locks(*texts[:3]) == prowess.LockMerge(texts[3], ())


def test_fields_that_this_version_does_not_know_are_merged_like_the_others() -> None:
    base, seal = declared("alpha", "v1"), ('seal = "a"',)
    linked = replace(base, agents=("codex",), links=(".codex/skills/alpha",))
    texts = texts_of([base], [linked], [replace(base, unknown=seal)], [replace(linked, unknown=seal)])
    assert prowess.merge_locks(*texts[:3]) == prowess.LockMerge(texts[3], ())
    assert prowess.merge_locks(texts[0], texts[2], texts[1]) == prowess.LockMerge(texts[3], ())
    # About other files a seal says nothing.
    texts = texts_of([replace(base, unknown=seal)], [declared("alpha", "v2")], [replace(base, unknown=('seal = "b"',))])
    assert prowess.merge_locks(*texts) == prowess.LockMerge(texts[1], ())
    both = texts_of([base], [replace(base, unknown=seal)], [replace(base, unknown=('seal = "b"',))])
    assert [one.name for one in prowess.merge_locks(*both).conflicts] == ["acme/alpha"]


def test_fields_of_the_file_itself_are_merged_too() -> None:
    texts = [lock_text({}, rows) or "" for rows in ([], ["a = 1", "b = 2"], ["b = 3", "c = 4"])]
    assert prowess.merge_locks(texts[0], texts[1], "").text.endswith("\nversion = 1\na = 1\nb = 2\n")
    assert (
        "\na = 1\nc = 4\n"
        in prowess.merge_locks("", lock_text({}, ["a = 1"]) or "", lock_text({}, ["c = 4"]) or "").text
    )
    assert "\na = 1\nb = 2\n" in prowess.merge_locks(*texts).text


def test_a_merge_has_the_line_ends_of_our_side() -> None:
    base, ours, theirs = lock(alpha="v1"), lock(alpha="v1", beta="v1"), lock(alpha="v1", gamma="v1")
    merged = prowess.merge_locks(base, ours.replace("\n", "\r\n"), theirs).text
    assert merged == lock(alpha="v1", beta="v1", gamma="v1").replace("\n", "\r\n")


def test_two_first_lock_files_have_an_empty_base() -> None:
    assert prowess.merge_locks("", lock(alpha="v1"), lock(beta="v1")).text == lock(alpha="v1", beta="v1")
    assert prowess.merge_locks("", lock(alpha="v1"), lock(alpha="v1")).text == lock(alpha="v1")
    assert prowess.merge_locks(lock(alpha="v1"), "", lock(alpha="v1")).text == EMPTY_LOCK_TEXT
    assert prowess.merge_locks("", "", "") == prowess.LockMerge(EMPTY_LOCK_TEXT, ())


def test_an_entry_that_both_sides_changed_is_a_conflict_that_no_reader_takes_for_a_lock_file() -> None:
    base, ours, theirs = lock(alpha="v1", beta="v1"), lock(alpha="v2", beta="v2"), lock(alpha="v3", beta="v1")
    merged = prowess.merge_locks(base, ours, theirs)
    (conflict,) = merged.conflicts
    assert isinstance(conflict, prowess.LockConflict)
    assert (conflict.name, conflict.ours[:11], conflict.theirs[:11]) == ("acme/alpha", "v2, commit ", "v3, commit ")
    with pytest.raises(prowess.InstallError, match="entries that differ: acme/alpha \\(") as caught:
        parse_lock(merged.text)
    assert caught.value.code == "lock-conflict"
    assert prowess.merge_locks(base, ours, theirs, choices={"acme/alpha": "ours"}).text == lock(alpha="v2", beta="v2")
    assert prowess.merge_locks(base, ours, theirs, choices={"acme/alpha": "theirs"}).text == lock(alpha="v3", beta="v2")


def test_an_entry_that_one_side_removed_and_the_other_changed_is_a_conflict() -> None:
    base, ours, theirs = lock(alpha="v1", beta="v1"), lock(beta="v1"), lock(alpha="v2", beta="v1")
    merged = prowess.merge_locks(base, ours, theirs)
    assert [(one.name, one.ours, one.theirs[:3]) for one in merged.conflicts] == [("acme/alpha", "", "v2,")]
    assert [(one.ours[:3], one.theirs) for one in prowess.merge_locks(base, theirs, ours).conflicts] == [("v2,", "")]
    assert prowess.merge_locks(base, ours, theirs, choices={"acme/alpha": "ours"}).text == ours


def test_one_name_in_two_cases_is_a_conflict_and_not_two_entries() -> None:
    ours, theirs = (lock_text({name: entry(name, "v1")}) or "" for name in ("Acme/alpha", "acme/alpha"))
    assert [one.name for one in prowess.merge_locks("", ours, theirs).conflicts] == ["Acme/alpha"]


@given(st.lists(st.tuples(*[st.sampled_from(["", "v1", "v2", "v3"])] * 3), min_size=4, max_size=4))
@settings(max_examples=60, deadline=None)
def test_every_merge_is_what_the_rule_says_and_is_the_same_from_both_sides(rows: list[tuple[str, str, str]]) -> None:
    texts = [
        lock_text({name: entry(name, row[side]) for name, row in zip(NAMES, rows, strict=True) if row[side]}) or ""
        for side in range(3)
    ]
    expected: dict[str, LockEntry] = {}
    clashing = []
    for name, (base, ours, theirs) in zip(NAMES, rows, strict=True):
        changed = {version for version in (ours, theirs) if version != base}
        if len(changed) > 1:
            clashing.append(name)
        elif version := (changed.pop() if changed else base):
            expected[name] = entry(name, version)
    merged = prowess.merge_locks(*texts)
    assert [one.name for one in merged.conflicts] == clashing
    assert [one.name for one in prowess.merge_locks(texts[0], texts[2], texts[1]).conflicts] == clashing
    if not clashing:
        assert merged.text == (lock_text(expected) or EMPTY_LOCK_TEXT)


def linked(name: str, version: str, *agents: str) -> str:
    """A lock file with one skill, linked for agents."""
    links = tuple(f".{agent}/skills/{name}" for agent in ("agents", *agents))
    return lock_text({f"acme/{name}": replace(entry(f"acme/{name}", version), agents=agents, links=links)}) or ""


def test_links_that_one_side_made_or_took_away_stay_so_while_the_other_side_updates() -> None:
    base, ours = linked("alpha", "v1", "claude", "cursor"), linked("alpha", "v1", "claude", "windsurf")
    theirs = linked("alpha", "v2", "claude", "cursor")
    for merged in (prowess.merge_locks(base, ours, theirs), prowess.merge_locks(base, theirs, ours)):
        assert merged == prowess.LockMerge(linked("alpha", "v2", "claude", "windsurf"), ())
    assert prowess.merge_locks("", ours, linked("alpha", "v1", "cursor")) == prowess.LockMerge(
        linked("alpha", "v1", "claude", "cursor", "windsurf"), ()
    )


def at_commit(text: str, commit: str) -> str:
    """A lock file whose first entry is at another commit."""
    before, mark, after = text.partition('commit = "')
    return f"{before}{mark}{commit}{after[40:]}"


def test_two_commits_with_the_same_files_are_not_conflict() -> None:
    base = lock(alpha="v1", beta="v1")
    first, second = (at_commit(base, digit * 40) for digit in "12")
    added = "\n".join((second, lock(gamma="v1").partition("\n\n")[2]))
    for ours, theirs in (first, added), (added, first):
        assert prowess.merge_locks(base, ours, theirs) == prowess.LockMerge(added, ())
    assert prowess.merge_locks(second, first, second).text == first
    assert prowess.merge_locks("", first, second).text == second
    other = second.replace('ref = "v1"', 'ref = "v2"')
    assert [one.name for one in prowess.merge_locks(base, first, other).conflicts] == ["acme/alpha"]


def test_links_are_not_mixed_where_the_update_has_other_skills() -> None:
    """Nobody can tell which links the new skills would have."""
    base, ours = linked("alpha", "v1"), linked("alpha", "v1", "claude")
    theirs = linked("alpha", "v2").replace('"alpha" = ""', '"alpha" = ""\n"more" = ""')
    assert [one.name for one in prowess.merge_locks(base, ours, theirs).conflicts] == ["acme/alpha"]


def test_a_conflict_describes_how_the_two_sides_differ() -> None:
    ours = lock(alpha="v1")
    other_source = ours.replace("https://github.com/acme/alpha", "https://example.com/alpha.git")
    (conflict,) = prowess.merge_locks("", ours, other_source).conflicts
    assert (conflict.ours[:36], conflict.theirs[:36]) == (
        "https://github.com/acme/alpha at v1,",
        "https://example.com/alpha.git at v1,",
    )
    written = ours.replace("digest =", 'declared = "acme/alpha#v1"\ndigest =')
    assert prowess.merge_locks("", ours, written) == prowess.LockMerge(written, ())
    (conflict,) = prowess.merge_locks("", lock(alpha="v2"), written).conflicts
    assert conflict.ours.endswith(", not in the manifest")
    assert conflict.theirs.endswith(", in the manifest as acme/alpha#v1")


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_string_that_is_not_a_lock_file_is_named(which: int) -> None:
    texts = [lock(alpha="v1")] * 3
    texts[which] = "version = 1\nwhat is this\n"
    with pytest.raises(prowess.InstallError) as caught:
        prowess.merge_locks(*texts)
    assert (caught.value.code, caught.value.path) == ("bad-lock", ("base", "ours", "theirs")[which])


def test_a_base_that_is_in_conflict_itself_tells_only_what_is_certain() -> None:
    """As git hands it over where two branches have several common ancestors."""
    start = lock(alpha="v1", beta="v1")
    base = prowess.merge_locks(start, lock(alpha="v2", beta="v1"), lock(alpha="v3", beta="v1")).text
    merged = prowess.merge_locks(base, lock(alpha="v2", beta="v2"), lock(alpha="v3", beta="v1"))
    assert [one.name for one in merged.conflicts] == ["acme/alpha"]
    assert prowess.merge_locks(base, lock(alpha="v3", beta="v2"), lock(alpha="v3")).conflicts[0].name == "acme/beta"
    for torn in (base + "<<<<<<< more\n", base.replace("a.txt", "b.txt", 1)):
        with pytest.raises(prowess.InstallError) as caught:
            prowess.merge_locks(torn, lock(alpha="v2"), lock(alpha="v3"))
        assert (caught.value.code, caught.value.path) == ("torn-conflict", "base")


# -- markers -----------------------------------------------------------------------------------------------------------

READERS: dict[str, Callable[[prowess.Installer], object]] = {
    "verify": lambda installer: installer.verify(),
    "outdated": lambda installer: installer.outdated(),
    "update": lambda installer: installer.update(),
    "sync": lambda installer: installer.sync(),
    "sync, locked": lambda installer: installer.sync(locked=True),
    "difference": lambda installer: installer.difference(),
    "plan": lambda installer: installer.plan("./notes", project=True),
    "install": lambda installer: installer.install_local("notes", project=True),
    "remove": lambda installer: installer.remove("@acme/alpha"),
    "adopt": lambda installer: installer.adopt("handy"),
}


def test_a_manifest_in_conflict_is_told_with_its_line(tmp_path: Path) -> None:
    manifest = tmp_path / "prowess.toml"
    manifest.write_text('skills = [\n<<<<<<< HEAD\n  "./a",\n=======\n  "./b",\n>>>>>>> theirs\n]\n', encoding="utf-8")
    installer = prowess.Installer(user_dir=tmp_path / "user", project_dir=tmp_path / ".prowess/skills")
    for call in (installer.sync, installer.difference):
        with pytest.raises(prowess.InstallError, match=r"prowess\.toml is in conflict.*\(line 2\)") as caught:
            call()
        assert caught.value.code == "manifest-conflict"


@pytest.mark.needs_posix
@pytest.mark.parametrize("style", [(), ("--diff3",), ("--zdiff3",)], ids=str)
def test_markers_of_every_style_are_told_with_the_entries_that_differ(tmp_path: Path, style: tuple[str, ...]) -> None:
    base, ours = lock(alpha="v1", beta="v1"), lock(alpha="v2", beta="v1", gamma="v1")
    text = git_merged(tmp_path, base, ours, lock(alpha="v3", beta="v1"), *style)
    for written in (text, text.replace("\n", "\r\n")):
        with pytest.raises(prowess.InstallError) as caught:
            parse_lock(written, "prowess.lock")
        assert caught.value.code == "lock-conflict"
        assert caught.value.message.endswith("the entries that differ: acme/alpha")
        assert "prowess lock --merge" in caught.value.hint


def test_half_of_the_markers_is_a_conflict_too() -> None:
    text = lock(alpha="v1")
    for marker in ("<<<<<<< HEAD\n", "=======\n", ">>>>>>> theirs\n", "||||||| base\n"):
        with pytest.raises(prowess.InstallError) as caught:
            parse_lock(text + marker)
        assert caught.value.code == "lock-conflict"


@pytest.mark.parametrize("reader", READERS)
def test_every_call_that_reads_a_lock_file_recognises_a_conflict_and_changes_nothing(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, name in (("notes", "notes"), (".agents/skills/handy", "handy")):
        prowess.create_skill(name, Path(folder).parent, description="Does it when it is asked to.")
    (tmp_path / ".prowess/skills/acme/alpha").mkdir(parents=True)
    text = prowess.merge_locks("", lock(alpha="v1"), lock(alpha="v2")).text
    (tmp_path / "prowess.lock").write_text(text, encoding="utf-8")
    installer = prowess.Installer(user_dir=tmp_path / "user", project_dir=tmp_path / ".prowess/skills")
    with pytest.raises(prowess.InstallError) as caught:
        READERS[reader](installer)
    assert (caught.value.code, "acme/alpha" in caught.value.message) == ("lock-conflict", True)
    assert (tmp_path / "prowess.lock").read_text(encoding="utf-8") == text


def test_a_catalogue_that_insists_on_the_lock_file_says_that_it_is_in_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prowess.create_skill("notes", tmp_path, description="Writes notes when it is asked to.")
    prowess.Installer(user_dir=tmp_path / "user").install_local("notes", project=True)
    file = tmp_path / "prowess.lock"
    text = file.read_text(encoding="utf-8")
    file.write_text(f"<<<<<<< HEAD\n{text}=======\n>>>>>>> theirs\n", encoding="utf-8")
    catalog = prowess.discover(tmp_path, home=tmp_path / "home", verify="lock")
    assert [(issue.code, "local/notes" in issue.message) for issue in catalog.failures] == [("lock-conflict", True)]
    source = prowess.Source.installed("@local/notes@v1", verify="lock", user_dir=tmp_path / "user")
    assert {issue.code for issue in prowess.Catalog.from_sources([source]).issues} == {"lock-conflict"}
