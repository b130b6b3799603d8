"""The lines of code that give the behaviour of another system in catalogues, sessions and tools."""

import html
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import prowess
from tests.web_sites import OLD, Site, skill_md

Put = Callable[..., Path]


def test_a_catalogue_that_may_be_none_is_followed_by_an_empty_one(put: Put, tmp_path: Path) -> None:
    """S0-19: ``catalog or Catalog()`` has every method. A host may change a list of its skills."""
    put("pdf")
    for catalog, names in ((None, []), (prowess.scan(tmp_path), ["pdf"])):
        skills = list(catalog or prowess.Catalog())
        assert [skill.name for skill in skills] == names
        skills.clear()


def test_a_body_may_be_cut_where_it_began_at_the_scan(put: Put, tmp_path: Path) -> None:
    """S0-22: the host cuts at the offset that a skill keeps."""
    path = put("pdf")
    skill = prowess.scan(tmp_path)["pdf"]
    path.write_bytes(path.read_bytes().replace(b"Does", b"Really does"))
    assert skill.read_body() == "Do it.\n"
    assert path.read_bytes()[skill.body_offset :] == b"g.\n---\nDo it.\n"


def test_names_that_only_one_system_accepts_are_kept_by_its_own_rule(put: Put, tmp_path: Path) -> None:
    """S0-13, S0-28: a host filters a lenient scan. invalid="skip" leaves out all that the specification refuses."""
    for name in ("my_skill", "a--b", "Upper"):
        put(name)
    put("folder", name="other")
    put("open", fields=f"compatibility: {'c' * 600}\n")
    put("listed", fields="tags: [x]\n")
    put("named", fields="tags: x\n")
    put("long", description="d" * 2000)
    put("wide", description="\u6f22" * 400)
    put("elsewhere", name="a/b")
    put("nameless", text="---\ndescription: d\n---\n")
    put("colon", description="a: b")
    assert prowess.scan(tmp_path, invalid="skip").names == ("listed", "named", "other", "wide")
    catalog = prowess.Catalog(
        skill
        for skill in prowess.scan(tmp_path, repair=False)
        if re.fullmatch("[a-z0-9_-]{1,64}", skill.frontmatter.written_name or skill.name)
        and len(skill.description.encode()) <= prowess.MAX_DESCRIPTION_LENGTH
        and isinstance(skill.frontmatter.typed().get("tags", []), list)
    )
    assert catalog.names == ("a--b", "listed", "my_skill", "open", "other")


def test_the_warning_about_the_case_of_a_file_name_has_a_code(put: Put, tmp_path: Path) -> None:
    """S0-27: a host leaves the warning out by its code."""
    put("pdf", file="Skill.MD")
    catalog = prowess.scan(tmp_path)
    assert catalog.names == ("pdf",)
    assert [issue for issue in catalog.issues if issue.code != "filename-case"] == []


def test_a_linked_file_is_parsed_where_it_really_is(put: Put, tmp_path: Path) -> None:
    """S0-29, S3-19: a host that resolves the link says by this that it wants the file behind it."""
    target = put("elsewhere/pdf")
    (tmp_path / "skills/pdf").mkdir(parents=True)
    (tmp_path / "skills/pdf/SKILL.md").symlink_to(target)
    refused = prowess.scan(tmp_path / "skills")
    assert (refused.names, [issue.code for issue in refused.issues]) == ((), ["link-refused"])
    (issue,) = refused.issues
    catalog = refused | prowess.Catalog([prowess.parse_skill_file(Path(issue.path).resolve()).skill])
    assert catalog.load_body("pdf") == "Do it.\n"


def test_a_root_that_is_a_link_may_be_left_out(put: Put, tmp_path: Path) -> None:
    """S0-29: the host leaves the root out before the scan."""
    put("skills/pdf")
    (tmp_path / "link").symlink_to("skills")
    assert prowess.scan(tmp_path / "link").names == ("pdf",)
    assert prowess.scan("" if (tmp_path / "link").is_symlink() else tmp_path / "link").names == ()


