"""The service of ``examples/service``, made from its page alone: real workers, and a model on loopback."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.adapters.skill_library import require_framework
from tests.fake_models import Failure, ModelRequest, Slow, Text, ToolCall, provide

require_framework("fastapi")
require_framework("openai")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.fake_models import Provider, Reply

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "service"
PAGE = ROOT / "docs" / "tutorial" / "first-service.md"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ORDER = "What does an order of 12.50 and 3.99 cost?"
PATIENCE = 60


def play_shop(request: ModelRequest) -> Reply:
    """Return the move of a model that follows the skill ``order-total``, by what it was sent and by nothing else."""
    messages = request.body["messages"]
    last = max(place for place, message in enumerate(messages) if message["role"] == "user")
    results = [message["content"] for message in messages[last:] if message["role"] == "tool"]
    if "cost" not in messages[last]["content"]:
        return Text(f"You said {messages[last]['content']!r}.")
    if not results:
        return ToolCall("load_skill", {"name": "order-total"})
    if "unknown skill" in results[0]:
        return Text("I have no skill for that.")
    prices = re.findall(r"\d+\.\d\d", messages[last]["content"])
    if len(results) == 1:
        return ToolCall("run_skill_script", {"name": "order-total", "script": "scripts/total.py", "args": prices})
    total = re.search(r"^\d+\.\d\d$", results[-1], re.MULTILINE)
    return Text(f"It costs {total[0]}." if total else "I may not add that up.")


@dataclass
class Service:
    """A running service, as one browser after another sees it."""

    url: str
    process: subprocess.Popen[str]

    def ask(self, method: str, path: str, body: object = None, who: str = "ann-token") -> httpx2.Response:
        headers = {"Authorization": f"Bearer {who}"}
        return httpx2.request(method, f"{self.url}/chats/{path}", json=body, headers=headers, timeout=PATIENCE)

    def stream(self, path: str, body: object = None, who: str = "ann-token") -> dict[str, Any]:
        """Return the events of an answer by their kind; those of one kind are joined, or the last one counts."""
        response = self.ask("POST", path, body, who)
        assert response.status_code == 200, response.text
        kinds: dict[str, Any] = {}
        for block in filter(None, response.text.split("\n\n")):
            kind, data = block.removeprefix("event: ").split("\ndata: ")
            value = json.loads(data)
            kinds[kind] = kinds.get(kind, "") + value if isinstance(value, str) else value
        return kinds

    def send(self, text: str, who: str = "ann-token", chat: str = "1") -> dict[str, Any]:
        return self.stream(f"{chat}/messages", {"text": text}, who)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)


@contextmanager
def serve(folder: Path, provider: Provider, *words: str) -> Iterator[Service]:
    """Run the service in a folder, with the chats that it has."""
    env = {
        **os.environ,
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": f"{provider.url}/v1",
        "SANDBOX": "none",
        "DATABASE": str(folder / "chats.sqlite3"),
        "HOME": str(folder),
    }
    program = [sys.executable, "-m", "uvicorn", "service:app", "--port", "0", *words]
    log = folder / f"log-{time.monotonic_ns()}"
    with log.open("w") as output:
        process = subprocess.Popen(program, cwd=folder, env=env, stdout=output, stderr=output, text=True)
    service = Service("", process)
    try:
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(r"running on (http://[\d.:]+)", log.read_text())):
            assert time.monotonic() < deadline, log.read_text()
            assert process.poll() is None, log.read_text()
            time.sleep(0.02)
        service.url = found[1]
        while True:  # with several workers, the line comes before they listen
            try:
                httpx2.get(f"{service.url}/openapi.json")
                break
            except httpx2.TransportError:
                assert time.monotonic() < deadline, log.read_text()
        yield service
    finally:
        service.stop()


def build(folder: Path) -> Path:
    """Write the files of the page as a reader does: what is Python is ``service.py``, part by part."""
    program = []
    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        first, _, rest = text.partition("\n")
        if kind == "python":
            program.append(text)
        elif first.startswith("# "):
            path = folder / first.removeprefix("# ")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(rest, encoding="utf-8")
    (folder / "service.py").write_text("\n\n".join(program), encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return build(tmp_path)


def test_the_page_has_the_files_of_the_example(folder: Path) -> None:
    names = [path.relative_to(EXAMPLE) for path in EXAMPLE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    written = {name: (folder / name).read_text(encoding="utf-8") for name in names}
    example = {name: (EXAMPLE / name).read_text(encoding="utf-8") for name in names}
    docstring = example[Path("service.py")].split('"""')[1]
    example[Path("service.py")] = example[Path("service.py")].removeprefix(f'"""{docstring}"""\n\n')
    assert written == example


