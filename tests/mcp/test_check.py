"""What is not served, and that it is said by name; who may ask, and where."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.discovery.scan import find_skills
from prowess.discovery.walk import ScanRules
from prowess.format.head import LoadPolicy
from prowess.mcp.manifests import ManifestCache
from prowess.mcp.served_skills import SkillLoader, build_from_scan
from prowess.serving.access import make_access
from prowess.serving.bind import check_token, is_loopback, parse_bind
from tests.mcp_peers import everywhere, offered, put, skill_md, talk

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from tests.mcp_peers import Talk

NAME = re.compile(rb"(?m)^name:[ \t]*[\"']?([a-z0-9-]{1,64})[\"']?[ \t]*$")
LIMITS = prowess.Limits()
INVALID = {
    "Upper": (skill_md("Upper"), "bad-name"),
    "other": (skill_md("name"), "name-mismatch"),
    "mended": (b"---\nname: mended\ndescription: Use: it\n---\nx\n", "repaired-colon"),
    "long": (skill_md("long", description="x" * 1_025), "description-too-long"),
    "numbers": (skill_md("numbers", fields="metadata:\n  version: 1.0\n"), "metadata-not-text"),
    "flow": (skill_md("flow", fields="metadata: {version: true}\n"), "metadata-not-text"),
    "tools": (skill_md("tools", fields="allowed-tools: [Read, Edit]\n"), "wrong-type"),
    "blocks": (skill_md("blocks", fields="allowed-tools:\n  - Read\n"), "wrong-type"),
    "nothing": (skill_md("nothing", fields="metadata:\n  a:\n"), "metadata-not-text"),
    "empty": (skill_md("empty", fields="metadata:\n"), "wrong-type"),
    "rows": (skill_md("rows", fields="metadata:\n  tags: [a]\n"), "metadata-not-text"),
    "items": (skill_md("items", fields="metadata:\n- a\n"), "wrong-type"),
    "shouts": (b"---\nname: SHOUTS\ndescription: x\n---\n", "bad-name"),
    "free": (skill_md("free", fields="license: 1.0\n"), "wrong-type"),
    "endless": (skill_md("endless", fields="weight: .inf\n"), "wrong-type"),
    "inward": (skill_md("inward", fields="weights:\n  - [1, {a: -.INF}]\n"), "wrong-type"),
    "huge": (skill_md("huge", fields="weight: 12345678901234567890\n"), "wrong-type"),
    "high": (skill_md("high", fields="weights: [1e999]\n"), "wrong-type"),
    "none": (skill_md("none", fields="weights: [.nan]\n"), "wrong-type"),
    "margin": (b'---\nname: margin\ndescription: "Does it,\nand more."\n---\nx\n', "yaml-unindented"),
    "bracket": (skill_md("bracket", fields="tags: [a,\nb]\n"), "yaml-unindented"),
    "broken": (b"---\nname: [\n---\n", "missing-description"),
    "12": (skill_md("12"), "wrong-type"),
    "true": (skill_md("true"), "wrong-type"),
}
VALID = {
    "pdf": skill_md(
        "pdf", fields='license: MIT\nmetadata:\n  version: "1.0"\n  note: 1.0.1\nallowed-tools: Read Edit\n'
    ),
    "wide": skill_md("wide", fields='weights: [".inf", "1e999"]\nnote: e.infinite 1234567890123456789012 x\n'),
    "12a": skill_md("12a", fields="version: 1.10\nflag: true\nlist: [1, 2]\n"),
    "indented": b'---\nname: indented\ndescription: "Does it,\n and more."\ntags: [\n  a\n]\n---\nx\n',
    "quoted": b"---\nname: 'quoted'\ndescription: \"1.10\"\ncompatibility: 'true'\n---\nx\n",
}


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    for name, (text, _) in INVALID.items():
        put(tmp_path, f"{name}/SKILL.md", text)
    for name, data in VALID.items():
        put(tmp_path, f"{name}/SKILL.md", data)
    put(tmp_path, "lower/skill.md", skill_md("lower"))
    return tmp_path


def test_the_extension_serves_what_the_specification_allows_and_all_else_whatever_loads(mixed: Path) -> None:
    server = prowess.mcp.Server(mixed, notice=None)
    loaded = list(prowess.scan(mixed).names)
    assert len(loaded) > len(VALID)
    expected = everywhere(*VALID) | {"prompts": loaded, "tools": loaded}
    assert talk(server, offered) == expected


def test_the_check_names_what_is_not_served_and_why(mixed: Path) -> None:
    found = {refused.location: [issue.code for issue in refused.issues] for refused in prowess.mcp.check(mixed)}
    expected = {str(mixed / name / "SKILL.md"): code for name, (_, code) in INVALID.items()}
    expected[str(mixed / "lower" / "skill.md")] = "filename-case"
    assert found.keys() == expected.keys()
    assert {where: codes for where, codes in found.items() if expected[where] not in codes} == {}


def test_what_is_served_can_be_described_and_the_other_way_round(
    real_heads: list[bytes], tmp_path: Path, rng: Random, full: bool
) -> None:
    """Real heads: the quick look at each when a library is loaded says what the whole look at its entry says."""
    for number, head in enumerate(real_heads if full else rng.sample(real_heads, 1_000)):
        name = NAME.search(head)
        put(tmp_path, f"{number}/{name[1].decode() if name else 'unnamed'}/SKILL.md", head)
    found = find_skills((prowess.Place(str(tmp_path)),), ScanRules(LoadPolicy(limits=LIMITS), nested=True))
    shelf, manifests = build_from_scan(found, LIMITS), ManifestCache(LIMITS)
    served = {skill.location for skill in shelf.skills.values()}
    assert len(served) > 100
    differing = [
        skill.location for skill in found.skills if can_be_described(manifests, skill) != (skill.location in served)
    ]
    assert differing == []


def can_be_described(manifests: ManifestCache, skill: prowess.Skill) -> bool:
    try:
        return bool(manifests.get_manifest(skill).fields)
    except prowess.SkillError:
        return False


def test_a_library_without_faults_passes_the_check(library: Path) -> None:
    assert prowess.mcp.check(library) == ()


def test_two_roots_with_one_path_serve_the_first(tmp_path: Path) -> None:
    put(tmp_path, "a/pdf/SKILL.md", skill_md("pdf", description="First."))
    put(tmp_path, "b/pdf/SKILL.md", skill_md("pdf", description="Second."))
    server = prowess.mcp.Server(tmp_path / "a", tmp_path / "b", notice=None)

    async def words(connection: Talk) -> list[str]:
        return [entry["frontmatter"]["description"] for entry in await connection.all_skills()]

    assert talk(server, words) == ["First."]
    (refused,) = prowess.mcp.check(tmp_path / "a", tmp_path / "b")
    assert [issue.code for issue in refused.issues] == ["duplicate-name"]


def test_copies_of_one_skill_for_several_agents_are_one_skill_that_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``prowess install --copy`` leaves them; a copy whose files are others is a second skill, and is told."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for folder in (".agents", ".claude"):
        for name, fields in (("pdf", ""), ("numbers", "metadata:\n  version: 1.0\n")):
            put(tmp_path, f"{folder}/skills/{name}/SKILL.md", skill_md(name, fields=fields))
            put(tmp_path, f"{folder}/skills/{name}/a.md", "a")
    survey = prowess.mcp.survey()
    assert [issue.code for refused in survey.refused for issue in refused.issues] == ["metadata-not-text"]
    assert (survey.loaded, survey.served) == (2, 1)
    assert SkillLoader((), LIMITS).load().left_out == (1, 0)
    put(tmp_path, ".claude/skills/pdf/a.md", "another")
    assert [issue.code for refused in prowess.mcp.check() for issue in refused.issues][-1] == "duplicate-name"


def test_a_file_that_cannot_be_named_keeps_a_skill_from_being_served(tmp_path: Path) -> None:
    put(tmp_path, "pdf/SKILL.md", skill_md("pdf"))
    put(tmp_path, "pdf/a:b.md", "x")
    (refused,) = prowess.mcp.check(tmp_path)
    assert [issue.code for issue in refused.issues] == ["bad-file-name"]


# -- who may ask, and where -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "127.0.0.1:8848"}, None),
        ({"host": "localhost:8848", "origin": "http://localhost:8848"}, None),
        ({"host": "skills.example.com"}, None),
        ({"host": "SKILLS.example.com:8443", "origin": "https://skills.example.com:8443"}, None),
        ({"host": "127.0.0.1:8848", "origin": "https://app.example"}, None),
        ({"host": "skills.example.com:x"}, 421),
        ({"host": "other.example.com"}, 421),
        ({"host": "localhost:8849"}, 421),
        ({"host": "127.0.0.1:8848", "origin": "https://skills.example.com"}, 403),
    ],
)
def test_a_server_goes_by_its_own_names_and_those_it_was_given(headers: dict[str, str], status: int | None) -> None:
    who = make_access("127.0.0.1", ["Skills.example.com"], ["https://app.example"], None)
    rows = [(name.encode(), value.encode()) for name, value in headers.items()]
    refused = who.find_refusal({"server": ("127.0.0.1", 8848), "headers": rows})
    assert (refused.status if refused is not None else None) == status


@pytest.mark.parametrize(
    ("bind", "found"),
    [
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        ("localhost", ("localhost", 8848)),
        ("[::1]:9", ("::1", 9)),
        ("[::1]", ("::1", 8848)),
        (":7", ("127.0.0.1", 7)),
    ],
)
def test_where_to_listen_is_host_and_port(bind: str, found: tuple[str, int]) -> None:
    assert parse_bind(bind) == found


@pytest.mark.parametrize("bind", ["127.0.0.1:x", "127.0.0.1:99999", "a:-1"])
def test_a_port_is_a_number(bind: str) -> None:
    with pytest.raises(prowess.SourceError, match="port"):
        parse_bind(bind)


@pytest.mark.parametrize(
    ("host", "only"), [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("10.0.0.1", False), ("x.test", False)]
)
def test_loopback_is_known_by_its_addresses(host: str, only: bool) -> None:
    assert is_loopback(host) is only
    if not only:
        with pytest.raises(prowess.SourceError):
            check_token(host, None)
    check_token(host, "x" * 16)
