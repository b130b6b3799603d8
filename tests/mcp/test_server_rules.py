"""The rules of the extension for servers, each by its number in test_every_rule_has_a_test.py."""

from __future__ import annotations

import asyncio
import base64
import re
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from tests.mcp_peers import EXTENSION, everywhere, offered, put, sha256, skill_md, talk, talking

if TYPE_CHECKING:
    from pathlib import Path

    from tests.mcp_peers import Talk

PAIRS = re.compile(r"sha256:[0-9a-f]{64}")


def test_the_extension_and_the_resources_are_declared(server: prowess.mcp.Server) -> None:
    """M1: the extension with directoryRead, and resources."""

    async def words(connection: Talk) -> Any:
        return connection.client.server_capabilities

    capabilities = talk(server, words)
    assert capabilities.extensions == {EXTENSION: {"directoryRead": True}}
    assert capabilities.resources is not None


def test_the_methods_are_there(server: prowess.mcp.Server) -> None:
    """M2: skills/list, skills/get and resources/directory/read."""

    async def words(connection: Talk) -> None:
        assert "skills" in await connection.ask("skills/list")
        assert "skill" in await connection.ask("skills/get", uri="skill://pdf/SKILL.md")
        assert "resources" in await connection.ask("resources/directory/read", uri="skill://pdf")
        assert await connection.refusal("skills/put") == -32601

    talk(server, words)


def test_every_file_of_every_skill_can_be_read_as_it_is(server: prowess.mcp.Server, library: Path) -> None:
    """M3: skill://<path>/<file> for every file; the last folder has the skill's name."""

    async def words(connection: Talk) -> list[dict[str, Any]]:
        entries = await connection.all_skills()
        for entry in entries:
            path = entry["uri"].removeprefix("skill://").removesuffix("/SKILL.md")
            assert path.rpartition("/")[2] == entry["frontmatter"]["name"]
            for row in entry["resources"]:
                assert row["uri"].startswith(f"skill://{path}/")
                answer = await connection.ask("resources/read", uri=row["uri"])
                (found,) = answer["contents"]
                data = found["text"].encode() if "text" in found else base64.b64decode(found["blob"])
                assert data == (library / row["uri"].removeprefix("skill://")).read_bytes()
                assert ("text" in found) == (b"\0" not in data)
        return entries

    entries = talk(server, words)
    assert [entry["uri"] for entry in entries] == [
        "skill://billing/invoices/SKILL.md",
        "skill://pdf/SKILL.md",
        "skill://pdf/inner/SKILL.md",
    ]


def test_odd_names_are_encoded_in_addresses(tmp_path: Path) -> None:
    """M3: a prefix is any folder, and its name is a valid first part of an address."""
    put(tmp_path, "Ärzte & Co/notes/SKILL.md", skill_md("notes"))
    put(tmp_path, "Ärzte & Co/notes/a b#?%41.md", "odd")
    server = prowess.mcp.Server(tmp_path, notice=None)

    async def words(connection: Talk) -> None:
        (entry,) = await connection.all_skills()
        assert entry["uri"] == "skill://%C3%84rzte%20%26%20Co/notes/SKILL.md"
        odd = next(row["uri"] for row in entry["resources"] if not row["uri"].endswith("SKILL.md"))
        assert odd.endswith("/a%20b%23%3F%2541.md")
        assert (await connection.ask("resources/read", uri=odd))["contents"][0]["text"] == "odd"

    talk(server, words)


def test_the_own_files_are_listed_as_resources(server: prowess.mcp.Server) -> None:
    """M4: text/markdown, name and description from the frontmatter."""

    async def words(connection: Talk) -> Any:
        return (await connection.ask("resources/list"))["resources"]

    rows = talk(server, words)
    about = {"name": "invoices", "description": "Writes invoices.", "mimeType": "text/markdown"}
    assert rows[0] == {"uri": "skill://billing/invoices/SKILL.md", **about}
    assert len(rows) == 3
    assert all("_meta" not in row for row in rows)


def test_an_entry_has_its_frontmatter_and_every_file_once(server: prowess.mcp.Server, library: Path) -> None:
    """M5: the frontmatter with YAML's types, every file with digest and size, nested skills' files included."""

    async def words(connection: Talk) -> Any:
        return (await connection.ask("skills/get", uri="skill://pdf/SKILL.md"))["skill"]

    entry = talk(server, words)
    assert set(entry) == {"uri", "frontmatter", "resources"}
    assert entry["frontmatter"] == {
        "name": "pdf",
        "description": "Does it.",
        "version": 1.1,
        "metadata": {"author": "me"},
    }
    files = {path.relative_to(library).as_posix() for path in (library / "pdf").rglob("*") if path.is_file()}
    assert sorted(row["uri"] for row in entry["resources"]) == sorted(f"skill://{path}" for path in files)
    for row in entry["resources"]:
        data = (library / row["uri"].removeprefix("skill://")).read_bytes()
        assert row == {"uri": row["uri"], "digest": sha256(data), "size": len(data)}
        assert PAIRS.fullmatch(row["digest"])


