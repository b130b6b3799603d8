"""What a model sees and calls, in one of the dialects: the prompt block, the tools, and one dispatcher."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from prowess.arguments import check_count, check_flag, check_instance, check_text, check_texts
from prowess.errors import Issue, NotTrustedError, SkillError, SourceError
from prowess.runtime.concurrency import get_pools
from prowess.runtime.events import Event, measure_call
from prowess.runtime.session import Session
from prowess.spec.hidden_characters import to_one_line
from prowess.spec.markup import CONTENT_TAG, USER_CALL_TAG, neutralize_tags
from prowess.spec.tokens import estimate_tokens
from prowess.tools.acting_tools import prepare_fork
from prowess.tools.arguments import BadArgumentsError, parse_arguments
from prowess.tools.definitions import ToolResult, copy_definition
from prowess.tools.dialects import DIALECTS
from prowess.tools.listings import PROMPT_CACHE, TOOL_CACHE, PromptListing
from prowess.tools.refusals import sanitize_error
from prowess.tools.sub_agents import SubAgents
from prowess.tools.view import ToolsetOptions, View

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from prowess.literals import DialectName
    from prowess.runtime.acting.scripts import Scripts
    from prowess.runtime.acting.trust import TrustRequest
    from prowess.runtime.fork import ForkRunner, PreparedFork
    from prowess.select.budget import BudgetReport
    from prowess.skills.skill import Skill
    from prowess.tools.definitions import ToolDefinition
    from prowess.tools.dialect import Tool

    ChosenNames = frozenset[str] | None

T = TypeVar("T")
_MAX_NAME_SHOWN = 128
# One for what stands around the listing; the others since a cut listing adds a sentence, and tokens are not additive.
_MAX_FITTINGS = 6


def _check_fork(fork: ForkRunner | Literal["host"] | None) -> ForkRunner | Literal["host"] | None:
    if fork is None or fork == "host" or callable(fork):
        return fork
    raise SourceError(f"fork is a callable, 'host' or None, not {fork!r}")


def _check_token_counter(tokens: Callable[[str], int] | None) -> Callable[[str], int]:
    if tokens is not None and not callable(tokens):
        raise SourceError(f"tokens is a function that counts the tokens of a text, or None, not {tokens!r}")
    if tokens is None:
        return estimate_tokens
    try:
        hash(tokens)
    except TypeError:  # an object that compares by its fields; listings are kept by how tokens are counted
        return partial(tokens)
    return tokens


def _check_scripts(scripts: Scripts | bool | None) -> Scripts | None:  # noqa: FBT001 - the public signature
    if scripts is None or scripts is False:
        return None
    from prowess.runtime.acting.scripts import Scripts  # noqa: PLC0415 - only when scripts are asked for

    if isinstance(scripts, Scripts):
        return scripts
    if scripts is True:
        return Scripts()
    raise SourceError(f"scripts is prowess.Scripts(…), True or None, not {scripts!r}")


def _warn_unused_option(keyword: str, what: str, dialect: str) -> None:
    """Warn of a keyword that changes nothing: the dialect is another system's, and has no such tool."""
    import warnings  # noqa: PLC0415 - only for those who mistook a dialect

    able = ", ".join(d.name for d in DIALECTS.values() if (d.has_fork_tool if keyword == "fork" else d.has_script_tool))
    message = f"{keyword}= has no effect: the dialect {dialect!r} has no tool that {what} (these have: {able})"
    warnings.warn(message, UserWarning, stacklevel=3)


def _as_text(name: object) -> str:
    """The name of a tool that was called; what is no text is shown as Python writes it, and is the name of none."""
    return name if isinstance(name, str) else repr(name)


def _skill_names(skills: Iterable[Skill]) -> frozenset[str]:
    return frozenset(skill.name for skill in skills)


