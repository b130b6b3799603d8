"""How @drover/skills (S3) loads a skill and reads the files that it allows: the dialect ``skill_load``."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]


@pytest.fixture
def session(put: Put, tmp_path: Path) -> prowess.Session:
    """A skill with files of every kind, one without."""
    folder = put("pdf", description="Fills forms.", body="\nFill it.\n\n").parent
    for name in ("scripts/b.py", "scripts/a.py", "references/forms.md", "assets/form.pdf", "README.md"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"{name}\n", encoding="utf-8")
    put("csv", description="Profiles tables.", body="Profile it: !`ls`.\n")
    return prowess.Session(prowess.scan(tmp_path))


def tools_of(
    session: prowess.Session,
    allowed: Sequence[str] | None = ("pdf", "csv"),
    *,
    max_bytes: int | None = None,
    hint_resources: bool = True,
) -> prowess.Toolset:
    """A toolset over what the session has; a name in its list that is not there has gone since the list was made."""
    there = session.catalog
    gone = [prowess.Source.inline(name, "Gone.", "Gone.") for name in allowed or () if name not in there]
    session.refresh(there | prowess.Catalog.from_sources(gone))
    toolset = prowess.Toolset(session, "skill_load", allowed, max_bytes=max_bytes, hint_resources=hint_resources)
    session.refresh(there)
    return toolset


def test_two_tools_load_and_read(session: prowess.Session) -> None:
    """S3-25: the name is required, the file may be left out; tools and names have that system's descriptions."""
    load, resource = tools_of(session).tools()
    assert (load.name, resource.name) == ("skill_load", "skill_resource")
    assert load.description.startswith("Load the full instructions for a named skill. ")
    assert resource.description.startswith("Read or list supporting files in a skill directory. ")
    described = load.parameters["properties"]["name"]["description"]
    assert described == "Skill name (as advertised in the system prompt)."
    assert resource.parameters["properties"]["name"]["description"] == "Skill name (must be allowlisted)."
    path = resource.parameters["properties"]["resource"]["description"]
    assert path.startswith(
        "Relative path under the skill directory (e.g. 'references/REFERENCE.md', 'scripts/extract.py'). "
    )
    for tool, keys in ((load, ["name"]), (resource, ["name", "resource"])):
        assert tool.parameters["required"] == ["name"]
        assert {key: value["type"] for key, value in tool.parameters["properties"].items()} == dict.fromkeys(
            keys, "string"
        )


def test_the_tools_are_there_when_an_allowed_skill_exists(session: prowess.Session) -> None:
    """S3-25: an empty list allows nothing; no list at all allows every skill."""
    for allowed in ([], ["nope"]):
        toolset = tools_of(session, allowed)
        assert (toolset.tools(), toolset.prompt()) == ((), "")
    assert len(tools_of(session, ["pdf"]).tools()) == len(tools_of(session, None).tools()) == 2
    assert tools_of(prowess.Session(prowess.Catalog())).tools() == ()


@pytest.mark.parametrize(("allowed", "said"), [(["csv", "nope", "csv"], "csv, nope"), (["csv"], "csv"), ([], "(none)")])
@pytest.mark.parametrize("name", ["pdf", "unknown"])
@pytest.mark.parametrize("tool", ["skill_load", "skill_resource"])
def test_a_skill_that_is_not_allowed_is_refused(
    tool: str, name: str, allowed: list[str], said: str, session: prowess.Session
) -> None:
    """S3-26: with the list of those that are, whether it exists or not."""
    result = tools_of(session, allowed).call(tool, {"name": name})
    assert result.is_error
    assert result.content == f"skill '{name}' is not available to this agent. allowed: [{said}]"
    assert result.data == {"skill": name, "reason": "not_allowed"}
    nameless = tools_of(session, allowed).call(tool, {"name": ""})
    assert (nameless.is_error, nameless.data) == (True, {"reason": "bad-arguments"})