def test_arguments_may_be_parsed_by_the_host(put: Put, tmp_path: Path) -> None:
    """S0-33: the host may then take null for an object without a name."""
    put("pdf")
    toolset = prowess.Toolset(prowess.Session(prowess.scan(tmp_path)), "load_skill")
    result = toolset.call("load_skill", json.loads("null") or {})
    assert (result.is_error, result.content) == (True, "load_skill: skill_name is required")


@pytest.mark.parametrize(
    ("dialect", "missing", "bad"),
    [
        ("load_skill", "load_skill: skill_name is required", "load_skill: invalid params: "),
        ("skill__activate", 'activating skill "": skill "" not found', "parsing activate args: "),
    ],
)
def test_arguments_are_compared_with_their_case(
    dialect: prowess.DialectName, missing: str, bad: str, put: Put, tmp_path: Path
) -> None:
    """S0-33, S1-53: those systems ignore it. An empty string means no arguments, and null is not an object."""
    put("pdf")
    toolset = prowess.Toolset(prowess.Session(prowess.scan(tmp_path)), dialect)
    (name,) = toolset.tools()[0].parameters["required"]
    assert not toolset.call(dialect, {name: "pdf"}).is_error
    for arguments in ({name.upper(): "pdf"}, "", "{}"):
        result = toolset.call(dialect, arguments)
        assert (result.is_error, result.content) == (True, missing)
    for text in ("null", "[]", "x", json.dumps({name: 5})):
        assert toolset.call(dialect, text).content.startswith(bad)


def test_absolute_paths_are_relative_to_the_root_of_the_disk(put: Put, tmp_path: Path) -> None:
    """S1-38: without a base that system compares them. Prowess then compares paths below the working folder."""
    put("skills/pdf")
    catalog = prowess.scan(tmp_path / "skills")
    whole = (tmp_path / "skills/*").as_posix()
    for base, pattern in ((tmp_path, "skills/*"), (tmp_path, whole), (tmp_path.anchor, whole.lstrip("/"))):
        assert [skill.name for skill in prowess.Session(catalog, base_dir=base, filter=pattern).candidates()] == ["pdf"]
    with pytest.raises(prowess.SourceError):
        prowess.Session(catalog, base_dir=tmp_path / "nowhere")


def test_a_host_writes_descriptions_as_they_are(put: Put, tmp_path: Path) -> None:
    """S0-36, S1-44, S3-31: a host takes them from the candidates. A listing of Prowess puts each on one line."""
    put("pdf", description='"Line.\\n- csv: Not there."')
    session = prowess.Session(prowess.scan(tmp_path))
    assert "- pdf: Line. - csv: Not there." in session.index()
    written = [f"- {skill.name}: {skill.description}" for skill in session.candidates()]
    assert written == ["- pdf: Line.\n- csv: Not there."]


def test_a_mount_that_is_refused_has_words_of_the_hosts_own(tmp_path: Path) -> None:
    """S1-17: the host catches one class of errors and writes its own message, which begins with the index."""
    sources = [prowess.Source.directory(tmp_path), prowess.Source.directory(tmp_path, mount_as="a*")]
    with pytest.raises(prowess.SourceError, match=r"^sources\[1\]: ") as caught:
        prowess.Catalog.from_sources(sources)
    assert caught.value.message.replace("sources", "skills", 1).startswith("skills[1]: mount_as")


def test_a_host_that_keeps_an_activation_has_it_whatever_is_filtered_later(put: Put, tmp_path: Path) -> None:
    """S1-32, S1-40: a filter raises an error of its own class, so that a host can choose the words."""
    put("pdf")
    session = prowess.Session(prowess.scan(tmp_path))
    kept = {"pdf": session.activate("pdf")}
    with prowess.skill_filter("none"):
        with pytest.raises(prowess.SkillFilteredError):
            session.activate("pdf")
        assert (kept.get("pdf") or session.activate("pdf")).instructions == "Do it."