@dataclass
class Shop:
    """Two services on one database, as two workers are, and their model."""

    one: Service
    other: Service
    provider: Provider
    faults: list[Callable[[ModelRequest], Reply | None]]
    """Asked before the model: what one of them returns is the reply."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = build(tmp_path_factory.mktemp("shop"))
    faults: list[Callable[[ModelRequest], Reply | None]] = []

    def reply(request: ModelRequest) -> Reply:
        found = (fault(request) for fault in faults)
        return next((reply for reply in found if reply is not None), None) or play_shop(request)

    with provide(reply) as provider, serve(folder, provider) as one, serve(folder, provider) as other:
        yield Shop(one, other, provider, faults)


def test_each_user_has_their_own_skills_and_chats(shop: Shop) -> None:
    assert shop.one.send(ORDER, "bob-token")["text"] == "I have no skill for that."
    text = shop.provider.requests[-1].text
    assert [name for name in ("order-total", "reply-tone") if f"<name>{name}</name>" in text] == ["reply-tone"]
    assert shop.one.ask("GET", "1").json() == {"messages": [], "pending": []}
    assert shop.one.ask("GET", "1", who="nobody").status_code == 401
    assert shop.one.ask("POST", "1/messages", {"text": ""}).status_code == 422


def test_a_call_is_approved_at_the_other_worker_and_once(shop: Shop) -> None:
    one, other = shop.one, shop.other
    asked = one.send(ORDER, chat="approval")
    assert asked["call"] == "load_skillrun_skill_script"
    (call,) = asked["end"]["pending"]
    assert "runs the script: scripts/total.py 12.50 3.99" in call["shown"]
    assert other.ask("GET", "approval").json()["pending"] == [call]
    assert other.ask("POST", "approval/messages", {"text": "Well?"}).status_code == 409
    assert other.ask("POST", "another/decisions", {call["id"]: True}).status_code == 409
    assert other.ask("POST", "approval/decisions", {call["id"]: True}, "bob-token").status_code == 409
    done = other.stream("approval/decisions", {call["id"]: True})
    assert (done["text"], done["end"]["stop"]) == ("It costs 16.49.", "done")
    assert one.ask("POST", "approval/decisions", {call["id"]: True}).status_code == 409
    # A no counts as well, and an equal call of this chat is not asked about again.
    (call,) = one.send(ORDER, chat="approval")["end"]["pending"]
    assert other.stream("approval/decisions", {call["id"]: False})["text"] == "I may not add that up."
    assert one.send(ORDER, chat="approval")["text"] == "I may not add that up."


def test_a_cleared_chat_begins_anew_at_every_worker(shop: Shop) -> None:
    for service in (shop.one, shop.other):
        (call,) = service.send(ORDER, chat="clear")["end"]["pending"]
        service.stream("clear/decisions", {call["id"]: True})
    assert shop.one.ask("DELETE", "clear").status_code == 204
    assert shop.other.send("Hello", chat="clear")["text"] == "You said 'Hello'."
    system, hello = shop.provider.requests[-1].body["messages"]
    assert hello == {"role": "user", "content": "Hello"}
    assert "# Order total" not in system["content"]  # the skill is not active any more


def test_an_error_of_the_model_leaves_what_was_done(shop: Shop) -> None:
    replies = [Failure(400)]
    shop.faults.append(lambda request: replies.pop() if request.results and replies else None)
    failed = shop.one.send(ORDER, chat="error")
    assert failed == {"call": "load_skill", "error": "the answer is not complete: retry"}
    assert shop.other.stream("error/retry")["call"] == "run_skill_script"
    calls = [message.get("tool_calls") for message in shop.one.ask("GET", "error").json()["messages"]]
    assert [call[0]["function"]["name"] for call in calls if call] == ["load_skill", "run_skill_script"]


def test_a_later_request_takes_the_chat_over(shop: Shop) -> None:
    go_on = threading.Event()
    shop.faults.append(lambda request: Slow(Text("Late."), go_on.wait) if request.said == "First" else None)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(shop.one.send, "First", chat="twice")
        assert shop.provider.asked.wait(PATIENCE)
        assert shop.other.send("Second", chat="twice")["text"] == "You said 'Second'."
        go_on.set()
        assert "stopped" in first.result()
    said = [message["content"] for message in shop.one.ask("GET", "twice").json()["messages"]]
    assert said == ["First", "Second", "You said 'Second'."]


def test_chats_survive_a_restart_also_while_a_call_waits(folder: Path) -> None:
    with provide(play_shop) as provider:
        with serve(folder, provider) as service:
            (call,) = service.send(ORDER)["end"]["pending"]
        with serve(folder, provider) as service:
            assert service.stream("1/decisions", {call["id"]: True})["text"] == "It costs 16.49."
            said = [message["content"] for message in service.ask("GET", "1").json()["messages"]]
            assert (said[0], said[-1]) == (ORDER, "It costs 16.49.")


def use_service(service: Service, number: int) -> tuple[int, list[dict[str, Any]]]:
    """Do what a browser does until the user has the total; return how often the user said yes, and the messages."""
    who, approvals = f"token-{number}", 0
    text = f"What does an order of {number}.25 and 1.00 cost?"
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            state = service.ask("GET", "1", who=who).json()
            if state["pending"]:
                approvals += 1
                service.stream("1/decisions", {call["id"]: True for call in state["pending"]}, who)
            elif not state["messages"]:
                service.send(text, who)
            elif state["messages"][-1]["role"] == "assistant" and not state["messages"][-1].get("tool_calls"):
                return approvals, state["messages"]
            else:
                service.stream("1/retry", who=who)
        except httpx2.TransportError:
            time.sleep(0.05)
    raise AssertionError(f"user {number} got no answer")


def find_workers(parent: int) -> list[int]:
    """Return the processes of uvicorn's workers, oldest first."""
    table = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in table.splitlines()]
    return sorted(int(pid) for pid, ppid, args in rows if int(ppid) == parent and "spawn_main" in args)


