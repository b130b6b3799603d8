"""Consent: what a person allows or refuses in one conversation, besides the grants that count everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import NotTrustedError, SkillError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.runtime.acting.trust import Permission, Trust, TrustRequest
    from prowess.runtime.events import EventEmitter
    from prowess.skills.skill import Skill


class Consent:
    """The approvals and refusals of one conversation, in front of the trust that its session was given.

    A decision is kept by the id of its request, which is a hash of the skill's name and digest and of everything that
    would run: another state of the skill, another script or other arguments are another request. What is decided in a
    conversation counts for its sub-agents as well, never the other way round: whoever decides about a sub-agent's call
    has seen that sub-agent's task, not what its parent is about to do.
    """

    def __init__(
        self, trust: Trust | None, events: EventEmitter, *, parent: Consent | None = None, refused: Iterable[str] = ()
    ) -> None:
        """``parent``: the consent that a sub-agent works under; ``refused``: ids of what was refused before."""
        self.trust = trust
        self._events = events
        self._parent = parent
        self._decisions: dict[str, bool] = dict.fromkeys(refused, False)
        self._approved_digests: set[str] = set()
        self._pending_ids: set[str] = set()
        self._decision_count = 0

    def open_child(self) -> Consent:
        """The consent of a sub-agent: decisions of its own, after those of this conversation."""
        return Consent(self.trust, self._events, parent=self)

    @property
    def refused_ids(self) -> tuple[str, ...]:
        """The ids of the requests that a person refused here or in a conversation above, sorted."""
        above = () if self._parent is None else self._parent.refused_ids
        own = (request_id for request_id, allowed in tuple(self._decisions.items()) if not allowed)
        return tuple(sorted({*above, *own}))

    def approve(self, request: TrustRequest) -> None:
        """Allow exactly this call, as often as this conversation makes it, while the skill is in this state."""
        self._decide(request, allowed=True)
        self._approved_digests.add(request.digest)
        self._events.emit(
            "approved", request.skill.name, **_request_detail(request), by="session", scope="conversation"
        )

    def refuse(self, request: TrustRequest) -> None:
        """Refuse exactly this call; nobody is asked about it again in this conversation."""
        self._decide(request, allowed=False)
        decided = {"by": "session", "scope": "conversation", "code": "refused-by-person"}
        self._events.emit("refused", request.skill.name, **_request_detail(request), **decided)

    def _decide(self, request: TrustRequest, *, allowed: bool) -> None:
        from prowess.runtime.acting.trust import TrustRequest  # noqa: PLC0415 - only where somebody decides

        asked: object = request
        if not isinstance(asked, TrustRequest):
            message = f"a TrustRequest is decided on, not {type(asked).__name__}: use TrustRequest.from_dict(…)"
            raise NotTrustedError(message, code="bad-argument")
        if self.trust is None:
            raise NotTrustedError("this session has no trust: nothing can be allowed in it", code="no-trust")
        self._decisions[request.id] = allowed
        self._decision_count += 1

    def find_decision(self, request_id: str) -> bool | None:
        """What a person decided on a request, here or above; ``None``: nothing. A refusal anywhere counts."""
        own = self._decisions.get(request_id)
        above = None if self._parent is None else self._parent.find_decision(request_id)
        if own is False or above is False:
            return False
        return own or above

    def require(self, request: TrustRequest) -> Permission:
        """Return by what this may run: a grant, or a person's yes in this conversation.

        Raises ``NotTrustedError``: ``not-trusted``, ``refused-by-person``, ``needs-approval`` (with ``request``: a
        person is to be asked later) or ``ask-needs-acall``. What ``ask`` raises is logged, told, and raised.
        """
        if self.trust is None:
            name = request.skill.name
            raise NotTrustedError(f"nothing of {name!r} runs: no trust was given", request.skill.location, "no-trust")
        standing = self.trust.judge(request)
        decision = self.find_decision(request.id) if standing in {"ask", "defer"} else None
        if decision is True:
            return "once"
        if decision is False:
            message = f"a person was asked whether this of {request.skill.name!r} may run, and said no"
            raise NotTrustedError(message, request.skill.location, "refused-by-person")
        try:
            permission = self.trust.require(request)
        except NotTrustedError as error:
            self._report_refusal(request, error, asked=standing == "ask")
            raise
        except Exception as error:
            if not isinstance(error, SkillError):  # the grants cannot be read: that is not the host's ``ask``
                self._events.report_host_error("ask", error, request.skill.name)
            raise
        if standing == "ask":
            scope = "always" if permission == "granted" else "once"
            self._events.emit("approved", request.skill.name, **_request_detail(request), by="ask", scope=scope)
        elif request.id in self._pending_ids:  # a grant may come from another process, so it is told when it is used
            self._pending_ids.discard(request.id)
            self._events.emit("approved", request.skill.name, **_request_detail(request), by="grant", scope="always")
        return permission

    def _report_refusal(self, request: TrustRequest, error: NotTrustedError, *, asked: bool) -> None:
        if error.code == "needs-approval":
            self._pending_ids.add(request.id)
            self._events.emit("pending", request.skill.name, **_request_detail(request))
        elif asked and error.code == "not-trusted":
            decided = {"by": "ask", "scope": "once", "code": error.code}
            self._events.emit("refused", request.skill.name, **_request_detail(request), **decided)

    def has_approval_for(self, skill: Skill) -> bool:
        """Whether anything of a skill, as it is now, was approved in this conversation or in one above."""
        if self._parent is not None and self._parent.has_approval_for(skill):
            return True
        try:
            return bool(self._approved_digests) and skill.digest() in self._approved_digests
        except SkillError:
            return False

    def mark(self) -> object:
        """Return what stays equal while nobody changes the grants or decides anything, here or above."""
        if self.trust is None:
            return None
        return self.trust.mark() if self._parent is None else self._parent.mark(), self._decision_count


def _request_detail(request: TrustRequest) -> dict[str, object]:
    """The particulars of a request for an event."""
    runs = {"script": request.script, "arguments": request.arguments} if request.script else {}
    return {"id": request.id, "digest": request.digest, "commands": request.commands, **runs}
