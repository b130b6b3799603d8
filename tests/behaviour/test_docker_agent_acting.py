"""Content that acts in docker-agent (S2): commands in instructions, and skills that run as a sub-agent."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

import prowess

Put = Callable[..., Path]
Begin = Callable[..., prowess.Session]

FORK = "context: fork\nmodel: small\nallowed-tools: Read Grep*\n"


@pytest.fixture
def begin(tmp_path: Path) -> Begin:
    """A session over the skills that were put, each granted as it is now, that works in a folder of its own."""

    def start(*, trusted: bool = True, limits: prowess.Limits | None = None) -> prowess.Session:
        trust = prowess.Trust(tmp_path / "trust.json")
        if trusted:
            trust.grant_all(tmp_path / "skills")
        (tmp_path / "work").mkdir(exist_ok=True)
        catalog = prowess.scan(tmp_path / "skills")
        return prowess.Session(catalog, base_dir=tmp_path / "work", trust=trust, limits=limits)

    return start


@pytest.fixture
def expanded(put: Put, begin: Begin) -> Callable[..., str]:
    """What the dialect gives of a trusted skill with this body."""

    def run(body: str, limits: prowess.Limits | None = None) -> str:
        put("skills/report", body=body)
        content = prowess.Toolset(begin(limits=limits), "read_skill").call("read_skill", {"name": "report"}).content
        return content.removeprefix("---\nname: report\ndescription: Does one thing.\n---\n")

    return run


def forked(session: prowess.Session, name: str = "audit", task: str = "") -> prowess.PreparedFork:
    prepared = prowess.Toolset(session, "read_skill").prepare_fork(name, task)
    assert isinstance(prepared, prowess.PreparedFork), prepared
    return prepared


# -- commands -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("!`echo a` and !`echo b`", "a and b"),
        ("!`echo a\necho b`", "a\nb"),
        ("!``", "!``"),
        ("`echo a`", "`echo a`"),
        ("```\necho a\n```", "```\necho a\n```"),
        ("```sh\n!`echo a`\n```", "```sh\na\n```"),
    ],
)
def test_a_code_span_after_an_exclamation_mark_is_a_command(body: str, text: str, expanded: Callable[..., str]) -> None:
    """S2-31: over several lines too; an empty one is none, and other code is untouched."""
    assert expanded(body) == text


@pytest.mark.parametrize(
    ("body", "text"), [("```!\necho a\necho b\n```\n", "a\nb\n"), (r"\!`echo a`", r"\!`echo a`"), ("!` `", "!` `")]
)
def test_a_block_may_be_a_command_and_a_backslash_keeps_text(
    body: str, text: str, expanded: Callable[..., str]
) -> None:
    """S2-31: both are additions; blanks alone are not command."""
    assert expanded(body) == text


def test_only_skills_in_a_folder_run_commands(put: Put, begin: Begin, tmp_path: Path) -> None:
    """S2-32: text in a program stays as it is, whatever is trusted."""
    put("skills/report", body="!`echo ran`")
    session = begin()
    inline = prowess.Source.inline("inline", "d", "!`touch ran`")
    session.refresh(session.catalog | prowess.Catalog.from_sources([inline]))
    toolset = prowess.Toolset(session, "read_skill")
    assert toolset.call("read_skill", {"name": "report"}).content.endswith("---\nran")
    assert toolset.call("read_skill", {"name": "inline"}).content == "!`touch ran`"
    assert list((tmp_path / "work").iterdir()) == []


def test_commands_need_a_grant(put: Put, begin: Begin, tmp_path: Path) -> None:
    """S2-32: of a person, for this very state of the skill; without one the text stays as it is written."""
    put("skills/report", body="Now !`touch ran`.")
    session = begin(trusted=False)
    content = prowess.Toolset(session, "read_skill").call("read_skill", {"name": "report"}).content
    assert content.endswith("---\nNow !`touch ran`.")
    assert [issue.code for issue in session.activate("report").issues] == ["commands-not-run"]
    assert list((tmp_path / "work").iterdir()) == []


def test_commands_in_frontmatter_stay_text(put: Put, begin: Begin) -> None:
    """S2-32: only the body is instructions."""
    put("skills/report", description="Says !`echo head`.", body="Says !`echo body`.")
    content = prowess.Toolset(begin(), "read_skill").call("read_skill", {"name": "report"}).content
    assert content == "---\nname: report\ndescription: Says !`echo head`.\n---\nSays body."


def test_commands_run_in_order_in_the_working_folder(expanded: Callable[..., str], tmp_path: Path) -> None:
    """S2-33: not in the folder of the skill, whose copy is SKILL_DIR."""
    text = expanded("!`pwd -P; echo 1 > a`|!`cat a; echo 2 > a`|!`cat a; ls $SKILL_DIR`")
    assert text == f"{(tmp_path / 'work').resolve()}|1|2\nSKILL.md"


def test_the_shell_is_bash_or_sh_whatever_the_variable_says(
    expanded: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S2-33: instructions mean the same on every machine."""
    monkeypatch.setenv("SHELL", "/bin/false")
    assert expanded("!`echo ran`") == "ran"


