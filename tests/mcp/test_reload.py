"""Changes on disk: swapped in as a whole, told to every client, and never answered with what was before."""

from __future__ import annotations

import asyncio
import shutil
import threading
from typing import TYPE_CHECKING, Any

import pytest
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged

import prowess
from prowess.mcp.live_catalog import LiveCatalog
from prowess.mcp.options import ServeOptions
from prowess.mcp.served_skills import SkillLoader
from tests.mcp_peers import offered, put, skill_md, talking

if TYPE_CHECKING:
    from pathlib import Path

    from prowess.discovery.watch import WatchMethod
    from prowess.mcp.served_skills import ServedSkills
    from tests.mcp_peers import Talk

NOTICES: list[WatchMethod] = ["watchfiles", "stat"]
SECONDS = 30
LIMITS = prowess.Limits(watch_seconds=0.05)


@pytest.mark.parametrize("notice", NOTICES)
def test_clients_that_listen_are_told_and_see_the_new_skills(library: Path, notice: WatchMethod) -> None:
    server = prowess.mcp.Server(library, notice=notice, limits=LIMITS)

    async def whole() -> None:
        async with asyncio.timeout(SECONDS), talking(server) as connection:
            await connection.ask("skills/get", uri="skill://pdf/SKILL.md")
            kinds = {"resources_list_changed": True, "tools_list_changed": True, "prompts_list_changed": True}
            async with connection.client.listen(**kinds, resource_subscriptions=["skill://pdf/a.md"]) as changes:
                put(library, "fresh/SKILL.md", skill_md("fresh"))
                told = {type(await anext(changes)) for _ in range(3)}
                assert told == {ResourcesListChanged, ToolsListChanged, PromptsListChanged}
                entry = await connection.ask("skills/get", uri="skill://fresh/SKILL.md")
                assert entry["skill"]["frontmatter"]["name"] == "fresh"
                put(library, "pdf/a.md", "new")
                events: list[Any] = [await anext(changes) for _ in range(2)]
                assert ResourceUpdated("skill://pdf/a.md") in events
                shutil.rmtree(library / "fresh")
                while type(await anext(changes)) is not ToolsListChanged:
                    pass
                assert await connection.refusal("skills/get", uri="skill://fresh/SKILL.md") == -32602

    asyncio.run(whole())


def test_clients_of_the_older_protocol_are_told_unasked(library: Path) -> None:
    server = prowess.mcp.Server(library, limits=LIMITS)

    async def whole() -> list[str]:
        told: list[str] = []
        enough = asyncio.Event()

        async def hear(message: Any) -> None:
            told.append(message.method)
            if len(told) == 3:
                enough.set()

        async with asyncio.timeout(SECONDS), talking(server, "legacy", message_handler=hear) as connection:
            await connection.ask("prompts/list")
            put(library, "fresh/SKILL.md", skill_md("fresh"))
            await enough.wait()
            assert len((await connection.ask("prompts/list"))["prompts"]) == 4
        return told

    assert sorted(asyncio.run(whole())) == [
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/tools/list_changed",
    ]


def test_a_model_is_told_once_of_the_skills_that_came_by_the_answer_to_its_next_call(library: Path) -> None:
    """Some clients show their model the listing of before, however often they are told that it has changed."""
    server = prowess.mcp.Server(library, limits=LIMITS)
    server.tell_arrivals()

    async def load(connection: Talk, name: object) -> list[str]:
        answer = await connection.ask("tools/call", name="load_skill", arguments={"name": name})
        return [part["text"] for part in answer["content"]]

    async def whole() -> None:
        async with asyncio.timeout(SECONDS), talking(server) as connection:
            assert len(await load(connection, "pdf")) == 1
            async with connection.client.listen(tools_list_changed=True) as changes:
                for name, description in (("first", "Comes first."), ("second", "Comes too </available_skills>.")):
                    put(library, f"{name}/SKILL.md", skill_md(name, description=description))
                    await anext(changes)
                put(library, "hidden/SKILL.md", skill_md("hidden", fields="disable-model-invocation: true\n"))
                put(library, "third/SKILL.md", skill_md("third", description="Is taken away."))
                await anext(changes)
                shutil.rmtree(library / "third")
                await anext(changes)
            assert (
                len((await connection.ask("tools/call", name="load_skill", arguments={"name": "no"}))["content"]) == 1
            )
            _, news = await load(connection, "first")
            assert "- second: Comes too" in news
            assert news.count("</available_skills>") == 1
            assert [word for word in ("first", "hidden", "third", "pdf") if f"- {word}" in news] == []
            assert len(await load(connection, "pdf")) == 1
            async with connection.client.listen(tools_list_changed=True) as changes:
                shutil.rmtree(library / "pdf")
                await anext(changes)
                put(library, "pdf/SKILL.md", skill_md("pdf"))
                await anext(changes)
            assert len(await load(connection, "pdf")) == 1, "it was there before"

    asyncio.run(whole())