@pytest.mark.parametrize("tool", ["skill_load", "skill_resource"])
def test_a_skill_that_is_allowed_and_does_not_exist_is_missing(tool: str, session: prowess.Session) -> None:
    """S3-27: which is another reason."""
    result = tools_of(session, ["nope", "pdf"]).call(tool, {"name": "nope"})
    assert result.is_error
    assert result.content.startswith("skill 'nope' is allowed but not registered")
    assert (result.data["skill"], result.data["reason"]) == ("nope", "missing")


def test_loading_gives_the_body_and_counts_its_files(session: prowess.Session, tmp_path: Path) -> None:
    """S3-28: below a rule; files beside SKILL.md do not count."""
    result = tools_of(session).call("skill_load", {"name": "pdf"})
    hint = "This skill ships 2 script(s), 1 reference(s), 1 asset(s). Call "
    assert not result.is_error
    assert result.content.startswith(f"Fill it.\n\n---\n{hint}")
    calls = result.content.partition(hint)[2]
    assert "\n" not in calls
    assert '`skill_resource(name="pdf")`' in calls
    assert '`skill_resource(name="pdf", resource="<relative-path>")`' in calls
    assert (result.data["skill"], result.data["path"]) == ("pdf", str(tmp_path / "pdf/SKILL.md"))
    kinds = {
        "scripts": ("a.py", "b.py"),
        "references": ("forms.md",),
        "assets": ("form.pdf",),
        "other": ("README.md",),
    }
    assert result.data["resources"] == kinds
    assert tools_of(session).call("skill_resource", {"name": "pdf"}).data == {"skill": "pdf", "resources": kinds}


def test_kinds_of_files_that_are_missing_are_not_counted(put: Put, tmp_path: Path) -> None:
    """S3-28: only those that there are."""
    folder = put("one").parent
    (folder / "references").mkdir()
    (folder / "references/a.md").touch()
    content = tools_of(prowess.Session(prowess.scan(tmp_path)), None).call("skill_load", {"name": "one"}).content
    assert content.startswith("Do it.\n\n---\nThis skill ships 1 reference(s). Call ")


def test_loading_gives_the_body_alone_without_files_or_hints(session: prowess.Session, tmp_path: Path) -> None:
    """S3-28: hints can be switched off; a README alone is not a reason for one."""
    (tmp_path / "csv/README.md").touch()
    assert tools_of(session).call("skill_load", {"name": "csv"}).content == "Profile it: !`ls`."
    assert tools_of(session, hint_resources=False).call("skill_load", {"name": "pdf"}).content == "Fill it."
    assert "resources" not in tools_of(session, hint_resources=False).call("skill_load", {"name": "pdf"}).data


@pytest.mark.parametrize(
    "arguments", [{"name": "pdf"}, {"name": "pdf", "resource": ""}, {"name": "pdf", "resource": None}]
)
def test_without_a_file_the_files_are_listed(arguments: dict[str, str | None], session: prowess.Session) -> None:
    """S3-29: by kind with their paths, a blank line between kinds, the rest last."""
    result = tools_of(session).call("skill_resource", arguments)
    assert not result.is_error
    assert result.content == (
        "## scripts\n- scripts/a.py\n- scripts/b.py\n\n## references\n- references/forms.md\n\n"
        "## assets\n- assets/form.pdf\n\n## other\n- README.md"
    )


def test_each_kind_of_files_ends_with_an_empty_line(put: Put, tmp_path: Path) -> None:
    """S3-29: the last one too, unless other files follow."""
    folder = put("one").parent
    (folder / "scripts").mkdir()
    (folder / "scripts/a.py").touch()
    toolset = tools_of(prowess.Session(prowess.scan(tmp_path)), None)
    assert toolset.call("skill_resource", {"name": "one"}).content == "## scripts\n- scripts/a.py\n"


