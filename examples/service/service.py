"""A chat service whose agent has skills: streams, several workers, users with different skills, approvals.

docs/tutorial/first-service.md explains it. Start it in this folder: ``uvicorn service:app --workers 2``.
"""

import json
import logging
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from openai import AsyncOpenAI
from pydantic import BaseModel, Field

import prowess
from prowess.adapters.openai import CallEvent, PartialRun, RunResult, Skills, TextEvent

MODEL = os.environ.get("MODEL", "gpt-5.5")
DATABASE = os.environ.get("DATABASE", "chats.sqlite3")
USERS = json.loads(Path(os.environ.get("USERS", "users.json")).read_text())
logger = logging.getLogger("uvicorn.error")


@dataclass
class User:
    name: str
    skills: list[str]


def find_user(sent: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]) -> User:
    if sent.credentials not in USERS:
        raise HTTPException(401, "unknown token")
    return User(**USERS[sent.credentials])


def find_scope(context: prowess.ScopeContext) -> prowess.Scope:
    return prowess.Scope(allowed=context.framework.skills)


scripts = prowess.Scripts(sandbox=os.environ.get("SANDBOX", "auto"))
skills = Skills("skills/", scripts=scripts, scope=find_scope)
client = AsyncOpenAI()


@contextmanager
def open_chats() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(DATABASE, timeout=30, isolation_level=None)) as database, database:
        database.execute("BEGIN IMMEDIATE")  # one request at a time, until this one commits or rolls back
        database.execute("CREATE TABLE IF NOT EXISTS chats (user, chat, run, state, PRIMARY KEY (user, chat))")
        yield database


def read_state(database: sqlite3.Connection, user: User, chat: str) -> dict[str, Any]:
    found = database.execute("SELECT state FROM chats WHERE user = ? AND chat = ?", (user.name, chat)).fetchone()
    return json.loads(found[0]) if found else {"messages": [], "saved": "", "pending": []}


@dataclass
class Run:
    user: User
    chat: str
    text: str = ""
    decisions: dict[str, bool] | None = None

    def begin(self) -> StreamingResponse:
        """Take the chat over from any other run, and go on with it."""
        self.id, decisions = uuid4().hex, self.decisions or {}
        with open_chats() as database:
            state = read_state(database, self.user, self.chat)
            if self.text and state["pending"]:
                raise HTTPException(409, "decide about the calls that wait first")
            if decisions.keys() - {call["id"] for call in state["pending"]}:
                raise HTTPException(409, "no call waits for this decision")
            if self.text:
                state["messages"].append({"role": "user", "content": self.text})
            state["pending"] = []  # each decision counts once
            row = (self.user.name, self.chat, self.id, json.dumps(state))
            database.execute("INSERT OR REPLACE INTO chats VALUES (?, ?, ?, ?)", row)
        return StreamingResponse(self.stream(state, decisions), media_type="text/event-stream")

    async def stream(self, state: dict[str, Any], decisions: dict[str, bool]) -> AsyncIterator[str]:
        history = {"messages": state["messages"], "saved": state["saved"]}
        try:
            async for event in skills.stream(client, model=MODEL, decisions=decisions, context=self.user, **history):
                if isinstance(event, TextEvent):
                    yield write_event("text", event.text)
                elif isinstance(event, CallEvent):
                    yield write_event("call", event.call.name)
                elif isinstance(event, PartialRun | RunResult):
                    pending = self.keep(event)
                    if pending is None:
                        yield write_event("stopped", "another request went on with this chat, or it was cleared")
                        return
                    if isinstance(event, RunResult):
                        yield write_event("end", {"stop": event.stop, "pending": pending})
        except BaseException as error:  # also a browser that was closed
            if partial := getattr(error, "partial", None):
                self.keep(partial)
            if not isinstance(error, Exception):
                raise
            logger.exception("a run of %s failed", self.user.name)
            yield write_event("error", "the answer is not complete: retry")

    def keep(self, so_far: PartialRun | RunResult) -> list[dict[str, str]] | None:
        """Save the chat; return the calls that wait for a decision, or None if the chat is no longer this run's."""
        calls = so_far.pending if isinstance(so_far, RunResult) else ()
        pending = [{"id": call.id, "shown": str(call.request)} for call in calls]
        state = json.dumps({"messages": so_far.messages, "saved": so_far.saved, "pending": pending})
        with open_chats() as database:
            changed = database.execute("UPDATE chats SET state = ? WHERE run = ?", (state, self.id)).rowcount
        return pending if changed else None


def write_event(kind: str, data: object) -> str:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"


app = FastAPI()
SignedIn = Annotated[User, Depends(find_user)]


class Message(BaseModel):
    text: str = Field(min_length=1, max_length=20_000)


@app.post("/chats/{chat}/messages")
def send_message(user: SignedIn, chat: str, message: Message) -> StreamingResponse:
    return Run(user, chat, text=message.text).begin()


@app.post("/chats/{chat}/decisions")
def decide(user: SignedIn, chat: str, decisions: dict[str, bool]) -> StreamingResponse:
    return Run(user, chat, decisions=decisions).begin()


@app.post("/chats/{chat}/retry")
def retry(user: SignedIn, chat: str) -> StreamingResponse:
    return Run(user, chat).begin()


@app.get("/chats/{chat}")
def show_chat(user: SignedIn, chat: str) -> dict[str, Any]:
    with open_chats() as database:
        state = read_state(database, user, chat)
    return {"messages": state["messages"], "pending": state["pending"]}


@app.delete("/chats/{chat}", status_code=204)
def clear_chat(user: SignedIn, chat: str) -> None:
    with open_chats() as database:
        database.execute("DELETE FROM chats WHERE user = ? AND chat = ?", (user.name, chat))
