"""Our client against servers that lie, never end, say too much or nothing: bounded, and it says what was wrong."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from prowess.sources.mcp.entry import parse_entry
from tests.mcp_peers import Plan, contents_of, entry_of, sha256, skill_md

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.sources.mcp.source import McpSource

    Connect = Callable[..., McpSource]

QUICK = replace(prowess.Limits(), max_mcp_connect_seconds=1.0, max_mcp_call_seconds=1.0)
GOOD = {"SKILL.md": skill_md("pdf"), "a.md": b"a"}


def codes(catalog: prowess.Catalog) -> list[str]:
    return [issue.code for issue in catalog.issues]


# -- entries -----------------------------------------------------------------------------------------------------------


def changed(path: str, value: object) -> dict[str, Any]:
    """A right entry with one thing wrong: ``resources.1.uri`` names the thing."""
    entry = entry_of("pdf", GOOD)
    *above, last = path.split(".")
    at: Any = entry
    for part in above:
        at = at[int(part)] if part.isdecimal() else at[part]
    at[last] = value
    return entry


DIGESTS: list[object] = ["md5:" + "0" * 32, "none", "sha256:" + "A" * 64, 1, None]
SIZES: list[object] = [-1, 1.5, True, "1", None]
LISTS: list[object] = [[], {}, "static", None, [1], [entry_of("pdf", GOOD)["resources"][1]]]
FIELDS: list[object] = [[], "x", None, {"x": ["y"] * 5_000}]
WRONG: list[object] = [
    *(changed("resources.1.uri", f"skill://pdf/{path}") for path in ("../x", "a/../../x", "%2e%2e/x", "..%2fx", ".")),
    *(changed("resources.1.uri", f"skill://pdf/{path}") for path in ("a\\b", "a%5cb", "%00", "C:x", "con", "a.", "")),
    *(changed("resources.1.uri", f"skill://pdf/{path}") for path in ("SKILL.md", "a?b", "a#b", "a%", "%ff", "~x\n")),
    *(changed("resources.1.uri", uri) for uri in ("a.md", "skill://other/a.md", 7, None, "skill://pdf" + "x" * 3_000)),
    *(changed("resources.1.digest", value) for value in DIGESTS),
    *(changed("resources.1.size", value) for value in SIZES),
    *(changed("resources", value) for value in LISTS),
    *(changed("uri", uri) for uri in ("skill://pdf/skill.md", "skill://../pdf/SKILL.md", "pdf/SKILL.md", 1, "")),
    *(changed("uri", uri) for uri in ("skill://pdf/x/SKILL.md", "file:///SKILL.md", "skill://\u202e/pdf/SKILL.md")),
    *(changed("frontmatter.name", name) for name in ("PDF", "../x", "", 1, None, "pdf2", "a\nb")),
    *(changed("frontmatter.description", text) for text in ("", "  ", 1, None, "x" * 1_025)),
    *(changed("frontmatter", value) for value in FIELDS),
    changed("more", 1),
    changed("resources.1.more", 1),
    changed("resources.1._meta2", 1),
    *([], "x", None, {}, {"uri": "skill://pdf/SKILL.md"}),
]


def test_an_entry_with_anything_wrong_is_not_used() -> None:
    for number, entry in enumerate(WRONG):
        with pytest.raises(prowess.FetchError) as caught:
            parse_entry(entry, prowess.Limits())
        assert caught.value.code in {"bad-entry", "bad-digest"}, number
        assert len(caught.value.message) < 1_000, number


@pytest.mark.parametrize("place", ["_meta", "resources.0._meta", "resources.1._meta"])
@pytest.mark.parametrize("meta", [{}, {"io.modelcontextprotocol.skills/x": 1}, [], None])
def test_what_the_base_protocol_allows_on_every_object_changes_nothing(place: str, meta: object) -> None:
    assert parse_entry(changed(place, meta), prowess.Limits()) == parse_entry(entry_of("pdf", GOOD), prowess.Limits())


def test_the_entry_that_these_were_made_from_is_used() -> None:
    assert set(parse_entry(entry_of("pdf", GOOD), prowess.Limits()).files) == {"SKILL.md", "a.md"}


def test_a_wrong_entry_hides_no_right_one(plan: Plan, connect: Connect) -> None:
    plan.add("good")
    plan.skills[:0] = [entry for entry in WRONG if isinstance(entry, dict)][:20]
    catalog = connect().load()
    assert catalog.names == ("docs:good",)
    assert len(catalog.issues) == 20
    assert all(issue.path == "mcp:docs" for issue in catalog.issues)


# -- listings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["endless", "loop"])
def test_a_listing_that_does_not_end_is_cut(plan: Plan, connect: Connect, how: str) -> None:
    plan.add("pdf")
    plan.listing = {how: True}
    catalog = connect(limits=replace(prowess.Limits(), max_mcp_skills=20)).load()
    assert catalog.names == ("docs:pdf",)
    assert "endless-listing" in codes(catalog)
    assert len(plan.asked()) < 30


def test_a_listing_of_too_many_is_cut(plan: Plan, connect: Connect) -> None:
    for number in range(12):
        plan.add(f"s{number}")
    plan.listing = {"endless": True}
    catalog = connect(limits=replace(prowess.Limits(), max_mcp_skills=10)).load()
    assert len(catalog) == 10
    assert codes(catalog) == ["endless-listing"]


@pytest.mark.parametrize("answer", [{"skills": None}, {"skills": "x"}, {}])
def test_a_listing_that_is_none_is_an_issue(plan: Plan, connect: Connect, answer: dict[str, Any]) -> None:
    plan.skills = answer.get("skills", 7)
    assert codes(connect().load()) == ["bad-entry"]


# -- too much, too slow, gone ------------------------------------------------------------------------------------------


def test_a_file_that_is_larger_than_announced_is_refused(plan: Plan, connect: Connect) -> None:
    plan.add("pdf", {"SKILL.md": skill_md("pdf"), "big.md": b"x"})
    plan.reads["skill://pdf/big.md"] = contents_of("skill://pdf/big.md", b"x" * 3_000_000)
    skill = connect().load()["docs:pdf"]
    with pytest.raises(prowess.FetchError, match="3000000 bytes"):
        skill.read_resource("big.md")


ODD = [
    {"contents": []},
    {"contents": [{}, {}]},
    {"contents": [{"uri": "x"}]},
    {"contents": [{"uri": "x", "text": "a", "blob": "YQ=="}]},
    {"contents": [{"uri": "x", "blob": "§"}]},
    {"contents": "a"},
    {},
]


@pytest.mark.parametrize("answer", ODD, ids=range(len(ODD)))
def test_an_odd_answer_to_a_read_is_a_typed_error(plan: Plan, connect: Connect, answer: dict[str, Any]) -> None:
    plan.add("pdf", GOOD)
    plan.reads["skill://pdf/a.md"] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **answer}
    with pytest.raises(prowess.FetchError):
        connect().load()["docs:pdf"].read_resource("a.md")


@pytest.mark.parametrize(
    ("when", "how", "code"),
    [
        ("start", {"hang": True}, "mcp-timeout"),
        ("start", {"die": True}, "server-away"),
        ("listing", {"hang": True}, "mcp-timeout"),
        ("listing", {"die": True}, "server-away"),
    ],
)
def test_a_server_that_does_not_answer_is_an_issue(
    plan: Plan, connect: Connect, when: str, how: dict[str, Any], code: str
) -> None:
    setattr(plan, when, how)
    limits = QUICK if "hang" in how else prowess.Limits()  # one that dies is not waited for, however slowly it starts
    assert codes(connect(limits=limits).load()) == [code]
    with pytest.raises(prowess.FetchError) as caught:
        connect("strict", limits=limits, missing="error").load()
    assert caught.value.code == code


def test_a_command_that_is_none_is_an_issue() -> None:
    with prowess.Source.mcp("docs", command=["prowess-no-such-program"]) as source:
        assert codes(source.load()) == ["server-away"]


def test_a_server_that_went_away_is_started_again(plan: Plan, connect: Connect) -> None:
    plan.add("pdf", {**GOOD, "b.md": b"b"})
    source = connect()
    skill = source.load()["docs:pdf"]
    plan.command()
    source.close()
    assert skill.read_resource("b.md") == "b"


def test_slow_and_dead_servers_hide_no_skill_of_others(plan: Plan, connect: Connect, tmp_path: Path) -> None:
    plan.add("pdf")
    (tmp_path / "hang").mkdir()
    hanging = Plan(tmp_path / "hang", start={"hang": True}).command()
    slow = [prowess.Source.mcp(f"slow{n}", command=hanging, limits=QUICK) for n in range(3)]
    catalog = prowess.Catalog.from_sources([*slow, connect("good")])
    assert catalog.names == ("good:pdf",)
    assert codes(catalog) == ["mcp-timeout"] * 3


def test_sources_that_need_time_begin_before_any_is_waited_for() -> None:
    order: list[str] = []

    class Slow:
        def __init__(self, name: str) -> None:
            self.name = name

        def begin(self) -> None:
            order.append(f"begin {self.name}")

        def load(self) -> prowess.Catalog:
            order.append(f"load {self.name}")
            return prowess.Catalog()

    prowess.Catalog.from_sources([Slow("a"), Slow("b"), prowess.Source.inline("x", "Does.", "Do.")])
    assert order == ["begin a", "begin b", "load a", "load b"]


def test_the_sdk_is_imported_before_a_server_is_waited_for(plan: Plan) -> None:
    """How long that takes is not a fault of the server: its clock starts afterwards."""
    import subprocess

    code = """
