"""Skills inside of an MCPServer: real clients of the package mcp, with and without sessions."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest

from tests.adapters import mounting_checks as checks
from tests.adapters.mounting_checks import MODES
from tests.page_snippets import run_framework_page

if TYPE_CHECKING:
    from pathlib import Path

mcp = pytest.importorskip("mcp_types", reason="NOT TESTED: mcp is not installed; make test-adapters installs it")

from mcp import Client
from mcp.server.mcpserver import Context, MCPServer

from prowess.adapters.mcp import Skills


def make_server() -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer("mine", instructions="Be kind.")

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    return server


def open_client(server: MCPServer[Any], mode: Any, person: checks.Person | None) -> Client:
    async def answer(context: Any, params: Any) -> Any:  # noqa: ARG001 - the signature of the SDK
        assert person is not None
        return person.answer(params.message, mcp.ElicitResult)

    return Client(server, mode=mode, elicitation_callback=answer if person else None)


async def call(client: Client, name: str, arguments: dict[str, Any]) -> Any:
    return await client.call_tool(name, arguments)


async def list_tools(client: Client) -> Any:
    return (await client.list_tools()).tools


MCP = checks.ServerFramework("mcp", Skills, make_server, open_client, call, list_tools)


@MODES
def test_one_line_gives_an_agent_skills(library: Path, mode: str) -> None:
    checks.check_one_line(MCP, library, mode)


def test_paths_of_this_machine_stay_here(library: Path) -> None:
    checks.check_hidden_paths(MCP, library)


def test_each_conversation_has_its_own_session(library: Path) -> None:
    skills = checks.check_own_sessions(MCP, library)
    gc.collect()
    assert len(skills.conversations) == 0


def test_call_without_a_session_is_a_conversation_of_its_own(library: Path) -> None:
    checks.check_no_session(MCP, library)


def test_conversation_has_the_key_that_the_server_finds(library: Path) -> None:
    checks.check_found_key(MCP, library, Context)


@MODES
def test_errors_are_results(library: Path, mode: str) -> None:
    checks.check_errors(MCP, library, mode)


@MODES
def test_approval_shows_the_request_and_resuming_runs_it(library: Path, mode: str) -> None:
    checks.check_approval(MCP, library, mode)


@MODES
@pytest.mark.parametrize("answer", ["no", "decline", "cancel"])
def test_refused_call_does_not_run(library: Path, mode: str, answer: str) -> None:
    checks.check_refusal(MCP, library, mode, answer)


@MODES
def test_yes_ends_with_its_call_although_that_was_cancelled(library: Path, mode: str) -> None:
    checks.check_cancelled_approval(MCP, library, mode)


@MODES
def test_changed_files_are_asked_about_again(library: Path, mode: str) -> None:
    checks.check_changed_files(MCP, library, mode)


@MODES
def test_approval_is_not_a_grant(library: Path, mode: str) -> None:
    checks.check_second_question(MCP, library, mode)


def test_approvals_count_for_one_call_in_any_order(library: Path) -> None:
    checks.check_approval_orders(MCP, library)


@pytest.mark.parametrize("has_key", [True, False])
def test_answer_that_is_about_no_question_is_an_error(library: Path, has_key: bool) -> None:
    checks.check_answer_about_nothing(MCP, library, has_key=has_key)


@MODES
def test_client_that_cannot_ask_is_told_that_nothing_ran(library: Path, mode: str) -> None:
    checks.check_nobody_to_ask(MCP, library, mode)


def test_pictures_are_content_parts(library: Path) -> None:
    checks.check_pictures(MCP, library)


def test_skills_that_fork_are_loaded_instead(library: Path) -> None:
    checks.check_forks(MCP, library)


def test_reload_between_turns(library: Path) -> None:
    checks.check_reload(MCP, library)


def test_tool_of_the_same_name_is_refused(library: Path) -> None:
    server: MCPServer[Any] = MCPServer("mine")

    @server.tool()
    def load_skill(name: str) -> str:
        return name

    with pytest.raises(ValueError, match="has a tool 'load_skill' already"):
        Skills(library).mount(server)


def test_enforcing_is_refused_because_a_server_sees_no_other_tools(library: Path) -> None:
    checks.check_enforcing(MCP, library)


def test_example_runs(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_example(MCP, library, monkeypatch)


def test_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run_framework_page("mcp", tmp_path, monkeypatch)
    checks.check_server_of_page(MCP, names["server"])


@MODES
def test_each_user_has_the_skills_of_their_scope(library: Path, mode: str) -> None:
    checks.check_scopes(MCP, library, mode)


def test_two_skills_of_one_server_are_refused(library: Path) -> None:
    checks.check_two_skills(MCP, library)
