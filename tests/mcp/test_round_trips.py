"""Round trips with other people's programs, each in its own environment: what they see is what is on disk.

Environments are made once, in a cache folder outside the checkout; where one cannot be had, the test says so and skips.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from mcp.client.extension import advertise
from mcp.client.stdio import StdioServerParameters, stdio_client

import prowess
from bench.environments import NotInstalledError, cache_folder, python_with
from tests.hostile.http_servers import served
from tests.mcp_peers import EXTENSION, Talk, put
from tests.sandbox_support import NOT_TESTED

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

FOREIGN = Path(__file__).parent / "foreign"
ROOT = Path(__file__).resolve().parents[2]
SERVERS = {"sdk": FOREIGN / "sdk_server.py", "fastmcp": ROOT / "bench" / "adapters" / "fastmcp_server.py"}
INSPECTOR = "2.12.0"
"""The version of the MCP Inspector, which has to know ``--verify``."""
SECONDS = 120
REAL_SKILLS = 300


@pytest.fixture(scope="session")
def fastmcp() -> str:
    """The Python of an environment with FastMCP."""
    from filelock import FileLock

    try:
        with FileLock(cache_folder() / "fastmcp.lock"):
            return python_with("fastmcp")
    except NotInstalledError as error:
        pytest.skip(f"{NOT_TESTED}round trips with FastMCP: it cannot be installed here ({error})")


@pytest.fixture(scope="session")
def inspector() -> list[str]:
    """The command line of the MCP Inspector."""
    from filelock import FileLock

    folder = cache_folder() / f"inspector-{INSPECTOR}"
    program = folder / "node_modules" / ".bin" / "mcp-inspector"
    if shutil.which("npm") is None:
        pytest.skip(f"{NOT_TESTED}the round trip with the MCP Inspector: there is no npm here")
    with FileLock(cache_folder() / "inspector.lock"):
        if not program.exists():
            folder.mkdir(exist_ok=True)
            command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder)]
            package = f"@modelcontextprotocol/inspector@{INSPECTOR}"
            done = subprocess.run([*command, package], capture_output=True, text=True, check=False, timeout=600)
            if done.returncode:
                pytest.skip(f"{NOT_TESTED}the round trip with the MCP Inspector: it cannot be installed here")
    return [str(program), "--cli"]


def ours(library: Path) -> list[str]:
    return [sys.executable, "-m", "prowess", "serve", str(library)]


def expected(library: Path) -> dict[str, int]:
    """The address of every skill on disk, and how many files it has."""
    return {
        f"skill://{path.relative_to(library).as_posix()}": sum(file.is_file() for file in path.parent.rglob("*"))
        for path in library.rglob("SKILL.md")
    }


# -- their clients, our server -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_sees_what_is_on_disk(library: Path, mode: str) -> None:
    parameters = StdioServerParameters(command=sys.executable, args=ours(library)[1:])

    async def whole() -> dict[str, int]:
        async with Client(stdio_client(parameters), mode=mode, extensions=[advertise(EXTENSION)]) as client:
            connection = Talk(client)
            assert "invoices" in (client.instructions or "")
            if mode == "legacy":  # which cannot declare the extension; the files are resources all the same
                rows = (await connection.ask("resources/list"))["resources"]
                return {row["uri"]: expected(library)[row["uri"]] for row in rows}
            return {entry["uri"]: len(entry["resources"]) for entry in await connection.all_skills()}

    assert asyncio.run(whole()) == expected(library)


def test_the_official_client_sees_it_on_http_too(library: Path) -> None:
    async def whole(url: str, mode: str) -> dict[str, int]:
        async with Client(url, mode=mode, extensions=[advertise(EXTENSION)]) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["load_skill", "read_skill_file"]
            if mode == "legacy":
                assert await Talk(client).refusal("skills/list") == -32601
                return expected(library)
            return {entry["uri"]: len(entry["resources"]) for entry in await Talk(client).all_skills()}

    with served(library) as running:
        for mode in ("auto", "legacy"):
            assert asyncio.run(whole(f"http://{running.name}/mcp", mode)) == expected(library)


@pytest.mark.foreign
def test_fastmcp_s_client_sees_what_is_on_disk(library: Path, fastmcp: str) -> None:
    seen = _run([fastmcp, str(FOREIGN / "fastmcp_client.py"), *ours(library)])
    _check_seen(seen, library)


@pytest.mark.foreign
def test_fastmcp_s_client_sees_it_on_http_too(library: Path, fastmcp: str) -> None:
    with served(library) as running:
        seen = _run([fastmcp, str(FOREIGN / "fastmcp_client.py"), f"http://{running.name}/mcp"])
    _check_seen(seen, library)


def _check_seen(seen: dict[str, Any], library: Path) -> None:
    assert {uri: skill["files"] for uri, skill in seen["skills"].items()} == expected(library)
    assert seen["skills"]["skill://pdf/SKILL.md"]["frontmatter"]["version"] == 1.1
    assert seen["tools"] == ["load_skill", "read_skill_file"]
    assert all("Do it." in text for text in seen["texts"])


def _run(command: list[str]) -> Any:
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, env=env)
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout)


@pytest.mark.foreign
@pytest.mark.parametrize(
    ("method", "key", "more"),
    [
        ("resources/list", "resources", []),
        ("tools/list", "tools", []),
        ("prompts/list", "prompts", []),
        ("resources/read", "contents", ["--uri", "skill://pdf/SKILL.md"]),
    ],
)
def test_the_inspector_can_look_at_it(
    library: Path, inspector: list[str], method: str, key: str, more: list[str]
) -> None:
    found = _run([*inspector, *ours(library), "--method", method, *more])
    assert found[key]


def verified_skills(inspector: list[str], library: Path) -> list[str]:
    """The address of every skill that the Inspector lists, all of which keep the rules and their digests."""
    options = ("--protocol-era", "modern", "--method", "skills/list", "--verify", "--require-digests")
    done = subprocess.run(
        [*inspector, *ours(library), *options, "--skill-catalog-max-skills", str(2 * REAL_SKILLS)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert [report for report in reports if report["outcome"] != "verified"] == []
    assert done.returncode == 0, done.stderr[-2_000:]
    return [report["uri"] for report in reports]


@pytest.mark.foreign
def test_the_inspector_verifies_every_example(inspector: list[str]) -> None:
    library = ROOT / "examples" / "skills"
    assert verified_skills(inspector, library) == sorted(expected(library))


@pytest.fixture
def real_library(shared: Path, real_heads: list[bytes], rng: random.Random, tmp_path: Path) -> Path:
    """Real skills that the extension lists: whole folders, filled up with heads, each in a folder with its name."""
    root = tmp_path / "real"
    with tarfile.open(shared / "corpus" / "skills.tar.xz") as archive:
        archive.extractall(root, filter="data")
    for head in rng.sample(real_heads, 4 * REAL_SKILLS):
        skill = parse_or_none(head)
        if skill is not None:
            put(root, f"heads/{skill.name}/SKILL.md", head)
    refused = {refused.location for refused in prowess.mcp.check(root)}
    wanted = [skill.location for skill in prowess.scan(root) if skill.model_invocable and skill.location not in refused]
    wanted.sort(key=lambda location: location.startswith(str(root / "heads")))
    # Everything else goes, also what a wanted skill shadows: it would be listed in the place of one that is gone.
    for path in root.rglob("SKILL.md"):
        if str(path) not in wanted[:REAL_SKILLS]:
            path.unlink()
    return root


def parse_or_none(head: bytes) -> prowess.Skill | None:
    """The skill that a head begins, or ``None`` where it breaks a rule of the specification."""
    try:
        return prowess.parse_skill(head).skill
    except prowess.SkillLoadError:
        return None


@pytest.mark.foreign
def test_the_inspector_verifies_hundreds_of_real_skills(inspector: list[str], real_library: Path) -> None:
    assert len(verified_skills(inspector, real_library)) == REAL_SKILLS


# -- their servers, our client -----------------------------------------------------------------------------------------


@pytest.fixture
def servers(library: Path, request: pytest.FixtureRequest) -> Callable[[str], list[str]]:
    """The command of a foreign server of the library."""

    def command(kind: str) -> list[str]:
        python = sys.executable if kind == "sdk" else request.getfixturevalue("fastmcp")
        return [python, str(SERVERS[kind]), str(library)]

    return command


@pytest.mark.parametrize("kind", ["sdk", pytest.param("fastmcp", marks=pytest.mark.foreign)])
def test_our_client_loads_skills_of_their_servers(
    library: Path, servers: Callable[[str], list[str]], kind: str
) -> None:
    shutil.move(library / "billing" / "invoices", library / "invoices")
    (library / "pdf" / "inner" / "SKILL.md").rename(library / "pdf" / "inner" / "notes.md")
    limits = prowess.Limits(max_mcp_connect_seconds=60.0, max_mcp_list_seconds=60.0)
    with prowess.Source.mcp("theirs", command=servers(kind), limits=limits) as source:
        catalog = source.load()
        assert catalog.issues == ()
        assert catalog.names == ("theirs:invoices", "theirs:pdf")
        skill = catalog["theirs:pdf"]
        assert skill.load().instructions == "Do it."
        assert skill.load().skill.version == "1.10"
        for path in skill.files():
            assert skill.read_bytes(path) == (library / "pdf" / path).read_bytes()
        assert source.get("skill://invoices/SKILL.md").description == "Writes invoices."


def test_our_client_loads_skills_of_our_server_on_http(library: Path) -> None:
    token = "a-long-random-token-0123456789"  # noqa: S105 - of the tests
    with served(library, token=token) as running:
        url = f"http://{running.name}/mcp"
        with prowess.Source.mcp("ours", url=url, headers={"Authorization": f"Bearer {token}"}) as source:
            catalog = source.load()
            assert catalog.names == ("ours:inner", "ours:invoices", "ours:pdf")
            assert catalog["ours:pdf"].read_bytes("assets/logo.png") == (library / "pdf/assets/logo.png").read_bytes()
        for headers in ({}, {"Authorization": "Bearer another-long-token-0123456789"}):
            with prowess.Source.mcp("none", url=url, headers=headers) as source:
                (issue,) = source.load().issues
                assert issue.code == "request-refused"
                assert "it answers 401: it wants a token that it knows" in issue.message
                assert "0123456789" not in str(issue)