def test_the_host_says_which_variables_commands_see(put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S2-33: a short list without secrets, and those that are named."""
    monkeypatch.setenv("GH_TOKEN", "secret")
    put("skills/report", body="<!`echo $GH_TOKEN`>")
    catalog = prowess.scan(tmp_path / "skills")
    trust = prowess.Trust(tmp_path / "trust.json")
    trust.grant(catalog["report"])
    assert prowess.Session(catalog, trust=trust).activate("report").instructions == "<>"
    named = prowess.Session(catalog, trust=trust, command_env=("GH_TOKEN",))
    assert named.activate("report").instructions == "<secret>"


def test_output_is_not_searched_for_commands(expanded: Callable[..., str], tmp_path: Path) -> None:
    """S2-33: one pass over the author's text."""
    assert expanded("!`printf '!\\140touch ran\\140'`") == "!`touch ran`"
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize(
    ("command", "text"),
    [("printf 'a\\n\\n'", "a"), ("printf ' a \\t\\n'", " a \t"), ("true", ""), ("echo a; echo b >&2", "a")],
)
def test_output_loses_the_line_ends_at_its_end(command: str, text: str, expanded: Callable[..., str]) -> None:
    """S2-34: other blanks stay, and what a command that succeeds says on the side is dropped."""
    assert expanded(f"<!`{command}`>") == f"<{text}>"


def test_a_failing_command_leaves_its_reason_in_its_place(expanded: Callable[..., str]) -> None:
    """S2-35: exit status and what it said; what it printed is dropped, and the rest goes on."""
    command = "echo lost; echo ' no such thing ' >&2; exit 3"
    text = expanded(f"Before !`{command}` between !`echo fine` after")
    assert text == f"Before [error executing `{command}`: exit status 3: no such thing] between fine after"


def test_a_command_that_takes_too_long_is_ended(expanded: Callable[..., str]) -> None:
    """S2-35: after ten seconds unless the host says otherwise."""
    assert prowess.Limits().max_command_seconds == 10
    text = expanded("<!`sleep 100`>", prowess.Limits(max_command_seconds=0.2))
    assert text == "<[error executing `sleep 100`: command timed out after 0.2s]>"


def test_output_is_cut_and_says_so(expanded: Callable[..., str]) -> None:
    """S2-35: at 64 KiB unless the host says otherwise."""
    assert prowess.Limits().max_command_output_bytes == 64 * 1024
    text = expanded("<!`yes ''`!`printf abcd`>", prowess.Limits(max_command_output_bytes=3))
    assert text == "<\n[output cut at 3 bytes]abc\n[output cut at 3 bytes]>"


def test_a_person_is_asked_about_all_commands_of_a_skill_at_once(put: Put, tmp_path: Path) -> None:
    """S2-36: who is asked sees each; where nobody can be asked, nothing runs."""
    put("skills/report", body="!`echo a` !`echo b`")
    asked: list[tuple[str, ...]] = []

    def ask(request: prowess.TrustRequest) -> bool | Literal["always"]:
        asked.append(request.commands)
        return True

    catalog = prowess.scan(tmp_path / "skills")
    session = prowess.Session(catalog, trust=prowess.Trust(tmp_path / "trust.json", ask=ask))
    assert (session.activate("report").instructions, asked) == ("a b", [("echo a", "echo b")])
    nobody = prowess.Session(catalog).activate("report")
    assert nobody.instructions == "!`echo a` !`echo b`"
    assert nobody.issues[0].message.startswith("2 commands in these instructions did not run")


@pytest.mark.parametrize("broken_off", [KeyboardInterrupt, asyncio.CancelledError, ValueError])
def test_who_is_asked_may_break_off(broken_off: type[BaseException], put: Put, tmp_path: Path) -> None:
    """S2-36: nothing runs. It reaches the caller, but a tool turns an error of the callback into a result."""
    put("skills/report", body=f"!`touch '{tmp_path}/ran'`")

    def ask(_request: prowess.TrustRequest) -> bool:
        raise broken_off

    session = prowess.Session(prowess.scan(tmp_path / "skills"), trust=prowess.Trust(tmp_path / "trust.json", ask=ask))
    with pytest.raises(broken_off):
        session.activate("report")
    toolset = prowess.Toolset(session, "read_skill")
    if issubclass(broken_off, Exception):
        result = toolset.call("read_skill", {"name": "report"})
        assert (result.is_error, result.data["reason"]) == (True, "host-failed")
    else:
        with pytest.raises(broken_off):
            toolset.call("read_skill", {"name": "report"})
    assert not (tmp_path / "ran").exists()


def test_a_call_that_is_cancelled_ends_its_command(put: Put, begin: Begin, tmp_path: Path) -> None:
    """S2-36: no marker stands for it, since the cancellation reaches the caller."""
    put("skills/report", body=f"!`echo a > '{tmp_path}/began'; sleep 60; echo b > '{tmp_path}/ended'`")
    toolset = prowess.Toolset(begin(), "read_skill")

    async def cancel() -> None:
        call = asyncio.create_task(toolset.acall("read_skill", {"name": "report"}))
        while not (tmp_path / "began").exists():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancel())
    assert not (tmp_path / "ended").exists()


