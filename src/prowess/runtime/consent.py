"""Consent: what a person allows or refuses in one conversation, besides the grants that count everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import NotTrustedError, SkillError

if TYPE_CHECKING:
    from prowess.library.skill import Skill
    from prowess.runtime.events import Teller
    from prowess.runtime.trust import Permission, Trust, TrustRequest


class Consent:
    """The approvals and refusals of one conversation, in front of the trust that its session was given.

    A decision is kept by the id of its request, which is a hash of the skill's name and digest and of everything that
    would run: another state of the skill, another script or other arguments are another request.
    """

    def __init__(self, trust: Trust | None, events: Teller) -> None:
        self.trust = trust
        self._events = events
        self._decisions: dict[str, bool] = {}
        self._approved_digests: set[str] = set()

    def approve(self, request: TrustRequest) -> None:
        """Allow exactly this call, as often as this conversation makes it, while the skill is in this state."""
        self._decide(request, allowed=True)
        self._approved_digests.add(request.digest)
        self._events.say("approved", request.skill.name, **_describe(request), by="session")

    def refuse(self, request: TrustRequest) -> None:
        """Refuse exactly this call; nobody is asked about it again in this conversation."""
        self._decide(request, allowed=False)
        self._events.say("refused", request.skill.name, **_describe(request), by="session", code="refused-by-person")

    def _decide(self, request: TrustRequest, *, allowed: bool) -> None:
        from prowess.runtime.trust import TrustRequest  # noqa: PLC0415 - only where somebody decides

        asked: object = request
        if not isinstance(asked, TrustRequest):
            message = f"a TrustRequest is decided on, not {type(asked).__name__}: use TrustRequest.from_dict(…)"
            raise NotTrustedError(message, code="bad-argument")
        if self.trust is None:
            raise NotTrustedError("this session has no trust: nothing can be allowed in it", code="no-trust")
        self._decisions[request.id] = allowed

    def require(self, request: TrustRequest) -> Permission:
        """Return by what this may run: a grant, or a person's yes in this conversation.

        Raises ``NotTrustedError``: ``not-trusted``, ``refused-by-person``, ``needs-approval`` (with ``request``: a
        person is to be asked later) or ``ask-needs-acall``. What ``ask`` raises is logged, told, and raised.
        """
        if self.trust is None:
            name = request.skill.name
            raise NotTrustedError(f"nothing of {name!r} runs: no trust was given", request.skill.location, "no-trust")
        standing = self.trust.judge(request)
        if standing in {"ask", "defer"} and request.id in self._decisions:
            if self._decisions[request.id]:
                return "once"
            message = f"a person was asked whether this of {request.skill.name!r} may run, and said no"
            raise NotTrustedError(message, request.skill.location, "refused-by-person")
        try:
            permission = self.trust.require(request)
        except NotTrustedError as error:
            self._tell_refusal(request, error, asked=standing == "ask")
            raise
        except Exception as error:
            if not isinstance(error, SkillError):  # the grants cannot be read: that is not the host's ``ask``
                self._events.report_host_error("ask", error, request.skill.name)
            raise
        if standing == "ask":
            self._events.say("approved", request.skill.name, **_describe(request), by="ask")
        return permission

    def _tell_refusal(self, request: TrustRequest, error: NotTrustedError, *, asked: bool) -> None:
        if error.code == "needs-approval":
            self._events.say("pending", request.skill.name, **_describe(request))
        elif asked and error.code == "not-trusted":
            self._events.say("refused", request.skill.name, **_describe(request), by="ask", code=error.code)

    def has_approved_of(self, skill: Skill) -> bool:
        """Whether anything of a skill, as it is now, was approved in this conversation."""
        try:
            return bool(self._approved_digests) and skill.digest() in self._approved_digests
        except SkillError:
            return False

    def mark(self) -> object:
        """Return what stays equal while nobody changes the grants or decides anything here."""
        return None if self.trust is None else (self.trust.mark(), len(self._decisions), sum(self._decisions.values()))


def _describe(request: TrustRequest) -> dict[str, object]:
    """The particulars of a request for an event."""
    runs = {"script": request.script, "arguments": request.arguments} if request.script else {}
    return {"id": request.id, "digest": request.digest, "commands": request.commands, **runs}
