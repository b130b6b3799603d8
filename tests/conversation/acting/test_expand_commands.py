"""Commands in instructions: who lets them run, what takes their place, and what never runs."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import prowess
from prowess.files import syscalls
from tests.dialect_calls import load_call
from tests.skill_fixtures import preloaded

Put = Callable[..., Path]
Begin = Callable[..., prowess.Session]

RUNNING: tuple[prowess.DialectName, ...] = ("read_skill", "prowess")
"""The dialects in which commands run."""
AS_WRITTEN: tuple[prowess.DialectName, ...] = ("load_skill", "skill__activate", "skill_load", "use_skill")
"""Those of systems that know no commands: their instructions are text."""

pytestmark = pytest.mark.skipif(
    not (shutil.which("bash") or shutil.which("sh")), reason="commands are run by a shell, and there is none"
)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The folder in which commands run."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def trust(tmp_path: Path) -> prowess.Trust:
    return prowess.Trust(tmp_path / "trust.json")


@pytest.fixture
def events() -> list[prowess.Event]:
    return []


@pytest.fixture
def begin(tmp_path: Path, work: Path, trust: prowess.Trust, events: list[prowess.Event]) -> Begin:
    """A session over the skills that were put, all of them granted as they are now unless ``trust`` says otherwise."""

    def start(catalog: prowess.Catalog | None = None, **options: Any) -> prowess.Session:
        if "trust" not in options:
            trust.grant_all(tmp_path / "skills")
        catalog = prowess.scan(tmp_path / "skills") if catalog is None else catalog
        given = {"base_dir": work, "trust": trust, "on_event": events.append, **options}
        return prowess.Session(catalog, **given)

    return start


@pytest.fixture(params=RUNNING)
def dialect(request: pytest.FixtureRequest) -> str:
    """Each dialect in which commands run."""
    return str(request.param)


def instructions(session: prowess.Session, name: str = "report") -> str:
    return session.activate(name).instructions


def loaded(session: prowess.Session, dialect: prowess.DialectName, name: str = "report") -> str:
    """What a model gets when it loads a skill."""
    result = prowess.Toolset(session, dialect).call(*load_call(dialect, name))
    assert not result.is_error, result.content
    return str(result.data["instructions"]) if dialect == "skill__activate" else result.content


def lines(path: Path) -> int:
    """How often a command that writes a line has run."""
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


# -- trusted --------------------------------------------------------------------------------------------------------


def test_what_a_command_prints_takes_its_place(put: Put, begin: Begin) -> None:
    put("report", body="There are !`echo 3` files and !`echo 4` folders.\n\n```!\necho one\necho two\n```\n\nEnd.")
    activation = begin().activate("report")
    assert activation.instructions == "There are 3 files and 4 folders.\n\none\ntwo\n\nEnd."
    assert activation.issues == ()
    printed = [activation.instructions[start:end] for start, end in activation.outputs]
    assert printed == ["3", "4", "one\ntwo"]


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("printf 'a\\n\\n\\n'", "a"),
        ("printf '\\n a \\t\\n'", "\n a \t"),
        ("printf 'a\\r\\n'", "a"),
        ("true", ""),
        ("echo out; echo err >&2", "out"),
        ("printf 'h\\303\\251'", "hé"),
        ("printf 'a\\377b'", "a\ufffdb"),
    ],
)
def test_line_ends_at_the_end_are_cut_and_nothing_else(command: str, output: str, put: Put, begin: Begin) -> None:
    put("report", body=f"<!`{command}`>")
    assert instructions(begin()) == f"<{output}>"


def test_our_dialect_and_the_one_with_commands_run_commands(
    dialect: prowess.DialectName, put: Put, begin: Begin
) -> None:
    put("report", body="There are !`echo 3` files.")
    text = loaded(begin(), dialect)
    assert "There are 3 files." in text
    assert "!`" not in text


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("name", AS_WRITTEN)
def test_dialects_without_commands_give_the_instructions_byte_for_byte(  # noqa: PLR0917 - fixtures
    name: prowess.DialectName, trusted: bool, put: Put, begin: Begin, work: Path, events: list[prowess.Event]
) -> None:
    body = "There are !`touch ran` files in ${SKILL_DIR}.\n\n```!\ntouch ran\n```\n\nEnd."
    put("report", body=body)
    session = begin() if trusted else begin(trust=None)
    text = loaded(session, name)
    assert body in text
    if name != "use_skill":
        assert text == (f"{body}\n" if name == "load_skill" else body)
    assert (list(work.iterdir()), [event.kind for event in events]) == ([], ["activated"])


@pytest.mark.parametrize("name", AS_WRITTEN)
def test_outputs_of_commands_do_not_reach_a_dialect_without_commands(
    name: prowess.DialectName, put: Put, begin: Begin, scanned: Callable[..., prowess.Catalog]
) -> None:
    put("report", body="There are !`echo 3` files.")
    session = begin(scanned("report"))
    assert session.activate("report").instructions == "There are 3 files."
    toolset = prowess.Toolset(session, name)
    for text in (loaded(session, name), toolset.prompt()):
        assert "There are !`echo 3` files." in text
        assert "There are 3 files." not in text
    assert session.activate("report").instructions == "There are 3 files."


def test_a_skill_loaded_by_a_dialect_without_commands_runs_them_for_a_later_call(put: Put, begin: Begin) -> None:
    put("report", body="There are !`echo 3` files.")
    session = begin()
    assert loaded(session, "skill_load") == session.activate("report", run=False).instructions
    activation = session.activate("report")
    assert activation.instructions == "There are 3 files."
    assert activation.written == "There are !`echo 3` files."


@pytest.mark.parametrize("name", AS_WRITTEN)
def test_nobody_is_asked_about_commands_that_a_dialect_does_not_run(
    name: prowess.DialectName, put: Put, begin: Begin, tmp_path: Path
) -> None:
    put("report", body="There are !`echo 3` files.")
    deferring = prowess.Trust(tmp_path / "defer.json", policy="defer")
    assert "!`echo 3`" in loaded(begin(trust=deferring), name)


def test_line_ends_of_windows_make_no_difference(dialect: prowess.DialectName, put: Put, begin: Begin) -> None:
    """A carriage return would become part of the last word of each command."""
    path = put("report")
    body = (
        "A !`echo 3` b.\n\n```!\nprintf '<%s>' one\nprintf '<%s>' two\n```\n\n!`printf '<%s>' three\nprintf '<%s>' 4`\n"
    )
    head = "---\nname: report\ndescription: d\n---\n"
    path.write_bytes((head + body).replace("\n", "\r\n").encode())
    text = loaded(begin(), dialect)
    assert "A 3 b." in text
    assert "<one><two>" in text
    assert "<three><4>" in text


def test_a_persons_call_of_a_skill_runs_its_commands(put: Put, begin: Begin) -> None:
    put("report", body="There are !`echo 3` files.")
    assert "\nThere are 3 files.\n" in begin().expand("/report")


def test_a_fork_runs_the_commands_of_its_skill(put: Put, begin: Begin) -> None:
    put("report", body="There are !`echo 3` files.", extra="context: fork")
    prepared = prowess.Toolset(begin()).prepare_fork("report")
    assert isinstance(prepared, prowess.PreparedFork)
    assert prepared.content.endswith("---\nThere are 3 files.\n")


@pytest.mark.parametrize("dialect", ["read_skill"])
def test_commands_in_the_frontmatter_do_not_run(dialect: prowess.DialectName, put: Put, begin: Begin) -> None:
    put("report", description="Says `ls`, or !`echo head`.", body="Now !`echo body`.")
    text = loaded(begin(), dialect)
    assert "description: Says `ls`, or !`echo head`.\n" in text
    assert text.endswith("---\nNow body.\n")


def test_a_skill_with_a_command_only_in_its_frontmatter_has_no_commands(put: Put, begin: Begin) -> None:
    put("report", description="Says !`echo head`.")
    session = begin(trust=None)
    assert loaded(session, "read_skill").endswith("---\nDo it.\n")
    assert session.activate("report").issues == ()


def test_preloaded_skills_run_their_commands_when_the_session_begins(
    put: Put, begin: Begin, scanned: Callable[..., prowess.Catalog], work: Path, dialect: prowess.DialectName
) -> None:
    put("report", body="There are !`echo 3; echo x >> ran` files.")
    session = begin(scanned("report"))
    assert lines(work / "ran") == 1
    assert list(preloaded(session).values()) == ["There are 3 files."]
    assert "There are 3 files." in prowess.Toolset(session, dialect).prompt()
    assert lines(work / "ran") == 1


def test_preloaded_skills_that_nobody_trusts_keep_their_text(
    put: Put, begin: Begin, scanned: Callable[..., prowess.Catalog]
) -> None:
    put("report", body="There are !`echo 3` files.")
    session = begin(scanned("report"), trust=None)
    assert next(iter(preloaded(session).values())) == "There are !`echo 3` files."


# -- granted and revoked meanwhile -----------------------------------------------------------------------------------


def test_a_grant_counts_for_a_skill_that_is_active_already(
    dialect: prowess.DialectName, put: Put, begin: Begin, tmp_path: Path
) -> None:
    put("report", body="There are !`echo 3` files.")
    session = begin(trust=(trust := prowess.Trust(tmp_path / "late.json")))
    assert "There are !`echo 3` files." in loaded(session, dialect)
    trust.grant(session.skill("report"))
    assert "There are 3 files." in loaded(session, dialect)
    assert session.activate("report").issues == ()
    trust.revoke(session.skill("report"))
    assert "There are !`echo 3` files." in loaded(session, dialect)
    assert [issue.code for issue in session.activate("report").issues] == ["commands-not-run"]


def test_a_person_who_calls_a_skill_that_is_active_gets_what_was_granted_since(
    put: Put, begin: Begin, tmp_path: Path
) -> None:
    put("report", body="There are !`echo $0` files.")
    session = begin(trust=(trust := prowess.Trust(tmp_path / "late.json")))
    session.activate("report")
    trust.grant(session.skill("report"))
    assert "There are 7 files." in session.expand("/report 7")


def test_grants_of_others_run_nothing_again(put: Put, begin: Begin, trust: prowess.Trust, work: Path) -> None:
    put("report", body="There are !`echo 3; echo x >> ran` files.")
    put("other", body="Also !`echo 4`.")
    session = begin()
    session.activate("report")
    trust.revoke(session.skill("other"))
    assert session.activate("report").note == "it was active already"
    trust.grant(session.skill("other"))
    assert session.activate("report").note == "it was active already"
    assert lines(work / "ran") == 1


def test_a_person_who_said_yes_once_is_not_asked_again_for_the_active_skill(
    put: Put, begin: Begin, tmp_path: Path, work: Path
) -> None:
    put("report", body="There are !`echo 3; echo x >> ran` files.")
    put("other")
    asking = prowess.Trust(tmp_path / "asked.json", ask=lambda _: True)
    session = begin(trust=asking)
    session.activate("report")
    asking.grant(session.skill("other"))
    assert session.activate("report").instructions == "There are 3 files."
    assert lines(work / "ran") == 1


def test_another_policy_counts_for_a_skill_that_is_active_already(put: Put, begin: Begin, trust: prowess.Trust) -> None:
    put("report", body="There are !`echo 3` files.")
    session = begin()
    assert session.activate("report").instructions == "There are 3 files."
    trust.policy = "never"
    assert [issue.code for issue in session.activate("report").issues] == ["no-trust"]


def test_while_the_grants_are_as_they_were_nothing_of_an_active_skill_is_looked_at(
    put: Put, begin: Begin, tmp_path: Path
) -> None:
    put("report", body="There are !`echo 3` files.")
    session = begin()
    session.activate("report")
    shutil.rmtree(tmp_path / "skills" / "report")
    again = session.activate("report")
    assert (again.instructions, again.note) == ("There are 3 files.", "it was active already")


# -- not trusted ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nothing", "never", "not granted", "refused"])
def test_without_trust_the_text_stays_and_the_host_is_told(  # noqa: PLR0917 - fixtures
    kind: str, put: Put, begin: Begin, work: Path, tmp_path: Path, events: list[prowess.Event]
) -> None:
    options = {
        "nothing": None,
        "never": prowess.Trust(tmp_path / "other.json", policy="never"),
        "not granted": prowess.Trust(tmp_path / "other.json"),
        "refused": prowess.Trust(tmp_path / "other.json", ask=lambda _: False),
    }
    body = "One !`touch one`, two !`touch two`.\n\n```!\ntouch three\n```"
    path = put("report", body=body)
    activation = begin(trust=options[kind]).activate("report")
    assert (activation.instructions, activation.outputs) == (body, ())
    code = {"not granted": "commands-not-run", "refused": "refused-by-person"}.get(kind, "no-trust")
    assert [(i.code, i.field, i.path, i.severity) for i in activation.issues] == [(code, "body", str(path), "warning")]
    assert "3 commands in these instructions did not run: " in activation.issues[0].message
    assert list(work.iterdir()) == []
    told = [event for event in events if event.kind == "not-expanded"]
    assert [(event.skill, event.decision, event.detail["code"]) for event in told] == [("report", "refused", code)]
    assert told[0].detail["why"] == activation.issues[0].message


def test_no_model_is_told_how_commands_would_be_allowed(
    dialect: prowess.DialectName, put: Put, begin: Begin, work: Path, events: list[prowess.Event]
) -> None:
    put("report", body="Now !`touch ran`.", extra="context: fork")
    session = begin(trust=None)
    prepared = prowess.Toolset(session, dialect).prepare_fork("report")
    assert isinstance(prepared, prowess.PreparedFork)
    texts = [loaded(session, dialect), prowess.fork_user_message(prepared), prowess.preview(session, "report").content]
    for text in texts:
        assert "Now !`touch ran`." in text
        assert [word for word in ("did not run", "trust", "Trust", "grant") if word in text] == []
    assert [event.detail["code"] for event in events if event.kind == "not-expanded"]
    assert list(work.iterdir()) == []


@pytest.mark.parametrize("answer", [True, "always"])
def test_text_in_a_program_never_runs_anything(
    answer: bool | str, dialect: prowess.DialectName, begin: Begin, work: Path, tmp_path: Path
) -> None:
    asked: list[prowess.TrustRequest] = []

    def ask(request: prowess.TrustRequest) -> Any:
        asked.append(request)
        return answer

    catalog = prowess.Catalog.from_sources([prowess.Source.inline("report", "Reports.", "Now !`touch ran`.")])
    session = begin(catalog, trust=prowess.Trust(tmp_path / "other.json", ask=ask))
    assert "Now !`touch ran`." in loaded(session, dialect)
    assert "Now !`touch ran`." in session.expand("/report")
    activation = session.activate("report")
    assert [issue.code for issue in activation.issues] == ["not-local"]
    assert activation.instructions == "Now !`touch ran`."
    assert (asked, list(work.iterdir())) == ([], [])


def test_one_changed_byte_of_the_skill_keeps_its_commands_from_running(put: Put, begin: Begin, work: Path) -> None:
    path = put("report", body="Now !`touch ran`.")
    session = begin()
    (path.parent / "notes.md").write_text("new\n", encoding="utf-8")
    activation = session.activate("report")
    assert [issue.code for issue in activation.issues] == ["commands-not-run"]
    assert list(work.iterdir()) == []


def test_a_skill_that_cannot_be_copied_whole_runs_nothing(put: Put, begin: Begin, work: Path) -> None:
    path = put("report", body="Now !`touch ran`.")
    session = begin()
    (path.parent / "link").symlink_to("SKILL.md")
    activation = session.activate("report")
    assert activation.instructions == "Now !`touch ran`."
    assert [issue.code for issue in activation.issues] == ["link-in-skill"]
    assert list(work.iterdir()) == []


def test_instructions_without_commands_need_no_trust(put: Put, begin: Begin) -> None:
    put("report", body="Run `ls`, and ```\ncode\n```!")
    activation = begin(trust=None).activate("report")
    assert (activation.instructions, activation.issues, activation.outputs) == (
        "Run `ls`, and ```\ncode\n```!",
        (),
        (),
    )


def test_a_grant_lets_the_next_session_run_commands(put: Put, begin: Begin, trust: prowess.Trust) -> None:
    put("report", body="Now !`echo ran`.")
    assert "!`" in instructions(begin(trust=prowess.Trust(trust.path)))
    assert instructions(begin()) == "Now ran."


# -- the bytes that run are the bytes that were shown ---------------------------------------------------------------


def test_a_skill_that_is_edited_while_a_person_looks_at_it_runs_as_it_was_shown(
    put: Put, begin: Begin, work: Path, tmp_path: Path
) -> None:
    path = put("report", body="Now !`sh $SKILL_DIR/run.sh`.")
    script = path.parent / "run.sh"
    script.write_text("echo shown\n", encoding="utf-8")
    asked: list[prowess.TrustRequest] = []

    def ask(request: prowess.TrustRequest) -> bool:
        asked.append(request)
        script.write_text("touch swapped\n", encoding="utf-8")
        put("report", body="Now !`touch swapped`.")
        (path.parent / "more.sh").write_text("touch swapped\n", encoding="utf-8")
        return True

    catalog = prowess.scan(tmp_path / "skills")
    before = catalog["report"].digest()
    session = begin(catalog, trust=prowess.Trust(tmp_path / "other.json", ask=ask))
    assert instructions(session) == "Now shown."
    assert [(r.digest, r.commands, r.files) for r in asked] == [
        (before, ("sh $SKILL_DIR/run.sh",), ("SKILL.md", "run.sh"))
    ]
    assert list(work.iterdir()) == []


@contextmanager
def before_the_copy(change: Callable[[], object]) -> Iterator[None]:
    """Change something after a skill was read, and before it is copied."""
    left = [change]

    def watch(name: str, moment: str, _path: str) -> None:
        if (name, moment) == ("mkdir", "after") and left:
            left.pop()()

    before = syscalls.set_watcher(watch)
    try:
        yield
    finally:
        syscalls.set_watcher(before)
    assert not left


def test_a_text_that_was_swapped_for_one_that_is_trusted_does_not_run(  # noqa: PLR0917 - fixtures
    dialect: prowess.DialectName, put: Put, begin: Begin, trust: prowess.Trust, work: Path, tmp_path: Path
) -> None:
    """What was read at first is one thing, what is copied and hashed another: only the latter counts."""
    put("report", body="Now !`echo trusted`.")
    trust.grant_all(tmp_path / "skills")
    put("report", body="Now !`touch swapped`.")
    session = begin(trust=trust)
    with before_the_copy(lambda: put("report", body="Now !`echo trusted`.")):
        assert "Now trusted." in loaded(session, dialect)
    assert list(work.iterdir()) == []


def test_the_limit_of_commands_holds_for_the_private_copy(
    put: Put, begin: Begin, trust: prowess.Trust, work: Path, tmp_path: Path
) -> None:
    put("report", body="!`touch one`, !`touch two`, !`touch three`")
    trust.grant_all(tmp_path / "skills")
    put("report", body="!`touch one`")
    session = begin(trust=trust, limits=prowess.Limits(max_commands=2))
    with before_the_copy(lambda: put("report", body="!`touch one`, !`touch two`, !`touch three`")):
        assert [issue.code for issue in session.activate("report").issues] == ["too-many-commands"]
    assert list(work.iterdir()) == []


def test_the_answer_always_grants_the_state_that_was_shown(put: Put, begin: Begin, tmp_path: Path) -> None:
    put("report", body="Now !`echo shown`.")
    catalog = prowess.scan(tmp_path / "skills")
    before = catalog["report"].digest()

    def ask(_request: prowess.TrustRequest) -> Any:
        put("report", body="Now !`touch swapped`.")
        return "always"

    trust = prowess.Trust(tmp_path / "other.json", ask=ask)
    assert instructions(begin(catalog, trust=trust)) == "Now shown."
    assert [grant.digest for grant in trust.grants()] == [before]
    assert not trust.is_trusted(catalog["report"])


def test_commands_see_a_copy_that_is_gone_afterwards(put: Put, begin: Begin) -> None:
    path = put("report", body="!`pwd -P; cd $SKILL_DIR && pwd -P; ls -a; ls -ld . SKILL.md run.sh | cut -c1-10`")
    (path.parent / "run.sh").write_text("echo hi\n", encoding="utf-8")
    (path.parent / "run.sh").chmod(0o755)
    folder, copy, *rest = instructions(begin()).splitlines()
    assert Path(folder).name == "work"
    assert Path(copy) not in {Path(folder), path.parent.resolve()}
    assert rest == [".", "..", "SKILL.md", "run.sh", "drwx------", "-r--r--r--", "-r-xr-xr-x"]
    assert not Path(copy).exists()


def test_a_command_that_writes_into_the_copy_changes_nothing(put: Put, begin: Begin, trust: prowess.Trust) -> None:
    path = put("report", body="!`echo x > $SKILL_DIR/new; echo done`")
    assert instructions(begin()) == "done"
    assert [file.name for file in path.parent.iterdir()] == ["SKILL.md"]
    assert trust.is_trusted(prowess.scan(path.parent.parent)["report"])


# -- failures -------------------------------------------------------------------------------------------------------

SMALL = prowess.Limits(max_command_seconds=0.5, max_command_output_bytes=1000)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("exit 3", "exit status 3"),
        ("echo partial; echo why >&2; exit 1", "exit status 1: why"),
        ("printf 'two\\nlines\\n' >&2; exit 2", "exit status 2: two lines"),
        ("no-such-program-anywhere", "exit status 127: "),
        ("kill -9 $$", "exit status -9"),
        ("sleep 100", "command timed out after 0.5s"),
        ("cd /; if", "exit status 2: "),
    ],
)
def test_a_command_that_fails_leaves_a_marker_and_the_rest_goes_on(
    command: str, said: str, put: Put, begin: Begin
) -> None:
    path = put("report", body=f"Before !`{command}` between !`echo fine` after.")
    activation = begin(limits=SMALL).activate("report")
    text = activation.instructions
    assert text.startswith(f"Before [error executing `{command}`: {said}")
    assert text.endswith("] between fine after.")
    assert "partial" not in text.partition(": exit status")[2]
    assert [(i.code, i.path, i.severity) for i in activation.issues] == [("command-failed", str(path), "warning")]
    assert said in activation.issues[0].message


def test_every_failing_command_has_its_issue(put: Put, begin: Begin) -> None:
    put("report", body="!`exit 1` !`true` !`exit 2`")
    messages = [issue.message for issue in begin().activate("report").issues]
    assert messages == ["`exit 1`: exit status 1", "`exit 2`: exit status 2"]


def test_what_a_failing_command_says_is_bounded_and_on_one_line(put: Put, begin: Begin) -> None:
    put("report", body="!`printf 'a%.0s' $(seq 5000) >&2; exit 1`|!`: long $(exit 0)" + "x" * 5000 + "\nexit 1`")
    text = instructions(begin())
    assert len(text) < 2000
    assert "\n" not in text
    assert text.count("[error executing `") == 2


def test_long_output_is_cut_and_says_so(put: Put, begin: Begin) -> None:
    put("report", body="<!`yes`>\n!`echo fine`")
    activation = begin(limits=SMALL).activate("report")
    assert activation.instructions == "<" + ("y\n" * 500).rstrip() + "\n[output cut at 1000 bytes]>\nfine"


def test_output_up_to_the_limit_is_whole(put: Put, begin: Begin) -> None:
    put("report", body="!`printf 'a%.0s' $(seq 1000)`|!`printf 'a%.0s' $(seq 1001)`")
    whole, _, cut = instructions(begin(limits=SMALL)).partition("|")
    assert whole == "a" * 1000
    assert cut == "a" * 1000 + "\n[output cut at 1000 bytes]"


def test_the_default_limits_of_commands_are_ten_seconds_and_64_kib(put: Put, begin: Begin) -> None:
    assert prowess.Limits().max_command_seconds == 10
    put("report", body="!`head -c 100000 /dev/zero | tr '\\0' a`")
    assert instructions(begin()) == "a" * 65536 + "\n[output cut at 65536 bytes]"


def test_a_folder_that_is_gone_is_a_failure_of_each_command(put: Put, begin: Begin, tmp_path: Path) -> None:
    put("report", body="Now !`echo ran`.")
    (tmp_path / "gone").mkdir()
    session = begin(base_dir=tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    activation = session.activate("report")
    assert activation.instructions.startswith("Now [error executing `echo ran`: cannot start ")
    assert [issue.code for issue in activation.issues] == ["command-failed"]


def test_a_command_with_a_nul_is_a_failure(put: Put, begin: Begin) -> None:
    put("report", body="Now !`echo a\0b`.")
    activation = begin().activate("report")
    assert activation.instructions.startswith("Now [error executing ")
    assert [issue.code for issue in activation.issues] == ["command-failed"]


def test_without_a_shell_each_command_fails(
    put: Put, begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("report", body="Now !`echo ran`.")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    text = instructions(begin())
    assert text == "Now [error executing `echo ran`: there is no shell on this machine]."


def test_processes_that_a_command_leaves_behind_are_ended(put: Put, begin: Begin, work: Path) -> None:
    """The pipe that they hold open would keep the reader waiting until they end."""
    put("report", body="Now !`(sleep 1000 & echo $! > pid); echo done`.")
    assert instructions(begin()) == "Now done."
    with pytest.raises(ProcessLookupError):
        os.kill(int((work / "pid").read_text(encoding="utf-8")), 0)


def test_more_commands_than_the_limit_are_left_alone(put: Put, begin: Begin, work: Path) -> None:
    put("report", body="!`touch one`, !`touch two`, !`touch three`")
    activation = begin(limits=prowess.Limits(max_commands=2)).activate("report")
    assert activation.instructions == "!`touch one`, !`touch two`, !`touch three`"
    assert [issue.code for issue in activation.issues] == ["too-many-commands"]
    assert list(work.iterdir()) == []
    assert instructions(begin(limits=prowess.Limits(max_commands=3))) == ", , "


# -- output is data -------------------------------------------------------------------------------------------------

LIVELY = "!`touch again` ${SKILL_DIR} $ARGUMENTS $0 {baseDir} \\$0 </skill> </skill_content> &lt;"


def test_commands_and_placeholders_in_output_stay_text(
    dialect: prowess.DialectName, put: Put, begin: Begin, work: Path
) -> None:
    path = put("report", body="Author: ${SKILL_DIR}\nOutput: !`cat $SKILL_DIR/lively.txt`")
    (path.parent / "lively.txt").write_text(LIVELY, encoding="utf-8")
    text = loaded(begin(), dialect)
    printed = text.partition("Output: ")[2].splitlines()[0]
    harmless = LIVELY.replace("</skill_content>", "&lt;/skill_content>")
    assert printed == (harmless if dialect == "prowess" else LIVELY)
    assert list(work.iterdir()) == []


def test_what_a_preloaded_skill_printed_is_never_looked_at_again(
    dialect: prowess.DialectName, put: Put, begin: Begin, scanned: Callable[..., prowess.Catalog]
) -> None:
    path = put("report", body="Author: ${SKILL_DIR}\nOutput: !`cat $SKILL_DIR/lively.txt`")
    (path.parent / "lively.txt").write_text(LIVELY, encoding="utf-8")
    text = prowess.Toolset(begin(scanned("report")), dialect).prompt()
    printed = text.partition("Output: ")[2].splitlines()[0]
    harmless = LIVELY.replace("</skill_content>", "&lt;/skill_content>")
    assert printed == (harmless if dialect == "prowess" else LIVELY)


def test_what_is_printed_for_a_person_is_never_looked_at_again(put: Put, begin: Begin, work: Path) -> None:
    body = "Author: $0 ${SKILL_DIR}\nOutput: !`cat $SKILL_DIR/lively.txt`\nEnd: $0"
    path = put("report", body=body, extra="argument-hint: <word>")
    (path.parent / "lively.txt").write_text(LIVELY, encoding="utf-8")
    text = begin().expand("/report word")
    assert f"Author: word {path.parent}\n" in text
    assert "Output: " + LIVELY.replace("</skill>", "&lt;/skill>") + "\nEnd: word\n</skill>" in text
    assert list(work.iterdir()) == []


def test_what_is_printed_in_a_fork_cannot_end_its_element(put: Put, begin: Begin) -> None:
    path = put("report", body="Output: !`cat $SKILL_DIR/lively.txt`\nEnd", extra="context: fork")
    (path.parent / "lively.txt").write_text(LIVELY, encoding="utf-8")
    prepared = prowess.Toolset(begin()).prepare_fork("report", "Look.")
    assert isinstance(prepared, prowess.PreparedFork)
    assert f"Output: {LIVELY}\nEnd" in prepared.content
    message = prowess.fork_user_message(prepared)
    assert "Output: " + LIVELY.replace("</skill>", "&lt;/skill>") + "\nEnd\n\n</skill>" in message


# -- arguments are data ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        "; touch pwned",
        "$(touch pwned)",
        "`touch pwned`",
        "' ; touch pwned; '",
        '"; touch pwned; "',
        "-x --help",
        "&",
        "$0",
    ],
)
def test_what_a_person_says_is_not_part_of_a_command(arguments: str, put: Put, begin: Begin, work: Path) -> None:
    put("report", body='<!`printf "%s" "$ARGUMENTS"`>')
    assert f"<{arguments}>" in begin().expand(f"/report {arguments}")
    assert list(work.iterdir()) == []


def test_the_arguments_of_a_command_are_numbered_from_zero(put: Put, begin: Begin) -> None:
    put("report", body='!`printf "<%s>" "$0" "$1" "$2"`|!`printf "<%s>" "$@"`')
    assert "<a b><c><>|<c>" in begin().expand("/report 'a b' c")


def test_a_command_without_arguments_sees_none(put: Put, begin: Begin) -> None:
    put("report", body='<!`printf "%s|%s|%s" "$ARGUMENTS" "$1" "$#"`>')
    assert instructions(begin()) == "<||0>"


@pytest.mark.parametrize("arguments", ["a\0b", "\ud800", "x" * 200_000])
def test_arguments_that_no_process_can_be_given_break_nothing(arguments: str, put: Put, begin: Begin) -> None:
    put("report", body='<!`printf "%s" "$ARGUMENTS" | cut -c1-3`>')
    text = begin().expand(f"/report {arguments}")
    assert "<a b>" in text or "<[error executing " in text


def test_each_call_runs_the_commands_with_its_own_arguments(put: Put, begin: Begin, work: Path) -> None:
    put("report", body='<!`echo x >> ran; printf "%s" "$ARGUMENTS"`>')
    session = begin()
    assert instructions(session) == "<>"
    assert ("<one>" in session.expand("/report one"), "<two>" in session.expand("/report two")) == (True, True)
    assert lines(work / "ran") == 3


def test_the_first_call_runs_the_commands_once(put: Put, begin: Begin, work: Path) -> None:
    put("report", body='<!`echo x >> ran; printf "%s" "$ARGUMENTS"`>')
    assert "<one>" in begin().expand("/report one")
    assert lines(work / "ran") == 1


# -- where they run -------------------------------------------------------------------------------------------------


def test_commands_run_in_the_folder_of_the_session_one_after_the_other(put: Put, begin: Begin, work: Path) -> None:
    put("report", body="!`echo 1 > a; pwd -P`|!`cat a; echo 2 >> a`|!`cat a`")
    assert instructions(begin()) == f"{work.resolve()}|1|1\n2"


def test_without_a_folder_of_its_own_a_session_has_that_of_the_process(
    put: Put, begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("report", body="!`pwd -P`")
    monkeypatch.chdir(tmp_path)
    assert instructions(begin(base_dir=None)) == str(tmp_path.resolve())


PASSED_ON = {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"}
OWN = {"SKILL_DIR", "CLAUDE_SKILL_DIR", "CLAUDE_PLUGIN_ROOT", "SKILL_ROOT", "PROWESS_SKILL_DIR"}
OWN |= {"PROJECT_DIR", "CLAUDE_PROJECT_DIR", "ARGUMENTS"}
SHELLS_OWN = {"PWD", "OLDPWD", "SHLVL", "_"}


def test_commands_see_a_few_environment_variables(
    put: Put, begin: Begin, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("API_TOKEN", "AWS_SECRET_ACCESS_KEY", "LD_PRELOAD_NOT", "BASH_ENV", "PYTHONPATH", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "TOPSECRET-MARKER")
    monkeypatch.setenv("LANG", "C.UTF-8")
    put("report", body="!`env`")
    text = begin().expand("/report some words")
    rows = text.partition(">\n")[2].partition("\n</skill>")[0].splitlines()
    seen = dict(row.split("=", 1) for row in rows)
    assert "TOPSECRET-MARKER" not in text
    assert seen.keys() - SHELLS_OWN - PASSED_ON == OWN
    assert (seen["PROJECT_DIR"], seen["LANG"], seen["ARGUMENTS"]) == (str(work), "C.UTF-8", "some words")


def test_a_host_passes_variables_on_by_name(put: Put, begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GH_TOKEN", "OTHER_TOKEN", "SKILL_DIR"):
        monkeypatch.setenv(name, "TOPSECRET-MARKER")
    put("report", body='<!`echo "$GH_TOKEN|$OTHER_TOKEN|$NOT_SET|$(ls "$SKILL_DIR")"`>')
    session = begin(command_env=("GH_TOKEN", "NOT_SET", "SKILL_DIR"))
    assert instructions(session) == "<TOPSECRET-MARKER|||SKILL.md>"
    restored, _ = prowess.Session.restore(
        session.catalog, session.save(), trust=session.trust, command_env=["GH_TOKEN"]
    )
    assert instructions(restored) == "<TOPSECRET-MARKER|||SKILL.md>"
    assert instructions(begin()) == "<|||SKILL.md>"


@pytest.mark.parametrize("names", ["GH_TOKEN", ("A=B",), ("",), ("a\0b",), (7,)])
def test_what_names_no_variable_is_refused(names: Any, begin: Begin) -> None:
    with pytest.raises(prowess.SourceError, match="command_env"):
        begin(prowess.Catalog(), command_env=names)


def test_commands_have_no_input_and_no_terminal(put: Put, begin: Begin) -> None:
    put("report", body="<!`cat; test -t 0 || echo none; (: < /dev/tty) 2> /dev/null || echo no terminal`>")
    assert instructions(begin()) == "<none\nno terminal>"


# -- what never runs them -------------------------------------------------------------------------------------------


def test_reading_never_runs_anything(put: Put, begin: Begin, work: Path) -> None:
    put("report", body="Now !`touch ran`.")
    session = begin()
    skill = session.catalog["report"]
    texts = [
        skill.read_body(),
        skill.read_body(strip=True),
        skill.load().instructions,
        session.catalog.load("report").instructions,
        session.catalog.load_body("report"),
        session.read_resource("report", "SKILL.md"),
    ]
    assert [text for text in texts if "Now !`touch ran`." not in text or "did not run" in text] == []
    session.index("report")
    session.save()
    prowess.Toolset(session).prompt()
    assert list(work.iterdir()) == []


# -- again, stale, gone ---------------------------------------------------------------------------------------------


def test_activating_again_gives_what_was_printed_the_first_time(put: Put, begin: Begin, work: Path) -> None:
    put("report", body="!`echo x >> ran; wc -l < ran`")
    session = begin()
    first = session.activate("report")
    again = session.activate("report")
    assert (again.instructions, again.outputs, again.issues) == (first.instructions, first.outputs, first.issues)
    assert lines(work / "ran") == 1


def test_a_skill_that_was_deactivated_runs_its_commands_again(put: Put, begin: Begin, work: Path) -> None:
    put("report", body="!`echo x >> ran`")
    session = begin()
    session.activate("report")
    session.deactivate("report")
    session.activate("report")
    assert lines(work / "ran") == 2


def test_commands_that_ran_for_a_reading_tool_run_again_when_the_skill_is_activated(
    put: Put, begin: Begin, work: Path
) -> None:
    put("report", body="Now !`echo x >> ran; echo run`.")
    session = begin()
    assert "Now run." in loaded(session, "read_skill")
    assert (instructions(session), lines(work / "ran")) == ("Now run.", 2)


def test_a_changed_skill_runs_its_new_commands_if_it_is_trusted(
    put: Put, begin: Begin, trust: prowess.Trust, tmp_path: Path
) -> None:
    put("report", body="Now !`echo old`.")
    session = begin()
    assert instructions(session) == "Now old."
    put("report", body="Now it is !`echo new`.")
    session.refresh(prowess.scan(tmp_path / "skills"))
    changed = session.activate("report")
    assert changed.instructions == "Now it is !`echo new`."
    trust.grant_all(tmp_path / "skills")
    session.deactivate("report")
    assert instructions(session) == "Now it is new."


def test_a_call_of_a_changed_skill_runs_its_commands_once(put: Put, begin: Begin, work: Path, tmp_path: Path) -> None:
    put("report", body="Now !`echo old`.")
    session = begin()
    session.activate("report")
    put("report", body="Now !`echo x >> ran; echo new`.")
    session.trust.grant_all(tmp_path / "skills")  # type: ignore[union-attr]  # the session was given one
    session.refresh(prowess.scan(tmp_path / "skills"))
    assert "\nNow new.\n" in session.expand("/report")
    assert lines(work / "ran") == 1


def test_a_skill_that_has_gone_keeps_what_was_printed(put: Put, begin: Begin, tmp_path: Path) -> None:
    path = put("report", body="Now !`echo old`.")
    session = begin()
    session.activate("report")
    shutil.rmtree(path.parent)
    session.refresh(prowess.scan(tmp_path / "skills"))
    assert instructions(session) == "Now old."
    assert "\nNow old.\n" in session.expand("/report")


def test_a_restored_session_runs_commands_of_trusted_skills(put: Put, begin: Begin, trust: prowess.Trust) -> None:
    put("report", body="Now !`echo ran`.")
    session = begin()
    session.activate("report")
    restored, issues = prowess.Session.restore(session.catalog, session.save(), trust=trust)
    assert (restored.activate("report").instructions, issues) == ("Now ran.", ())
    plain, _ = prowess.Session.restore(session.catalog, session.save())
    assert plain.activate("report").instructions == "Now !`echo ran`."


# -- events ---------------------------------------------------------------------------------------------------------


def test_each_command_is_told_with_its_outcome(put: Put, begin: Begin, events: list[prowess.Event]) -> None:
    put("report", body="!`echo fine` !`exit 3` !`sleep 100`")
    begin(limits=SMALL).activate("report")
    told = [event for event in events if event.kind == "expanded"]
    assert [(e.skill, e.detail["command"], e.detail["limit"]) for e in told] == [
        ("report", "echo fine", ""),
        ("report", "exit 3", ""),
        ("report", "sleep 100", "timeout"),
    ]
    assert [event.detail["status"] for event in told[:2]] == [0, 3]
    assert all(isinstance(event.detail["seconds"], float) for event in told)
    assert [event.kind for event in events][-1] == "activated"


def test_a_command_that_did_not_run_is_not_told_as_one_that_ran(
    put: Put, begin: Begin, events: list[prowess.Event]
) -> None:
    put("report", body="Now !`echo ran`.")
    begin(trust=None).activate("report")
    assert [event.kind for event in events] == ["not-expanded", "activated"]


def test_events_hold_nothing_that_was_printed(put: Put, begin: Begin, events: list[prowess.Event]) -> None:
    put("report", body="Now !`echo a-secret | tr a b`.")
    assert "b-secret" in loaded(begin(), "prowess")
    assert "b-secret" not in json.dumps([[event.kind, event.skill, dict(event.detail)] for event in events])


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="needs a list of the open files")
def test_the_hosts_own_process_is_left_as_it_was(put: Put, begin: Begin) -> None:
    """No descriptor stays open, no handler of signals is set."""
    put("report", body="!`echo one`!`exit 1`!`echo three`")
    before = sorted(Path("/dev/fd").iterdir()), signal.getsignal(signal.SIGCHLD)
    instructions(begin())
    assert (sorted(Path("/dev/fd").iterdir()), signal.getsignal(signal.SIGCHLD)) == before
