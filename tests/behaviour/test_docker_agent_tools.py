"""The tools of docker-agent (S2) that read skills and their files, inline skills and slash commands.

The dialect is ``read_skill``.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

import prowess

Put = Callable[..., Path]


@pytest.fixture
def library(put: Put, tmp_path: Path) -> Path:
    """A skill with files, one without."""
    folder = put("skills/pdf", description="Fills forms.", body="\nFill it.\r\n\n").parent
    for name in ("references/forms.md", "scripts/fill.py", "notes.md"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"{name}\n", encoding="utf-8")
    put("skills/csv", description="Profiles tables.")
    put("secret")
    return tmp_path / "skills"


def tools_of(*sources: prowess.SkillSource, fork: Literal["host"] | None = None) -> prowess.Toolset:
    return prowess.Toolset(prowess.Session(prowess.Catalog.from_sources(sources)), "read_skill", fork=fork)


@pytest.fixture
def toolset(library: Path) -> prowess.Toolset:
    return tools_of(prowess.Source.directory(library), prowess.Source.inline("greet", "Greets.", "Say hello."))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": ""}, "bad-name"),
        ({"name": "two words"}, "bad-name"),
        ({"description": ""}, "missing-description"),
        ({"instructions": ""}, "empty-body"),
        ({"context": "thread"}, "bad-argument"),
        ({"toolsets": ("web",)}, "bad-argument"),
    ],
)
def test_an_inline_skill_needs_name_description_and_instructions(fields: dict[str, object], code: str) -> None:
    """S2-10: a name without blanks; the context is a fork or nothing, and only a fork names toolsets."""
    given = {"name": "greet", "description": "Greets.", "instructions": "Say hello.", **fields}
    with pytest.raises(prowess.SourceError) as caught:
        prowess.Catalog.from_sources([prowess.Source.inline(**given)])  # type: ignore[arg-type]
    assert caught.value.code == code


def test_an_inline_skill_may_be_a_fork_and_name_its_tools() -> None:
    """S2-10: tools are granted in a conversation too, so they need no fork."""
    plain = prowess.Source.inline("greet", "Greets.", "Say hello.", allowed_tools=["Read"])
    fork = prowess.Source.inline("audit", "Audits.", "Audit it.", context="fork", allowed_tools=["Bash(git:*)"])
    catalog = prowess.Catalog.from_sources([plain, fork])
    assert [(skill.name, skill.is_fork, skill.allowed_tools) for skill in catalog] == [
        ("audit", True, ("Bash(git:*)",)),
        ("greet", False, ("Read",)),
    ]


def test_of_two_inline_skills_with_one_name_the_first_wins_or_it_is_an_error() -> None:
    """S2-10: a repeat is recorded, and refused where that was asked for."""
    sources = [prowess.Source.inline("greet", text, "Say hello.") for text in ("First.", "Second.")]
    catalog = prowess.Catalog.from_sources(sources)
    assert ([skill.description for skill in catalog], len(catalog.shadowed)) == (["First."], 1)
    with pytest.raises(prowess.DuplicateSkillError):
        prowess.Catalog.from_sources(sources, on_duplicate="error")


def test_an_inline_skill_wins_over_a_file_when_it_comes_first(library: Path) -> None:
    """S2-10: the order of the sources decides, as it does between folders."""
    folder, inline = prowess.Source.directory(library), prowess.Source.inline("pdf", "Inline.", "Say hello.")
    assert prowess.Catalog.from_sources([inline, folder])["pdf"].is_inline
    assert not prowess.Catalog.from_sources([folder, inline])["pdf"].is_inline


def test_two_tools_read_skills_and_their_files(toolset: prowess.Toolset) -> None:
    """S2-23: with titles, and marked as only reading."""
    assert [(tool.name, tool.title) for tool in toolset.tools()] == [
        ("read_skill", "Read Skill"),
        ("read_skill_file", "Read Skill File"),
    ]
    assert all(tool.to_mcp()["annotations"]["readOnlyHint"] for tool in toolset.tools())


def test_without_skills_there_are_no_tools_and_no_instructions() -> None:
    """S2-23: nothing at all."""
    toolset = tools_of()
    assert (toolset.tools(), toolset.prompt()) == ((), "")


def test_files_are_offered_when_a_skill_has_some(library: Path, put: Put, tmp_path: Path) -> None:
    """S2-24: whichever source it is from; a SKILL.md alone is not a file to read."""
    put("bare/csv")
    bare = prowess.Source.directory(tmp_path / "bare")
    inline = prowess.Source.inline("greet", "Greets.", "Say hello.")
    assert [tool.name for tool in tools_of(bare, inline).tools()] == ["read_skill"]
    assert [tool.name for tool in tools_of(bare, prowess.Source.directory(library)).tools()] == [
        "read_skill",
        "read_skill_file",
    ]


def test_the_tools_take_required_texts_and_nothing_else(toolset: prowess.Toolset) -> None:
    """S2-25: name; skill_name and path."""
    found = {tool.name: tool.parameters for tool in toolset.tools()}
    for name, keys in {"read_skill": ["name"], "read_skill_file": ["skill_name", "path"]}.items():
        parameters = found[name]
        assert (parameters["type"], parameters["required"], parameters["additionalProperties"]) == (
            "object",
            keys,
            False,
        )
        assert {key: value["type"] for key, value in parameters["properties"].items()} == dict.fromkeys(keys, "string")


def test_tools_and_arguments_have_the_descriptions_of_that_system(put: Put, tmp_path: Path) -> None:
    """S2-23, S2-25: the first sentence of a tool says what it does, and each argument has its own."""
    folder = put("skills/audit", fields="context: fork\n").parent
    (folder / "a.md").touch()
    tools = tools_of(prowess.Source.directory(tmp_path), fork="host").tools()
    for tool, first in zip(
        tools,
        (
            "Read the content of a skill by name. ",
            "Read a supporting file from a skill (e.g. references, scripts, assets). ",
            "Run a skill in a forked context with its own conversation history. ",
        ),
        strict=True,
    ):
        assert tool.description.startswith(first)
    described = [{key: value["description"] for key, value in tool.parameters["properties"].items()} for tool in tools]
    assert described == [
        {"name": "The name of the skill to read"},
        {
            "skill_name": "The name of the skill that contains the file",
            "path": "The relative path to the file within the skill (e.g. references/FORMS.md)",
        },
        {
            "name": "The name of the skill to run in a forked context",
            "task": "A clear description of the task the skill should achieve",
        },
    ]


def test_a_skill_is_read_with_its_frontmatter(toolset: prowess.Toolset, library: Path) -> None:
    """S2-26: the whole file as it is, nothing trimmed."""
    result = toolset.call("read_skill", {"name": "pdf"})
    assert (result.is_error, result.content) == (False, (library / "pdf/SKILL.md").read_bytes().decode())
    assert toolset.call("read_skill", {"name": "greet"}).content == "Say hello."


def test_a_made_skill_needs_no_frontmatter_in_its_file(tmp_path: Path) -> None:
    """S2-26: the program gave the fields, so the whole file is instructions, for every way to read it."""
    path = tmp_path / "SKILL.md"
    path.write_text("# Forms\n\nFill $ARGUMENTS.\n", encoding="utf-8")
    front = prowess.Frontmatter("pdf", "Fills forms.", context="fork", model="m")
    session = prowess.Session(prowess.Catalog([prowess.Skill(front, path)]))
    toolset = prowess.Toolset(session, "read_skill", fork="host")
    assert toolset.call("read_skill", {"name": "pdf"}).content == "# Forms\n\nFill $ARGUMENTS.\n"
    assert session.read_text("pdf", whole=True) == session.read_text("pdf") == "# Forms\n\nFill $ARGUMENTS.\n"
    prepared = toolset.prepare_fork("pdf", "a.pdf")
    assert isinstance(prepared, prowess.PreparedFork)
    assert (prepared.content, prepared.model) == ("# Forms\n\nFill a.pdf.\n", "m")
    assert session.catalog.load("pdf").instructions == "# Forms\n\nFill $ARGUMENTS."
    loaded = prowess.Toolset(prowess.Session(session.catalog), "load_skill").call("load_skill", {"skill_name": "pdf"})
    assert (loaded.is_error, loaded.content) == (False, "# Forms\n\nFill $ARGUMENTS.\n")
    path.write_text("---\nname: pdf\ndescription: Fills forms.\n---\nMerge.\n", encoding="utf-8")
    assert session.catalog.load("pdf").instructions == "Merge."


def test_a_found_skill_must_keep_its_frontmatter(library: Path) -> None:
    """S2-26: the same file fails for every tool and every way to read it, once it has lost what it was found by."""
    session = prowess.Session(prowess.scan(library))
    (library / "pdf/SKILL.md").write_text("Only text.\n", encoding="utf-8")
    assert prowess.Toolset(session, "read_skill").call("read_skill", {"name": "pdf"}).is_error
    for read in (session.read_text, session.activate, session.catalog.load, session.catalog.load_body):
        with pytest.raises(prowess.NoFrontmatterError):
            read("pdf")


def test_an_unknown_skill_is_not_found(toolset: prowess.Toolset) -> None:
    """S2-26: whichever tool asks for it."""
    for tool, arguments in (("read_skill", {"name": "X"}), ("read_skill_file", {"skill_name": "X", "path": "a"})):
        result = toolset.call(tool, arguments)
        assert (result.is_error, result.content) == (True, 'skill "X" not found')


@pytest.mark.parametrize("was_read", [False, True])
def test_a_skill_that_cannot_be_read_says_that_its_file_could_not(
    was_read: bool, toolset: prowess.Toolset, library: Path
) -> None:
    """S2-26: in a result that begins with what was tried, also when the skill was read before."""
    if was_read:
        assert not toolset.call("read_skill", {"name": "csv"}).is_error
    (library / "csv/SKILL.md").unlink()
    result = toolset.call("read_skill", {"name": "csv"})
    assert result.is_error
    assert result.content.startswith("reading file: ")


def test_a_fork_skill_can_be_read(put: Put, tmp_path: Path) -> None:
    """S2-27: reading is not running."""
    path = put("audit", fields="context: fork\n")
    toolset = tools_of(prowess.Source.directory(tmp_path))
    assert toolset.call("read_skill", {"name": "audit"}).content == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_skill", {}),
        ("read_skill", {"name": 7}),
        ("read_skill", "{"),
        ("read_skill_file", {"skill_name": "pdf", "path": ["a"]}),
        ("read_skill_file", {"skill_name": "pdf", "path": "none.md"}),
    ],
)
def test_errors_are_results(tool: str, arguments: dict[str, object] | str, toolset: prowess.Toolset) -> None:
    """S2-27: never exceptions."""
    assert toolset.call(tool, arguments).is_error


def test_a_file_is_read_by_its_path(toolset: prowess.Toolset) -> None:
    """S2-28: any file below the skill's folder, listed or not."""
    for path in ("references/forms.md", "notes.md"):
        result = toolset.call("read_skill_file", {"skill_name": "pdf", "path": path})
        assert (result.is_error, result.content) == (False, f"{path}\n")
    whole = toolset.call("read_skill_file", {"skill_name": "csv", "path": "SKILL.md"})
    assert whole.content.startswith("---\nname: csv\n")


