"""The decisions of a person in one conversation about what may run, besides the grants that hold everywhere."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from prowess.errors import NotTrustedError, SkillError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prowess.conversation.acting.trust import RunPermission, Trust
    from prowess.conversation.acting.trust_request import TrustRequest
    from prowess.conversation.events import EventEmitter, EventKind
    from prowess.skills.skill import Skill

    Approvals = dict[str, TrustRequest]

_CALL: ContextVar[tuple[Consent, Approvals] | None] = ContextVar("prowess_approved_call", default=None)
"""The consent whose conversation makes the present call, and what is approved for that call alone."""


class Consent:
    """The approvals and refusals of one conversation, in front of the trust that its session was given.

    A decision is kept by the id of its request, which is a hash of the skill's name and digest and of everything that
    would run: another state of the skill, another script or other arguments are another request. An approval is used up
    by one call. A refusal stays, and wins over every approval, whichever was made first. What is decided in a
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
        self._refused = dict.fromkeys(refused, True)
        self._approvals: Approvals = {}
        self._pending_ids: set[str] = set()
        # Part of ``mark``: a decision must be noticed even though it changes no file.
        self._decision_count = 0

    @property
    def refused_ids(self) -> tuple[str, ...]:
        """The ids of the requests that a person refused here or in a parent conversation, sorted."""
        above = () if self._parent is None else self._parent.refused_ids
        # A tuple, since another thread may decide meanwhile.
        return tuple(sorted({*above, *tuple(self._refused)}))

    def approve(self, request: TrustRequest) -> None:
        """Allow the next call that would run exactly this, once, while the skill is in this state.

        Raises ``NotTrustedError`` (code ``refused-by-person``) for what a person refused in this conversation.
        """
        self._check_request(request)
        if self.is_refused(request.id):
            raise _refused_by_person(request)
        self._approvals[request.id] = request
        self._decision_count += 1
        self._report("approved", request, by="session", scope="once")

    @contextmanager
    def approve_call(self, request: TrustRequest) -> Iterator[None]:
        """Allow the call that is made in the block to run exactly this, once; the approval ends with the block.

        No other call of the conversation may use it, not even one that is made at the same time.
        """
        self._check_request(request)
        approvals = {request.id: request}
        self._decision_count += 1
        if not self.is_refused(request.id):
            self._report("approved", request, by="session", scope="once")
        token = _CALL.set((self, approvals))
        try:
            yield
        finally:
            _CALL.reset(token)
            approvals.clear()  # a thread of a cancelled call may still be on its way to what it was to run

    def withdraw_approvals(self, skill_name: str) -> None:
        """Forget what was approved of a skill and not used: a call was cancelled before it came to that."""
        for approvals in self.list_approvals():
            for request in tuple(approvals.values()):  # another thread may use one up meanwhile
                if request.skill.name == skill_name:
                    approvals.pop(request.id, None)
        self._decision_count += 1

    def refuse(self, request: TrustRequest) -> None:
        """Refuse exactly this call; nobody is asked about it again in this conversation."""
        self._check_request(request)
        self.refuse_id(request.id)
        self._report("refused", request, by="session", scope="conversation", code="refused-by-person")

    def refuse_id(self, request_id: str) -> None:
        """Refuse a request whose skill may be gone by now, so that the refusal still counts when the skill is back."""
        self._refused[request_id] = True
        self._decision_count += 1

    def _check_request(self, request: TrustRequest) -> None:
        from prowess.conversation.acting.trust_request import TrustRequest

        asked: object = request
        if not isinstance(asked, TrustRequest):
            message = f"a TrustRequest is decided on, not {type(asked).__name__}: use TrustRequest.from_dict(…)"
            raise NotTrustedError(message, code="bad-argument")
        if self.trust is None:
            raise NotTrustedError("this session has no trust: nothing can be allowed in it", code="no-trust")

    def is_refused(self, request_id: str) -> bool:
        """Return whether a person refused a request, here or in a parent conversation."""
        return request_id in self._refused or (self._parent is not None and self._parent.is_refused(request_id))

    def list_approvals(self) -> list[Approvals]:
        """Return the approvals that count here: of the present call, of this conversation, and of its parents."""
        call = _CALL.get()
        own = [call[1]] if call is not None and call[0] is self else []
        return [*own, self._approvals, *([] if self._parent is None else self._parent.list_approvals())]

    def _use_approval(self, request: TrustRequest) -> bool:
        """Return whether a person has approved a request, and use the approval up."""
        # ``pop`` is atomic, so that of two threads only one uses an approval.
        return any(approvals.pop(request.id, None) is not None for approvals in self.list_approvals())

    def require(self, request: TrustRequest) -> RunPermission:
        """Return why this may run: ``granted`` by a grant, or ``once`` by a person's yes, which is used up by that.

        Raises ``NotTrustedError``: ``no-trust``, ``not-trusted``, ``refused-by-person``, ``needs-approval`` (with
        ``request``: a person is to be asked later) or ``ask-needs-acall``. An exception of ``ask`` is logged, told as
        an event, and raised.
        """
        if self.trust is None:
            name = request.skill.name
            raise NotTrustedError(f"nothing of {name!r} runs: no trust was given", request.skill.location, "no-trust")
        judgement = self.trust.judge(request)
        # A policy that forbids everything needs no refusal, and a grant needs no approval.
        if judgement != "refused" and self.is_refused(request.id):
            raise _refused_by_person(request)
        if judgement in {"ask", "defer"} and self._use_approval(request):
            return "once"
        try:
            permission = self.trust.require(request)
        except NotTrustedError as error:
            # A grant would help only where nobody was asked: a person who said no is not to be asked for one.
            is_no = judgement == "ask" and error.code == "not-trusted"
            refusal = _refused_by_person(request) if is_no else error
            self._report_refusal(request, refusal.code)
            raise refusal from None
        except Exception as error:
            if not isinstance(error, SkillError):  # a SkillError is not the host's: the grants cannot be read
                self._events.report_host_error("ask", error, request.skill.name)
            raise
        if judgement == "ask":
            self._report("approved", request, by="ask", scope="always" if permission == "granted" else "once")
        elif request.id in self._pending_ids:  # another process may have granted it, so it is reported when it is used
            self._pending_ids.discard(request.id)
            self._report("approved", request, by="grant", scope="always")
        return permission

    def _report_refusal(self, request: TrustRequest, code: str) -> None:
        if code == "needs-approval":
            self._pending_ids.add(request.id)
            self._report("pending", request)
        elif code == "refused-by-person":
            self._report("refused", request, by="ask", scope="once", code=code)

    def _report(self, kind: EventKind, request: TrustRequest, **decided: str) -> None:
        runs = {"script": request.script, "arguments": request.arguments} if request.script else {}
        asked = {"id": request.id, "digest": request.digest, "commands": request.commands, **runs}
        self._events.emit(kind, request.skill.name, **asked, **decided)

    def has_approval_for(self, skill: Skill) -> bool:
        """Return whether an approval of anything of a skill in its present state is left to be used."""
        # Tuples, since another thread may use an approval up meanwhile.
        digests = {request.digest for approvals in self.list_approvals() for request in tuple(approvals.values())}
        try:
            # Hashing reads every file of the skill: not where nothing was approved.
            return bool(digests) and skill.digest() in digests
        except SkillError:
            return False

    def mark(self) -> object:
        """Return a value that stays equal until a grant changes or a person decides, here or in a parent."""
        if self.trust is None:
            return None
        return self.trust.mark() if self._parent is None else self._parent.mark(), self._decision_count


def _refused_by_person(request: TrustRequest) -> NotTrustedError:
    """Return the error for what a person was asked about and did not allow."""
    message = f"a person was asked whether {request.skill.name!r} may run this, and said no"
    return NotTrustedError(message, request.skill.location, "refused-by-person")