class Toolset:
    """The tools of one session in one dialect.

    ``allowed``: the only skills that the model may have, by name (``UnknownSkillError`` for a name that no skill has).
    ``budget``: tokens for the prompt. ``max_bytes``:
    the most that reading a file gives. ``hint_resources``: say which files a skill has. ``index_in_description``:
    where the dialect can put the listing into a tool's description, do. ``fork``: who runs skills as sub-agents, a
    callable that gets a ``PreparedFork`` and gives (or awaits) the answer, or ``"host"``: the result then carries it.
    ``scripts``: how scripts of trusted skills run (``True``: in the best sandbox there is). A dialect that has no tool
    for one of the two warns of it. ``tokens``: counts the tokens of a text, in place of our estimate.
    ``hide_paths``: no absolute path of the host reaches the model; the host has them in ``data``.
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
        tokens: Callable[[str], int] | None = None,
        hide_paths: bool = False,
    ) -> None:
        check_instance(session, "session", Session, remedy="pass Session(catalog)")
        check_text(dialect, "dialect")
        check_count(budget, "budget", optional=True)
        check_count(max_bytes, "max_bytes", optional=True)
        check_flag(hint_resources, "hint_resources")
        check_flag(index_in_description, "index_in_description")
        check_flag(hide_paths, "hide_paths")
        found = DIALECTS.get(dialect)
        if found is None:
            raise SourceError(f"unknown dialect {dialect!r}; one of {', '.join(DIALECTS)}")
        runner, how = _check_fork(fork), _check_scripts(scripts)
        if runner is not None and not found.has_fork_tool:
            _warn_unused_option("fork", "runs skills as sub-agents", dialect)
        if how is not None and not found.has_script_tool:
            _warn_unused_option("scripts", "runs scripts", dialect)
        self._session = session
        self._dialect = found
        names = None if allowed is None else check_texts(allowed, "allowed")
        # An active skill may be gone from the catalogue and is usable all the same.
        session.catalog.check_names((name for name in names or () if not session.is_available(name)), "allowed")
        names = None if names is None else tuple(map(session.resolve_name, names))
        self._options = ToolsetOptions(
            names,
            budget,
            max_bytes,
            hint_resources,
            index_in_description,
            runner if found.has_fork_tool else None,
            how if found.has_script_tool else None,
            found.tools[0].name,
            _check_token_counter(tokens),
            hide_paths,
        )
        self._sub_agents = SubAgents(session, found, runner) if callable(runner) else None
        self._tools_by_name = {tool.name: tool for tool in found.tools}
        self._report: BudgetReport | None = None

    @property
    def dialect(self) -> DialectName:
        return self._dialect.name

    @property
    def session(self) -> Session:
        return self._session

    @property
    def issues(self) -> tuple[Issue, ...]:
        """What there is to say about the toolset now: names in ``allowed`` that no skill has.

        They are refused when the toolset is made, unless a source failed; later a refresh can take skills away.
        """
        return tuple(
            Issue("unknown-skill", "allowed", f"no skill is named {name!r}", "", 0, "warning")
            for name in self._options.allowed or ()
            if name not in self._session.catalog and not self._session.is_available(name)
        )

    def prompt(self, query: str = "") -> str:
        """The block for the system prompt; ``""`` when there is nothing to say.

        Made once for a catalogue and whatever else it shows, and shared by all sessions in the same state. ``budget``
        holds for all of it: preloaded instructions and the sentences around the listing count, but are never cut.
        """
        return self._make_prompt(self._select_names(query))

    async def aprompt(self, query: str = "") -> str:
        """The block for the system prompt, made in a thread; an asynchronous selector is awaited on the caller's loop.

        Raises ``SkillError`` (code ``busy``) when more calls wait than ``Limits`` allows.
        """
        return await self._run_in_pool(partial(self.prompt, query))

    def _select_names(self, query: str) -> ChosenNames:
        """The names that the selector picks, asked each time since it may answer otherwise; ``None`` without one."""
        check_text(query, "query")
        return _skill_names(self._session.candidates(query)) if self._session.has_selector else None

    @measure_call()
    def _make_prompt(self, chosen: ChosenNames) -> str:
        listing = self._get_listing(chosen)
        self._report = listing.report
        if self._session.has_listener:  # counting the tokens of a listing costs more than all else here
            self._emit_listing(listing.report)
        return listing.text

    def _get_listing(self, chosen: ChosenNames) -> PromptListing:
        return PROMPT_CACHE.get_or_make(self._session, self._listing_key(chosen), lambda: self._make_listing(chosen))

    def _listing_key(self, chosen: ChosenNames) -> Hashable:
        """What a listing depends on besides the session; of runners only that they are there."""
        options = self._options
        able = (options.fork is not None, options.scripts is not None)
        hidden = self._session.base_dir if options.hide_paths else ""  # where paths are hidden, it depends on which
        return self.dialect, options._replace(fork=None, scripts=None), able, chosen, hidden

    def _make_listing(self, chosen: ChosenNames) -> PromptListing:
        """The prompt, within the budget where that can be: the listing gets what everything else leaves."""
        budget = left = self._options.budget
        listing = self._fit_listing(chosen, left)
        for _ in range(_MAX_FITTINGS):
            over = 0 if budget is None else listing.count_tokens() - budget
            if not left or over <= 0:
                break
            left = max(0, min(left, listing.report.tokens) - over)
            listing = self._fit_listing(chosen, left)
        return listing

    def _fit_listing(self, chosen: ChosenNames, left: int | None) -> PromptListing:
        """The prompt with a listing of at most ``left`` tokens."""
        view = self._make_view_for(lambda: chosen, left)
        preloads = (one for one in self._session.preloads() if view.may_use(one.skill.name))
        blocks = (
            self._dialect.render_prompt(view),
            *(self._dialect.render_preload(view.mask_activation(one)) for one in preloads),
        )
        text = view.mask_text("\n\n".join(block for block in blocks if block))
        report = replace(view.report, budget=self._options.budget, text=view.mask_text(view.report.text))
        return PromptListing(text, report, left)

    def _emit_listing(self, report: BudgetReport) -> None:
        self._session.tell(Event("listed", "", {"names": report.shown, "tokens": report.tokens}))
        if report.is_cut:
            detail = {"shortened": report.shortened, "dropped": report.dropped, "omitted": report.omitted}
            self._session.tell(Event("cut", "", detail))

    def tools(self, query: str = "") -> tuple[ToolDefinition, ...]:
        """The tools to offer now: each of them can do something. Made once, as the prompt is."""
        return self._get_tools(self._select_names(query))

    async def atools(self, query: str = "") -> tuple[ToolDefinition, ...]:
        """The tools to offer now, found in a thread; an asynchronous selector is awaited on the caller's loop.

        Raises ``SkillError`` (code ``busy``) when more calls wait than ``Limits`` allows.
        """
        return await self._run_in_pool(partial(self.tools, query))

    def _get_tools(self, chosen: ChosenNames) -> tuple[ToolDefinition, ...]:
        made = TOOL_CACHE.get_or_make(self._session, self._listing_key(chosen), lambda: self._make_tools(chosen))
        return tuple(map(copy_definition, made))  # all sessions share what is kept: nobody is to change it

    def _make_tools(self, chosen: ChosenNames) -> tuple[ToolDefinition, ...]:
        # A listing in a description is the one that the report is about, within what the prompt leaves of the budget.
        left = None if self._options.budget is None else self._get_listing(chosen).budget
        view = self._make_view_for(lambda: chosen, left)
        return tuple(tool.describe(view) for tool in self._dialect.tools if tool.is_offered(view))

    def explicit(self, name: str, request: str = "") -> str:
        """The text of a user's message that has the model load a skill by its tool, whatever the listing shows."""
        found = None if self._dialect.loads_hidden else self._session.available(name)
        if found is not None and not self._session.is_for_models(
            found
        ):  # its tool would refuse: the instructions go along
            return self._make_view("").mask_text(self._session.expand(f"/{name} {request}", inline_forks=True))
        tool = self._dialect.tools[0]
        key = next(iter(tool.describe(self._make_view("")).parameters["required"]))
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
        return self._hide_paths(self._call_tool(_as_text(name), arguments))

    def _hide_paths(self, result: ToolResult) -> ToolResult:
        """A result whose content is without absolute paths of the host, where these are hidden."""
        return (
            replace(result, content=self._make_view("").mask_text(result.content))
            if self._options.hide_paths
            else result
        )

    def _call_tool(self, name: str, arguments: Mapping[str, Any] | str | bytes | None) -> ToolResult:
        tool = self._tools_by_name.get(name)
        if tool is None:
            return self._answer_unknown_tool(name)
        result = self._answer_and_report(tool, arguments)
        if result.fork is None or self._sub_agents is None:  # without one, the host runs it
            return result
        return self._sub_agents.run_fork(tool.name, result.fork)

    def _answer_unknown_tool(self, name: str) -> ToolResult:
        """The answer to a call of no tool: those that are offered now, as ``tools`` has them."""
        view = self._make_view("")
        offered = ", ".join(tool.name for tool in self._dialect.tools if tool.is_offered(view))
        known = f"known: {offered}" if offered else "none is offered"
        message = f"unknown skill tool: {to_one_line(name[:_MAX_NAME_SHOWN])}; {known}"
        self._session.tell(Event("refused", "", {"tool": name[:_MAX_NAME_SHOWN], "code": "unknown-tool"}))
        return sanitize_error(ToolResult(message, is_error=True, data={"reason": "unknown-tool"}))

    @measure_call()
    def _answer_and_report(self, tool: Tool, arguments: Mapping[str, Any] | str | bytes | None) -> ToolResult:
        if not self._session.has_listener:
            return self._run_handler(tool, arguments)
        with self._session.overheard() as told:
            result = self._run_handler(tool, arguments)
        if result.is_error and "refused" not in told and "ran" not in told:
            self._emit_refusal(tool, result, arguments)
        return result

    # -- sub-agents --------------------------------------------------------------------------------------------------

    def prepare_fork(self, name: str, task: str = "", *, by_person: bool = False) -> PreparedFork | ToolResult:
        """What a sub-agent needs to carry out a skill; or a result with ``is_error`` that says why it cannot.

        ``by_person``: a person asked for it, so that it is to be one that people may call, not one that models may.
        Under the policy ``defer`` the result has ``pending`` where a person is to be asked about its commands.
        """
        try:
            prepared = prepare_fork(self._make_view(""), name, task, by_person=by_person)
        except SkillError as error:
            return self._describe_error("run_skill", error)
        return sanitize_error(prepared) if isinstance(prepared, ToolResult) else prepared

    def child(self, prepared: PreparedFork | None = None) -> Toolset:
        """The toolset of a sub-agent: the same over a session of its own, and it cannot fork again.

        What the child loads, unloads or filters does not touch this session; it has the same catalogue, filters,
        ceiling and trust. With ``prepared`` the tools that the fork allows are its ceiling.
        """
        # Here and not above: only hosts that run sub-agents need it.
        from prowess.runtime.fork import PreparedFork  # noqa: PLC0415

        check_instance(prepared, "prepared", PreparedFork, optional=True, remedy="prepare_fork gave an error")
        options = self._options
        bound = prepared.allowed_tools if prepared is not None and prepared.is_bounded else None
        gone = {name for name in options.allowed or () if name not in self._session.catalog}
        return Toolset(
            self._session.open_child(bound),
            self.dialect,
            None if options.allowed is None else [name for name in options.allowed if name not in gone],
            scripts=options.scripts,
            budget=options.budget,
            max_bytes=options.max_bytes,
            hint_resources=options.hint_resources,
            index_in_description=options.index_in_description,
            tokens=options.tokens,
            hide_paths=options.hide_paths,
        )

    def _emit_refusal(self, tool: Tool, result: ToolResult, arguments: Mapping[str, Any] | str | bytes | None) -> None:
        """Tell of a refusal that the session did not see."""
        try:
            given = parse_arguments(arguments)
        except Exception:  # noqa: BLE001 - bad, or a mapping of the host's that fails, which was told already
            given = {}
        name = given.get("skill_name", given.get("name"))
        detail = {"tool": tool.name, "code": result.data.get("reason", "bad-arguments")}
        self._session.tell(Event("refused", name[:_MAX_NAME_SHOWN] if isinstance(name, str) else "", detail))

    async def acall(self, name: str, arguments: Mapping[str, Any] | str | bytes | None = None) -> ToolResult:
        """Answer a model's call from asynchronous code, in a thread of ours; raises only when it is cancelled.

        Cancelling it, as ``asyncio.timeout`` does, ends what it has begun: programs with all of their processes,
        sub-agents, requests to servers. When more calls wait than ``Limits`` allows, the result says ``busy``.
        """
        name = _as_text(name)
        tool = self._tools_by_name.get(name)
        return self._hide_paths(await self._acall_tool(name, tool, arguments))

    async def _acall_tool(
        self, name: str, tool: Tool | None, arguments: Mapping[str, Any] | str | bytes | None
    ) -> ToolResult:
        try:
            if tool is None:
                return await self._run_in_pool(partial(self._answer_unknown_tool, name))
            result = await self._run_in_pool(partial(self._answer_and_report, tool, arguments))
        except SkillError as error:  # busy: whatever else goes wrong is a result already
            self._session.tell(Event("refused", "", {"tool": name[:_MAX_NAME_SHOWN], "code": error.code}))
            return self._describe_error(name[:_MAX_NAME_SHOWN], error)
        if result.fork is None or self._sub_agents is None:  # without one, the host runs it
            return result
        return await self._sub_agents.arun_fork(tool.name, result.fork)

    async def _run_in_pool(self, function: Callable[[], T]) -> T:
        """Return what ``function`` returns in a thread; raises ``SkillError`` (``busy``) when too many calls wait."""
        return await get_pools(self._session.limits).reads.run(function)

    def _run_handler(self, tool: Tool, arguments: Mapping[str, Any] | str | bytes | None) -> ToolResult:
        try:
            result = tool.handler(self._make_view(""), parse_arguments(arguments))
        except (SkillError, BadArgumentsError) as error:
            return self._describe_error(tool.name, error)
        except Exception as error:  # noqa: BLE001 - the edge to a model: a conversation must go on
            # Ours or the host's (a source, a callback): the details may be secret, and no model needs them.
            self._session.report_host_error(f"call of {tool.name}", error)
            result = self._dialect.render_error(tool.name, SkillError("it failed inside the host", code="host-failed"))
        result = self._hide_paths(result)  # before an error is cut: half a path would not be known for one
        # What a script printed is bounded already, and none of it is to be lost.
        return sanitize_error(result) if result.is_error and "stdout" not in result.data else result

    def _describe_error(self, tool: str, error: SkillError | BadArgumentsError) -> ToolResult:
        """What a model is told of an error; one that a person can lift is no error, but a result that is pending."""
        request: TrustRequest | None = error.request if isinstance(error, NotTrustedError) else None
        if request is None:
            return sanitize_error(self._hide_paths(self._dialect.render_error(tool, error)))
        said = (
            f"What {to_one_line(request.skill.name)} would run waits for a person's approval: nothing was done. "
            "Make the same call again when the person has decided."
        )
        data = {"reason": "needs-approval", "skill": request.skill.name, "id": request.id}
        return ToolResult(neutralize_tags(said, CONTENT_TAG, USER_CALL_TAG), data=data, pending=request)

    def _make_view(self, query: str) -> View:
        return self._make_view_for(lambda: self._select_names(query), self._options.budget)

    def _make_view_for(self, choose: Callable[[], ChosenNames], left: int | None) -> View:
        """What the model sees where a listing may cost ``left`` tokens; nothing is chosen before it is needed."""

        def find_candidates() -> tuple[Skill, ...]:
            # Skills of now by their names: what was picked from a catalogue before is not kept for this one.
            chosen, eligible = choose(), self._session.eligible()
            return eligible if chosen is None else tuple(skill for skill in eligible if skill.name in chosen)

        options = self._options if left == self._options.budget else self._options._replace(budget=left)
        return View(self._session, options, find_candidates, lambda: self._get_listing(choose()).report.is_cut)