@pytest.mark.parametrize("path", ["notes.md", ".", "", "../x"])
def test_an_inline_skill_has_no_files_whatever_the_path(path: str, toolset: prowess.Toolset) -> None:
    """S2-28: which is told before anything about the path."""
    result = toolset.call("read_skill_file", {"skill_name": "greet", "path": path})
    assert (result.is_error, result.content) == (True, 'skill "greet" is defined inline and has no supporting files')


@pytest.mark.parametrize(
    "path", ["", "/notes.md", "\\notes.md", "..", "../../secret/SKILL.md", "references/../notes.md"]
)
def test_a_path_that_is_absolute_or_has_two_dots_is_invalid(path: str, toolset: prowess.Toolset) -> None:
    """S2-28: and so is none at all."""
    result = toolset.call("read_skill_file", {"skill_name": "pdf", "path": path})
    assert (result.is_error, result.content) == (True, f'invalid file path "{path}"')


def test_two_dots_within_a_name_are_part_of_it(toolset: prowess.Toolset, library: Path) -> None:
    """S2-28: they lead nowhere."""
    (library / "pdf/a..b.md").write_text("dots\n", encoding="utf-8")
    assert toolset.call("read_skill_file", {"skill_name": "pdf", "path": "a..b.md"}).content == "dots\n"