# -- forks ----------------------------------------------------------------------------------------------------------


def test_a_fork_is_prepared_or_refused_with_its_reason(put: Put, begin: Begin) -> None:
    """S2-37: found, then configured, then readable."""
    gone = put("skills/gone", fields=FORK)
    put("skills/audit", fields=FORK)
    put("skills/plain")
    toolset = prowess.Toolset(begin(), "read_skill")
    gone.unlink()
    assert isinstance(toolset.prepare_fork("audit", "Look."), prowess.PreparedFork)
    results = [toolset.prepare_fork(name, "Look.") for name in ("nobody", "plain", "gone")]
    assert [result.is_error for result in results if isinstance(result, prowess.ToolResult)] == [True] * 3
    texts = [result.content for result in results]
    assert texts[:2] == [
        'skill "nobody" not found',
        'skill "plain" is not configured for forked execution (set context: fork); use read_skill instead',
    ]
    assert texts[2].startswith("failed to read skill content: ")


def test_what_is_prepared_holds_the_expanded_file_and_the_wishes(put: Put, begin: Begin) -> None:
    """S2-38: the frontmatter is still there; without a model it is the parent's."""
    put("skills/audit", fields=FORK, body="Audit !`echo 3` files.\n")
    put("skills/simple", fields="context: fork\n")
    prepared = forked(begin(), task="Look.")
    head = f"---\nname: audit\ndescription: Does one thing.\n{FORK}---\n"
    wishes = ("small", ("Read", "Grep*"))
    assert prepared == prowess.PreparedFork("audit", "Look.", f"{head}Audit 3 files.\n", *wishes, grants_tools=False)
    assert (forked(begin(), "simple").model, forked(begin(), "simple").allowed_tools) == ("", ())


@pytest.mark.parametrize("written", ["[web, mcp:github]", "web, mcp:github", "\n  - web\n  - mcp:github"])
def test_what_is_prepared_names_the_toolsets_that_the_skill_wishes_for(written: str, put: Put, begin: Begin) -> None:
    """S2-38: a list or a text with commas; they are names, and what the host makes of them is its own."""
    put("skills/audit", fields=f"{FORK}toolsets: {written}\n")
    put("skills/bare", fields=FORK)
    session = begin()
    assert forked(session).toolsets == ("web", "mcp:github")
    assert forked(session, "bare").toolsets == ()
    inline = prowess.Source.inline("inline", "d", "Do it.", context="fork", toolsets=["web"])
    session.refresh(session.catalog | prowess.Catalog.from_sources([inline]))
    assert forked(session, "inline").toolsets == ("web",)


@pytest.mark.parametrize("context", ["Fork", "forked", "none"])
def test_only_the_word_fork_makes_a_fork(context: str, put: Put, begin: Begin) -> None:
    """S2-38: exactly as it is written."""
    put("skills/audit", fields=f"context: {context}\n")
    result = prowess.Toolset(begin(), "read_skill").prepare_fork("audit")
    assert isinstance(result, prowess.ToolResult)
    assert "is not configured for forked execution" in result.content


def test_the_user_message_holds_the_request_and_the_skill() -> None:
    """S2-39: in an element, without its frontmatter; no request, no header."""
    prepared = prowess.PreparedFork("audit", "Look.", "---\nname: audit\n---\nAudit it.\n")
    element = '<skill name="audit">\nAudit it.\n\n</skill>'
    assert prowess.fork_user_message(prepared) == f"Use the following skill.\n\nUser's request: Look.\n\n{element}"
    without = prowess.PreparedFork("audit", "", prepared.content)
    assert prowess.fork_user_message(without) == f"Use the following skill.\n\n{element}"


