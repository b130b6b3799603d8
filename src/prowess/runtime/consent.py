"""The decisions of a person in one conversation about what may run, besides the grants that hold everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import NotTrustedError, SkillError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.runtime.acting.trust import RunPermission, Trust
    from prowess.runtime.acting.trust_request import TrustRequest
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
        """``parent``: the consent of the parent of a sub-agent; ``refused``: the ids of requests refused before."""
        self.trust = trust
        self._events = events
        self._parent = parent
        self._decisions: dict[str, bool] = dict.fromkeys(refused, False)
        self._approved_digests: set[str] = set()
        self._pending_ids: set[str] = set()
        # Part of ``mark``: a decision must be noticed even though it changes no file.
        self._decision_count = 0

    def open_child(self) -> Consent:
        """Return the consent of a sub-agent: it has decisions of its own besides those of this conversation."""
        return Consent(self.trust, self._events, parent=self)

    @property
    def refused_ids(self) -> tuple[str, ...]:
        """The ids of the requests that a person refused here or in a parent conversation, sorted."""
        above = () if self._parent is None else self._parent.refused_ids
        # A tuple of the items, since another thread may decide meanwhile.
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
        from prowess.runtime.acting.trust_request import TrustRequest  # noqa: PLC0415 - only where somebody decides

        asked: object = request
        if not isinstance(asked, TrustRequest):
            message = f"a TrustRequest is decided on, not {type(asked).__name__}: use TrustRequest.from_dict(…)"
            raise NotTrustedError(message, code="bad-argument")
        if self.trust is None:
            raise NotTrustedError("this session has no trust: nothing can be allowed in it", code="no-trust")
        self._decisions[request.id] = allowed
        self._decision_count += 1

    def find_decision(self, request_id: str) -> bool | None:
        """Return what a person decided on a request, here or in a parent conversation; ``None``: nothing.

        A refusal counts more than an approval, wherever each was made.
        """
        own = self._decisions.get(request_id)
        above = None if self._parent is None else self._parent.find_decision(request_id)
        return False if False in (own, above) else own or above

    def require(self, request: TrustRequest) -> RunPermission:
        """Return why this may run: ``granted`` by a grant, or ``once`` by a person's yes in this conversation.

        Raises ``NotTrustedError``: ``no-trust``, ``not-trusted``, ``refused-by-person``, ``needs-approval`` (with
        ``request``: a person is to be asked later) or ``ask-needs-acall``. An exception of ``ask`` is logged, told as
        an event, and raised.
        """
        if self.trust is None:
            name = request.skill.name
            raise NotTrustedError(f"nothing of {name!r} runs: no trust was given", request.skill.location, "no-trust")
        judgement = self.trust.judge(request)
        # A grant, and a policy that forbids everything, count more than what was decided in this conversation.
        decision = self.find_decision(request.id) if judgement in {"ask", "defer"} else None
        if decision is True:
            return "once"
        if decision is False:
            raise _refused_by_person(request)
        try:
            permission = self.trust.require(request)
        except NotTrustedError as error:
            # A grant would help only where nobody was asked: a person who said no is not to be asked for one.
            is_no = judgement == "ask" and error.code == "not-trusted"
            refusal = _refused_by_person(request) if is_no else error
            self._report_refusal(request, refusal)
            raise refusal from None
        except Exception as error:
            if not isinstance(error, SkillError):  # a SkillError is not the host's: the grants cannot be read
                self._events.report_host_error("ask", error, request.skill.name)
            raise
        if judgement == "ask":
            scope = "always" if permission == "granted" else "once"
            self._events.emit("approved", request.skill.name, **_request_detail(request), by="ask", scope=scope)
        elif request.id in self._pending_ids:  # another process may have granted it, so it is told when it is used
            self._pending_ids.discard(request.id)
            self._events.emit("approved", request.skill.name, **_request_detail(request), by="grant", scope="always")
        return permission

    def _report_refusal(self, request: TrustRequest, error: NotTrustedError) -> None:
        if error.code == "needs-approval":
            self._pending_ids.add(request.id)
            self._events.emit("pending", request.skill.name, **_request_detail(request))
        elif error.code == "refused-by-person":
            decided = {"by": "ask", "scope": "once", "code": error.code}
            self._events.emit("refused", request.skill.name, **_request_detail(request), **decided)

    def has_approval_for(self, skill: Skill) -> bool:
        """Return whether anything of a skill in its present state was approved here or in a parent conversation."""
        if self._parent is not None and self._parent.has_approval_for(skill):
            return True
        try:
            # Hashing reads every file of the skill: not where nothing was approved.
            return bool(self._approved_digests) and skill.digest() in self._approved_digests
        except SkillError:
            return False

    def mark(self) -> object:
        """Return a value that stays equal until a grant changes or a person decides, here or in a parent."""
        if self.trust is None:
            return None
        return self.trust.mark() if self._parent is None else self._parent.mark(), self._decision_count


def _request_detail(request: TrustRequest) -> dict[str, object]:
    """Return the details of a request for an event."""
    runs = {"script": request.script, "arguments": request.arguments} if request.script else {}
    return {"id": request.id, "digest": request.digest, "commands": request.commands, **runs}


def _refused_by_person(request: TrustRequest) -> NotTrustedError:
    """Return the error for what a person was asked about and did not allow."""
    message = f"a person was asked whether {request.skill.name!r} may run this, and said no"
    return NotTrustedError(message, request.skill.location, "refused-by-person")