def test_tools_may_be_compared_as_texts(put: Put, tmp_path: Path) -> None:
    """S1-35: the host compares them as text. It keeps repeats, and a pattern is only text."""
    put("pdf", fields="allowed-tools: [Read, Read, 'Bash(git:*)']\n")
    catalog = prowess.scan(tmp_path)
    declared = ["Read", "Bash"]
    assert prowess.Session(catalog, tools=declared).activate("pdf").added_tools == ("Bash(git:*)", "Read")
    assert sorted(tool for tool in catalog["pdf"].allowed_tools if tool in declared) == ["Read", "Read"]


@pytest.mark.parametrize(("theirs", "ours"), [("a/**", "a/*"), ("a/b/[!p]df", "a/b/[p!]df")])
def test_a_pattern_of_theirs_is_written_without_what_only_prowess_reads(
    theirs: str, ours: str, put: Put, tmp_path: Path
) -> None:
    """S1-38: in that system two stars mean one, and a mark at the beginning of a set is one of its characters."""
    put("a/b/pdf")
    session = prowess.Session(prowess.scan(tmp_path), base_dir=tmp_path)

    def count(pattern: str) -> int:
        session.set_filter(pattern)
        return len(session.candidates())

    assert count(theirs) != count(ours)


def test_a_selector_that_is_not_strict_only_narrows_what_a_query_finds(put: Put, tmp_path: Path) -> None:
    """S1-46, S1-47, S1-48: a subclass sets strict to False. Without a selector nothing is asked."""

    class Tagged(prowess.TagSelector):
        strict = False

    put("pdf", fields="tags: [paper]\n")
    put("csv")
    catalog = prowess.scan(tmp_path)
    for selector, query, names in (
        (prowess.TagSelector(["paper"]), "", ["pdf"]),
        (Tagged(["paper"]), "", ["csv", "pdf"]),
        (Tagged(["paper"]), "a table", ["pdf"]),
        (Tagged(["none"]), "a table", ["csv", "pdf"]),
        (None, "a table", ["csv", "pdf"]),
    ):
        assert [skill.name for skill in prowess.Session(catalog, selector=selector).candidates(query)] == names


def test_preloaded_skills_may_be_taken_from_the_limit(put: Put, tmp_path: Path) -> None:
    """S1-49: the host subtracts them, as long as the result is not zero, which means no limit."""
    put("pdf")
    put("csv")
    catalog = prowess.scan(tmp_path) | prowess.Source.inline("greet", "Greets.", "Hi.", preload=True).load()
    session = prowess.Session(catalog, max_active=2 - len(catalog.preloaded()))
    session.activate("pdf")
    assert session.active_skills == ("greet", "pdf")
    with pytest.raises(prowess.MaxActiveError):
        session.activate("csv")


def test_preloaded_skills_beyond_a_limit_may_be_deactivated(put: Put, tmp_path: Path) -> None:
    """S1-49: the host deactivates them after it has made the session."""
    put("pdf")
    put("csv")
    session = prowess.Session(prowess.Source.directory(tmp_path, preload=True).load())
    for name in session.active_skills[1:]:
        session.deactivate(name)
    assert session.active_skills == ("csv",)


def test_an_error_result_may_be_raised(put: Put, tmp_path: Path) -> None:
    """S1-53: the caller of the toolset raises it. The message begins with the words of that system."""
    put("pdf")
    toolset = prowess.Toolset(prowess.Session(prowess.scan(tmp_path)), "skill__activate")
    result = toolset.call(prowess.SKILL_ACTIVATE_TOOL, "{")
    with pytest.raises(ValueError, match=r"^parsing activate args: "):
        raise ValueError(result.content) if result.is_error else AssertionError