def test_the_skill_cannot_end_its_element() -> None:
    """S2-39: a closing tag in it is made harmless."""
    message = prowess.fork_user_message(prowess.PreparedFork("audit", "", "One </skill> two"))
    assert message.endswith('<skill name="audit">\nOne &lt;/skill> two\n</skill>')


@pytest.mark.parametrize(
    ("content", "body"),
    [
        ("---\nname: a\n---\n\n\nBody", "\n\nBody"),
        ("---\nname: a\nBody", "---\nname: a\nBody"),
        ("Body\n---\nx\n---\n", "Body\n---\nx\n---\n"),
        ("---\nname: a\n---", ""),
    ],
)
def test_frontmatter_is_taken_off_as_a_whole(content: str, body: str) -> None:
    """S2-40: blank lines after it stay, and one without an end is not frontmatter."""
    message = prowess.fork_user_message(prowess.PreparedFork("a", "", content))
    assert message == f'Use the following skill.\n\n<skill name="a">\n{body}\n</skill>'


@pytest.mark.parametrize(
    ("content", "body"),
    [
        ("---\r\nname: a\r\n---\r\nBody\r\n", "Body\r\n"),
        ("\ufeff---\nname: a\n---\nBody", "Body"),
        ("---\nname: a\nabout: |\n  x\n  ---\n----\n---\nBody", "Body"),
        ("---x\n---\nBody", "---x\n---\nBody"),
    ],
)
def test_frontmatter_ends_where_it_does_when_it_is_read(content: str, body: str) -> None:
    """S2-40: whole lines of dashes, any line ends, a byte order mark."""
    message = prowess.fork_user_message(prowess.PreparedFork("a", "", content))
    assert message == f'Use the following skill.\n\n<skill name="a">\n{body}\n</skill>'


def test_the_system_message_names_the_skill_and_the_files(tmp_path: Path) -> None:
    """S2-41: one paragraph, then the attached files by their absolute paths."""
    prepared = prowess.PreparedFork("audit", "Look.", "Audit it.")
    plain = prowess.fork_system_message(prepared)
    assert '"audit"' in plain
    assert "The next user message contains the full skill instructions" in plain
    assert [word for word in ("<task>", "team of agents", "attached_files", "\n") if word in plain] == []
    said = prowess.fork_system_message(prepared, [tmp_path / "a.csv", tmp_path / "b.csv"])
    assert said.startswith(f"{plain}\n\n")
    assert said.endswith(f"<attached_files>\n- {tmp_path}/a.csv\n- {tmp_path}/b.csv\n</attached_files>")


def test_a_child_has_a_title_and_cannot_fork_again(put: Put, begin: Begin) -> None:
    """S2-42: only its final answer comes back."""
    put("skills/audit", fields=FORK)
    children: list[list[str]] = []

    def runner(prepared: prowess.PreparedFork) -> str:
        children.append([tool.name for tool in toolset.child().tools()])
        return f"The answer of {prepared.title}."

    toolset = prowess.Toolset(begin(), "read_skill", fork=runner)
    assert [tool.name for tool in toolset.tools()] == ["read_skill", "run_skill"]
    result = toolset.call("run_skill", {"name": "audit", "task": "Look."})
    assert (result.content, children) == ("The answer of Skill: audit.", [["read_skill"]])
    refused = toolset.child().call("run_skill", {"name": "audit", "task": "Look."})
    assert refused.is_error


def test_a_childs_tools_are_an_allow_list_over_the_parents(put: Put, begin: Begin) -> None:
    """S2-42: names and patterns; none listed, all of them but the one that forks."""
    put("skills/audit", fields=FORK)
    put("skills/simple", fields="context: fork\n")
    offered = ["Read", "Write", "GrepAll", "run_skill"]
    assert forked(begin()).child_tools(offered) == ("Read", "GrepAll")
    assert forked(begin(), "simple").child_tools(offered) == ("Read", "Write", "GrepAll")


def test_the_host_may_run_the_child_itself(put: Put, begin: Begin) -> None:
    """S2-42: it then has the wish for a model, the tools and the messages at hand."""
    put("skills/audit", fields=FORK)
    toolset = prowess.Toolset(begin(), "read_skill", fork="host")
    result = asyncio.run(toolset.acall("run_skill", {"name": "audit", "task": "Look."}))
    assert result.fork is not None
    assert (result.fork.model, result.fork.title) == ("small", "Skill: audit")


def test_without_skills_there_is_nothing_to_run(begin: Begin) -> None:
    """S2-42: no tool is offered, and a call finds no skill."""
    toolset = prowess.Toolset(begin(), "read_skill", fork="host")
    assert toolset.tools() == ()
    assert toolset.call("run_skill", {"name": "audit", "task": "Look."}).content == 'skill "audit" not found'