import sys, prowess
with prowess.Source.mcp("docs", command=sys.argv[1:]) as source:
    before = "mcp" in sys.modules
    source.begin()
    print(before, "mcp" in sys.modules and "prowess.sources.mcp.transport" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, *plan.command()], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False True\n"


def test_a_large_head_is_compared_under_the_limits_of_the_caller(plan: Plan, connect: Connect) -> None:
    fields = {f"note-{number}": "x" * 40_000 for number in range(3)}
    text = skill_md("pdf", fields="".join(f"{key}: {value}\n" for key, value in fields.items()))
    plan.add("pdf", {"SKILL.md": text}, **fields)
    assert codes(connect().load()) == ["bad-entry"]
    wide = connect("wide", limits=prowess.Limits(max_frontmatter_bytes=1 << 20)).load()
    assert wide["wide:pdf"].load().instructions == "Do it."


def test_a_listing_whose_source_is_closed_meanwhile_is_an_issue(plan: Plan, connect: Connect) -> None:
    plan.listing = {"hang": True}
    source = connect(limits=replace(prowess.Limits(), max_mcp_list_seconds=5.0))
    source.begin()
    for _ in range(500):
        if len(plan.asked()) < 2:
            time.sleep(0.01)
    source.close()
    assert codes(source.load()) == ["mcp-timeout"], "it is asked again, in what is left of the time"
    assert [method for method, _ in plan.asked()].count("skills/list") == 2