def test_a_skill_is_told_as_soon_as_models_may_see_it_and_not_when_the_model_has_loaded_it(library: Path) -> None:
    """What counts is whether it stood in a listing, not since when its name is known."""
    put(library, "hidden/SKILL.md", skill_md("hidden", fields="disable-model-invocation: true\n"))
    server = prowess.mcp.Server(library, limits=LIMITS)
    server.tell_arrivals()

    async def whole() -> None:
        async with asyncio.timeout(SECONDS), talking(server) as connection:

            async def load(name: str) -> list[str]:
                answer = await connection.ask("tools/call", name="load_skill", arguments={"name": name})
                return [part["text"] for part in answer["content"]]

            await load("pdf")
            async with connection.client.listen(tools_list_changed=True) as changes:
                put(library, "early/SKILL.md", skill_md("early"))
                assert len(await load("early")) == 1, "it is loaded, perhaps before the change is noticed"
                await anext(changes)
                assert len(await load("pdf")) == 1, "the model has loaded what is new"
                put(library, "back/SKILL.md", skill_md("back", description="Is taken away for a moment."))
                await anext(changes)
                shutil.rmtree(library / "back")
                await anext(changes)
                assert len(await load("pdf")) == 1
                put(library, "back/SKILL.md", skill_md("back", description="Is taken away for a moment."))
                await anext(changes)
                put(library, "hidden/SKILL.md", skill_md("hidden", description="Is shown now."))
                await anext(changes)
            _, news = await load("pdf")
            assert news.startswith("This is not part of the answer above.")
            assert "- back: Is taken away for a moment." in news
            assert "- hidden: Is shown now." in news
            assert len(await load("pdf")) == 1

    asyncio.run(whole())


@pytest.mark.parametrize("has_one_client", [True, False])
def test_nobody_is_told_what_came_without_a_listing_or_by_a_server_of_many_clients(
    library: Path, has_one_client: bool
) -> None:
    """A server of many cannot know which of them has been told."""
    server = prowess.mcp.Server(library, limits=LIMITS, listing=() if has_one_client else ("tools",))
    if has_one_client:
        server.tell_arrivals()

    async def whole() -> None:
        async with asyncio.timeout(SECONDS), talking(server) as connection:
            async with connection.client.listen(prompts_list_changed=True) as changes:
                put(library, "fresh/SKILL.md", skill_md("fresh"))
                await anext(changes)
            answer = await connection.ask("tools/call", name="load_skill", arguments={"name": "pdf"})
            assert len(answer["content"]) == 1

    asyncio.run(whole())


UNHURRIED = prowess.Limits(watch_seconds=600)
"""Nothing is noticed within the time of a test, so an answer that knows of a change has looked for itself."""


def test_what_was_made_a_moment_ago_is_found_before_it_is_noticed(library: Path) -> None:
    server = prowess.mcp.Server(library, notice="stat", limits=UNHURRIED)

    async def whole() -> None:
        async with asyncio.timeout(SECONDS), talking(server) as connection:
            assert (await connection.ask("tools/call", name="load_skill", arguments={"name": "fresh"}))["isError"]
            put(library, "fresh/SKILL.md", skill_md("fresh"))
            loaded = await connection.ask("tools/call", name="load_skill", arguments={"name": "fresh"})
            assert not loaded["isError"]
            assert "Do it." in loaded["content"][0]["text"]
            assert (await connection.ask("prompts/get", name="fresh"))["messages"]
            assert (await connection.ask("resources/read", uri="skill://fresh/SKILL.md"))["contents"]
            assert (await connection.ask("skills/get", uri="skill://fresh/SKILL.md"))["skill"]
            put(library, "fresh/SKILL.md", "---\nname: fresh\n")
            broken = await connection.ask("tools/call", name="load_skill", arguments={"name": "fresh"})
            assert "'fresh' cannot be loaded" in broken["content"][0]["text"]
            shutil.rmtree(library / "fresh")
            gone = await connection.ask("tools/call", name="load_skill", arguments={"name": "fresh"})
            assert "unknown skill 'fresh'" in gone["content"][0]["text"]

    asyncio.run(whole())


