"""Mistakes of a program are refused where they are made, with a sentence that says what was expected."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import prowess

Mistake = Callable[[Any, Any, Path], object]
"""A call that no type checker would let through, with Prowess as if it were not typed."""

untyped = cast("Any", prowess)


@pytest.fixture
def catalog(tmp_path: Path) -> prowess.Catalog:
    folder = tmp_path / "skills" / "pdf"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: pdf\ndescription: Reads PDF files.\n---\nRead.\n", encoding="utf-8")
    (folder / "scripts" / "profile.py").write_text("print('profiled')\n", encoding="utf-8")
    return prowess.scan(tmp_path / "skills")


A_TOOL = "must be a tool or a tool with a pattern in parentheses"

MISTAKES: dict[str, tuple[Mistake, str]] = {
    "a script that is not text": (
        lambda p, catalog, _: p.Scripts(sandbox="none").run(catalog["pdf"], None, trust=None),
        "script must be a string, not None",
    ),
    "a file of a skill that is not text": (
        lambda p, catalog, _: p.Session(catalog).read_resource("pdf", None),
        "path must be a string, not None",
    ),
    "a bound below nothing": (
        lambda _, catalog, __: catalog["pdf"].read_resource("SKILL.md", -1),
        "max_bytes must be a whole number from 0, or None for no bound, not -1",
    ),
    "a name where a skill is asked about": (
        lambda p, _, folder: p.Trust(folder / "trust.json").is_trusted("pdf"),
        "skill must be a prowess.Skill, not the string 'pdf'; pass catalog[name]",
    ),
    "nothing where a fork is described": (
        lambda p, _, __: p.fork_system_message(None),
        "prepared must be a prowess.PreparedFork, not None; pass toolset.prepare_fork(name, task)",
    ),
    "a text as the ceiling": (
        lambda p, catalog, _: p.Session(catalog, tools="Read"),
        "tools must be a list of strings, not the string 'Read'; pass ['Read']",
    ),
    "a number in the ceiling": (
        lambda p, catalog, _: p.Session(catalog, tools=["Read", 3]),
        "tools[1] must be a string, not the int 3",
    ),
    "a number as the ceiling": (
        lambda p, catalog, _: p.Session(catalog, tools=3),
        "tools must be a list of strings, not the int 3",
    ),
    "a text as the allowed names": (
        lambda p, catalog, _: p.Toolset(p.Session(catalog), allowed="pdf"),
        "allowed must be a list of strings, not the string 'pdf'; pass ['pdf']",
    ),
    "a text as agents": (
        lambda p, _, folder: p.discover(folder, folder, agents="codex"),
        "agents must be a list of strings, not the string 'codex'; pass ['codex']",
    ),
    "a text as the agents of an install": (
        lambda p, _, folder: p.Installer(folder / "u", folder / "p").install(str(folder / "skills"), agents="codex"),
        "agents must be a list of strings, not the string 'codex'; pass ['codex']",
    ),
    "a text as tags": (
        lambda p, _, __: p.TagSelector("pdf"),
        "tags must be a list of strings, not the string 'pdf'; pass ['pdf']",
    ),
    "a text as the tools of an inline skill": (
        lambda p, _, __: p.Source.inline("a", "Does a.", "Do a.", allowed_tools="Read"),
        "allowed_tools must be a list of strings, not the string 'Read'; pass ['Read']",
    ),
    "a number as a tool of a skill": (
        lambda p, _, __: p.Frontmatter("a", "Does a.", allowed_tools=["Read", 3]),
        "allowed_tools[1] must be a string, not the int 3",
    ),
    "a number in the metadata of a skill": (
        lambda p, _, __: p.Frontmatter("a", "Does a.", metadata={"version": 1.0}),
        "metadata['version'] must be a string, not the float 1.0",
    ),
    "a text as the metadata of a skill": (
        lambda p, _, __: p.Frontmatter("a", "Does a.", metadata="version"),
        "metadata must be a mapping, not the string 'version'",
    ),
    "a text as the metadata of an inline skill": (
        lambda p, _, __: p.Source.inline("a", "Does a.", "Do a.", metadata="version"),
        "metadata must be a mapping, not the string 'version'",
    ),
    "nothing as the description of a skill": (
        lambda p, _, __: p.Frontmatter("a", None),
        "description must be a string, not None",
    ),
    "a number as the license of a skill": (
        lambda p, _, __: p.Frontmatter("a", "Does a.", license=3),
        "license must be a string, not the int 3",
    ),
    "nothing as the instructions of an inline skill": (
        lambda p, _, __: p.Source.inline("a", "Does a.", None),
        "instructions must be a string, not None",
    ),
    "a no in words for an inline skill": (
        lambda p, _, __: p.Source.inline("a", "Does a.", "Do a.", preload="no"),
        "preload must be True or False, not the string 'no'",
    ),
    "a name in place of the frontmatter": (
        lambda p, _, __: p.Skill("pdf"),
        "frontmatter must be a prowess.Frontmatter, not the string 'pdf'; pass Frontmatter(name=…, description=…)",
    ),
    "a number as the body of a skill": (
        lambda p, _, __: p.Skill(p.Frontmatter("a", "Does a."), body=3),
        "body must be a string, not the int 3",
    ),
    "a text as prefixes": (
        lambda p, _, folder: p.scan(folder, skip_prefixes="."),
        "skip_prefixes must be a list of strings, not the string '.'; pass ['.']",
    ),
    "a list as a folder": (
        lambda p, _, __: p.scan(["a"]),
        "a folder to scan must be a string or a path, not the list ['a']; pass scan(*folders)",
    ),
    "no folder": (
        lambda p, _, __: p.scan(),
        "scan needs a folder: scan('skills'); discover() looks in the standard places",
    ),
    "a catalogue in place of a session": (
        lambda p, catalog, _: p.Toolset(catalog),
        "session must be a prowess.Session, not a Catalog; pass Session(catalog)",
    ),
    "a folder in place of a catalogue": (
        lambda p, _, __: p.Session("skills"),
        "catalog must be a prowess.Catalog, not the string 'skills'; pass prowess.scan('skills')",
    ),
    "a yes in place of trust": (
        lambda p, catalog, _: p.Session(catalog, trust=True),
        "trust must be a prowess.Trust or None, not the bool True; pass prowess.Trust()",
    ),
    "the name of a policy in place of trust": (
        lambda p, catalog, _: p.Session(catalog, trust="defer"),
        "trust must be a prowess.Trust or None, not the string 'defer'; pass prowess.Trust(policy='defer')",
    ),
    "a yes in place of the file of grants": (
        lambda p, _, __: p.Trust(True),  # noqa: FBT003 - the mistake
        "path must be a string or a path, not the bool True",
    ),
    "something to ask that cannot be called": (
        lambda p, _, folder: p.Trust(folder / "trust.json", ask="yes"),
        "ask must be callable, not the string 'yes'",
    ),
    "a listener that cannot be called": (
        lambda p, catalog, _: p.Session(catalog, on_event="log"),
        "on_event must be callable, not the string 'log'",
    ),
    "a selector that selects nothing": (
        lambda p, catalog, _: p.Session(catalog, selector="lexical"),
        (
            "selector must have a method select(), and the string 'lexical' has none; "
            'pass a prowess.Selector, "auto", or None to show everything'
        ),
    ),
    "a budget that is not a number": (
        lambda p, _, __: p.AutoSelector("many"),
        "budget must be a whole number from 0 or None, not 'many'",
    ),
    "a ranking that filters": (
        lambda p, _, __: p.AutoSelector(base=p.TagSelector(["a"])),
        (
            "base is a selector that ranks, and TagSelector keeps the order of names; "
            "pass SelectorChain(TagSelector(…), AutoSelector(…))"
        ),
    ),
    "a reordering that cannot be called": (
        lambda p, _, __: p.RerankSelector(p.LexicalSelector(), "model"),
        "rerank must be callable, not the string 'model'",
    ),
    "a chain of something else": (
        lambda p, _, __: p.SelectorChain(p.LexicalSelector(), "tags"),
        "selectors[1] must have a method select(), and the string 'tags' has none; pass a prowess.Selector",
    ),
    "a folder in place of skills": (
        lambda p, _, __: p.Catalog("skills"),
        (
            "skills must be a list of prowess.Skill, not the string 'skills'; "
            "pass prowess.scan('skills') to look in a folder"
        ),
    ),
    "names in place of skills": (
        lambda p, _, __: p.Catalog(["pdf"]),
        "skills[0] must be a prowess.Skill, not the string 'pdf'",
    ),
    "a folder in place of sources": (
        lambda p, _, __: p.Catalog.from_sources("skills"),
        "sources must be a list of sources, not the string 'skills'; pass [Source.directory('skills')]",
    ),
    "a folder in place of a source": (
        lambda p, _, __: p.Catalog.from_sources(["skills"]),
        "sources[0] must have a method load(), and the string 'skills' has none; pass Source.directory('skills')",
    ),
    "a place in place of a name": (
        lambda _, catalog, __: catalog[0],
        "the name of a skill must be a string, not the int 0; catalog.skills is in order",
    ),
    "a negative budget": (
        lambda p, catalog, _: p.Toolset(p.Session(catalog), budget=-1),
        "budget must be a whole number from 0 or None, not -1",
    ),
    "a negative budget of a listing": (
        lambda p, catalog, _: p.render_catalog(catalog, budget=-1),
        "budget must be a whole number from 0 or None, not -1",
    ),
    "a yes in place of a budget": (
        lambda p, catalog, _: p.Toolset(p.Session(catalog), budget=True),
        "budget must be a whole number from 0 or None, not True",
    ),
    "a negative bound of reads": (
        lambda p, catalog, _: p.Toolset(p.Session(catalog), max_bytes=-1),
        "max_bytes must be a whole number from 0 or None, not -1",
    ),
    "a text as the number of active skills": (
        lambda p, catalog, _: p.Session(catalog, max_active="2"),
        "max_active must be a whole number, not the string '2'",
    ),
    "a filter that is not text": (
        lambda p, catalog, _: p.Session(catalog, filter=["skills/*"]),
        "filter must be a string, not the list ['skills/*']",
    ),
    "a dialect that is not text": (
        lambda p, catalog, _: p.Toolset(p.Session(catalog), ["prowess"]),
        "dialect must be a string, not the list ['prowess']",
    ),
    "a limit of a search that is not a number": (
        lambda _, catalog, __: catalog.search("pdf", "5"),
        "limit must be a whole number, not the string '5'",
    ),
    "a limit of a search that is not a whole number": (
        lambda _, catalog, __: catalog.search("pdf", 1.5),
        "limit must be a whole number, not the float 1.5",
    ),
    "a query of a search that is not text": (
        lambda _, catalog, __: catalog.search(5),
        "query must be a string, not the int 5",
    ),
    "a query of a prompt that is not text": (
        lambda p, catalog, _: p.Toolset(p.Session(catalog)).prompt(None),
        "query must be a string, not None",
    ),
    "a query of tools that is not text": (
        lambda p, catalog, _: p.Toolset(p.Session(catalog)).tools(["pdf"]),
        "query must be a string, not the list ['pdf']",
    ),
    "a query of an index that is not text": (
        lambda p, catalog, _: p.Session(catalog).index(5),
        "query must be a string, not the int 5",
    ),
    "an environment that is not a mapping": (
        lambda p, _, __: p.Scripts(env="A=1"),
        "env must be a mapping of strings, or \"declared\", not the string 'A=1'",
    ),
    "limits that are none": (
        lambda p, catalog, _: p.Session(catalog, limits=5),
        "limits must be a prowess.Limits or None, not the int 5; pass prowess.Limits(…)",
    ),
    "a number in place of the user's folder": (
        lambda p, _, __: p.Installer(5),
        "user_dir must be a string or a path, not the int 5",
    ),
    "a working folder that is a number": (
        lambda p, catalog, _: p.Session(catalog, base_dir=5),
        "base_dir must be a string or a path, not the int 5",
    ),
    "a yes in words": (
        lambda p, catalog, _: p.Toolset(p.Session(catalog), hide_paths="yes"),
        "hide_paths must be True or False, not the string 'yes'",
    ),
    "a no in words": (
        lambda p, catalog, _: p.Toolset(p.Session(catalog), hint_resources="no"),
        "hint_resources must be True or False, not the string 'no'",
    ),
    "a number in place of yes": (
        lambda p, catalog, _: p.Toolset(p.Session(catalog), index_in_description=1),
        "index_in_description must be True or False, not the int 1",
    ),
    "a tool whose parenthesis is open": (
        lambda p, catalog, _: p.Session(catalog, tools=["Read", "Bash("]),
        f"tools[1] {A_TOOL}, not the string 'Bash('; pass 'Bash(git:*)' or 'Bash'",
    ),
    "a pattern without a tool": (
        lambda p, catalog, _: p.Session(catalog, tools=["(git:*)"]),
        f"tools[0] {A_TOOL}, not the string '(git:*)'; pass 'Bash(git:*)' or 'Bash'",
    ),
    "a tool without a name": (
        lambda p, catalog, _: p.Session.restore(catalog, p.Session(catalog).save(), tools=[""]),
        f"tools[0] {A_TOOL}, not the string ''; pass 'Bash(git:*)' or 'Bash'",
    ),
    "somebody to ask who is never asked": (
        lambda p, _, folder: p.Trust(folder / "trust.json", ask=print, policy="defer"),
        "ask is for the policy 'ask', not 'defer': nobody would be asked",
    ),
    "nothing in place of a skill to grant": (
        lambda p, _, folder: p.Trust(folder / "trust.json").grant(None),
        "what is granted must be a prowess.Skill or a prowess.TrustRequest, not None",
    ),
    "a name in place of a skill to grant": (
        lambda p, _, folder: p.Trust(folder / "trust.json").grant("pdf"),
        "what is granted must be a prowess.Skill or a prowess.TrustRequest, not the string 'pdf'",
    ),
    "a source without a folder": (
        lambda p, _, __: p.Source.directory(None),
        "path must be a string or a path, not None",
    ),
    "a session in place of a catalogue": (
        lambda p, catalog, _: p.Session(p.Session(catalog)),
        "catalog must be a prowess.Catalog, not a Session; pass session.catalog",
    ),
    "a folder in place of another catalogue": (
        lambda p, catalog, _: p.Session(catalog).refresh("skills"),
        "catalog must be a prowess.Catalog, not the string 'skills'; pass prowess.scan('skills')",
    ),
    "one source in place of a list": (
        lambda p, _, folder: p.Catalog.from_sources(p.Source.directory(folder)),
        "sources must be a list of sources, not a DirectorySource; pass [source]",
    ),
    "a slice in place of a name": (
        lambda _, catalog, __: catalog[0:1],
        "the name of a skill must be a string, not a slice; catalog.skills is in order",
    ),
    "a skill in place of its name": (
        lambda p, catalog, _: p.Session(catalog).activate(catalog["pdf"]),
        "the name of a skill must be a string, not a Skill; pass skill.name",
    ),
    "nothing in place of a name": (
        lambda p, catalog, _: p.Session(catalog).read_text(None),
        "the name of a skill must be a string, not None; pass skill.name",
    ),
    "nothing in place of a message": (
        lambda p, catalog, _: p.Session(catalog).expand(None),
        "message must be a string, not None",
    ),
    "nothing in place of a filter": (
        lambda p, catalog, _: p.Session(catalog).set_filter(None),
        "pattern must be a string, not None",
    ),
    "a number in place of a filter for one call": (
        lambda p, catalog, _: p.Session(catalog).activate("pdf", filter=5),
        "filter must be a string, not the int 5",
    ),
    "a list in place of an ambient filter": (
        lambda p, _, __: p.skill_filter(["skills/*"]).__enter__(),
        "pattern must be a string, not the list ['skills/*']",
    ),
    "two tools in one text": (
        lambda p, catalog, _: p.Session(catalog, tools=["Read, Bash"]),
        f"tools[0] {A_TOOL}, not the string 'Read, Bash'; pass 'Bash(git:*)' or 'Bash'",
    ),
    "two tools with a blank between": (
        lambda p, catalog, _: p.Session(catalog, tools=["Read Bash"]),
        f"tools[0] {A_TOOL}, not the string 'Read Bash'; pass 'Bash(git:*)' or 'Bash'",
    ),
    "any tool in a list": (
        lambda p, catalog, _: p.Session(catalog, tools=["any"]),
        "tools must be 'any' or a list of tools, not the list ['any']; pass tools='any'",
    ),
    "a command in words": (
        lambda p, catalog, _: p.Session(catalog).allows("Bash", ["ls", "-l"]),
        "command must be a string, not the list ['ls', '-l']",
    ),
    "nothing in place of a tool": (
        lambda p, catalog, _: p.Session(catalog).allows(None),
        "tool must be a string, not None",
    ),
    "a listener that nobody awaits": (
        lambda p, catalog, _: p.Session(catalog, on_event=_listen),
        "on_event must be a plain function, not a coroutine function: nobody would await it",
    ),
    "a session in place of the catalogue of a request": (
        lambda p, catalog, _: p.TrustRequest.from_dict(_request(catalog), p.Session(catalog)),
        "catalog must be a prowess.Catalog, not a Session; pass session.catalog",
    ),
    "a no in words for the network": (
        lambda p, _, __: p.Scripts(network="no"),
        "network must be True or False, not the string 'no'",
    ),
    "a yes in place of trust in a script": (
        lambda p, catalog, _: p.Scripts(sandbox="none").run(catalog["pdf"], "scripts/profile.py", trust=True),
        "trust must be a prowess.Trust or None, not the bool True; pass prowess.Trust()",
    ),
    "a name in place of a skill with scripts": (
        lambda p, _, folder: p.Scripts(sandbox="none").run("pdf", "x.py", trust=p.Trust(folder / "trust.json")),
        "skill must be a prowess.Skill, not the string 'pdf'; pass catalog[name]",
    ),
    "one tool in place of those of a parent": (
        lambda p, _, __: p.PreparedFork("pdf", "", "", "", ("Read",), 0).child_tools("Read"),
        "offered must be a list of strings, not the string 'Read'; pass ['Read']",
    ),
    "a command of a sub-agent in words": (
        lambda p, _, __: p.PreparedFork("pdf", "", "", "", ("Bash(git:*)",), 0).allows("Bash", ["git", "log"]),
        "command must be a string, not the list ['git', 'log']",
    ),
    "a folder in place of what is listed": (
        lambda p, _, __: p.render_catalog("skills"),
        "skills must be a list of prowess.Skill, not the string 'skills'; pass prowess.scan('skills')",
    ),
}


async def _listen(_: object) -> None:
    """A listener as an asynchronous host might write it."""


def _request(catalog: prowess.Catalog) -> dict[str, Any]:
    """A request as it is kept between two calls."""
    return prowess.TrustRequest(catalog["pdf"], catalog["pdf"].digest(), script="scripts/profile.py").to_dict()


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_with_what_was_expected(name: str, catalog: prowess.Catalog, tmp_path: Path) -> None:
    make, expected = MISTAKES[name]
    with pytest.raises(prowess.SourceError) as caught:
        make(untyped, catalog, tmp_path)
    assert (caught.value.message, caught.value.code) == (expected, "bad-argument")


def test_whatever_gives_texts_is_a_list_of_texts(catalog: prowess.Catalog) -> None:
    for tools in (["Read"], ("Read",), {"Read"}, iter(["Read"]), {"Read": 1}.keys()):
        assert prowess.Session(catalog, tools=tools).allows("Write") == "refused"


def test_a_mistake_shows_at_most_a_line_of_what_was_given(catalog: prowess.Catalog) -> None:
    with pytest.raises(prowess.SourceError) as caught:
        prowess.Session(catalog, tools="Read\n" * 10_000)
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()


# -- folders -----------------------------------------------------------------------------------------------------------


def test_a_folder_to_work_in_that_is_not_there_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(prowess.SourceError, match="folder must be an existing folder"):
        prowess.Scripts(folder=tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(prowess.SourceError, match="folder must be an existing folder"):
        prowess.Scripts(folder=tmp_path / "file")
    assert not (tmp_path / "none").exists()


def test_a_working_folder_that_is_not_there_is_refused(catalog: prowess.Catalog, tmp_path: Path) -> None:
    with pytest.raises(prowess.SourceError, match="base_dir must be an existing folder"):
        prowess.Session(catalog, base_dir=tmp_path / "nope")
    with pytest.raises(prowess.SourceError, match="base_dir must be an existing folder"):
        prowess.Session.restore(catalog, prowess.Session(catalog).save(), base_dir="nope")


def test_a_skill_file_means_its_folder(catalog: prowess.Catalog, tmp_path: Path) -> None:
    file = tmp_path / "skills" / "pdf" / "SKILL.md"
    found = prowess.scan(file)
    assert (found.names, found["pdf"].location) == (("pdf",), str(file))
    assert catalog["pdf"].location == str(file)
    assert prowess.Catalog.from_sources([prowess.Source.directory(file)]).names == ("pdf",)
    with prowess.watch(file) as watch:
        assert next(watch).names == ("pdf",)


def test_a_folder_that_is_called_like_a_skill_file_is_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "SKILL.md" / "pdf"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: pdf\ndescription: Reads.\n---\nRead.\n", encoding="utf-8")
    assert prowess.scan(tmp_path / "SKILL.md").names == ("pdf",)


def test_a_relative_folder_stays_what_it_was_when_the_working_folder_changes(
    catalog: prowess.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = prowess.Source.directory("skills")
    scripts = prowess.Scripts(folder="skills")
    watch = prowess.watch("skills", notice="stat")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert source.load().names == catalog.names == ("pdf",)
    assert scripts.folder == str(tmp_path / "skills")
    with watch:
        assert next(watch).names == ("pdf",)


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "meant"),
    [("Ärger", "ärger"), ("PDF", "pdf"), ("straße-karten", "Strasse-Karten"), ("\uff50\uff44\uff46", "pdf")],
)
def test_a_name_in_another_case_or_normal_form_is_named_first(given: str, meant: str) -> None:
    names = [*(f"a{number:02}" for number in range(30)), "pdf", "ärger", "Strasse-Karten"]
    for spelled in (given, unicodedata.normalize("NFD", given)):
        error = prowess.UnknownSkillError(spelled, names)
        assert error.available[0] == meant


@pytest.mark.parametrize("find", ["session", "catalog", "toolset"])
def test_where_there_are_no_skills_the_error_says_where_it_looked(find: str, tmp_path: Path) -> None:
    for name in ("empty", "bare"):
        (tmp_path / name).mkdir()
    catalog = prowess.scan(tmp_path / "empty", tmp_path / "bare")
    session = prowess.Session(catalog)
    calls: dict[str, Callable[[], object]] = {
        "session": lambda: session.activate("pdf"),
        "catalog": lambda: catalog["pdf"],
        "toolset": lambda: prowess.Toolset(session, allowed=["pdf"]),
    }
    with pytest.raises(prowess.UnknownSkillError) as caught:
        calls[find]()
    looked = f"no skills were found in {tmp_path}/empty, {tmp_path}/bare"
    assert looked in caught.value.message
    assert "names listed" not in str(caught.value)
    assert "catalog.issues" in str(caught.value)


def test_a_session_over_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(prowess.UnknownSkillError, match=f"{tmp_path}/gone does not exist; no skills are available"):
        prowess.Session(prowess.scan(tmp_path / "gone")).activate("pdf")


def test_an_empty_catalogue_that_looked_nowhere_says_so() -> None:
    with pytest.raises(prowess.UnknownSkillError) as caught:
        prowess.Session(prowess.Catalog()).activate("pdf")
    assert caught.value.message == "unknown skill 'pdf'; no skills are available"


@pytest.mark.parametrize("read", ["resource", "bytes", "session", "script"])
def test_a_file_without_its_folder_is_told_where_it_is(read: str, catalog: prowess.Catalog, tmp_path: Path) -> None:
    skill = catalog["pdf"]
    trust = prowess.Trust(tmp_path / "trust.json")
    trust.grant(skill)
    calls: dict[str, Callable[[], object]] = {
        "resource": lambda: skill.read_resource("profile.py"),
        "bytes": lambda: skill.read_bytes("profile.py"),
        "session": lambda: prowess.Session(catalog).read_resource("pdf", "profile.py"),
        "script": lambda: prowess.Scripts(sandbox="none").run(skill, "profile.py", trust=trust),
    }
    with pytest.raises(prowess.ResourceNotFoundError) as caught:
        calls[read]()
    assert caught.value.message.endswith("profile.py'; there is scripts/profile.py")