def test_approvals_that_cannot_be_read_hide_no_skill(plan: Plan, connect: Connect) -> None:
    plan.add("pdf")
    file = plan.folder / "approvals.json"
    file.write_bytes(b"{")
    catalog = connect(approvals=prowess.Approvals(file)).load()
    assert (catalog.names, codes(catalog)) == (("docs:pdf",), ["approval-store"])
    with pytest.raises(prowess.NotTrustedError):
        catalog["docs:pdf"].load()


def test_no_process_is_left_when_the_program_ends(plan: Plan, tmp_path: Path) -> None:
    import subprocess

    plan.add("pdf")
    code = "import sys, prowess; print(prowess.Source.mcp('docs', command=sys.argv[1:]).load().names)"
    done = subprocess.run(
        [sys.executable, "-c", code, *plan.command()], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "('docs:pdf',)\n"
    if Path("/proc").exists():
        commands = [_command(path) for path in Path("/proc").iterdir() if path.name.isdecimal()]
        assert not [command for command in commands if str(tmp_path) in command and "scripted_server" in command]


def _command(path: Path) -> str:
    try:
        return (path / "cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def test_a_server_sees_few_variables(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "TOPSECRET")
    show = plan.folder / "show.py"
    show.write_text("import os, sys; open(sys.argv[1], 'w').write(repr(sorted(os.environ)))", encoding="utf-8")
    seen = plan.folder / "seen"
    command = [sys.executable, "-I", str(show), str(seen)]
    with prowess.Source.mcp("docs", command=command, env={"OURS": "1"}, limits=QUICK) as source:
        source.load()
    assert "OURS" in seen.read_text(encoding="utf-8")
    assert "AWS" not in seen.read_text(encoding="utf-8")
    assert "TOPSECRET" not in repr(source)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, "bad-argument"),
        ({"command": "a string"}, "bad-argument"),
        ({"command": ["x"], "url": "https://x"}, "bad-argument"),
        ({"url": "http://example.com/mcp"}, "plain-http"),
        ({"url": "https://user:pw@example.com/mcp"}, "bad-address"),
        ({"url": "ftp://example.com"}, "bad-address"),
        ({"command": ["x"], "missing": "perhaps"}, "bad-argument"),
    ],
)
def test_a_source_that_makes_no_sense_is_refused_at_once(options: dict[str, Any], code: str) -> None:
    with pytest.raises(prowess.SourceError) as caught:
        prowess.Source.mcp("docs", **options)
    assert caught.value.code == code
    assert "pw" not in str(caught.value)