def test_a_folder_that_a_host_copied_is_resolved_and_listed(tmp_path: Path) -> None:
    """S1-59, S1-61, S1-62, S1-66: the copy may have a history, files in place of links, and no SKILL.md."""
    folder = tmp_path / "notes"
    (folder / ".git").mkdir(parents=True)
    (folder / "a.txt").write_text("a", encoding="utf-8")
    (folder / "link.txt").symlink_to("a.txt")
    base = tmp_path / "user"
    installer = prowess.Installer(base, tmp_path / "project")
    with pytest.raises(prowess.InstallError):
        installer.install_local(folder)
    shutil.copytree(folder, base / "local" / "notes")
    assert installer.resolve("@local/notes") == base / "local/notes"
    assert not (base / "local/notes/link.txt").is_symlink()
    (base / "local" / ".hidden").mkdir()
    assert [skill.name for skill in installer.list()] == ["notes"]
    folders = sorted(path for path in base.glob("*/*") if path.is_dir() and not path.is_symlink())
    assert [path.name for path in folders] == [".hidden", "notes"]
    assert not any(folders[1].rglob("SKILL.md"))


def test_what_a_host_put_among_the_installs_is_not_discovered(put: Put, home: Path, tmp_path: Path) -> None:
    """S1-59: no lock file records it, so discover leaves it out. scan and Source.installed find it."""
    put("home/.config/prowess/skills/acme/pdf")
    base = home / ".config/prowess/skills"
    assert prowess.scan(base).names == ("pdf",)
    assert prowess.Catalog.from_sources([prowess.Source.installed("@acme/pdf", user_dir=base)]).names == ("pdf",)
    found = prowess.discover(tmp_path, home)
    assert (found.names, [issue.code for issue in found.issues]) == ((), ["not-in-lock"])


def test_links_to_folders_are_found_before_a_host_copies_a_folder(tmp_path: Path) -> None:
    """S1-62: a copy of Python follows them, where that system fails."""
    (tmp_path / "pdf/sub").mkdir(parents=True)
    folder = tmp_path / "pdf"
    assert not any(path.is_symlink() and path.is_dir() for path in folder.rglob("*"))
    (folder / "link").symlink_to("sub")
    assert any(path.is_symlink() and path.is_dir() for path in folder.rglob("*"))
    shutil.copytree(folder, tmp_path / "copy")
    assert not (tmp_path / "copy/link").is_symlink()


def test_words_and_addresses_are_told_apart_by_the_host(put: Put, home: Path) -> None:
    """S2-1: the host sorts one list into folders and web addresses, and ignores the rest."""
    put("home/.agents/skills/pdf")
    with Site() as site:
        site.old_index(site.old_entry("web", {"SKILL.md": skill_md("web")}))
        words = ["local", site.url, "nonsense"]
        addresses = [
            prowess.Source.url(word, allow_http=True, allow_private=True, cache_dir=home / "cache")
            for word in words
            if word.startswith(("http://", "https://"))
        ]
        found = prowess.discover(home, home) if "local" in words else prowess.Catalog()
        assert (found | prowess.Catalog.from_sources(addresses)).names == ("pdf", "web")
        words.remove("local")
        found = prowess.discover(home, home) if "local" in words else prowess.Catalog()
        assert (found | prowess.Catalog.from_sources(addresses)).names == ("web",)


def test_an_inline_skill_may_be_kept_from_naming_tools_or_a_name_twice() -> None:
    """S2-10: a line of the host does the first, and on_duplicate does the second."""
    greet = prowess.Source.inline("greet", "Greets.", "Hi.", allowed_tools=["Read"])
    (skill,) = greet.load()
    assert (skill.allowed_tools, skill.is_fork) == (("Read",), False)
    with pytest.raises(prowess.DuplicateSkillError):
        prowess.Catalog.from_sources([greet, greet], on_duplicate="error")