@pytest.mark.parametrize(("files", "size", "code"), [(513, 1, "too-many-files"), (2, 9 << 20, "too-many-bytes")])
def test_the_extension_leaves_out_a_skill_over_the_limits_and_the_check_says_so(
    tmp_path: Path, files: int, size: int, code: str
) -> None:
    """M6: at most 512 files and 16 MiB."""
    put(tmp_path, "good/SKILL.md", skill_md("good"))
    put(tmp_path, "large/SKILL.md", skill_md("large"))
    for number in range(files):
        with put(tmp_path, f"large/{number}.bin", b"").open("wb") as file:
            file.truncate(size)
    server = prowess.mcp.Server(tmp_path, notice=None)

    async def words(connection: Talk) -> None:
        both = {"prompts": ["good", "large"], "tools": ["good", "large"]}
        assert await offered(connection) == everywhere("good") | both
        for method in ("skills/get", "resources/read"):
            assert await connection.refusal(method, uri="skill://large/SKILL.md") == -32602
        assert await connection.refusal("resources/directory/read", uri="skill://large") == -32602
        answer = await connection.ask("tools/call", name="load_skill", arguments={"name": "large"})
        assert not answer["isError"]

    talk(server, words)
    (refused,) = prowess.mcp.check(tmp_path)
    assert [issue.code for issue in refused.issues] == [code]


@pytest.mark.parametrize("beyond", [0, 1])
@pytest.mark.parametrize("what", ["files", "bytes"])
def test_the_limits_are_met_exactly(tmp_path: Path, what: str, beyond: int) -> None:
    """M6: 512 files and 16 MiB are served; one more is not."""
    own = put(tmp_path, "large/SKILL.md", skill_md("large")).stat().st_size
    sizes = [1] * (511 + beyond) if what == "files" else [(16 << 20) - own + beyond]
    for number, size in enumerate(sizes):
        with put(tmp_path, f"large/{number}.bin", b"").open("wb") as file:
            file.truncate(size)
    server = prowess.mcp.Server(tmp_path, notice=None)
    assert talk(server, offered)["skills"] == ([] if beyond else ["large"])
    assert len(prowess.mcp.check(tmp_path)) == beyond


def test_a_listing_comes_in_pages_that_split_no_entry(tmp_path: Path) -> None:
    """M7: resultType, skills, ttlMs, cacheScope, nextCursor; each skill once, on one page."""
    for number in range(7):
        put(tmp_path, f"s{number}/SKILL.md", skill_md(f"s{number}"))
    server = prowess.mcp.Server(tmp_path, notice=None, limits=prowess.Limits(max_page_entries=3))

    async def words(connection: Talk) -> None:
        sizes: list[int] = []
        cursor: dict[str, str] = {}
        seen: list[str] = []
        while True:
            answer = await connection.ask("skills/list", **cursor)
            assert (answer["resultType"], answer["ttlMs"], answer["cacheScope"]) == ("complete", 0, "private")
            sizes.append(len(answer["skills"]))
            seen += [entry["frontmatter"]["name"] for entry in answer["skills"]]
            if "nextCursor" not in answer:
                break
            cursor = {"cursor": answer["nextCursor"]}
        assert sizes == [3, 3, 1]
        assert seen == [f"s{number}" for number in range(7)]
        assert await connection.refusal("skills/list", cursor="§") == -32602

    talk(server, words)


def test_an_empty_library_has_an_empty_listing(tmp_path: Path) -> None:
    """M7: nothing to list is an answer."""
    server = prowess.mcp.Server(tmp_path, notice=None)

    async def words(connection: Talk) -> Any:
        return await connection.ask("skills/list")

    assert talk(server, words)["skills"] == []