def test_the_digests_are_those_of_the_files() -> None:
    assert sha256(b"a") == "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"


def test_what_is_kept_in_memory_is_bounded(plan: Plan, connect: Connect) -> None:
    files = {"SKILL.md": skill_md("pdf"), **{f"{n}.md": os.urandom(500).hex().encode() for n in range(5)}}
    plan.add("pdf", files)
    source = connect(limits=replace(prowess.Limits(), max_mcp_kept_bytes=2_500))
    skill = source.load()["docs:pdf"]
    for _ in range(2):
        for number in range(5):
            skill.read_bytes(f"{number}.md")
    reads = [uri for method, uri in plan.asked() if method == "resources/read"]
    assert len(reads) == 10
    assert sum(len(data) for data in source._kept._files.values()) <= 2_500  # noqa: SLF001


def test_listings_are_waited_for_side_by_side(tmp_path: Path) -> None:
    """Each server lists only once the other has been asked as well: one after the other would wait for ever."""
    meeting = [str(tmp_path / "one.here"), str(tmp_path / "two.here")]
    plans = {"one": Plan(tmp_path / "a"), "two": Plan(tmp_path / "b")}
    for (label, plan), meet in zip(plans.items(), (meeting, meeting[::-1]), strict=True):
        plan.folder.mkdir(exist_ok=True)
        plan.listing = {"meet": meet}
        plan.add(f"from-{label}")
    sources = [prowess.Source.mcp(label, command=plan.command()) for label, plan in plans.items()]
    try:
        assert prowess.Catalog.from_sources(sources).names == ("one:from-one", "two:from-two")
    finally:
        for source in sources:
            source.close()


def test_a_cancelled_call_does_not_wait_for_a_server_that_says_nothing(
    plan: Plan, connect: Callable[..., McpSource]
) -> None:
    """The thread that asked ends with the call, long before the server's time is over."""
    plan.add("pdf")
    plan.reading = {"hang": True}
    toolset = prowess.Toolset(prowess.Session(prowess.Catalog.from_sources([connect()])))
    name = toolset.session.catalog.names[0]

    async def main() -> None:
        task = asyncio.ensure_future(toolset.acall("load_skill", {"name": name}))
        while "resources/read" not in [method for method, _ in plan.asked()]:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)
        (reading,) = (thread for thread in threading.enumerate() if thread.name == "prowess reads")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        reading.join(10)  # a third of the time that the server has for an answer
        assert not reading.is_alive()

    asyncio.run(main())
