"""A question to a person about one call of a skill tool, with LangGraph's ``interrupt``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from langchain.agents.middleware.human_in_the_loop import ApproveDecision, RejectDecision
from langgraph.checkpoint.base import RESUME, BaseCheckpointSaver
from langgraph.func import task as graph_task
from langgraph.types import interrupt
from pydantic import Field, StrictBool
from typing_extensions import TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.runnables import RunnableConfig
    from langgraph.prebuilt import ToolRuntime

    from prowess.adapters.core import Conversation
    from prowess.conversation.acting.trust_request import TrustRequest

_SENT = "__pregel_push"
"""How the path of a task begins that was made with ``Send``, as ``create_agent`` makes one for each call."""
_NO_TASK = "00000000-0000-0000-0000-000000000000"
"""Whose write an answer is in a checkpoint, until a task has taken it."""


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

        Raises ``GraphInterrupt`` while there is no answer.
        """
        answer = interrupt(shown, response_schema=_ANSWER)
        if self._is_new or shown["tool_call_id"] != self._call["tool_call_id"]:
            return None
        conversation.show_again(shown["tool_call_id"], shown["request"])
        if isinstance(answer, bool):
            return answer
        return bool((answer.get("decisions") or [answer])[0]["type"] == "approve")


Note = Literal["asked", "used", "paused"]


class ApprovalLog:
    """What became of the approval of one call, kept with the checkpoint as results of a task of LangGraph.

    LangGraph gives a person's answer again when the call runs again, also after its run was cancelled or its process
    ended. This log knows in which of these runs the answer was used. LangGraph numbers the tasks of a call: a run of
    the call gets the notes of the former runs, one for each that it wants to write, before it writes its own.
    """

    def __init__(self) -> None:
        self._written: list[Note] = []

        def write(note: Note) -> Note:
            self._written.append(note)
            return note

        self._write = graph_task(write, name="prowess_approval")

    def add(self, note: Note) -> Note | None:
        """Write a note after all others; return the last one of the former runs."""
        last: Note | None = None
        while True:
            self._written.clear()
            found: Note = self._write(note).result()
            if self._written:
                return last
            last = found

    async def aadd(self, note: Note) -> Note | None:
        """Do what ``add`` does, in asynchronous code."""
        last: Note | None = None
        while True:
            self._written.clear()
            found: Note = await self._write(note)
            if self._written:
                return last
            last = found


class LastAnswer:
    """The answer of ``Command(resume=…)`` in the checkpoint of the outermost graph.

    LangGraph leaves it there until the step of the graph has ended, and takes it for the answer to the next question of
    the same step, such as that of a child, when the graph runs again without one.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        places = config.get("configurable", {})
        # From the outermost graph to this one, the checkpoint of each by its namespace. LangGraph has no public way to
        # them: where a later version keeps them elsewhere, the tests of forks fail.
        namespace, checkpoint_id = next(iter(places.get("checkpoint_map", {}).items()), ("", None))
        saver = places.get("__pregel_checkpointer")
        self._saver = saver if checkpoint_id and isinstance(saver, BaseCheckpointSaver) else None
        where = {"thread_id": places.get("thread_id"), "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
        self._place: RunnableConfig = {"configurable": where}

    def forget(self) -> None:
        """Take the answer out of the checkpoint."""
        if self._saver is not None:
            self._saver.put_writes(self._place, [(RESUME, None)], _NO_TASK)

    async def aforget(self) -> None:
        """Do what ``forget`` does, in asynchronous code."""
        if self._saver is not None:
            await self._saver.aput_writes(self._place, [(RESUME, None)], _NO_TASK)


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
