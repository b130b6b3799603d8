"""Decides about each call of the agent's own tools: the ceiling, what skills may approve, and then a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from prowess.conversation.tool_rules import judge_call
from prowess.errors import NotTrustedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.adapters.core import ChildTask
    from prowess.conversation.acting.trust import AskAnswer
    from prowess.conversation.acting.trust_request import TrustRequest
    from prowess.conversation.session import Session

ToolAnswer = Literal["once", "always", "no"]
"""``always``: for the rest of this run, each call of ``Read`` or ``Write``, or the same command of ``Bash``."""
DecidedBy = Literal["skill", "person", "ceiling", "nobody"]


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A call of one of the agent's own tools that a person is asked about."""

    tool: str
    subject: str
    """The path or the command."""
    preview: str = ""
    """What would change, as a unified diff whose invisible characters are written out."""
    skill: str = ""
    """The skill that makes the call as a child agent; ``""``: the agent itself."""
    is_protected: bool = False
    """Whether a command in the sandbox could not write there."""

    @property
    def is_hidden(self) -> bool:
        """Whether a path leads to a hidden or protected file, such as a hook of git, which may run later unasked."""
        if self.tool == "Bash":
            return False
        return self.is_protected or any(part.startswith(".") and part != "." for part in self.subject.split("/"))


class Person(Protocol):
    """Whoever decides for the user: on a terminal a person, in an evaluation a function."""

    async def ask_tool(self, request: ToolRequest) -> ToolAnswer:
        """Return whether a call of one of the agent's own tools may be made."""

    async def ask_trust(self, request: TrustRequest) -> AskAnswer:
        """Return whether a skill may run a script or commands: ``True`` (once), ``"always"`` (a grant), ``False``."""


class ToolGate:
    """Lets a call of the agent's own tools through, or raises ``NotTrustedError`` (code ``tool-refused``)."""

    def __init__(
        self,
        find_session: Callable[[], Session],
        ceiling: tuple[str, ...],
        person: Person | None,
        on_decision: Callable[[ToolRequest, bool, DecidedBy], None],
        *,
        skills_approve: bool,
    ) -> None:
        # Looked up for each call: a run that goes on from a transcript gets its session from the messages.
        self._find_session = find_session
        self._ceiling = ceiling
        self._person = person
        self._on_decision = on_decision
        self._skills_approve = skills_approve
        self._answers: set[tuple[str, str]] = set()
        """The tools, and the commands, that a person has allowed for the rest of the run."""

    async def admit(self, request: ToolRequest, child: ChildTask | None) -> None:
        """Return when the call may be made; raise ``NotTrustedError`` with the reason for the model otherwise."""
        if judge_call(request.tool, request.subject, self._ceiling, has_families=True) != "allowed":
            message = f"this call of {request.tool} is beyond what --tools allows"
            raise self._refuse(request, "ceiling", message)
        if self._is_approved(request, child) and not (request.tool == "Write" and request.is_hidden):
            self._on_decision(request, True, "skill")  # noqa: FBT003 - the decision itself
            return
        if self._answer_key(request) in self._answers:
            self._on_decision(request, True, "person")  # noqa: FBT003 - the decision itself
            return
        if self._person is None:
            message = f"this call of {request.tool} needs a person's approval, and nobody can be asked here"
            raise self._refuse(request, "nobody", message)
        answer = await self._person.ask_tool(request)
        if answer not in {"once", "always"}:
            raise self._refuse(request, "person", f"a person was asked about this call of {request.tool}, and said no")
        if answer == "always":
            self._answers.add(self._answer_key(request))
        self._on_decision(request, True, "person")  # noqa: FBT003 - the decision itself

    def _is_approved(self, request: ToolRequest, child: ChildTask | None) -> bool:
        """Return whether the user lets skills approve calls, and an active one, or that of a child agent, lists it."""
        if not self._skills_approve:
            return False
        session = self._find_session() if child is None else child.conversation.session
        listed = [*session.listed_tools, *(child.prepared.allowed_tools if child is not None else ())]
        return bool(judge_call(request.tool, request.subject, listed))

    def _answer_key(self, request: ToolRequest) -> tuple[str, str]:
        """Return what a person's ``always`` covers; hidden files are asked about one by one."""
        is_whole_tool = request.tool != "Bash" and not request.is_hidden
        return request.tool, "" if is_whole_tool else request.subject

    def _refuse(self, request: ToolRequest, by: DecidedBy, message: str) -> NotTrustedError:
        self._on_decision(request, False, by)  # noqa: FBT003 - the decision itself
        return NotTrustedError(f"{message}: nothing was done", code="tool-refused")