def test_thirty_users_get_their_answers_although_a_worker_is_killed(folder: Path, *, full: bool) -> None:
    count = 30 if full else 8
    may_add = {number: number % 3 > 0 for number in range(count)}
    users = {
        f"token-{number}": {"name": f"user {number}", "skills": ["order-total"] if may_add[number] else ["reply-tone"]}
        for number in may_add
    }
    (folder / "users.json").write_text(json.dumps(users))
    with provide(play_shop) as provider, serve(folder, provider, "--workers", "2") as service:
        victim = find_workers(service.process.pid)[0]
        with ThreadPoolExecutor(count) as threads:
            runs = [threads.submit(use_service, service, number) for number in range(count)]
            while len(provider.requests) < count:  # in the middle of the work
                time.sleep(0.01)
            os.kill(victim, signal.SIGKILL)
            outcomes = [run.result() for run in runs]
        while len(workers := find_workers(service.process.pid)) < 2:
            time.sleep(0.05)
        assert victim not in workers
        for number, (approvals, messages) in enumerate(outcomes):
            mine = f"It costs {number + 1}.25." if may_add[number] else "I have no skill for that."
            assert messages[-1]["content"] == mine
            ran = [message for message in messages if message["role"] == "tool" and ".25" in message["content"]]
            assert len(ran) == may_add[number]  # what is in the chat ran once, and with the user's yes
            assert approvals >= len(ran)
