"""A question to a person about one call of a skill tool, with LangGraph's ``interrupt``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from langchain.agents.middleware.human_in_the_loop import ApproveDecision, RejectDecision
from langgraph.func import task as graph_task
from langgraph.types import interrupt
from pydantic import Field, StrictBool
from typing_extensions import TypedDict

if TYPE_CHECKING:
    from langgraph.prebuilt import ToolRuntime

    from prowess.adapters.core import Conversation
    from prowess.runtime.acting.trust_request import TrustRequest

_SENT = "__pregel_push"
"""How the path of a task begins that was made with ``Send``, as ``create_agent`` makes one for each call."""


class _Decisions(TypedDict):
    """The answer to one request in the shape of LangChain's batched review."""

    decisions: Annotated[list[ApproveDecision | RejectDecision], Field(min_length=1, max_length=1)]


_ANSWER = StrictBool | ApproveDecision | RejectDecision | _Decisions


class Question:
    """A question to a person about one call, with LangGraph's ``interrupt``.

    A call that was interrupted runs again from its beginning, and the files may have changed since the person was
    asked. ``remember`` is a task of LangGraph: its result is kept with the checkpoint, so that the call learns what was
    shown when the person answered.
    """

    def __init__(self, name: str, arguments: dict[str, Any], call_id: str) -> None:
        self._call = {"tool_call_id": call_id, "name": name, "args": arguments}
        self._is_new = False

        def remember(shown: dict[str, Any]) -> dict[str, Any]:
            self._is_new = True
            return shown

        self.remember = graph_task(remember, name="prowess_question")

    def describe(self, request: TrustRequest) -> dict[str, Any]:
        """Return what the person is shown, in the shape of LangChain's review of one call."""
        return {"type": "tool_approval", **self._call, "description": str(request), "request": request.to_dict()}

    def ask(self, shown: dict[str, Any], conversation: Conversation) -> bool | None:
        """Return the person's decision about what was shown; ``None``: there is none, the answer was for another call.

        Raises LangGraph's interrupt while there is no answer.
        """
        answer = interrupt(shown, response_schema=_ANSWER)
        if self._is_new or shown["tool_call_id"] != self._call["tool_call_id"]:
            return None
        conversation.asked[shown["tool_call_id"]] = shown["request"]
        if isinstance(answer, bool):
            return answer
        return bool((answer.get("decisions") or [answer])[0]["type"] == "approve")


def is_alone(runtime: ToolRuntime) -> bool:
    """Return whether a call is the only one of its task: it was sent on its own, or its message has no other."""
    if runtime.config.get("metadata", {}).get("langgraph_path", ("",))[0] == _SENT:
        return True
    state = runtime.state
    messages = state if isinstance(state, list) else get_field(state, "messages")
    return bool(messages) and len(getattr(messages[-1], "tool_calls", ())) == 1


def get_field(state: Any, name: str) -> Any:
    """Return a field of the state of a graph, which may be of any class; ``None`` when it has none of this name."""
    return state.get(name) if isinstance(state, dict) else getattr(state, name, None)