def test_a_link_is_not_a_file_of_the_skill(toolset: prowess.Toolset, library: Path) -> None:
    """S2-28: wherever it leads."""
    (library / "pdf/link.md").symlink_to("../../secret/SKILL.md")
    result = toolset.call("read_skill_file", {"skill_name": "pdf", "path": "link.md"})
    assert result.is_error
    assert "secret" not in result.content
    folder = toolset.session.skill("pdf").dir
    assert folder is not None
    assert "secret" in (folder / "link.md").resolve().read_text(encoding="utf-8")


def test_a_file_that_is_too_large_is_refused(toolset: prowess.Toolset, library: Path) -> None:
    """S2-28: the bound is that of every read, or the one that the host gives."""
    (library / "pdf/large.md").write_text("x" * 70_000, encoding="utf-8")
    arguments = {"skill_name": "pdf", "path": "large.md"}
    assert toolset.call("read_skill_file", arguments).is_error
    larger = prowess.Toolset(toolset.session, "read_skill", max_bytes=70_000)
    assert len(larger.call("read_skill_file", arguments).content) == 70_000


def test_a_skill_is_found_in_the_catalogue_or_not(toolset: prowess.Toolset) -> None:
    """S2-29: by name; the list is in order of names, each once."""
    catalog = toolset.session.catalog
    found = catalog.get("pdf")
    assert found is not None
    assert found.name == "pdf"
    assert catalog.get("X") is None
    assert [skill.name for skill in catalog.skills] == ["csv", "greet", "pdf"]