@pytest.mark.parametrize(("most", "asked"), [(prowess.Limits().max_cache_seconds, 1), (0, 2)])
def test_an_index_may_be_asked_for_every_time(most: int, asked: int, tmp_path: Path) -> None:
    """S2-20, S2-21: Limits(max_cache_seconds=0) does this, whatever the server says."""
    with Site() as site:
        site.old_index(site.old_entry("pdf", {"SKILL.md": skill_md("pdf")}), Cache_Control="max-age=600")
        for _ in range(2):
            prowess.Source.url(
                site.url,
                allow_http=True,
                allow_private=True,
                cache_dir=tmp_path / "cache",
                limits=prowess.Limits(max_cache_seconds=most),
            ).load()
        assert site.paths.count(f"{OLD}/index.json") == asked


def test_a_toolset_without_a_runner_never_forks(put: Put, tmp_path: Path) -> None:
    """S2-22, S2-23, S2-24: it does not matter which skills ask for it.

    A host may leave out a tool or add categories.
    """
    (put("pdf", fields="context: fork\n").parent / "form.txt").write_text("x", encoding="utf-8")
    toolset = prowess.Toolset(prowess.Session(prowess.scan(tmp_path)), "read_skill")
    assert [tool.name for tool in toolset.tools()] == ["read_skill", "read_skill_file"]
    category = {"skills": [tool.name for tool in toolset.tools() if tool.name != "read_skill_file"]}
    assert category == {"skills": ["read_skill"]}


def test_a_list_of_the_hosts_own_keeps_repeats(put: Put, tmp_path: Path) -> None:
    """S2-29: a line of the host finds the first skill of a name."""
    put("a/pdf")
    put("b/pdf")
    skills = [*prowess.scan(tmp_path / "b"), *prowess.scan(tmp_path / "a")]
    found = next((skill for skill in skills if skill.name == "pdf"), None)
    assert (len(skills), found) == (2, skills[0])
    assert len(prowess.Catalog(skills)) == 1


def test_every_local_skill_may_run_its_commands_where_a_host_says_yes_to_all(put: Put, tmp_path: Path) -> None:
    """S2-31, S2-32: Trust(ask=lambda request: True) does this. A fence with a word after its mark stays text."""
    put("skills/pdf", body="!`echo hi`\n```! sh\necho no\n```\n")
    catalog = prowess.scan(tmp_path / "skills")
    trust = prowess.Trust(tmp_path / "trust.json", ask=lambda _: True)
    assert prowess.Session(catalog, trust=trust).activate("pdf").instructions == "hi\n```! sh\necho no\n```"


def test_a_host_writes_the_message_of_a_fork_itself(put: Put, tmp_path: Path) -> None:
    """S2-39, S2-40: the host takes the content as it was read, and cuts it where it wants."""
    put("pdf", fields="context: fork\n", body="Say </skill>.\n")
    toolset = prowess.Toolset(prowess.Session(prowess.scan(tmp_path)), "read_skill", fork="host")
    prepared = toolset.prepare_fork("pdf", "")
    assert isinstance(prepared, prowess.PreparedFork)
    assert "Say </skill>." not in prowess.fork_user_message(prepared)
    body = prepared.content.split("\n---", 1)[1].removeprefix("\n")
    assert f'<skill name="{prepared.skill_name}">\n{body}\n</skill>' == '<skill name="pdf">\nSay </skill>.\n\n</skill>'


def test_roots_that_are_not_folders_may_be_left_out(put: Put, tmp_path: Path) -> None:
    """S3-15: a host leaves them out before the scan, and no issue reports them. An empty string is not a root."""
    notes = put("skills/pdf").with_name("notes.txt")
    notes.touch()
    roots = [notes, tmp_path / "none", tmp_path / "skills"]
    assert {issue.code for issue in prowess.scan(*roots).issues} == {"not-a-directory", "missing-root"}
    assert prowess.scan("", *(root for root in roots if os.path.isdir(root))).issues == ()  # noqa: PTH112 - any root
    with pytest.raises(prowess.SourceError):
        prowess.scan(*(root for root in roots[:2] if root.is_dir()))
    assert prowess.scan("", *(root for root in roots[:2] if root.is_dir())).names == ()