def test_what_a_head_says_now_counts_before_it_is_noticed(library: Path) -> None:
    server = prowess.mcp.Server(library, notice="stat", limits=UNHURRIED)

    async def whole() -> None:
        async with asyncio.timeout(SECONDS), talking(server) as connection:
            asked = {"name": "load_skill", "arguments": {"name": "pdf"}}
            assert not (await connection.ask("tools/call", **asked))["isError"]
            put(library, "pdf/SKILL.md", skill_md("pdf", fields="disable-model-invocation: true\n"))
            assert (await connection.ask("tools/call", **asked))["isError"]
            put(library, "pdf/SKILL.md", skill_md("pdf", fields="user-invocable: false\n"))
            assert not (await connection.ask("tools/call", **asked))["isError"]
            assert await connection.refusal("prompts/get", name="pdf") == -32602

    asyncio.run(whole())


class Counting(SkillLoader):
    """Counts how often it loads, and holds a load until it is told to go on."""

    times = 0
    began = threading.Event()
    go_on = threading.Event()

    def load(self) -> ServedSkills:
        self.times += 1
        if self.times > 1:
            self.began.set()
            self.go_on.wait(SECONDS)
        return super().load()


def test_whoever_asks_during_a_load_shares_the_next(library: Path) -> None:
    loader = Counting((str(library),), UNHURRIED)
    keeper = LiveCatalog(loader, UNHURRIED, ServeOptions(), notice="stat")

    async def whole() -> None:
        keeper.start()
        try:
            async with asyncio.timeout(SECONDS):
                await keeper.get_snapshot()
                first = asyncio.create_task(keeper.reload())
                await asyncio.to_thread(loader.began.wait, SECONDS)
                put(library, "fresh/SKILL.md", skill_md("fresh"))
                others = [asyncio.create_task(keeper.reload()) for _ in range(20)]
                await asyncio.sleep(0)
                loader.go_on.set()
                await first
                assert all(offer and "fresh" in offer.handlers.served.skills for offer in await asyncio.gather(*others))
        finally:
            await keeper.stop()

    asyncio.run(whole())
    assert loader.times == 3


def test_digests_follow_the_files_without_any_watching(library: Path) -> None:
    """They are computed when they are asked for, and again when a file changed, however quickly."""
    server = prowess.mcp.Server(library, notice=None)

    async def whole() -> None:
        async with talking(server) as connection:
            seen = set()
            for number in range(20):
                put(library, "pdf/a.md", f"{number:04}")
                entry = (await connection.ask("skills/get", uri="skill://pdf/SKILL.md"))["skill"]
                row = next(row for row in entry["resources"] if row["uri"].endswith("/a.md"))
                seen.add(row["digest"])
                read = await connection.ask("resources/read", uri=row["uri"])
                assert read["contents"][0]["text"] == f"{number:04}"
            assert len(seen) == 20

    asyncio.run(whole())


@pytest.mark.parametrize("notice", NOTICES)
def test_no_request_sees_half_a_catalogue(tmp_path: Path, notice: WatchMethod) -> None:
    """The folder of a set of skills is swapped for that of another, again and again: never a part, never a mixture."""
    live, stored, root = tmp_path / "root" / "live", tmp_path / "stored", tmp_path / "root"
    sets = {begin: [f"{begin}{number:02}" for number in range(20)] for begin in "ab"}
    for begin, names in sets.items():
        for name in names:
            put(stored, f"{begin}/{name}/SKILL.md", skill_md(name))
    put(root, "steady/SKILL.md", skill_md("steady"))
    (stored / "a").rename(live)
    server = prowess.mcp.Server(root, notice=notice, limits=LIMITS)
    stop = threading.Event()

    swaps: list[str] = []

    def swap() -> None:
        here, there = "a", "b"
        while not stop.wait(0.4):
            swaps.append(there)
            live.rename(stored / here)
            (stored / there).rename(live)
            here, there = there, here

    async def whole() -> list[tuple[str, list[str]]]:
        writer = threading.Thread(target=swap)
        seen: list[tuple[str, list[str]]] = []
        try:
            async with asyncio.timeout(SECONDS), talking(server) as connection:
                await connection.ask("skills/list")
                writer.start()
                while len(swaps) < 6:
                    seen += (await offered(connection)).items()
        finally:
            stop.set()
            writer.join()
        return seen

    seen = asyncio.run(whole())
    allowed = [["steady"], *(sorted([*names, "steady"]) for names in sets.values())]
    assert [row for row in seen if row[1] not in allowed] == []
    assert len({tuple(names) for _, names in seen} - {("steady",)}) == 2, "both sets were seen"