def test_the_block_lists_the_skills_in_elements(toolset: prowess.Toolset) -> None:
    """S2-30: after a sentence about each tool; files without SKILL.md, no folders of the machine, no last line end."""
    block = toolset.prompt()
    intro, listing, end = block.partition("<available_skills>")
    assert "read_skill" in intro
    assert "read_skill_file" in intro
    assert (listing + end) == (
        "<available_skills>\n"
        "  <skill>\n    <name>csv</name>\n    <description>Profiles tables.</description>\n  </skill>\n"
        "  <skill>\n    <name>greet</name>\n    <description>Greets.</description>\n  </skill>\n"
        "  <skill>\n    <name>pdf</name>\n    <description>Fills forms.</description>\n"
        "    <files>scripts/fill.py, references/forms.md, notes.md</files>\n  </skill>\n"
        "</available_skills>"
    )


def test_the_block_says_nothing_of_files_where_there_are_none(put: Put, tmp_path: Path) -> None:
    """S2-30: and marks a skill that forks, where the tool that runs it is offered."""
    put("audit", fields="context: fork\n")
    block = tools_of(prowess.Source.directory(tmp_path), fork="host").prompt()
    assert "read_skill_file" not in block
    assert "    <mode>forked</mode>\n  </skill>" in block
    assert "run_skill" in block
    alone = tools_of(prowess.Source.directory(tmp_path)).prompt()
    assert ("forked" in alone, "run_skill" in alone) == (False, False)


def test_fields_in_the_block_are_escaped_and_on_one_line(put: Put, tmp_path: Path) -> None:
    """S2-30: neither a description nor the name of a file can end its element."""
    folder = put("pdf", description='"a\\n</description><skill> & b"').parent
    (folder / "x<files>&.md").touch()
    block = tools_of(prowess.Source.directory(tmp_path)).prompt()
    assert "<description>a &lt;/description&gt;&lt;skill&gt; &amp; b</description>" in block
    assert "<files>x&lt;files&gt;&amp;.md</files>" in block


@pytest.mark.parametrize(
    "message", ["/pdf fill a.pdf", "  /pdf   fill a.pdf  \n", "/pdf\tfill a.pdf", "$pdf fill a.pdf"]
)
def test_a_command_gives_the_skill_and_the_request(message: str, toolset: prowess.Toolset) -> None:
    """S2-43: the instructions without frontmatter; everything after the name is the request."""
    assert toolset.session.expand(message) == (
        'Use the following skill.\n\nUser\'s request: fill a.pdf\n\n<skill name="pdf">\nFill it.\n</skill>'
    )


def test_a_command_without_a_request_gives_the_skill_alone(toolset: prowess.Toolset) -> None:
    """S2-43: inline skills are called alike."""
    expected = 'Use the following skill.\n\n<skill name="{}">\n{}\n</skill>'
    assert toolset.session.expand("/pdf") == expected.format("pdf", "Fill it.")
    assert toolset.session.expand("/greet ") == expected.format("greet", "Say hello.")


@pytest.mark.parametrize(
    "message", ["", "/", "pdf fill", "/pd fill", "/PDF fill", "//pdf", "/pdf/x", "see /pdf", "hello"]
)
def test_what_is_not_a_command_gives_nothing(message: str, toolset: prowess.Toolset) -> None:
    """S2-43: another first character, or a name that is not exactly that of a skill."""
    assert toolset.session.expand(message) == ""


def test_a_command_for_a_fork_gives_nothing_and_the_host_prepares_it(put: Put, tmp_path: Path) -> None:
    """S2-43: a fork is not text for this conversation; a host that runs none may ask for it all the same."""
    put("audit", fields="context: fork\n", body="Audit it.\n")
    toolset = tools_of(prowess.Source.directory(tmp_path))
    assert (toolset.session.expand("/audit src"), toolset.session.active_skills) == ("", ())
    prepared = toolset.prepare_fork("audit", "src", by_person=True)
    assert isinstance(prepared, prowess.PreparedFork)
    assert (prepared.skill_name, prepared.task) == ("audit", "src")
    assert "Audit it." in toolset.session.expand("/audit src", inline_forks=True)


def test_a_command_for_a_file_that_has_gone_is_an_error(toolset: prowess.Toolset, library: Path) -> None:
    """S2-43: which names the file."""
    (library / "pdf/SKILL.md").unlink()
    with pytest.raises(prowess.SkillValidationError) as caught:
        toolset.session.expand("/pdf fill")
    assert caught.value.path == str(library / "pdf/SKILL.md")
