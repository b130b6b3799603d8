"""What a model sees and calls, in one of the dialects: the prompt block, the tools, and one dispatcher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prowess.errors import SkillError, SourceError
from prowess.runtime.events import Event
from prowess.tools.arguments import BadArgumentsError, parse_arguments
from prowess.tools.definitions import ToolResult
from prowess.tools.dialects import DIALECTS
from prowess.tools.view import Options, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prowess.runtime.session import Session
    from prowess.select.budget import BudgetReport
    from prowess.tools.definitions import ToolDefinition
    from prowess.tools.dialects import Tool


_SHORT = 128
_LONGEST_ERROR = 2_000


def _bounded(result: ToolResult) -> ToolResult:
    """What a model sends does not decide how much it gets back."""
    if len(result.content) <= _LONGEST_ERROR:
        content = result.content
    else:
        content = result.content[: _LONGEST_ERROR - _SHORT] + " … " + result.content[-_SHORT:]
    data = {key: value[:_LONGEST_ERROR] if isinstance(value, str) else value for key, value in result.data.items()}
    return ToolResult(content, is_error=True, data=data)


class Toolset:
    """The tools of one session in one dialect.

    ``allowed``: the only skills that the model may have, by name. ``budget``: tokens for the listing. ``max_bytes``:
    the most that reading a file gives. ``hint_resources``: say which files a skill has. ``index_in_description``:
    where the dialect can put the listing into a tool's description, do.
    """

    def __init__(
        self,
        session: Session,
        dialect: str = "prowess",
        allowed: Iterable[str] | None = None,
        *,
        budget: int | None = None,
        max_bytes: int | None = None,
        hint_resources: bool = True,
        index_in_description: bool = True,
    ) -> None:
        found = DIALECTS.get(dialect)
        if found is None:
            raise SourceError(f"unknown dialect {dialect!r}; one of {', '.join(DIALECTS)}")
        self._session = session
        self._dialect = found
        names = None if allowed is None else tuple(allowed)
        self._options = Options(names, budget, max_bytes, hint_resources, index_in_description)
        self._tools_by_name = {tool.name: tool for tool in found.tools}
        self._report: BudgetReport | None = None

    @property
    def dialect(self) -> str:
        return self._dialect.name

    @property
    def session(self) -> Session:
        return self._session

    def prompt(self, query: str = "") -> str:
        """The block for the system prompt; ``""`` when there is nothing to say."""
        return self._prompt(self._view(query))

    async def aprompt(self, query: str = "") -> str:
        """The same, awaiting an asynchronous selector."""
        return self._prompt(await self._aview(query))

    def _prompt(self, view: View) -> str:
        preloaded = (found for found in self._session.preloaded() if view.may_use(found.skill.name))
        blocks = (self._dialect.prompt(view), *map(self._dialect.preloaded, preloaded))
        self._report = view.report
        self._tell(view)
        return "\n\n".join(block for block in blocks if block)

    def _tell(self, view: View) -> None:
        self._session.tell(Event("listed", "", {"names": view.report.shown, "tokens": view.report.tokens}))
        if view.report.is_cut:
            detail = {
                "shortened": view.report.shortened,
                "dropped": view.report.dropped,
                "omitted": view.report.omitted,
            }
            self._session.tell(Event("cut", "", detail))

    def tools(self, query: str = "") -> tuple[ToolDefinition, ...]:
        """The tools to offer now: each of them can do something."""
        return self._tools(self._view(query))

    async def atools(self, query: str = "") -> tuple[ToolDefinition, ...]:
        """The same, awaiting an asynchronous selector."""
        return self._tools(await self._aview(query))

    def _tools(self, view: View) -> tuple[ToolDefinition, ...]:
        return tuple(tool.describe(view) for tool in self._dialect.tools if tool.offered(view))

    def explicit(self, name: str, request: str = "") -> str:
        """The text of a user's message that has the model load a skill by its tool, whatever the listing shows."""
        tool = self._dialect.tools[0]
        key = next(iter(tool.describe(self._view("")).parameters["required"]))
        said = f"This is a user-explicit skill activation. Call the {tool.name} tool with {key}={name!r}."
        follow = "Then follow its instructions."
        asked = f"\n\n<user-instructions>{request}</user-instructions>" if request else ""
        return f"{said} {follow}{asked}"

    def report(self) -> BudgetReport:
        """What the last listing cost, and what was cut to make it fit."""
        if self._report is None:
            self.prompt()
        assert self._report is not None  # noqa: S101 - prompt() has set it
        return self._report

    def call(self, name: str, arguments: Mapping[str, Any] | str | bytes | None = None) -> ToolResult:
        """Answer a model's call; never raises: what goes wrong is a result that says what to do next."""
        tool = self._tools_by_name.get(name)
        if tool is None:
            known = ", ".join(tool.name for tool in self._dialect.tools)
            message = f"unknown skill tool: {name[:_SHORT]}; known: {known}"
            self._session.tell(Event("refused", "", {"tool": name[:_SHORT], "code": "unknown-tool"}))
            return ToolResult(message, is_error=True, data={"reason": "unknown-tool"})
        if not self._session.has_listener:
            result = self._answer(tool, arguments)
            return _bounded(result) if result.is_error else result
        with self._session.overheard() as told:
            result = self._answer(tool, arguments)
        if result.is_error and "refused" not in told:
            self._refused(tool, result, arguments)
        return _bounded(result) if result.is_error else result

    def _refused(self, tool: Tool, result: ToolResult, arguments: Mapping[str, Any] | str | bytes | None) -> None:
        """Tell of a refusal that the session did not see."""
        try:
            given = parse_arguments(arguments)
        except BadArgumentsError:
            given = {}
        name = given.get("skill_name", given.get("name"))
        detail = {"tool": tool.name, "code": result.data.get("reason", "bad-arguments")}
        self._session.tell(Event("refused", name[:_SHORT] if isinstance(name, str) else "", detail))

    async def acall(self, name: str, arguments: Mapping[str, Any] | str | bytes | None = None) -> ToolResult:
        """The same from asynchronous code; files are read in a thread."""
        import asyncio  # noqa: PLC0415 - only asynchronous hosts need it

        return await asyncio.to_thread(self.call, name, arguments)

    def _answer(self, tool: Tool, arguments: Mapping[str, Any] | str | bytes | None) -> ToolResult:
        try:
            return tool.handler(self._view(""), parse_arguments(arguments))
        except (SkillError, BadArgumentsError) as error:
            return self._dialect.error(tool.name, error)
        except Exception as error:  # noqa: BLE001 - the edge to a model: a conversation must go on
            return self._dialect.error(tool.name, SkillError(f"{type(error).__name__}: {error}"))

    def _view(self, query: str) -> View:
        return View(self._session, self._options, lambda: self._session.candidates(query))

    async def _aview(self, query: str) -> View:
        found = await self._session.acandidates(query)
        return View(self._session, self._options, lambda: found)