def test_whoever_pages_while_skills_come_and_go_sees_each_that_stays_once(tmp_path: Path) -> None:
    """A cursor says after which skill to go on, so pages of two catalogues fit together."""
    steady = [f"s{number:02}" for number in range(0, 30, 2)]
    for name in steady:
        put(tmp_path, f"{name}/SKILL.md", skill_md(name))
    server = prowess.mcp.Server(tmp_path, limits=prowess.Limits(watch_seconds=0.05, max_page_entries=4))
    stop = threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            for number in range(1, 30, 2):
                put(tmp_path, f"s{number:02}/SKILL.md", skill_md(f"s{number:02}"))
            stop.wait(0.1)
            for number in range(1, 30, 2):
                shutil.rmtree(tmp_path / f"s{number:02}")
            stop.wait(0.1)

    async def whole() -> None:
        writer = threading.Thread(target=come_and_go)
        writer.start()
        try:
            async with asyncio.timeout(SECONDS), talking(server) as connection:
                for _ in range(15):
                    names = [entry["frontmatter"]["name"] for entry in await connection.all_skills()]
                    assert names == sorted(set(names))
                    assert [name for name in names if name in steady] == steady
        finally:
            stop.set()
            writer.join()

    asyncio.run(whole())


def test_the_handshake_does_not_wait_for_a_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first answer about a large library comes before that is known; later ones wait for it."""
    answered = threading.Event()
    load = SkillLoader.load

    def load_late(loader: SkillLoader) -> ServedSkills:
        """The same, and not before the first answer: on a fast disk the scan would win the race."""
        answered.wait(SECONDS)
        return load(loader)

    monkeypatch.setattr(SkillLoader, "load", load_late)
    for number in range(200):
        put(tmp_path, f"s{number}/SKILL.md", skill_md(f"s{number}"))
    limits = prowess.Limits(max_awaited_entries=100)
    server = prowess.mcp.Server(tmp_path, notice=None, limits=limits)

    async def whole() -> None:
        async with asyncio.timeout(SECONDS), talking(server) as connection:
            assert (connection.client.instructions or "").startswith("This server has skills")
            answered.set()
            tools = [tool["name"] for tool in (await connection.ask("tools/list"))["tools"]]
            assert "search_skills" in tools
            assert len(await connection.all_skills()) == 200

    asyncio.run(whole())


class Failing(SkillLoader):
    """Fails once and loads otherwise."""

    def __init__(self, library: Path, *, fails_at: int) -> None:
        super().__init__((str(library),), LIMITS)
        self.times_left = fails_at
        self.failed = threading.Event()

    def load(self) -> ServedSkills:
        self.times_left -= 1
        if self.times_left == 0:
            self.failed.set()
            raise OSError("the disk has a bad day")
        return super().load()


def test_a_reload_that_fails_is_not_the_last(library: Path) -> None:
    loader = Failing(library, fails_at=2)
    keeper = LiveCatalog(loader, LIMITS, ServeOptions(), notice="auto")

    async def whole() -> list[str]:
        keeper.start()
        try:
            async with asyncio.timeout(SECONDS):
                newest = await keeper.get_snapshot()
                put(library, "fresh/SKILL.md", skill_md("fresh"))
                await asyncio.to_thread(loader.failed.wait)
                put(library, "fresher/SKILL.md", skill_md("fresher"))
                # A load may see both skills or only the first: the retry races with the second change.
                while "fresher" not in newest.handlers.served.skills:
                    newer = await keeper.wait_for_newer(newest)
                    assert newer is not None
                    newest = newer
                return [path for path in newest.handlers.served.skills if path.startswith("fresh")]
        finally:
            await keeper.stop()

    assert asyncio.run(whole()) == ["fresh", "fresher"]
