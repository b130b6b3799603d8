"""Skills inside of a FastMCP server: real clients of the package fastmcp, with and without sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.adapters import mounting_checks as checks
from tests.adapters.mounting_checks import MODES
from tests.page_snippets import run_framework_page

if TYPE_CHECKING:
    from pathlib import Path

fastmcp = pytest.importorskip("fastmcp", reason="NOT TESTED: fastmcp is not installed; make test-adapters installs it")

from fastmcp.client.elicitation import ElicitResult

from prowess.adapters.fastmcp import Skills


def make_server() -> Any:
    server = fastmcp.FastMCP("mine", instructions="Be kind.")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    return server


def open_client(server: Any, mode: str, person: checks.Person | None) -> Any:
    async def answer(message: str, *_: Any) -> Any:
        assert person is not None
        return person.answer(message, ElicitResult)

    return fastmcp.Client(server, mode=mode, elicitation_handler=answer if person else None)


async def call(client: Any, name: str, arguments: dict[str, Any]) -> Any:
    return await client.call_tool(name, arguments, raise_on_error=False)


async def list_tools(client: Any) -> Any:
    return await client.list_tools()


FASTMCP = checks.ServerFramework("fastmcp", Skills, make_server, open_client, call, list_tools)


@MODES
def test_one_line_gives_an_agent_skills(library: Path, mode: str) -> None:
    checks.check_one_line(FASTMCP, library, mode)


def test_paths_of_this_machine_stay_here(library: Path) -> None:
    checks.check_hidden_paths(FASTMCP, library)


def test_each_conversation_has_its_own_session(library: Path) -> None:
    checks.check_own_sessions(FASTMCP, library)


def test_call_without_a_session_is_a_conversation_of_its_own(library: Path) -> None:
    checks.check_no_session(FASTMCP, library)


def test_conversation_has_the_key_that_the_server_finds(library: Path) -> None:
    checks.check_found_key(FASTMCP, library, fastmcp.Context)


@MODES
def test_errors_are_results(library: Path, mode: str) -> None:
    checks.check_errors(FASTMCP, library, mode)


@MODES
def test_approval_shows_the_request_and_resuming_runs_it(library: Path, mode: str) -> None:
    checks.check_approval(FASTMCP, library, mode)


@MODES
@pytest.mark.parametrize("answer", ["no", "decline", "cancel"])
def test_refused_call_does_not_run(library: Path, mode: str, answer: str) -> None:
    checks.check_refusal(FASTMCP, library, mode, answer)


@MODES
def test_yes_ends_with_its_call_although_that_was_cancelled(library: Path, mode: str) -> None:
    checks.check_cancelled_approval(FASTMCP, library, mode)


def test_approvals_count_for_one_call_in_any_order(library: Path) -> None:
    checks.check_approval_orders(FASTMCP, library)


@pytest.mark.parametrize("has_key", [True, False])
def test_answer_that_is_about_no_question_is_an_error(library: Path, has_key: bool) -> None:
    checks.check_answer_about_nothing(FASTMCP, library, has_key=has_key)


@MODES
def test_changed_files_are_asked_about_again(library: Path, mode: str) -> None:
    checks.check_changed_files(FASTMCP, library, mode)


@MODES
def test_approval_is_not_a_grant(library: Path, mode: str) -> None:
    checks.check_second_question(FASTMCP, library, mode)


@MODES
def test_client_that_cannot_ask_is_told_that_nothing_ran(library: Path, mode: str) -> None:
    checks.check_nobody_to_ask(FASTMCP, library, mode)


def test_pictures_are_content_parts(library: Path) -> None:
    checks.check_pictures(FASTMCP, library)


def test_skills_that_fork_are_loaded_instead(library: Path) -> None:
    checks.check_forks(FASTMCP, library)


def test_reload_between_turns(library: Path) -> None:
    checks.check_reload(FASTMCP, library)


def test_enforcing_is_refused_because_a_server_sees_no_other_tools(library: Path) -> None:
    checks.check_enforcing(FASTMCP, library)


def test_example_runs(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_example(FASTMCP, library, monkeypatch)


def test_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run_framework_page("fastmcp", tmp_path, monkeypatch)
    checks.check_server_of_page(FASTMCP, names["server"])


@MODES
def test_each_user_has_the_skills_of_their_scope(library: Path, mode: str) -> None:
    checks.check_scopes(FASTMCP, library, mode)


def test_two_skills_of_one_server_are_refused(library: Path) -> None:
    checks.check_two_skills(FASTMCP, library)
