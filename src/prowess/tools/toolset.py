"""What a model sees and calls, in one of the dialects: the prompt block, the tools, and one dispatcher."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Literal

from prowess.arguments import check_count, check_instance, check_text, check_texts
from prowess.errors import SkillError, SourceError
from prowess.runtime.events import Event, measured
from prowess.runtime.session import Session
from prowess.spec.hidden import one_line
from prowess.spec.markup import CALLED, CONTENT, neutralize_tags
from prowess.tools.acting import prepare_fork
from prowess.tools.arguments import BadArgumentsError, parse_arguments
from prowess.tools.definitions import ToolResult
from prowess.tools.dialects import DIALECTS
from prowess.tools.view import Options, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prowess.model import DialectName
    from prowess.runtime.fork import ForkRunner, PreparedFork
    from prowess.runtime.scripts import Scripts
    from prowess.select.budget import BudgetReport
    from prowess.tools.definitions import ToolDefinition
    from prowess.tools.dialects import Tool


_SHORT = 128
_LONGEST_ERROR = 2_000


def _checked_fork(fork: ForkRunner | Literal["host"] | None) -> ForkRunner | Literal["host"] | None:
    if fork is None or fork == "host" or callable(fork):
        return fork
    raise SourceError(f"fork is a callable, 'host' or None, not {fork!r}")


def _checked_scripts(scripts: Scripts | bool | None) -> Scripts | None:  # noqa: FBT001 - the public signature
    if scripts is None or scripts is False:
        return None
    from prowess.runtime.scripts import Scripts  # noqa: PLC0415 - only when scripts are asked for

    if isinstance(scripts, Scripts):
        return scripts
    if scripts is True:
        return Scripts()
    raise SourceError(f"scripts is prowess.Scripts(…), True or None, not {scripts!r}")


def _tell_unused(keyword: str, what: str, dialect: str) -> None:
    """Warn of a keyword that changes nothing: the dialect is another system's, and has no such tool."""
    import warnings  # noqa: PLC0415 - only for those who mistook a dialect

    able = ", ".join(d.name for d in DIALECTS.values() if (d.forks if keyword == "fork" else d.runs_scripts))
    message = f"{keyword}= has no effect: the dialect {dialect!r} has no tool that {what} (these have: {able})"
    warnings.warn(message, UserWarning, stacklevel=3)


def _attempted(runner: ForkRunner, prepared: PreparedFork) -> object:
    """What a runner gives, or what it raises: not everything that is raised gets out of a thread."""
    try:
        return runner(prepared)
    except Exception as error:  # noqa: BLE001 - whatever the host's runner does, the conversation goes on
        return error


def _awaited(answer: Awaitable[str]) -> str:
    """What a coroutine gives, from code that is not asynchronous."""
    import asyncio  # noqa: PLC0415 - only for asynchronous runners

    async def whole() -> str:
        return await answer

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(whole())
    close = getattr(answer, "close", None)
    if close is not None:
        close()
    raise SkillError("the runner of forks is asynchronous: use 'await toolset.acall(…)' here", code="fork-failed")


def _bound_error(result: ToolResult) -> ToolResult:
    """An error as a model receives it: at most 2,000 characters, without tags of the elements around instructions.

    Errors name folders, files and skills, and what a model sent; none of them decides how much comes back, or how it
    is read.
    """
    content = neutralize_tags(result.content, CONTENT, CALLED)
    if len(content) > _LONGEST_ERROR:
        content = content[: _LONGEST_ERROR - _SHORT] + " … " + content[-_SHORT:]
    data = {key: value[:_LONGEST_ERROR] if isinstance(value, str) else value for key, value in result.data.items()}
    return ToolResult(content, is_error=True, data=data)


