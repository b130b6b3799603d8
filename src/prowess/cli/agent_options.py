"""The options of the commands that run the agent, and the run itself, on a terminal or in a pipe."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from dataclasses import replace
from importlib.util import find_spec
from shlex import quote
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import click
from click.core import ParameterSource

from prowess.cli.options import group_options
from prowess.cli.render import printer
from prowess.cli.selection import make_selector
from prowess.cli.terminal import open_terminal
from prowess.errors import NotTrustedError, SourceError
from prowess.format.frontmatter.fields import parse_allowed_tools
from prowess.hints import explain_extra
from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    import prowess
    from prowess.agent.task_result import AgentEvent, OnAgentEvent, TaskResult
    from prowess.agent.task_run import TaskOptions, TrustChoice
    from prowess.agent.transcript import EarlierRun, Transcript
    from prowess.settings import Settings


class AgentFlags(NamedTuple):
    """How the command line bounds a run of the agent."""

    model: str | None
    base_url: str | None
    timeout: int | None
    folder: str
    tools: str
    trust: Literal["ask", "granted", "never"]
    sandbox: str | None
    max_turns: int
    max_tokens: int
    transcript: str | None

    @property
    def settings(self) -> dict[str, str | int | None]:
        """The flags that override settings, by the names of those."""
        return {"model": self.model, "base_url": self.base_url, "sandbox": self.sandbox, "timeout": self.timeout}


TRUST_CHOICES = ("ask", "granted", "never")
model_option = click.option(
    "--model", metavar="PROVIDER:NAME", help="The model, such as openai:gpt-5.2; scripted:FILE plays a script."
)
base_url_option = click.option(
    "--base-url", metavar="URL", help="A server that speaks OpenAI's protocol; PROWESS_API_KEY has its key."
)
timeout_option = click.option(
    "--timeout", type=click.IntRange(1), metavar="SECONDS", help="How long one request to the model may take."
)
sandbox_option = click.option(
    "--sandbox",
    type=click.Choice(("auto", "bwrap", "landlock", "none")),
    help="How commands and scripts are isolated; 'none' has to be named.",
)


def _obey_folder(context: click.Context, _: click.Parameter, folder: str) -> str:
    """Have the policy of the working folder count for the whole command."""
    from prowess.policy.files import add_policy_of

    context.with_resource(add_policy_of(folder))
    return folder


agent_options = group_options(
    "flags",
    AgentFlags,
    model=model_option,
    base_url=base_url_option,
    timeout=timeout_option,
    folder=click.option(
        "--folder",
        type=click.Path(file_okay=False, exists=True),
        default=".",
        callback=_obey_folder,
        help="The working folder, where the agent reads and writes; by default this one.",
    ),
    tools=click.option(
        "--tools",
        default="Read Write Bash",
        show_default=True,
        metavar="TOOLS",
        help="The only tools of its own that it may use, such as 'Read Bash(git:*)'; '' for none. "
        "Skills may approve calls of tools that you name here.",
    ),
    trust=click.option(
        "--trust",
        type=click.Choice(TRUST_CHOICES),
        default="ask",
        show_default=True,
        help="What becomes of scripts and commands of skills that you have not granted.",
    ),
    sandbox=sandbox_option,
    max_turns=click.option(
        "--max-turns",
        type=click.IntRange(1),
        default=DEFAULT_LIMITS.max_agent_turns,
        show_default=True,
        help="How many requests to the model it may make.",
    ),
    max_tokens=click.option(
        "--max-tokens",
        type=click.IntRange(1),
        default=DEFAULT_LIMITS.max_agent_tokens,
        show_default=True,
        help="How many tokens it may use, sent and received.",
    ),
    transcript=click.option(
        "--transcript",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Write all that happens into this new file, for --resume.",
    ),
)
"""The options of ``prowess run`` and ``prowess try``; the command gets them as ``flags``."""


def require_agent() -> None:
    """Raise ``SourceError`` (``missing-extra``) where what the agent is built on is not installed."""
    if find_spec("pydantic_ai") is None:
        raise SourceError(f"pydantic-ai is not installed: {explain_extra('agent')}", code="missing-extra")
    # Otherwise the framework prints a banner about itself into the conversation.
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")


def load_model(settings: Settings) -> Model:
    """Return the model that the settings name; raise ``ModelError`` with what to set where there is none."""
    require_agent()
    from prowess.agent.models import make_model

    return make_model(settings.text("model"), settings.text("base_url"))


def run_agent(
    task: str,
    catalog: prowess.Catalog,
    model: Model,
    *,
    settings: Settings,
    flags: AgentFlags,
    resume: str | None = None,
    as_data: bool,
) -> TaskResult:
    """Run the agent, show what happens, and return the result. Ctrl-C ends the run, its scripts and its children."""
    import asyncio
    import logging

    from prowess.agent.task_run import run_task
    from prowess.cli.agent_screen import AgentScreen, ChildErrorHandler, TerminalPerson, print_event_data

    with ExitStack() as stack:
        terminal = stack.enter_context(open_terminal())
        options = _make_options(settings, flags, TerminalPerson(terminal) if terminal else None)
        # Last, so that no mistake in the options leaves an empty file behind.
        transcript, earlier = _open_transcript(flags.transcript, resume)
        if transcript is not None:
            stack.enter_context(transcript)
        if earlier is not None:
            options = _keep_bounds(options, earlier)
        _note_circumstances(options, earlier, task)
        screen = AgentScreen()
        log, handler = logging.getLogger("prowess"), ChildErrorHandler(screen, model)
        log.addHandler(handler)
        stack.callback(log.removeHandler, handler)
        show: OnAgentEvent = print_event_data if as_data else screen.show

        def show_event(event: AgentEvent) -> None:
            if event.kind == "start" and transcript is not None and options.skills_approve:
                _remember_tools(str(event.detail["key"]), options)
            show(event)

        try:
            return asyncio.run(
                run_task(task, catalog, model, options, on_event=show_event, transcript=transcript, earlier=earlier)
            )
        except KeyboardInterrupt:
            screen.end_line()
            if transcript is not None:
                printer.note(_describe_resume(transcript.path))
            raise


def _open_transcript(new: str | None, resume: str | None) -> tuple[Transcript | None, EarlierRun | None]:
    if new is None and resume is None:
        return None, None
    from prowess.agent.transcript import Transcript

    return (Transcript.create(cast("str", new)), None) if resume is None else Transcript.resume(resume)


def _make_options(settings: Settings, flags: AgentFlags, person: object) -> TaskOptions:
    from prowess.agent.task_run import TaskOptions

    return TaskOptions(
        folder=os.path.abspath(flags.folder),
        tools=parse_allowed_tools(flags.tools),
        person=person,  # type: ignore[arg-type]  # the person at the terminal, or nobody
        trust=flags.trust,
        sandbox=settings.text("sandbox"),  # type: ignore[arg-type]  # one of its choices
        max_turns=flags.max_turns,
        max_tokens=flags.max_tokens,
        request_seconds=settings.number("timeout"),
        selector=make_selector(settings),
        budget=settings.number("budget"),
        filter=settings.text("filter"),
        places=tuple(map(os.path.abspath, settings.names("folders") or ())),
        skills_approve=_is_typed("tools"),
    )


def _is_typed(option: str) -> bool:
    """Return whether the user wrote an option on this command line."""
    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE


def find_earlier_places(resume: str) -> tuple[str, ...]:
    """Return the folders that the skills of an earlier run were from; none: the standard places."""
    require_agent()
    from prowess.agent.transcript import read_transcript

    return read_transcript(resume).places


def _keep_bounds(options: TaskOptions, earlier: EarlierRun) -> TaskOptions:
    """Return the options with the earlier run's tools and trust where the command line names none.

    Neither can widen what the defaults allow, whatever the transcript says: the default allows every tool and asks.
    Whether skills may approve calls is not the transcript's to say either: what the user typed is remembered elsewhere.
    """
    tools = options.tools if earlier.tools is None or _is_typed("tools") else earlier.tools
    is_kept = earlier.trust in {"granted", "never"} and not _is_typed("trust")
    kept = replace(options, tools=tools, trust=cast("TrustChoice", earlier.trust) if is_kept else options.trust)
    return kept if kept.skills_approve else replace(kept, skills_approve=_were_tools_typed(earlier.key, kept))


def _remember_tools(key: str, options: TaskOptions) -> None:
    """Remember for a later ``--resume`` that the user typed the tools of a run."""
    from prowess.agent.own_tools import TypedTools

    try:
        TypedTools().remember(key, options.folder, options.tools, options.places)
    except NotTrustedError as error:
        printer.warn(f"--resume will have to name --tools again: {error}")


def _were_tools_typed(key: str, options: TaskOptions) -> bool:
    """Return whether the user typed these tools for a run with this key, folder and places of skills."""
    from prowess.agent.own_tools import TypedTools

    try:
        return TypedTools().knows(key, options.folder, options.tools, options.places)
    except NotTrustedError as error:
        printer.warn(f"skills approve nothing in this run: {error}")
        return False


def _note_circumstances(options: TaskOptions, earlier: EarlierRun | None, task: str) -> None:
    """Say what a person would not expect: that nobody is asked, or that an earlier run worked elsewhere."""
    if options.person is None:
        approving = "" if options.skills_approve else " Skills may approve calls of tools that --tools names."
        printer.note(f"There is no terminal, so nobody is asked: what would need an answer is refused.{approving}")
    if earlier is None:
        return
    if earlier.is_finished and not task:
        raise click.UsageError("that run is finished: say what to do next, as TASK")
    if earlier.folder != options.folder:
        printer.warn(f"the earlier run worked in {earlier.folder}; this one works in {options.folder}")


def raise_failure(result: TaskResult, transcript: str | None) -> None:
    """Raise the error of a run that ended without an answer; say first how to go on."""
    if result.error is None:
        return
    if transcript is not None and result.status in {"limit", "failed"}:
        printer.note(_describe_resume(transcript))
    sys.stdout.flush()
    raise result.error


def _describe_resume(transcript: str) -> str:
    """Return how to go on; a transcript does not choose the model, which gets everything that is said."""
    return f"prowess run --resume {quote(transcript)} goes on from here, with the same --model if you named one"