def test_a_name_that_is_too_long_is_kept_by_a_host_that_makes_the_skill(put: Put) -> None:
    """S4-5: the host makes it from the fields. Only listings cut a description, and results have a scan's name."""
    path = put("pdf", name="a" * 300, description="d" * 2000)
    assert prowess.scan(path.parent).names == ("pdf",)
    assert prowess.scan(path.parent, limits=prowess.Limits(max_lenient_name_chars=300)).names == ("a" * 300,)
    with path.open("rb") as stream:
        front, _ = prowess.parse_frontmatter(stream)
    catalog = prowess.Catalog([prowess.Skill(front, path)])
    assert (catalog.names, len(catalog["a" * 300].description)) == (("a" * 300,), 2000)
    toolset = prowess.Toolset(prowess.Session(catalog), "use_skill")
    (scanned,) = prowess.scan(path.parent).names
    result = toolset.call("from_scratch__use_skill", {"name": "a" * 300}).content
    assert result.startswith(f'<skill_content name="{scanned}">')


def test_an_issue_may_end_a_scan(put: Put, tmp_path: Path) -> None:
    """S4-8: the scan raises what on_issue raises."""
    put("pdf", text=b"---\nname: pdf\ndescription: \xff\n---\n")

    def refuse(issue: prowess.Issue) -> None:
        if issue.code == "not-utf8":
            raise UnicodeError(issue.message)

    with pytest.raises(UnicodeError, match="not UTF-8"):
        prowess.scan(tmp_path, on_issue=refuse)
    put("pdf", text=b"---\nname: pdf\ndescription: d\n---\n\xff\n")
    with pytest.raises(prowess.SkillValidationError, match="not UTF-8"):
        [skill.read_body() for skill in prowess.scan(tmp_path, on_issue=refuse)]


def test_what_was_escaped_can_be_taken_back(put: Put, tmp_path: Path) -> None:
    """S4-13, S4-14, S4-16: a host that trusts its skills calls html.unescape."""
    put("pdf", description="a <b> & c", body="Say </skill_content>.\n")
    session = prowess.Session(prowess.scan(tmp_path))
    toolset = prowess.Toolset(session, "use_skill")
    written = "<description>a <b> & c</description>"
    result = toolset.call("from_scratch__use_skill", {"name": "pdf"}).content
    for text, plain in (
        (session.catalog["pdf"].to_xml(), written),
        (toolset.prompt(), written),
        (result, "Say </skill_content>."),
    ):
        assert plain not in text
        assert plain in html.unescape(text)
    assert [skill.description for skill in session.candidates()] == ["a <b> & c"]


def test_a_hidden_skill_is_shown_where_a_host_makes_it_anew(put: Put, tmp_path: Path) -> None:
    """S4-20: the host makes a skill of the two fields that are listed, so that no other field counts."""
    path = put("pdf", fields="disable-model-invocation: true\n")
    hidden = prowess.scan(tmp_path)["pdf"]
    front = prowess.Frontmatter(name=hidden.name, description=hidden.description)
    shown = prowess.Skill(front, path)
    prompts = [
        prowess.Toolset(prowess.Session(prowess.Catalog([one])), "use_skill").prompt() for one in (hidden, shown)
    ]
    assert ["<name>pdf</name>" in prompt for prompt in prompts] == [False, True]
    assert shown.read_body(strip=True) == "Do it."


def test_a_catalogue_without_skills_gives_no_tool(put: Put, tmp_path: Path) -> None:
    """S0-37: neither does one that does not exist."""
    put("pdf")
    counts = [
        len(prowess.Toolset(prowess.Session(catalog or prowess.Catalog()), "load_skill").tools())
        for catalog in (None, prowess.scan(""), prowess.scan(tmp_path))
    ]
    assert counts == [0, 0, 1]