def test_unlisted_skills_are_given_to_those_who_know_their_address(tmp_path: Path) -> None:
    """M8: skills/get answers for a skill that models are not to see, and for one whose name another took."""
    put(tmp_path, "a/notes/SKILL.md", skill_md("notes"))
    put(tmp_path, "b/notes/SKILL.md", skill_md("notes", description="Another."))
    put(tmp_path, "quiet/SKILL.md", skill_md("quiet", fields="disable-model-invocation: true\n"))
    server = prowess.mcp.Server(tmp_path, notice=None)

    async def words(connection: Talk) -> None:
        assert [entry["uri"] for entry in await connection.all_skills()] == ["skill://a/notes/SKILL.md"]
        answer = await connection.ask("skills/get", uri="skill://b/notes/SKILL.md")
        assert (answer["resultType"], answer["ttlMs"], answer["cacheScope"]) == ("complete", 0, "private")
        assert answer["skill"]["frontmatter"]["description"] == "Another."
        quiet = (await connection.ask("skills/get", uri="skill://quiet/SKILL.md"))["skill"]
        assert quiet["frontmatter"]["disable-model-invocation"] is True

    talk(server, words)


@pytest.mark.parametrize(
    "uri",
    [
        *("skill://nope/SKILL.md", "skill://pdf", "skill://pdf/", "skill://pdf/assets/logo.png", "file:///etc/passwd"),
        *("skill://pdf/../pdf/SKILL.md", "skill://pdf/SKILL.md?x", "skill://pdf/%", "skill:pdf/SKILL.md", ""),
    ],
)
def test_an_address_that_is_not_a_skill_is_refused(server: prowess.mcp.Server, uri: str) -> None:
    """M8: an error -32602."""
    assert talk(server, lambda connection: connection.refusal("skills/get", uri=uri)) == -32602


def test_a_folder_gives_its_direct_children(server: prowess.mcp.Server) -> None:
    """M9: files and folders, no trailing slash, an empty folder an empty list, for every folder of every skill."""

    async def words(connection: Talk) -> None:
        answer = await connection.ask("resources/directory/read", uri="skill://pdf")
        assert answer["resultType"] == "complete"
        folder, markdown = "inode/directory", "text/markdown"
        found = [(row["uri"], row["name"], row["mimeType"]) for row in answer["resources"]]
        assert found == [
            ("skill://pdf/SKILL.md", "SKILL.md", markdown),
            ("skill://pdf/assets", "assets", folder),
            ("skill://pdf/empty", "empty", folder),
            ("skill://pdf/inner", "inner", folder),
            ("skill://pdf/references", "references", folder),
        ]
        for uri, children in (
            ("skill://pdf/assets", ["logo.png"]),
            ("skill://pdf/empty", []),
            ("skill://pdf/inner", ["SKILL.md"]),
            ("skill://pdf/references/deep", ["FORMS.md"]),
            ("skill://billing/invoices", ["SKILL.md"]),
        ):
            answer = await connection.ask("resources/directory/read", uri=uri)
            assert [row["name"] for row in answer["resources"]] == children
        for uri in ("skill://pdf/none", "skill://pdf/SKILL.md", "skill://billing", "skill://", "skill://pdf/.git"):
            assert await connection.refusal("resources/directory/read", uri=uri) == -32602

    talk(server, words)


def test_a_large_folder_comes_in_pages(tmp_path: Path) -> None:
    """M9: with a cursor, each child once."""
    put(tmp_path, "many/SKILL.md", skill_md("many"))
    for number in range(5):
        put(tmp_path, f"many/{number}.md", "x")
    server = prowess.mcp.Server(tmp_path, notice=None, limits=prowess.Limits(max_page_entries=4))

    async def words(connection: Talk) -> None:
        first = await connection.ask("resources/directory/read", uri="skill://many")
        rest = await connection.ask("resources/directory/read", uri="skill://many", cursor=first["nextCursor"])
        names = [row["name"] for row in (*first["resources"], *rest["resources"])]
        assert names == ["0.md", "1.md", "2.md", "3.md", "4.md", "SKILL.md"]
        assert "nextCursor" not in rest

    talk(server, words)


@pytest.mark.parametrize("uri", ["skill://pdf/none.md", "skill://pdf/assets", "skill://nope/x.md", "https://x/y"])
def test_a_file_that_is_not_there_is_refused(server: prowess.mcp.Server, uri: str) -> None:
    """M10: an error -32602."""
    assert talk(server, lambda connection: connection.refusal("resources/read", uri=uri)) == -32602


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_what_goes_wrong_inside_is_an_internal_error(server: prowess.mcp.Server, mode: str) -> None:
    """M10: an error -32603, on both versions of the protocol."""

    async def whole() -> int:
        async with talking(server, mode) as connection:
            offer = await server._live_catalog.get_snapshot()  # noqa: SLF001 - to break it from inside
            offer.handlers.served = None  # type: ignore[assignment]
            return await connection.refusal("resources/read", uri="skill://pdf/SKILL.md")

    assert asyncio.run(whole()) == -32603
