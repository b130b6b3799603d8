"""The toolset: what a model sees and calls in one dialect, with the prompt block, the tools and one dispatcher."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from weakref import ref

from prowess.arguments import check_count, check_instance
from prowess.conversation.activation import make_activation
from prowess.conversation.events import measure_call, record_event_kinds
from prowess.conversation.fork import PreparedFork
from prowess.conversation.rendering import render_load_result
from prowess.conversation.session import Session
from prowess.conversation.work_pools import get_pools
from prowess.errors import Issue, NotTrustedError, SkillError
from prowess.text.hidden_characters import to_one_line
from prowess.text.markup import CONTENT_TAG, USER_CALL_TAG, neutralize_tags
from prowess.thread_work import run_in_thread
from prowess.tools.acting import SubAgents, prepare_fork
from prowess.tools.definitions import BadArgumentsError, ToolResult, error_result, parse_arguments, sanitize_error
from prowess.tools.options import ToolsetOptions, check_allowed, check_counter, check_scripts, find_dialect
from prowess.tools.prompt import ListingReasons, View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from weakref import ReferenceType

    from prowess.conversation.acting.scripts import Scripts
    from prowess.conversation.acting.trust_request import TrustRequest
    from prowess.conversation.fork import ForkRunner
    from prowess.literals import DialectName
    from prowess.select.auto import ListingChoice
    from prowess.select.budget import BudgetReport
    from prowess.skills.explanation import Explanation
    from prowess.tools.definitions import ToolDefinition
    from prowess.tools.dialect import Tool

    Arguments = Mapping[str, Any] | str | bytes | None

T = TypeVar("T")
_MAX_NAME_SHOWN = 128
_RECAP = "These skills were loaded earlier in this conversation, and are active. Follow their instructions."


def _as_text(name: object) -> str:
    """Return what a model gave as the name of a tool, for a message; that may be anything of any length."""
    return (name if isinstance(name, str) else repr(name))[:_MAX_NAME_SHOWN]


class Toolset:
    """The tools of one session in one dialect.

    ``allowed``: the only skills that the model may have, by name. A name that no skill has is an error
    (``UnknownSkillError``), with ``missing="ignore"`` only a warning in ``issues``.
    ``budget``: tokens for the prompt. ``max_bytes``: the most that reading a file gives. ``hint_resources``: say which
    files a skill has. ``index_in_description``: put the listing into a tool's description, in a dialect that can.
    ``fork``: who runs skills as sub-agents, a callable that gets a ``PreparedFork`` and returns (or awaits) the answer;
    with ``"host"`` the result carries the ``PreparedFork``. ``scripts``: how scripts of trusted skills run (``True``:
    in the best sandbox there is). A dialect that has no tool for ``fork`` or ``scripts`` warns of it. ``tokens``:
    counts the tokens of a string, in place of our estimate. ``hide_paths``: no absolute path of the host reaches the
    model; the host has the paths in ``data``.
    """

    session: Session
    """The session that the tools act on."""

    def __init__(
        self,
        session: Session,
        dialect: DialectName = "prowess",
        allowed: Iterable[str] | None = None,
        fork: ForkRunner | Literal["host"] | None = None,
        scripts: Scripts | bool | None = None,
        *,
        budget: int | None = None,
        max_bytes: int | None = None,
        missing: Literal["error", "ignore"] = "error",
        hint_resources: bool = True,
        index_in_description: bool = True,
        tokens: Callable[[str], int] | None = None,
        hide_paths: bool = False,
    ) -> None:
        check_instance(session, "session", Session, remedy="pass Session(catalog)")
        self.session = session
        self._options = ToolsetOptions(
            find_dialect(dialect),
            check_allowed(session.moment(), allowed, missing),
            budget,
            max_bytes,
            hint_resources,
            index_in_description,
            fork,
            check_scripts(scripts),
            check_counter(tokens),
            hide_paths,
        )
        self._dialect = self._options.dialect
        # Weak, since a listing may be as large as everything else that a conversation holds, and the cache has it.
        self._listed: tuple[ListingChoice, ReferenceType[BudgetReport]] | None = None

    @property
    def dialect(self) -> DialectName:
        """The name of the dialect."""
        return self._dialect.name

    @property
    def issues(self) -> tuple[Issue, ...]:
        """A warning for each name in ``allowed`` that no skill has now.

        Unknown names are refused when the toolset is made, unless a source failed or ``missing="ignore"`` was given. A
        later refresh can remove skills.
        """
        return tuple(
            Issue("unknown-skill", "allowed", f"no skill is named {name!r}", "", 0, "warning") for name in self.missing
        )

    @property
    def allowed(self) -> tuple[str, ...] | None:
        """The names of the only skills that the model may have, as the catalogue has them; ``None``: of all."""
        return self._options.allowed

    @property
    def missing(self) -> tuple[str, ...]:
        """The names in ``allowed`` that no skill has now."""
        moment = self.session.moment()
        names = self._options.allowed or ()
        return tuple(name for name in names if name not in moment.catalog and moment.find(name) is None)

    # -- what models see -------------------------------------------------------------------------------------------

    def prompt(self, query: str = "") -> str:
        """Return the block for the system prompt; ``""`` when there is nothing to say.

        The block is built once for a catalogue and a state, and shared by all sessions in that state. ``budget`` holds
        for all of it: preloaded instructions and the sentences around the listing count, but are never cut.
        """
        view = self._open_view()
        choice = view.choose(query)
        events = self.session.events
        with measure_call():
            made = view.get_prompt(choice)
            self._listed = (choice, ref(made.report))
            if events.on_event is not None:  # counting the tokens of a listing costs more than all else here
                report = self._explain_report(view, choice, made.report)
                events.emit("listed", "", names=report.shown, tokens=report.tokens)
                if report.is_cut:
                    cuts = {"shortened": report.shortened, "dropped": report.dropped, "omitted": report.omitted}
                    events.emit("cut", "", **cuts)
        return made.text

    async def aprompt(self, query: str = "") -> str:
        """Return what ``prompt`` returns, made in a thread; an asynchronous selector is awaited on the caller's loop.

        Raises ``SkillError`` (code ``busy``) when more calls wait than ``Limits`` allows.
        """
        return await self._run_in_pool(partial(self.prompt, query))

    def tools(self, query: str = "") -> tuple[ToolDefinition, ...]:
        """Return the tools to offer now, those that can do something; built once, as the prompt is."""
        view = self._open_view()
        return view.get_tools(view.choose_for_tools(query))

    async def atools(self, query: str = "") -> tuple[ToolDefinition, ...]:
        """Return what ``tools`` returns, made in a thread; an asynchronous selector is awaited on the caller's loop.

        Raises ``SkillError`` (code ``busy``) when more calls wait than ``Limits`` allows.
        """
        return await self._run_in_pool(partial(self.tools, query))

    def possible_tools(self) -> tuple[ToolDefinition, ...]:
        """Return each tool that this toolset can offer, also those that have nothing to do at present.

        It is for hosts that must name their tools once, before the conversation begins.
        """
        view, options = self._open_view(), self._options
        able = {"": True, "fork": options.fork is not None, "script": options.scripts is not None}
        return tuple(tool.define(view) for tool in self._dialect.tools if able[tool.acts])

    def explicit(self, name: str, request: str = "") -> str:
        """Return the text of a user's message that has the model load a skill by its tool, listed or not."""
        view = self._open_view()
        skill = None if self._dialect.loads_hidden else view.moment.find(name)
        if skill is not None and not view.moment.is_for_models(skill):
            # The tool would refuse a skill that is not for models, so the message carries the instructions itself.
            return view.mask_text(self.session.expand(f"/{name} {request}", inline_forks=True))
        tool, key = self._dialect.tools[0], self._find_skill_parameter()
        said = f"This is a user-explicit skill activation. Call the {tool.name} tool with {key}={name!r}."
        follow = "Use exactly this name: it may not be in the tool's schema. Then follow its instructions."
        asked = f"\n\n<user-instructions>{request}</user-instructions>" if request else ""
        return f"{said} {follow}{asked}"

    def _find_skill_parameter(self) -> str:
        """Return the parameter by which tools of the dialect name a skill: the first that its first tool requires."""
        return str(next(iter(self._dialect.tools[0].define(self._open_view()).parameters["required"])))

    def recap(self, budget: int | None = None) -> str:
        """Return the active skills with their instructions, and the files that were read; ``""`` when none is active.

        It is for hosts that summarize or cut a conversation, so that the model goes on with the skills that it loaded.
        ``budget``: tokens. The skills that were loaded last come first; one whose instructions do not fit is named, so
        that the model loads it again. Preloaded skills are not in it: the prompt has them.
        """
        check_count(budget, "budget", optional=True)
        view = self._open_view()
        visible = {name: entry for name, entry in view.moment.visible_active.items() if not entry.preloaded}
        names = [name for name in reversed(tuple(view.moment.active)) if name in visible]
        if not names:
            return ""
        count, tool = self._options.tokens, self._dialect.tools[0].name
        parts, left_out = [_RECAP], []
        for name in names:
            activation = view.mask_activation(make_activation(visible[name], note=""))
            text = view.mask_text(render_load_result(activation, project=view.project_folder, files=False)[0])
            read = [to_one_line(path) for skill, path in self.session.read_files if skill == name]
            text += f"\nFiles of {to_one_line(name)} that were read: {', '.join(read)}" if read else ""
            if budget is not None and count("\n\n".join((*parts, text))) > budget:
                left_out.append(to_one_line(name))
            else:
                parts.append(text)
        if left_out:
            parts.append(f"Also active, without their instructions here: {', '.join(left_out)}. Call {tool} for them.")
        return "\n\n".join(parts)

    def report(self) -> BudgetReport:
        """Return what the last listing cost, what was cut to make it fit, and why each skill is listed or not."""
        if self._listed is None:
            self.prompt()
        assert self._listed is not None
        choice, kept = self._listed
        view = self._open_view()
        return self._explain_report(view, choice, kept() or view.get_prompt(choice).report)

    def _explain_report(self, view: View, choice: ListingChoice, report: BudgetReport) -> BudgetReport:
        """Return the report with what a choice has left out, and why each skill is listed or not."""
        if choice.how == "chosen":
            # Only now: a listing is made for each request, and nobody may ask which of thousands it leaves out.
            shown = frozenset(report.shown)
            report = replace(report, omitted=tuple(name for name in view.findable.by_name if name not in shown))
        return replace(report, reasons=ListingReasons(view.moment, choice, report))

    def explain(self, name: str) -> Explanation:
        """Return what ``Session.explain`` returns, and whether the last listing has the skill, and why."""
        explanation = self.session.explain(name)
        name, report = explanation.name, self.report()
        if name not in report.reasons:
            return explanation
        place = "in the listing" if name in report.shown else "not in the listing"
        return replace(explanation, reasons=(*explanation.reasons, f"{place}: {report.reasons[name]}"))

    def _open_view(self) -> View:
        """Return what the model sees now; each call takes one, and everything below reads it."""
        moment, allowed = self.session.moment(), self._options.allowed_names
        moment = moment if allowed is None else moment.narrow(allowed)
        return View(self.session, self._options, moment, left=self._options.budget)

    # -- calls -------------------------------------------------------------------------------------------------------

    def call(self, name: str, arguments: Arguments = None) -> ToolResult:
        """Answer a model's call. It never raises: what goes wrong is a result that says what to do next."""
        result, runner = self._answer(name, arguments), self._options.fork
        if result.fork is None or not callable(runner):  # without a runner, the host runs the fork
            return result
        return self._hide_paths(SubAgents(self.session, self._dialect, runner).run_fork(name, result.fork))

    async def acall(self, name: str, arguments: Arguments = None) -> ToolResult:
        """Answer a model's call from asynchronous code, in a thread of ours; raises only when it is cancelled.

        Cancelling it, as ``asyncio.timeout`` does, ends what it has begun: programs with all of their processes,
        sub-agents, requests to servers. When more calls wait than ``Limits`` allows, the result says ``busy``.
        """
        import asyncio

        try:
            result = await self._run_in_pool(partial(self._answer, name, arguments))
        except (asyncio.CancelledError, SkillError) as error:
            # The approval of this call must not be left for the next one that is equal.
            self.session.consent.withdraw_approvals(self._find_named_skill(arguments))
            if not isinstance(error, SkillError):
                raise
            # The pool is busy: whatever else goes wrong is a result already.
            self.session.events.emit("refused", "", tool=_as_text(name), code=error.code)
            return self._describe_error(_as_text(name), error)
        runner = self._options.fork
        if result.fork is None or not callable(runner):  # without a runner, the host runs the fork
            return result
        sub_agents = SubAgents(self.session, self._dialect, runner)
        return self._hide_paths(await sub_agents.arun_fork(name, result.fork))

    async def _run_in_pool(self, function: Callable[[], T]) -> T:
        """Return what ``function`` returns in a thread; raises ``SkillError`` (``busy``) when too many calls wait."""
        return await run_in_thread(function, get_pools(self.session.limits).reads)

    def _answer(self, name: str, arguments: Arguments) -> ToolResult:
        """Return the answer to a call; a fork is prepared, and does not run yet."""
        tool = next((tool for tool in self._dialect.tools if tool.name == name), None)
        events = self.session.events
        if tool is None:
            view = self._open_view()
            offered = ", ".join(tool.name for tool in self._dialect.tools if tool.is_offered(view))
            known = f"known: {offered}" if offered else "none is offered"
            events.emit("refused", "", tool=_as_text(name), code="unknown-tool")
            message = f"unknown skill tool: {to_one_line(_as_text(name))}; {known}"
            return self._hide_paths(sanitize_error(error_result(message, reason="unknown-tool")))
        if events.on_event is None:  # nobody hears of a refusal, so nothing needs to be recorded
            return self._run_handler(tool, arguments)
        with measure_call():
            with record_event_kinds() as kinds:
                result = self._run_handler(tool, arguments)
            if result.is_error and "refused" not in kinds and "ran" not in kinds:
                # A refusal of which the session knows nothing.
                code = result.data.get("reason", "bad-arguments")
                events.emit("refused", self._find_named_skill(arguments)[:_MAX_NAME_SHOWN], tool=tool.name, code=code)
        return result

    def _find_named_skill(self, arguments: Arguments) -> str:
        """Return the name of the skill that a call is about, or ``""``."""
        try:
            name = parse_arguments(arguments).get(self._find_skill_parameter())
        except Exception:  # noqa: BLE001 - bad arguments, or code of the host's that fails: both are reported already
            return ""
        return name if isinstance(name, str) else ""

    def _run_handler(self, tool: Tool, arguments: Arguments) -> ToolResult:
        try:
            result = tool.handler(self._open_view(), parse_arguments(arguments))
        except (SkillError, BadArgumentsError) as error:
            return self._describe_error(tool.name, error)
        except Exception as error:  # noqa: BLE001 - the edge to a model: a conversation must go on
            # A fault of ours or of the host (a source, a callback): the details may be secret, and no model needs them.
            self.session.events.report_host_error(f"call of {tool.name}", error)
            result = self._dialect.render_error(tool.name, SkillError("it failed inside the host", code="host-failed"))
        result = self._hide_paths(result)  # before an error is cut, since half a path would not be recognized
        # What a script printed is bounded already, and none of it is to be lost.
        return sanitize_error(result) if result.is_error and "stdout" not in result.data else result

    def _describe_error(self, tool: str, error: SkillError | BadArgumentsError) -> ToolResult:
        """Return what a model is told of an error; one that a person can lift becomes a result that is pending."""
        request: TrustRequest | None = error.request if isinstance(error, NotTrustedError) else None
        if request is None:
            return sanitize_error(self._hide_paths(self._dialect.render_error(tool, error)))
        said = (
            f"What {to_one_line(request.skill.name)} would run waits for a person's approval: nothing was done. "
            "Make the same call again when the person has decided."
        )
        data = {"reason": "needs-approval", "skill": request.skill.name, "id": request.id}
        return ToolResult(neutralize_tags(said, CONTENT_TAG, USER_CALL_TAG), data=data, pending=request)

    def _hide_paths(self, result: ToolResult) -> ToolResult:
        """Return the result without absolute paths of the host in its content, when the options hide them."""
        hidden = self._options.hide_paths
        return replace(result, content=self._open_view().mask_text(result.content)) if hidden else result

    # -- sub-agents --------------------------------------------------------------------------------------------------

    def prepare_fork(self, name: str, task: str = "", *, by_person: bool = False) -> PreparedFork | ToolResult:
        """Return what a sub-agent needs to carry out a skill, or a result with ``is_error`` that says why it cannot.

        ``by_person``: a person asked for it, so the skill must be one that people may call, not one that models may.
        Under the policy ``defer`` the result has ``pending`` when a person has to be asked about its commands.
        """
        try:
            prepared = prepare_fork(self._open_view(), name, task, by_person=by_person)
        except SkillError as error:
            return self._describe_error("run_skill", error)
        return sanitize_error(prepared) if isinstance(prepared, ToolResult) else prepared

    def child(self, prepared: PreparedFork | None = None) -> Toolset:
        """Return the toolset of a sub-agent, over a session of its own; it cannot fork again.

        What the child loads, unloads or filters does not touch this session; it has this session's catalogue, filters,
        ceiling and trust. With ``prepared`` the tools that the fork allows are its ceiling.
        """
        check_instance(prepared, "prepared", PreparedFork, optional=True, remedy="prepare_fork gave an error")
        options = self._options
        ceiling = prepared.allowed_tools if prepared is not None and prepared.is_bounded else None
        session = self.session.open_child(ceiling)
        # Skills that have left the catalogue may be active here, but a new session cannot have them.
        known = options.allowed and tuple(name for name in options.allowed if name in session.catalog)
        child = copy(self)
        vars(child).update(session=session, _options=replace(options, fork=None, allowed=known), _listed=None)
        return child