class Toolset:
    """The tools of one session in one dialect.

    ``allowed``: the only skills that the model may have, by name. ``budget``: tokens for the listing. ``max_bytes``:
    the most that reading a file gives. ``hint_resources``: say which files a skill has. ``index_in_description``:
    where the dialect can put the listing into a tool's description, do. ``fork``: who runs skills as sub-agents, a
    callable that gets a ``PreparedFork`` and gives (or awaits) the answer, or ``"host"``: the result then carries it.
    ``scripts``: how scripts of trusted skills run (``True``: in the best sandbox there is). A dialect that has no tool
    for one of the two warns of it.
    """

    def __init__(
        self,
        session: Session,
        dialect: DialectName = "prowess",
        allowed: Iterable[str] | None = None,
        fork: ForkRunner | Literal["host"] | None = None,
        scripts: Scripts | bool | None = None,  # noqa: FBT001 - the public signature
        *,
        budget: int | None = None,
        max_bytes: int | None = None,
        hint_resources: bool = True,
        index_in_description: bool = True,
    ) -> None:
        check_instance(session, "session", Session, remedy="pass Session(catalog)")
        check_text(dialect, "dialect")
        check_count(budget, "budget", optional=True)
        check_count(max_bytes, "max_bytes", optional=True)
        found = DIALECTS.get(dialect)
        if found is None:
            raise SourceError(f"unknown dialect {dialect!r}; one of {', '.join(DIALECTS)}")
        runner, how = _checked_fork(fork), _checked_scripts(scripts)
        if runner is not None and not found.forks:
            _tell_unused("fork", "runs skills as sub-agents", dialect)
        if how is not None and not found.runs_scripts:
            _tell_unused("scripts", "runs scripts", dialect)
        self._session = session
        self._dialect = found
        names = None if allowed is None else check_texts(allowed, "allowed")
        self._options = Options(
            names,
            budget,
            max_bytes,
            hint_resources,
            index_in_description,
            runner if found.forks else None,
            how if found.runs_scripts else None,
            found.tools[0].name,
        )
        self._tools_by_name = {tool.name: tool for tool in found.tools}
        self._report: BudgetReport | None = None

    @property
    def dialect(self) -> DialectName:
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

    @measured()
    def _prompt(self, view: View) -> str:
        preloaded = (found for found in self._session.preloads() if view.may_use(found.skill.name))
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
        found = None if self._dialect.loads_hidden else self._session.available(name)
        if found is not None and not found.model_invocable:  # its tool would refuse: the instructions go along
            return self._session.expand(f"/{name} {request}")
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
            return self._unknown(name)
        result = self._answered(tool, arguments)
        if result.fork is None or self._options.fork == "host":
            return result
        return self._forked(tool, result.fork)

    def _unknown(self, name: str) -> ToolResult:
        """The answer to a call of no tool: those that are offered now, as ``tools`` has them."""
        view = self._view("")
        offered = ", ".join(tool.name for tool in self._dialect.tools if tool.offered(view))
        message = (
            f"unknown skill tool: {one_line(name[:_SHORT])}; {f'known: {offered}' if offered else 'none is offered'}"
        )
        self._session.tell(Event("refused", "", {"tool": name[:_SHORT], "code": "unknown-tool"}))
        return _bound_error(ToolResult(message, is_error=True, data={"reason": "unknown-tool"}))

    @measured()
    def _answered(self, tool: Tool, arguments: Mapping[str, Any] | str | bytes | None) -> ToolResult:
        if not self._session.has_listener:
            return self._answer(tool, arguments)
        with self._session.overheard() as told:
            result = self._answer(tool, arguments)
        if result.is_error and "refused" not in told and "ran" not in told:
            self._refused(tool, result, arguments)
        return result

    # -- sub-agents --------------------------------------------------------------------------------------------------

    def prepare_fork(self, name: str, task: str = "") -> PreparedFork | ToolResult:
        """What a sub-agent needs to carry out a skill; or a result with ``is_error`` that says why it cannot."""
        prepared = prepare_fork(self._view(""), name, task)
        return _bound_error(prepared) if isinstance(prepared, ToolResult) else prepared

    def child(self) -> Toolset:
        """The toolset of a sub-agent: the same, but it cannot fork again."""
        options = self._options
        return Toolset(
            self._session,
            self.dialect,
            options.allowed,
            scripts=options.scripts,
            budget=options.budget,
            max_bytes=options.max_bytes,
            hint_resources=options.hint_resources,
            index_in_description=options.index_in_description,
        )

    def _forked(self, tool: Tool, prepared: PreparedFork) -> ToolResult:
        try:
            made = self._runner()(prepared)
            answer = _awaited(made) if isinstance(made, Awaitable) else made
        except Exception as error:  # noqa: BLE001 - whatever the host's runner does, the conversation goes on
            return self._fork_failed(tool, prepared, error)
        return self._fork_answer(tool, prepared, answer)

    async def _aforked(self, tool: Tool, prepared: PreparedFork) -> ToolResult:
        import asyncio  # noqa: PLC0415 - only asynchronous hosts need it

        try:
            made = await asyncio.to_thread(_attempted, self._runner(), prepared)
            if isinstance(made, Exception):
                return self._fork_failed(tool, prepared, made)
            answer = await made if isinstance(made, Awaitable) else made
        except Exception as error:  # noqa: BLE001 - whatever the host's runner does, the conversation goes on
            return self._fork_failed(tool, prepared, error)
        return self._fork_answer(tool, prepared, answer)

    def _runner(self) -> ForkRunner:
        runner = self._options.fork
        assert callable(runner)  # noqa: S101 - checked when the toolset was made
        return runner

    def _fork_answer(self, tool: Tool, prepared: PreparedFork, answer: object) -> ToolResult:
        if not isinstance(answer, str):
            return self._fork_failed(tool, prepared, SkillError("the sub-agent gave no text"), said=":")
        most = self._session.limits.max_fork_output_bytes
        data = answer.encode("utf-8", "surrogatepass")
        kept = data[:most].decode("utf-8", "ignore")
        text = answer if len(data) <= most else f"{kept}\n[cut: the answer is longer]"
        return ToolResult(text, data={"skill": prepared.skill_name, "title": prepared.title})

    def _fork_failed(
        self, tool: Tool, prepared: PreparedFork, error: Exception, *, said: str = " failed:"
    ) -> ToolResult:
        why = error.message if isinstance(error, SkillError) else f"{type(error).__name__}: {error}"
        failed = SkillError(f"{prepared.title}{said} {why}", code="fork-failed")
        self._session.tell(Event("refused", prepared.skill_name, {"tool": tool.name, "code": "fork-failed"}))
        return _bound_error(self._dialect.error(tool.name, failed))

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

        tool = self._tools_by_name.get(name)
        if tool is None or not callable(self._options.fork):
            return await asyncio.to_thread(self.call, name, arguments)
        result = await asyncio.to_thread(self._answered, tool, arguments)
        return result if result.fork is None else await self._aforked(tool, result.fork)

    def _answer(self, tool: Tool, arguments: Mapping[str, Any] | str | bytes | None) -> ToolResult:
        try:
            result = tool.handler(self._view(""), parse_arguments(arguments))
        except (SkillError, BadArgumentsError) as error:
            result = self._dialect.error(tool.name, error)
        except Exception as error:  # noqa: BLE001 - the edge to a model: a conversation must go on
            result = self._dialect.error(tool.name, SkillError(f"{type(error).__name__}: {error}"))
        # What a script printed is bounded already, and none of it is to be lost.
        return _bound_error(result) if result.is_error and "stdout" not in result.data else result

    def _view(self, query: str) -> View:
        return View(self._session, self._options, lambda: self._session.candidates(query))

    async def _aview(self, query: str) -> View:
        found = await self._session.acandidates(query)
        return View(self._session, self._options, lambda: found)