@pytest.mark.parametrize(("refused", "instructions"), [("", "1 2"), ("echo 2", "!`echo 1` !`echo 2`")])
def test_a_host_may_ask_about_each_command(refused: str, instructions: str, put: Put, tmp_path: Path) -> None:
    """S2-44: none of them runs unless all are approved."""
    put("skills/pdf", body="!`echo 1` !`echo 2`\n")
    asked: list[str] = []

    def approve(command: str) -> bool:
        asked.append(command)
        return command != refused

    trust = prowess.Trust(tmp_path / "trust.json", ask=lambda request: all(map(approve, request.commands)))
    session = prowess.Session(prowess.scan(tmp_path / "skills"), trust=trust)
    assert session.activate("pdf").instructions == instructions
    assert asked == ["echo 1", "echo 2"]


def test_commands_of_an_inline_skill_run_once_it_is_a_file(tmp_path: Path) -> None:
    """S2-45: as text in a program they stay text, whatever is granted."""
    trust = prowess.Trust(tmp_path / "trust.json", ask=lambda _: True)
    inline = prowess.Source.inline("pdf", "Fills forms.", "Say !`echo hi`.").load()
    assert prowess.Session(inline, trust=trust).activate("pdf").instructions == "Say !`echo hi`."
    skill_file = tmp_path / "written/pdf/SKILL.md"
    skill_file.parent.mkdir(parents=True)
    skill_file.write_text("---\nname: pdf\ndescription: Fills forms.\n---\nSay !`echo hi`.\n", encoding="utf-8")
    written = prowess.scan(tmp_path / "written")
    assert prowess.Session(written, trust=trust).activate("pdf").instructions == "Say hi."


def test_a_list_may_mix_words_addresses_names_and_inline_skills(put: Put, home: Path) -> None:
    """S2-46: the host sorts its entries by what they are."""
    put("home/.agents/skills/pdf")
    put("home/.agents/skills/csv")
    greet: dict[str, Any] = {"name": "greet", "description": "Greets.", "instructions": "Hi.", "context": "fork"}
    with Site() as site:
        site.old_index(site.old_entry("web", {"SKILL.md": skill_md("web")}))

        def read_list(entries: Sequence[str | dict[str, Any]]) -> prowess.Catalog:
            words = [entry for entry in entries if isinstance(entry, str)]
            inline = [prowess.Source.inline(**entry) for entry in entries if not isinstance(entry, str)]
            addresses = [word for word in words if word.startswith(("http://", "https://"))]
            names = [word for word in words if word != "local" and word not in addresses]
            is_local = "local" in words or (names and not addresses)
            found = prowess.discover(home, home) if is_local else prowess.Catalog()
            found |= prowess.Catalog.from_sources(
                prowess.Source.url(word, allow_http=True, allow_private=True, cache_dir=home / "cache")
                for word in addresses
            )
            chosen = prowess.Catalog(skill for skill in found if skill.name in names) if names else found
            return prowess.Catalog.from_sources(inline) | chosen

        assert read_list(["local"]).names == ("csv", "pdf")
        assert read_list(["pdf"]).names == ("pdf",)
        assert read_list([site.url]).names == ("web",)
        assert read_list([site.url, "pdf"]).names == ()
        assert read_list([greet]).names == ("greet",)
        mixed = read_list(["local", greet, site.url, "web", "csv", {**greet, "name": "csv"}])
        assert [(skill.name, skill.is_fork) for skill in mixed] == [("csv", True), ("greet", True), ("web", False)]


def test_tools_for_files_are_those_of_the_own_dialect(put: Put, tmp_path: Path) -> None:
    """S4-21: a dialect of another system has no more tools than that system."""
    put("skills/pdf")
    (tmp_path / "skills/pdf/a.md").touch()
    session = prowess.Session(prowess.scan(tmp_path / "skills"))
    assert [tool.name for tool in prowess.Toolset(session, "use_skill").tools()] == ["from_scratch__use_skill"]
    own = {tool.name for tool in prowess.Toolset(session, scripts=True).possible_tools()}
    assert {"read_skill_file", "run_skill_script"} <= own