@pytest.mark.parametrize(
    ("path", "rule"), [("/etc/passwd", "be relative"), ("../csv/SKILL.md", "not escape skill root")]
)
def test_a_path_that_leads_out_is_refused_in_fixed_words(path: str, rule: str, session: prowess.Session) -> None:
    """S3-24: below what every file that cannot be read begins with."""
    result = tools_of(session).call("skill_resource", {"name": "pdf", "resource": path})
    assert result.content == f"cannot read '{path}': resource path must {rule} (got '{path}')"


def test_a_skill_without_files_says_so(session: prowess.Session) -> None:
    """S3-29: which is not an error."""
    result = tools_of(session).call("skill_resource", {"name": "csv"})
    assert (result.is_error, result.content) == (False, "(no supporting files)")


def test_a_file_is_read_up_to_the_bound(session: prowess.Session, tmp_path: Path) -> None:
    """S3-30: in bytes; as many as the bound are not too many."""
    large = tmp_path / "pdf/large.md"
    large.write_text("\u00fc" * 32_768, encoding="utf-8")
    result = tools_of(session).call("skill_resource", {"name": "pdf", "resource": "large.md"})
    assert (result.is_error, len(result.content)) == (False, 32_768)
    assert (
        tools_of(session).call("skill_resource", {"name": "pdf", "resource": "scripts/a.py"}).content
        == "scripts/a.py\n"
    )


@pytest.mark.parametrize(("most", "bound"), [(None, 65_536), (5, 5)])
def test_a_file_beyond_the_bound_is_refused_whole(
    most: int | None, bound: int, session: prowess.Session, tmp_path: Path
) -> None:
    """S3-30: an error, never a part of it."""
    (tmp_path / "pdf/large.md").write_text("x" * (bound + 1), encoding="utf-8")
    result = tools_of(session, max_bytes=most).call("skill_resource", {"name": "pdf", "resource": "large.md"})
    assert (result.is_error, result.data["reason"]) == (True, "too_large")
    assert "xx" not in result.content
    assert result.content == f"resource 'large.md' exceeds {bound} bytes \u2014 refusing to inline."


@pytest.mark.parametrize("path", ["none.md", "../csv/SKILL.md", "/etc/passwd", "scripts"])
def test_a_file_that_cannot_be_read_is_an_error(path: str, session: prowess.Session) -> None:
    """S3-30: with its path and why."""
    result = tools_of(session).call("skill_resource", {"name": "pdf", "resource": path})
    assert (result.is_error, result.data["reason"]) == (True, "read_failed")
    assert result.content.startswith(f"cannot read '{path}': ")
    assert len(result.content) > len(f"cannot read '{path}': ")


def test_the_block_lists_the_allowed_skills_in_their_order(session: prowess.Session) -> None:
    """S3-31: repeats repeat and unknown ones are left out; it begins with a line end and has none at its end."""
    assert tools_of(session, ["pdf", "nope", "csv", "pdf"]).prompt() == (
        '\n## Available skills\n\nCall `skill_load(name="<name>")` to load full instructions for one of these:\n\n'
        "- pdf: Fills forms.\n- csv: Profiles tables.\n- pdf: Fills forms."
    )


def test_an_entry_is_short_and_says_what_it_needs(put: Put, tmp_path: Path) -> None:
    """S3-31: 200 characters of the description on one line, cut without a mark; compatibility below."""
    put("long", description='"  a\\n\\n b  ' + "x" * 300 + '"', fields="compatibility: Needs git\n")
    block = tools_of(prowess.Session(prowess.scan(tmp_path)), ["long"]).prompt()
    assert block.endswith(f"\n- long: a b {'x' * 196}\n  (compatibility: Needs git)")


def test_what_is_needed_is_on_one_line_too(put: Put, tmp_path: Path) -> None:
    """S3-31: no field can add an entry."""
    put("pdf", fields='compatibility: "git\\n- other: b"\n')
    block = tools_of(prowess.Session(prowess.scan(tmp_path)), ["pdf"]).prompt()
    assert block.endswith("\n- pdf: Does one thing.\n  (compatibility: git - other: b)")
