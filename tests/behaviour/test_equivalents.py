"""The lines of code that give the behaviour of another system where Prowess behaves differently by default."""

import io
import os
import posixpath
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]


def test_a_scan_lists_every_name_of_the_widest_rule(put: Put, tmp_path: Path) -> None:
    """S0-13: lenient mode, the default of scan, keeps names as they are written. Strict mode refuses the first one."""
    names = ["_", "-a", "a-", "a--b", "a_b"]
    for name in names:
        put(f"skills/{name}", name=f'"{name}"')
    catalog = prowess.scan(tmp_path / "skills", skip_prefixes=())
    assert sorted(catalog.names) == sorted(names)
    assert {issue.code for issue in catalog.issues} == {"bad-name"}
    with pytest.raises(prowess.SkillLoadError):
        prowess.scan(tmp_path / "skills", mode="strict")


@pytest.mark.parametrize(
    ("variable", "setting", "names"),
    [("kit", "other", ["of-kit"]), ("  ", "other", ["of-other"]), ("", "", ["of-work"]), ("-", "other", [])],
)
def test_a_host_may_let_a_variable_and_a_setting_name_the_folder(
    variable: str, setting: str, names: list[str], put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S0-35: the host asks the variable, then the setting, then uses its own folder. A dash stands for no folder."""
    put("kit/of-kit")
    put("other/of-other")
    monkeypatch.chdir(put(".fizeau/skills/of-work").parents[3])
    monkeypatch.setenv("FIZEAU_SKILLS_DIR", variable)
    folder = os.environ.get("FIZEAU_SKILLS_DIR", "").strip() or setting or ".fizeau/skills"
    catalog = prowess.Catalog() if folder == "-" else prowess.scan(folder)
    assert list(catalog.names) == names
    assert bool(prowess.Toolset(prowess.Session(catalog), "load_skill").tools()) == bool(names)


@pytest.mark.parametrize("path", ["refs/deep/../d", "refs/none/../d", "./refs/../refs//d"])
def test_a_host_may_clean_a_path_before_it_is_read(path: str, put: Put, tmp_path: Path) -> None:
    """S1-27, S3-24: posixpath.normpath removes dots that stay inside. Prowess still refuses dots that lead out."""
    folder = put("pdf").parent
    (folder / "refs").mkdir()
    (folder / "refs/d").write_bytes(b"text\n")
    skill = prowess.scan(tmp_path)["pdf"]
    with pytest.raises(prowess.PathTraversalError):
        skill.read_resource(path)
    assert skill.read_resource(posixpath.normpath(path)) == "text\n"
    with pytest.raises(prowess.PathTraversalError):
        skill.read_resource(posixpath.normpath(f"{path}/../../../x"))


def test_a_host_may_follow_a_link_that_stays_inside(put: Put, tmp_path: Path) -> None:
    """S1-29: the host resolves the path and compares it with the folder.

    Prowess itself does not count a link as a file.
    """
    folder = put("pdf").parent
    (folder / "d").write_bytes(b"text\n")
    (folder / "link").symlink_to("d")
    (folder / "out").symlink_to("../x")
    skill = prowess.scan(tmp_path)["pdf"]
    assert skill.dir is not None
    assert "link" not in skill.files()
    with pytest.raises(prowess.PathTraversalError):
        skill.read_bytes("link")
    inside = (skill.dir / "link").resolve()
    assert inside.is_relative_to(skill.dir.resolve())
    assert inside.read_bytes() == b"text\n"
    assert not (skill.dir / "out").resolve().is_relative_to(skill.dir.resolve())


def test_text_in_another_encoding_is_read_with_replacements_by_the_host(put: Put, tmp_path: Path) -> None:
    """S3-24: the host decodes the bytes and replaces what is not UTF-8."""
    (put("pdf").parent / "latin").write_bytes("Grüße\n".encode("latin-1"))
    skill = prowess.scan(tmp_path)["pdf"]
    with pytest.raises(prowess.BinaryResourceError):
        skill.read_resource("latin")
    assert skill.read_bytes("latin").decode(errors="replace") == "Gr��e\n"


def test_links_of_installers_are_followed_and_others_are_issues(put: Put, tmp_path: Path) -> None:
    """S1-16: a link to a folder inside the scanned root is followed, and each skill is listed once. Others are not."""
    put("skills/real/pdf")
    put("outside/csv")
    (tmp_path / "skills/inner").symlink_to("real")
    (tmp_path / "skills/outer").symlink_to(tmp_path / "outside")
    catalog = prowess.scan(tmp_path / "skills", max_depth=None, nested=True, skip_prefixes=())
    assert (catalog.names, catalog.shadowed) == (("pdf",), ())
    assert [(issue.code, Path(issue.path).name) for issue in catalog.issues] == [("link-refused", "outer")]


def test_no_link_to_a_folder_is_followed_where_a_host_says_never(put: Put, tmp_path: Path) -> None:
    """S0-29, S1-16, S2-5, S3-19: not one inside the scanned root either. A root that is a link is entered."""
    put("skills/real/pdf")
    put("skills/real/csv")
    (tmp_path / "skills/flat").mkdir()
    (tmp_path / "skills/flat/csv").symlink_to("../real/csv")
    (tmp_path / "root").symlink_to("skills/flat")
    assert prowess.scan(tmp_path / "skills/flat", follow_links="never").names == ()
    assert prowess.scan(tmp_path / "root", follow_links="never").names == ()
    assert prowess.scan(tmp_path / "root", tmp_path / "skills").names == ("csv", "pdf")
    (tmp_path / "root").unlink()
    (tmp_path / "root").symlink_to("skills/real")
    assert prowess.scan(tmp_path / "root", follow_links="never").names == ("csv", "pdf")


def test_the_exact_file_name_is_what_strict_mode_asks_for(put: Put, tmp_path: Path) -> None:
    """S1-16: a file name in another case gives a skill with a warning in lenient mode, and no skill in strict mode."""
    put("pdf", file="skill.md")
    lenient = prowess.scan(tmp_path)
    assert (lenient.names, [issue.code for issue in lenient.issues]) == (("pdf",), ["filename-case"])
    assert prowess.scan(tmp_path, mode="strict").names == ()


def test_a_search_ends_at_sixty_four_levels_unless_the_limits_say_more(put: Put, tmp_path: Path) -> None:
    """S0-26, S1-16: an issue says where the search ended, so that nobody takes it for complete."""
    put("/".join("d" * 70) + "/pdf")
    shallow = prowess.scan(tmp_path, max_depth=None)
    assert (shallow.names, [issue.code for issue in shallow.issues]) == ((), ["too-deep"])
    assert prowess.scan(tmp_path, max_depth=None, limits=prowess.Limits(max_scan_depth=80)).names == ("pdf",)


@pytest.mark.parametrize("config", [".config", "xdg"])
def test_the_folders_of_the_other_product_are_given_to_the_installer(
    config: str, put: Put, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1-58: Prowess lists, resolves and loads an install of that product, which may be in XDG_CONFIG_HOME."""
    put("work/.promptkit/skills/acme/pdf", name="pdf")
    put(f"home/{config}/promptkit/skills/acme/csv", name="csv")
    if config != ".config":
        monkeypatch.setenv("XDG_CONFIG_HOME", str(home / config))
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    user, project = folder / "promptkit/skills", tmp_path / "work/.promptkit/skills"
    installer = prowess.Installer(user, project)
    listed = [(one.location, one.full_name) for one in installer.list()]
    assert listed == [("project", "acme/pdf"), ("user", "acme/csv")]
    assert installer.resolve("@acme/csv@v1") == user / "acme/csv"
    sources = [prowess.Source.installed(f"@acme/{name}", user_dir=user, project_dir=project) for name in ("pdf", "csv")]
    assert prowess.Catalog.from_sources(sources).names == ("csv", "pdf")


def test_an_installer_serves_the_project_around_the_working_folder(
    put: Put, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1-58: a subfolder has no installs of its own, and a relative XDG_CONFIG_HOME does not count."""
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/sub").mkdir()
    monkeypatch.chdir(tmp_path / "repo/sub")
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    folder = put("brought/pdf").parent
    assert prowess.Installer().install_local(folder, project=True) == tmp_path / "repo/.prowess/skills/local/pdf"
    assert prowess.default_project_dir() == tmp_path / "repo/sub/.prowess/skills"
    assert prowess.default_user_dir() == home / ".config/prowess/skills"


def test_names_that_no_reference_can_have_are_not_listed(tmp_path: Path) -> None:
    """S1-66: hidden folders and names with blanks are left out, because nothing could resolve or remove them."""
    for path in ("user/acme/pdf", "user/.hidden/x", "user/acme/.hidden", "user/a b/x"):
        (tmp_path / path).mkdir(parents=True)
    assert [one.full_name for one in prowess.Installer(tmp_path / "user", tmp_path / "none").list()] == ["acme/pdf"]


def test_activations_are_counted_and_ordered_from_the_results(put: Put, tmp_path: Path) -> None:
    """S1-68: a list of names answers the three checks. A repeated call counts again, and a refused one does not."""
    for name in ("ant", "bee", "cat"):
        put(name)
    toolset = prowess.Toolset(prowess.Session(prowess.scan(tmp_path)), "skill__activate")
    asked = ("bee", "ant", "dog", "bee")
    names = [name for name in asked if not toolset.call("skill__activate", {"name": name}).is_error]
    assert names == ["bee", "ant", "bee"]
    assert names.count("bee") >= 2
    assert "cat" not in names
    order = iter(names)
    assert all(name in order for name in ("ant", "bee"))


def test_activations_are_events_in_every_dialect(put: Put, tmp_path: Path) -> None:
    """S1-68: an event reports the first activation of a skill, whichever tool or program asked for it."""
    put("ant")
    put("bee")
    catalog = prowess.scan(tmp_path)
    for dialect in prowess.DIALECTS:
        events: list[prowess.Event] = []
        toolset = prowess.Toolset(prowess.Session(catalog, on_event=events.append), dialect)
        tool = toolset.tools()[0]
        for name in ("bee", "ant", "bee"):
            toolset.call(tool.name, {tool.parameters["required"][0]: name})
        assert [event.skill for event in events if event.kind == "activated"] == ["bee", "ant"], dialect


@pytest.mark.parametrize(
    ("ours", "theirs"), [("repo/sub/.claude/skills", "repo/.agents/skills"), (None, "home/.codex/skills")]
)
def test_the_places_of_another_order_are_named_from_strongest_to_weakest(
    ours: str | None, theirs: str, put: Put, home: Path, tmp_path: Path
) -> None:
    """S2-2: the sources are in that order. discover prefers the nearest folder and asks no other agent's."""
    (tmp_path / "repo/.git").mkdir(parents=True)
    put("repo/sub/README/x")
    put(f"{theirs}/pdf", description="Theirs.")
    if ours is not None:
        put(f"{ours}/pdf", description="Ours.")
    cwd = tmp_path / "repo/sub"
    put("repo/.agents/skills/group/flat")
    put("home/.codex/skills/group/deep")

    def flat(folder: Path) -> prowess.SkillSource:
        return prowess.Source.directory(folder / "skills", max_depth=1, skip_prefixes=(".",))

    def deep(folder: Path) -> prowess.SkillSource:
        return prowess.Source.directory(folder / "skills", max_depth=None, nested=True, skip_prefixes=(".",))

    of_project = [flat(folder) for folder in (cwd / ".agents", cwd.parent / ".agents", cwd / ".claude")]
    of_user = [deep(home / ".agents"), flat(home / ".claude"), deep(home / ".codex")]
    catalog = prowess.Catalog.from_sources([*of_project, *of_user])
    assert {skill.name: skill.description for skill in catalog} == {"deep": "Does one thing.", "pdf": "Theirs."}
    found = prowess.discover(cwd=cwd, home=home)
    assert [skill.description for skill in found if skill.name == "pdf"] == (["Ours."] if ours else [])


def test_a_kit_folder_replaces_everything_where_the_host_says_so(
    put: Put, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S2-4: the host reads the variable. The command line has a variable of its own, PROWESS_FOLDERS."""
    put("home/.agents/skills/mine")
    put("kit/skills/group/theirs")
    put("kit/skills/group/theirs/inner")
    monkeypatch.setenv("DOCKER_AGENT_KIT_DIR", str(tmp_path / "kit"))
    kit = os.environ.get("DOCKER_AGENT_KIT_DIR")
    catalog = prowess.scan(Path(kit, "skills"), max_depth=None, nested=True) if kit else prowess.discover()
    assert catalog.names == ("inner", "theirs")
    settings = prowess.load_settings(tmp_path, home, env={"PROWESS_FOLDERS": str(tmp_path / "kit")})
    assert settings["folders"] == (str(tmp_path / "kit"),)


def test_one_variable_moves_one_place(put: Put, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S2-4: the variable of a program moves the place of that program, and the other places stay."""
    put("home/.agents/skills/mine")
    put("home/.claude/skills/old")
    put("moved/skills/new")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "moved"))
    monkeypatch.chdir(home)
    assert prowess.discover().names == ("mine", "new")


def test_a_list_of_names_is_what_a_toolset_allows(put: Put, tmp_path: Path) -> None:
    """S2-9: the order is that of the catalogue. An unknown name is an error, [] allows nothing, and None everything."""
    for name in ("ant", "bee"):
        put(name)
    catalog = prowess.scan(tmp_path) | prowess.Source.inline("cat", "Purrs.", "Purr.").load()
    session = prowess.Session(catalog)

    def listed(allowed: list[str] | None) -> list[str]:
        prompt = prowess.Toolset(session, "read_skill", allowed).prompt()
        return [line.strip()[6:-7] for line in prompt.splitlines() if "<name>" in line]

    assert listed(["cat", "ant"]) == ["ant", "cat"]
    assert (listed([]), listed(None)) == ([], ["ant", "bee", "cat"])
    with pytest.raises(prowess.UnknownSkillError):
        prowess.Toolset(session, "read_skill", ["dog"])
    toolset = prowess.Toolset(session, "read_skill", allowed=["dog", "ant"], missing="ignore")
    assert [issue.code for issue in toolset.issues] == ["unknown-skill"]
    assert [skill.name for skill in toolset.session.catalog if skill.name in toolset.prompt()] == ["ant"]


def test_a_backslash_or_a_colon_is_refused_as_a_path(put: Put, tmp_path: Path) -> None:
    """S2-28: every platform refuses them. The error for a missing file lists the files that exist."""
    (put("pdf").parent / "a.md").touch()
    toolset = prowess.Toolset(prowess.Session(prowess.scan(tmp_path)), "read_skill")

    def read(path: str) -> str:
        return toolset.call("read_skill_file", {"skill_name": "pdf", "path": path}).content

    assert [read(path) for path in ("a\\b", "C:x")] == ['invalid file path "a\\b"', 'invalid file path "C:x"']
    assert read("b.md").startswith("no file 'b.md'; there is a.md")


def test_a_host_writes_any_other_block_from_the_candidates(put: Put, tmp_path: Path) -> None:
    """S2-30: the candidates have the fields as they were written, for a host that wants them unescaped."""
    put("pdf", description='"Reads <b> & fills."')
    session = prowess.Session(prowess.scan(tmp_path))
    block = "".join(f"<skill>{skill.name}: {skill.description}</skill>" for skill in session.candidates())
    assert block == "<skill>pdf: Reads <b> & fills.</skill>"
    assert "Reads &lt;b&gt; &amp; fills." in prowess.Toolset(session, "read_skill").prompt()


def test_a_fork_may_be_told_in_the_hosts_own_words() -> None:
    """S2-41: a prepared fork has every part. The message of Prowess adds that only the last answer is read."""
    prepared = prowess.PreparedFork("audit", "Look.", "Audit it.")
    ours = prowess.fork_system_message(prepared, ["/x/y"])
    assert '"audit"' in ours
    assert ours.endswith("<attached_files>\n- /x/y\n</attached_files>")
    assert "<task>" not in ours
    assert "answer with the result alone" in ours
    assert (prepared.skill_name, prepared.title, prepared.task) == ("audit", "Skill: audit", "Look.")


def test_a_call_may_have_blanks_before_it_and_any_blank_after_the_name(put: Put, tmp_path: Path) -> None:
    """S2-43: a chat box adds such blanks. That system wants the slash at the first byte, and one space."""
    put("pdf")
    session = prowess.Session(prowess.scan(tmp_path))
    for message in ("/pdf fill it", " /pdf fill it", "/pdf\nfill it", "$pdf fill it"):
        assert "User's request: fill it\n" in session.expand(message)
    assert (session.expand("/PDF fill it"), session.expand("/pdfs")) == ("", "")


def test_only_two_folders_are_looked_in_when_they_are_the_sources(
    put: Put, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4-2: each folder has its scope. discover looks in more places, and up to the root of the repository."""
    (tmp_path / "work/.git").mkdir(parents=True)
    put("work/.agents/skills/above")
    put("work/sub/.agents/skills/pdf")
    put("work/sub/.claude/skills/other")
    put("work/sub/.agents/skills/group/deep")
    put("home/.agents/skills/.csv", name="csv")
    put("elsewhere/zip")
    (home / ".agents/skills/zip").symlink_to(tmp_path / "elsewhere/zip")
    monkeypatch.chdir(tmp_path / "work/sub")
    places = ((home / ".agents/skills", prowess.SkillScope.USER), (".agents/skills", prowess.SkillScope.PROJECT))
    sources = [
        prowess.Source.directory(place, scope=scope, max_depth=1, skip_prefixes=(), follow_links=True)
        for place, scope in places
    ]
    catalog = prowess.Catalog.from_sources(sources, on_duplicate="last")
    scopes = {skill.name: str(skill.scope.value) for skill in catalog if skill.scope}
    assert scopes == {"csv": "user", "pdf": "project", "zip": "user"}
    assert prowess.discover().names == ("above", "deep", "other", "pdf")


def test_a_stripped_body_keeps_its_line_ends_and_instructions_have_line_feeds(put: Put, tmp_path: Path) -> None:
    """S1-6, S1-23, S4-6: a body is the text of the file. What is loaded for a model has line feeds only."""
    put("pdf", text=b"---\r\nname: pdf\r\ndescription: d\r\n---\r\n\r\nOne.\r\nTwo.\r\n")
    catalog = prowess.scan(tmp_path)
    assert catalog["pdf"].read_body(strip=True) == "One.\r\nTwo."
    assert prowess.parse_skill_file(tmp_path / "pdf").body == "One.\r\nTwo."
    assert catalog.load("pdf").instructions == "One.\nTwo."


def test_blanks_after_the_closing_dashes_are_allowed_everywhere() -> None:
    """S1-4: a person who looks at the file does not see the blanks."""
    parsed = prowess.parse_skill("---\nname: pdf\ndescription: d\n--- \t\nBody.\n", check_dir=False)
    assert parsed.body == "Body."


def test_a_number_in_a_list_of_tools_is_its_text() -> None:
    """S3-9: every scalar is its text. An empty entry is a violation, and an empty text counts as no list."""
    text = "---\nname: pdf\ndescription: d\nallowed-tools: {}\n---\nBody.\n"
    mixed = prowess.parse_skill(text.format("[Read, 5, '']"), check_dir=False, mode="lenient")
    assert (mixed.skill.allowed_tools, [issue.code for issue in mixed.issues]) == (("Read", "5"), ["wrong-type"])
    for written, kept in (("[Read, 5]", ["Read"]), ("Read Grep", None), ("", None)):
        parsed = prowess.parse_skill(text.format(written), check_dir=False)
        tools = parsed.skill.frontmatter.typed().get("allowed-tools")
        assert ([item for item in tools if isinstance(item, str)] if isinstance(tools, list) else None) == kept
    for nothing in ("''", ""):
        parsed = prowess.parse_skill(text.format(nothing), check_dir=False)
        assert (parsed.skill.allowed_tools_raw, parsed.issues) == (None, ())


def test_a_list_with_a_name_that_no_skill_has_is_refused_when_the_toolset_is_made(put: Put, tmp_path: Path) -> None:
    """S3-27: unless the host says that such a name does not matter. The block has the others, in the list's order."""
    put("pdf")
    catalog = prowess.scan(tmp_path)
    wanted = ["pdf", "nope"]
    with pytest.raises(prowess.UnknownSkillError):
        prowess.Toolset(prowess.Session(catalog), "skill_load", wanted)
    toolset = prowess.Toolset(prowess.Session(catalog), "skill_load", wanted, missing="ignore")
    assert toolset.call("skill_load", {"name": "nope"}).data["reason"] == "missing"
    assert toolset.prompt().endswith("for one of these:\n\n- pdf: Does one thing.")


def test_a_file_that_is_not_text_cannot_be_read_by_the_tool(put: Put, tmp_path: Path) -> None:
    """S3-30: the result is that of any file that cannot be read. That system replaces the bytes that are not text."""
    folder = put("pdf").parent / "assets"
    folder.mkdir()
    (folder / "a.bin").write_bytes(b"\xff\x00")
    toolset = prowess.Toolset(prowess.Session(prowess.scan(tmp_path)), "skill_load")
    result = toolset.call("skill_resource", {"name": "pdf", "resource": "assets/a.bin"})
    assert (result.is_error, result.data["reason"]) == (True, "read_failed")


def test_what_lies_flat_in_a_place_is_seen_with_hidden_folders_and_links(put: Put, tmp_path: Path) -> None:
    """S4-10: the scan sees one level, every folder and every link. A host asks the disk which folders hold no skill."""
    root = tmp_path / "work/.agents/skills"
    put("work/.agents/skills/.dot")
    put("work/.agents/skills/group/deep")
    put("elsewhere/pdf-v2", name="pdf")
    (root / "pdf").symlink_to(tmp_path / "elsewhere/pdf-v2")
    catalog = prowess.scan(root, max_depth=1, skip_prefixes=(), follow_links=True)
    assert catalog.names == (".dot", "pdf")
    without = sorted({folder.name for folder in root.iterdir() if folder.is_dir()} - {s.folder_name for s in catalog})
    assert without == ["group"]
    found = prowess.discover(cwd=tmp_path / "work", home=tmp_path / "home", max_depth=1, skip_prefixes=())
    assert found.names == (".dot",)


def test_the_later_place_and_the_later_folder_win_when_that_is_asked_for(put: Put, tmp_path: Path) -> None:
    """S4-11: the project's place comes last and wins.

    ``catalog.shadowed`` has the copies that lost, and the catalogue is in order of names.
    """
    put("user/pdf", description="Of the user.")
    put("project/a", name="pdf", description="Of a.")
    put("project/b", name="pdf", description="Of b.")
    catalog = prowess.scan(tmp_path / "user", tmp_path / "project", on_duplicate="last")
    assert catalog["pdf"].description == "Of b."
    assert [Path(lost.location).parent.name for lost in catalog.shadowed] == ["pdf", "a"]


def test_arguments_that_are_null_are_not_object(put: Put, tmp_path: Path) -> None:
    """S0-33: every other mistake is reported in the words and the order of that system."""
    put("pdf")
    toolset = prowess.Toolset(prowess.Session(prowess.scan(tmp_path)), "load_skill")
    assert toolset.call("load_skill", "null").content.startswith("load_skill: invalid params: ")
    assert toolset.call("load_skill", {"skill_name": "pdf", "other": 1}).content == "Do it.\n"


def test_only_hidden_folders_are_left_out_when_no_other_beginning_is_given(put: Put, tmp_path: Path) -> None:
    """S2-5: skip_prefixes=(".") does this. By default an underscore and node_modules are left out too."""
    for folder in ("_draft", ".hidden", "ok"):
        put(folder)
    assert prowess.scan(tmp_path, max_depth=1).names == ("ok",)
    assert prowess.scan(tmp_path, max_depth=1, skip_prefixes=(".",)).names == ("_draft", "ok")


def test_a_line_end_of_windows_at_the_end_of_output_is_one(put: Put, tmp_path: Path) -> None:
    """S2-34: that system keeps the carriage return. Both keep other blanks."""
    put("pdf", body="A!`printf 'a \\r\\n\\n'`B\n")
    catalog = prowess.scan(tmp_path)
    trust = prowess.Trust(tmp_path / "trust.json")
    trust.grant(catalog["pdf"])
    assert prowess.Session(catalog, trust=trust).activate("pdf").instructions == "Aa B"


def test_a_blank_license_is_kept_as_empty_text() -> None:
    """S3-11: a warning reports it. A list or a mapping in its place is left out."""
    text = "---\nname: pdf\ndescription: d\nlicense: {}\n---\nBody.\n"
    blank = prowess.parse_skill(text.format("' '"), check_dir=False, mode="lenient")
    assert ((blank.skill.license or "").strip(), [issue.code for issue in blank.issues]) == ("", ["blank-field"])
    wrong = prowess.parse_skill(text.format("[MIT]"), check_dir=False, mode="lenient")
    assert (wrong.skill.license, [issue.code for issue in wrong.issues]) == (None, ["wrong-type"])


def test_a_skill_without_instructions_is_an_empty_element() -> None:
    """S4-17: that system raises an error. A host that wants one calls read_body(strip=True)."""
    skill = prowess.Skill(prowess.Frontmatter(name="pdf", description="d"), body=" ")
    toolset = prowess.Toolset(prowess.Session(prowess.Catalog([skill])), "use_skill")
    result = toolset.call("from_scratch__use_skill", {"name": "pdf"})
    assert (result.is_error, result.content.split()) == (False, ["<skill_content", 'name="pdf">', "</skill_content>"])
    with pytest.raises(prowess.EmptySkillBodyError):
        skill.read_body(strip=True)


def test_an_entry_has_no_blanks_where_its_description_is_cut() -> None:
    """S3-31: that system keeps a blank that is the two hundredth character."""
    skill = prowess.Skill(prowess.Frontmatter(name="pdf", description="w " * 300), body="x")
    prompt = prowess.Toolset(prowess.Session(prowess.Catalog([skill])), "skill_load").prompt()
    assert prompt.endswith("- pdf: " + ("w " * 100).strip())


@pytest.mark.parametrize("granted", [False, True])
def test_what_looks_like_a_command_is_text_where_a_system_knows_none(
    granted: bool,
    put: Put,
    tmp_path: Path,
) -> None:
    """S0-34, S1-31, S3-28, S4-16: the text stays as it is written, granted or not.

    Trimmed instructions have line feeds.
    """
    put("skills/pdf", body="Say !`echo hi`.\r\nTwice.\n")
    catalog = prowess.scan(tmp_path / "skills")
    trust = prowess.Trust(tmp_path / "trust.json")
    if granted:
        trust.grant(catalog["pdf"])

    def answer(dialect: prowess.DialectName) -> str:
        toolset = prowess.Toolset(prowess.Session(catalog, trust=trust), dialect)
        tool = toolset.tools()[0]
        return toolset.call(tool.name, {tool.parameters["required"][0]: "pdf"}).content

    assert answer("load_skill") == "Say !`echo hi`.\r\nTwice.\n"
    assert answer("skill_load") == "Say !`echo hi`.\nTwice."
    assert '"instructions": "Say !`echo hi`.\\nTwice."' in answer("skill__activate")
    assert "\nSay !`echo hi`.\nTwice.\n" in answer("use_skill")


def test_a_host_has_empty_fields_and_the_first_violation_where_it_wants_them() -> None:
    """S0-7, S0-12: the host takes them from the error, which lists the violations of the name before the others."""
    front = prowess.Frontmatter()
    try:
        front, offset = prowess.parse_frontmatter(io.BytesIO(b"# Title\n"))
    except prowess.NoFrontmatterError:
        offset = 0
    assert (front, offset) == (prowess.Frontmatter(), 0)
    with pytest.raises(prowess.SkillLoadError) as caught:
        prowess.Frontmatter(name="A", description="").validate()
    assert [issue.code for issue in caught.value.issues] == ["bad-name", "missing-description"]


def test_lengths_in_other_units_are_counted_by_the_host() -> None:
    """S0-14, S1-7, S3-6: a text within the limit of characters can have more bytes or UTF-16 units."""
    skill = prowess.parse_skill(f"---\nname: pdf\ndescription: {'😀' * 1000}\n---\nBody.\n", check_dir=False).skill
    assert len(skill.description) == 1000 <= prowess.MAX_DESCRIPTION_LENGTH
    assert len(skill.description.encode()) == 4000 > prowess.MAX_DESCRIPTION_LENGTH
    assert len(skill.description.encode("utf-16-le")) // 2 == 2000 > prowess.MAX_DESCRIPTION_LENGTH


def test_an_absolute_path_is_made_relative_by_the_host(put: Put, tmp_path: Path) -> None:
    """S1-28: the host finds the file of the skill that has this path, or none."""
    (put("pdf").parent / "d").write_bytes(b"text\n")
    skill = prowess.scan(tmp_path)["pdf"]
    assert skill.read_bytes("/d".lstrip("/")) == b"text\n"
    with pytest.raises(FileNotFoundError):
        skill.read_bytes("/etc/passwd".lstrip("/"))


def test_a_pattern_that_is_not_a_literal_folder_matches_one_place(put: Put, tmp_path: Path) -> None:
    """S1-39: a set of one character turns a literal folder into a pattern."""
    put("skills/billing", name="billing")
    put("skills/billing/refund")
    catalog = prowess.scan(tmp_path / "skills", nested=True)
    for pattern, names in (("skills/billing", ["billing", "refund"]), ("skills/[b]illing", ["billing"])):
        session = prowess.Session(catalog, filter=pattern, base_dir=tmp_path)
        assert [skill.name for skill in session.candidates()] == names


def test_an_index_of_everything_is_that_of_a_session_without_filters(put: Put, tmp_path: Path) -> None:
    """S1-45: a host makes another session without filters. Sessions are cheap and share their listings."""
    put("pdf")
    session = prowess.Session(prowess.scan(tmp_path), filter="none")
    assert session.index() == "No skills available."
    assert prowess.Session(session.catalog).index() == "Available skills:\n- pdf: Does one thing."


def test_every_folder_below_the_home_folder_is_named_by_the_host(put: Put, home: Path) -> None:
    """S2-3: the host lists the folders up to the home folder, nearest first, past the root of the repository."""
    put("home/work/.agents/skills/above")
    put("home/work/repo/.agents/skills/mine")
    repo = home / "work/repo"
    (repo / ".git").mkdir()
    walk = [folder for folder in (repo, *repo.parents) if folder.is_relative_to(home) and folder != home]
    assert prowess.scan(*(folder / ".agents/skills" for folder in walk)).names == ("above", "mine")
    assert prowess.discover(cwd=repo, home=home).names == ("mine",)


def test_without_a_repository_a_project_of_prowess_bounds_the_walk(put: Put, home: Path) -> None:
    """S2-3: a lock file, a manifest or installs mark its root. Without them the working folder is the root."""
    put("home/work/.agents/skills/above")
    put("home/work/sub/.agents/skills/mine")
    assert prowess.discover(cwd=home / "work/sub", home=home).names == ("mine",)
    (home / "work/prowess.toml").touch()
    assert prowess.discover(cwd=home / "work/sub", home=home).names == ("above", "mine")


def test_the_order_of_discovery_is_that_of_the_paths(put: Put, tmp_path: Path) -> None:
    """S3-20, S3-22: a host sorts the skills by their paths. Both systems keep the first skill of a name."""
    for folder, name in (("a", "zebra"), ("b", "ant"), ("c", "zebra")):
        put(folder, name=name)
    catalog = prowess.scan(tmp_path)
    assert catalog.names == ("ant", "zebra")
    assert [skill.name for skill in sorted(catalog, key=lambda skill: skill.location)] == ["zebra", "ant"]
    assert catalog["zebra"].folder_name == "a"
    put("later/b", name="ant")
    put("earlier/z", name="zebra")
    roots = (tmp_path / "later", tmp_path / "earlier")
    one_by_one = [skill for root in roots for skill in sorted(prowess.scan(root), key=lambda skill: skill.location)]
    assert [skill.name for skill in one_by_one] == ["ant", "zebra"]


def test_folders_among_the_resources_are_listed_by_the_host(put: Put, tmp_path: Path) -> None:
    """S3-23: the host lists the folders of skill.dir."""
    folder = put("pdf").parent / "scripts"
    (folder / "lib").mkdir(parents=True)
    (folder / "a.py").touch()
    skill = prowess.scan(tmp_path)["pdf"]
    assert skill.dir is not None
    assert skill.resources().scripts == ("a.py",)
    assert sorted(path.name for path in (skill.dir / "scripts").iterdir()) == ["a.py", "lib"]


def test_a_location_without_links_is_the_resolved_path(put: Put, tmp_path: Path) -> None:
    """S4-1: skill.path.resolve() gives it."""
    real = put("real/pdf")
    (tmp_path / "root").symlink_to("real")
    skill = prowess.scan(tmp_path / "root")["pdf"]
    assert skill.path is not None
    assert (skill.path, skill.path.resolve()) == (tmp_path / "root/pdf/SKILL.md", real.resolve())


def test_skills_without_instructions_are_left_out_by_their_issue(put: Put, tmp_path: Path) -> None:
    """S4-7: a host makes a catalogue of the others in one line."""
    put("empty", body=" \n")
    put("pdf")
    catalog = prowess.scan(tmp_path)
    empty = {issue.path for issue in catalog.issues if issue.code == "empty-body"}
    assert prowess.Catalog(skill for skill in catalog if skill.location not in empty).names == ("pdf",)


def test_the_resources_of_the_three_folders_are_picked_from_all_files(put: Put, tmp_path: Path) -> None:
    """S4-12, S4-16: files() lists hidden files too, and those at every depth."""
    folder = put("pdf").parent
    for name in ("scripts/.env", "scripts/lib/deep.py", "references/r.md", "assets/a.png", "README.md"):
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).touch()
    catalog = prowess.scan(tmp_path)
    skill = catalog["pdf"]
    assert skill.resources().paths == ("assets/a.png", "references/r.md", "README.md")
    kinds = ("assets", "scripts", "references")
    picked = [path for kind in kinds for path in skill.files() if path.startswith(f"{kind}/") and path.count("/") == 1]
    assert picked == ["assets/a.png", "scripts/.env", "references/r.md"]
    shown = prowess.Toolset(prowess.Session(catalog), "use_skill").call("from_scratch__use_skill", {"name": "pdf"})
    assert (".env" in shown.content, "references/r.md" in shown.content) == (False, True)


def test_a_folder_is_validated_with_the_errors_and_warnings_of_that_system(put: Put, tmp_path: Path) -> None:
    """S4-9: lenient mode without repairs has its warnings, and reading the stripped body its last error."""
    put("ok")
    put("mismatch", name="other")
    put("blank", body=" \n")
    put("headless", text="Body.\n")
    put("nameless", text="---\ndescription: d\n---\nBody.\n")
    (tmp_path / "none").mkdir()

    def check(folder: str) -> list[str] | str:
        try:
            parsed = prowess.parse_skill_file(tmp_path / folder, mode="lenient", repair=False)
            parsed.skill.read_body(strip=True)
        except prowess.SkillValidationError as error:
            kinds = (prowess.InvalidFrontmatterError, prowess.EmptySkillBodyError, prowess.SkillValidationError)
            return next(kind.__name__ for kind in kinds if isinstance(error, kind))
        return [issue.code for issue in parsed.warnings]

    assert {folder.name: check(folder.name) for folder in tmp_path.iterdir()} == {
        "ok": [],
        "mismatch": ["name-mismatch"],
        "blank": "EmptySkillBodyError",
        "headless": "InvalidFrontmatterError",
        "nameless": "InvalidFrontmatterError",
        "none": "SkillValidationError",
    }
    assert [issue.code for issue in prowess.parse_skill_file(tmp_path / "blank").issues] == ["empty-body"]
    with pytest.raises(prowess.SkillLoadError):
        prowess.parse_skill_file(tmp_path / "mismatch")


def test_an_inline_skill_that_is_not_checked_is_made_of_its_parts() -> None:
    """S1-20: a catalogue takes whatever skill a host makes."""
    front = prowess.Frontmatter(name="Two words!", description="")
    catalog = prowess.Catalog([prowess.Skill(front, body="Say hello.")])
    assert catalog.load("Two words!").instructions == "Say hello."


def test_an_inline_skill_loads_as_an_equal_object_every_time() -> None:
    """S1-20: the object cannot be changed, so sharing it would make no difference. Blanks in a name are refused."""
    catalog = prowess.Source.inline("greet", "Greets.", "Say hello.").load()
    assert catalog.load("greet") == catalog.load("greet")
    for name in ("two words", "a/b", "x" * 257):
        with pytest.raises(prowess.SourceError):
            prowess.Source.inline(name, "Greets.", "Say hello.").load()


def test_a_name_that_cannot_be_used_gives_way_to_the_folders(put: Put, tmp_path: Path) -> None:
    """S2-13: this holds for a name that is far too long or is a path. Every other name loads as it is written."""
    for folder, name in (("long", "y" * 257), ("leads", "a/b"), ("blank", "two words"), ("case", "Upper")):
        put(folder, name=name)
    catalog = prowess.scan(tmp_path)
    assert sorted(catalog.names) == ["Upper", "leads", "long", "two words"]
    assert {issue.severity for issue in catalog.issues} == {"warning"}


def test_issues_become_python_warnings_where_a_host_wants_them(put: Put, tmp_path: Path) -> None:
    """S4-19: the host gives the scan a function that maps codes to its own classes of warnings."""

    class NameMismatchWarning(UserWarning):
        pass

    def warn(issue: prowess.Issue) -> None:
        warnings.warn(str(issue), {"name-mismatch": NameMismatchWarning}.get(issue.code, UserWarning), stacklevel=2)

    put("pdf", name="other")
    with pytest.warns(NameMismatchWarning, match="other"):
        catalog = prowess.scan(tmp_path, on_issue=warn)
    assert catalog.names == ("other",)
    with pytest.raises(prowess.SkillValidationError) as caught:
        prowess.parse_skill_file(tmp_path)
    assert not isinstance(caught.value, prowess.InvalidFrontmatterError)


def test_a_body_that_no_model_could_take_is_an_error_result(put: Put, tmp_path: Path) -> None:
    """S0-34, S4-6: bytes that are not text give one, and so do more bytes than the limit, which a caller may raise."""
    long = "x" * ((1 << 20) + 1)
    put("long", body=long)
    put("latin", text=b"---\nname: latin\ndescription: d\n---\nGr\xfc\xdfe\n")
    catalog = prowess.scan(tmp_path, limits=prowess.Limits(max_body_bytes=2 << 20))
    toolset = prowess.Toolset(prowess.Session(catalog), "load_skill")
    assert toolset.call("load_skill", {"skill_name": "latin"}).is_error
    assert toolset.call("load_skill", {"skill_name": "long"}).content == long
    usual = prowess.scan(tmp_path)
    with pytest.raises(prowess.SkillValidationError):
        usual["long"].read_body(strip=True)
    assert usual["long"].read_body(strip=True, max_bytes=None) == long
    assert usual["latin"].read_body(strip=True, errors="replace") == "Gr��e"


def test_a_fork_and_a_call_fill_placeholders_that_a_host_can_keep(put: Put, tmp_path: Path) -> None:
    """S2-38, S2-43: the task or the request fills them. read_text and read_body give the text as it is written."""
    put("audit", fields="context: fork\n", body="Audit $ARGUMENTS.\n")
    put("pdf", body="Fill $ARGUMENTS.\n")
    session = prowess.Session(prowess.scan(tmp_path))
    prepared = prowess.Toolset(session, "read_skill", fork="host").prepare_fork("audit", "it all")
    assert isinstance(prepared, prowess.PreparedFork)
    assert prepared.content.endswith("---\nAudit it all.\n")
    assert session.read_text("audit", whole=True).endswith("---\nAudit $ARGUMENTS.\n")
    assert session.expand("/pdf a form") == 'Use the following skill.\n\n<skill name="pdf">\nFill a form.\n</skill>'
    assert session.skill("pdf").read_body() == "Fill $ARGUMENTS.\n"


def test_yamls_types_tell_what_other_readers_refuse_or_convert() -> None:
    """S0-10, S3-7, S3-8, S4-4: typed() gives a number, a boolean or null where YAML reads one in place of text."""
    text = "---\nname: 123\ndescription: yes\nlicense: null\nmetadata:\n  version: 1.10\n  left-out: null\n---\nBody.\n"
    parsed = prowess.parse_skill(text, check_dir=False)
    front = parsed.skill.frontmatter
    assert (front.name, front.license, front.metadata["version"]) == ("123", "null", "1.10")
    typed = front.typed()
    assert (typed["name"], typed["license"]) == (123, None)
    assert [key for key in ("name", "description") if not isinstance(typed[key], str)] == ["name"]
    assert typed["metadata"] == {"version": 1.1, "left-out": None}
    for null in ("null", "~", ""):
        nothing, _ = prowess.parse_frontmatter(io.BytesIO(f"---\nname: pdf\ndescription: {null}\n---\n".encode()))
        assert nothing.typed()["description"] is None
