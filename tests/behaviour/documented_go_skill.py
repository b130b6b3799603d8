"""The cases of the documentation of the Go package ``skill``."""

# A check is one expression: "and" follows what a step returns, which may always be true, or None.
# mypy: disable-error-code="truthy-bool, truthy-function, redundant-expr, func-returns-value"

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import prowess
from tests.behaviour.documented import Case, World, raised

if TYPE_CHECKING:
    from typing import Any

SCAN: dict[str, Any] = {
    "invalid": "skip",
    "on_duplicate": "last",
    "max_depth": None,
    "nested": True,
    "skip_prefixes": (),
}
"""The keywords that give ``scan`` the behaviour of ``ScanDir``."""


def head(text: str) -> tuple[prowess.Frontmatter, int]:
    return prowess.parse_frontmatter(io.BytesIO(text.encode()))


def refusal(text: str) -> prowess.SkillError | None:
    return raised(head, text)


def load(w: World, arguments: str | dict[str, str]) -> prowess.ToolResult:
    return w.toolset("load_skill").call("load_skill", arguments)


def tool(w: World) -> prowess.ToolDefinition:
    return w.toolset("load_skill").possible_tools()[0]


EXAMPLE = "---\nname: fix-tests\ndescription: Fix failing tests in a Go project.\ntags: [testing, go]\n---\n# Full\n"

REST = (
    "Package skill provides discovery and lazy loading of SKILL.md files.",
    "This section is empty.",
    "Skill describes a single discovered SKILL.md file.",
)
"""Sentences that state nothing that a program could check, or what the words of a case state."""

CASES = (
    Case(
        "name: fix-tests description: Fix failing tests in a Go project. tags: [testing, go]",
        lambda _: (
            (front := head(EXAMPLE)[0])
            and (front.name, front.description, front.tags)
            == ("fix-tests", "Fix failing tests in a Go project.", ("testing", "go"))
        ),
    ),
    Case(
        "Discovery reads only the frontmatter block",
        lambda w: (
            w.put(body="x\n", text=b"---\nname: pdf\ndescription: d\n---\n\xff\xfe") and w.scan().names == ("pdf",)
        ),
    ),
    Case(
        "This keeps startup cost proportional to the number of skills (a few hundred bytes each) rather than the total "
        "body size.",
        lambda w: w.put(body="x" * (3 << 20)) and w.scan().names == ("pdf",) and raised(w.scan().load_body, "pdf"),
    ),
    Case(
        "the body is loaded on demand through Catalog.LoadBody",
        lambda w: (
            (file := w.put(body="One.\n"))
            and (found := w.scan())
            and w.put(body="Two.\n") == file
            and found.load_body("pdf") == "Two.\n"
        ),
    ),
    Case("const MaxDescriptionLen = 1024", lambda _: prowess.MAX_DESCRIPTION_LENGTH == 1024),
    Case(
        "MaxDescriptionLen is the maximum permitted skill description length.",
        lambda _: (
            raised(prowess.Frontmatter(name="a", description="d" * 1024).validate) is None
            and raised(prowess.Frontmatter(name="a", description="d" * 1025).validate)
        ),
    ),
    Case(
        "S0-14",
        lambda _: raised(prowess.Frontmatter(name="a", description="技" * 400).validate) is None,
        "S0-14",
    ),
    Case("const MaxNameLen = 64", lambda _: prowess.MAX_NAME_LENGTH == 64),
    Case(
        "MaxNameLen is the maximum permitted skill name length.",
        lambda _: (
            raised(prowess.Frontmatter(name="n" * 64, description="d").validate) is None
            and raised(prowess.Frontmatter(name="n" * 65, description="d").validate)
        ),
    ),
    Case(
        "ErrNoFrontmatter is returned when a file does not begin with a `---` line.",
        lambda w: isinstance(raised(prowess.parse_skill_file, w.put(text="# Title\n")), prowess.NoFrontmatterError),
    ),
    Case(
        'var ErrNoFrontmatter = errors.New("skill: no frontmatter")',
        lambda _: (error := refusal("# T\n")) and error.code == "no-frontmatter",
        "S0-11",
    ),
    Case(
        "ErrUnterminatedFrontmatter is returned when a `---` opener is not closed.",
        lambda w: isinstance(
            raised(prowess.parse_skill_file, w.put(text="---\nname: a\n")), prowess.UnterminatedFrontmatterError
        ),
    ),
    Case(
        'var ErrUnterminatedFrontmatter = errors.New("skill: unterminated frontmatter")',
        lambda _: (error := refusal("---\nname: a\n")) and error.code == "unterminated-frontmatter",
        "S0-11",
    ),
    Case(
        "Catalog is an immutable collection of discovered skills.",
        lambda w: w.put() and not hasattr(w.scan(), "__setitem__") and isinstance(w.scan().skills, tuple),
    ),
    Case(
        "deduplicating by name (last write wins)",
        lambda w: (
            w.put("a/pdf", description="First.")
            and w.put("b/pdf", description="Last.")
            and (skills := (*w.scan("a"), *w.scan("b")))
            and prowess.Catalog(skills, on_duplicate="last")["pdf"].description == "Last."
        ),
    ),
    Case(
        "sorting by name for deterministic iteration",
        lambda w: (
            w.put("s/b", name="one")
            and w.put("s/a", name="two")
            and prowess.Catalog(reversed(w.scan("s").skills)).names == ("one", "two")
        ),
    ),
    Case(
        "ScanDir walks dir for `SKILL.md` files",
        lambda w: w.put("skills/a/b/c/pdf") and w.scan(**SCAN).names == ("pdf",),
    ),
    Case("S0-24", lambda _: len(prowess.scan("")) == 0 and prowess.scan("").issues == ()),
    Case(
        "A non-existent or empty dir returns an empty catalog and a nil error",
        lambda w: (
            len(w.scan("none")) == len(w.scan(".")) == 0
            and {issue.severity for issue in w.scan("none").issues} == {"info"}
        ),
    ),
    Case(
        "Files with missing/invalid frontmatter are skipped",
        lambda w: (
            w.put("skills/a", text="# T\n")
            and w.put("skills/b", text="---\nname: [\n---\n")
            and w.put("skills/c", text="---\nname: c\n---\nB\n")
            and w.put()
            and w.scan(**SCAN).names == ("pdf",)
        ),
    ),
    Case(
        "recorded in the returned warnings slice; they do not abort the scan",
        lambda w: (
            (bad := w.put("skills/a", text="# T\n"))
            and w.put()
            and [issue.path for issue in w.scan(**SCAN).failures] == [str(bad)]
        ),
    ),
    Case(
        "S0-18", lambda w: w.put("skills/b/pdf", name="b") and w.put("skills/a") and w.scan(**SCAN).names == ("a", "b")
    ),
    Case(
        "LoadBody reads and returns the raw markdown body of the named skill",
        lambda w: w.put(body="\n  Fill it. \r\n\n") and w.scan().load_body("pdf") == "\n  Fill it. \r\n\n",
    ),
    Case(
        "everything after the closing `---` line of the frontmatter",
        lambda w: w.put(body="a\n---\nb\n") and w.scan().load_body("pdf") == "a\n---\nb\n",
    ),
    Case(
        "The file is re-opened on each call; the body is not cached.",
        lambda w: (
            w.put(body="One.\n")
            and (found := w.scan())
            and found.load_body("pdf") == "One.\n"
            and w.put(body="Two.\n")
            and found.load_body("pdf") == "Two.\n"
        ),
    ),
    Case('Name string `yaml:"name"`', lambda _: head("---\nname: a\n---\n")[0].name == "a"),
    Case('Description string `yaml:"description"`', lambda _: head("---\ndescription: d\n---\n")[0].description == "d"),
    Case(
        'Tags []string `yaml:"tags,omitempty"`',
        lambda _: head("---\ntags: [a, b]\n---\n")[0].tags == ("a", "b") and head("---\nname: a\n---\n")[0].tags == (),
    ),
    Case(
        'Version string `yaml:"version,omitempty"`',
        lambda _: (
            head("---\nversion: 1.10\n---\n")[0].version == "1.10" and head("---\nname: a\n---\n")[0].version is None
        ),
    ),
    Case(
        "returns the parsed Frontmatter and the byte offset at which the body begins.",
        lambda _: head("---\nname: é\n---\nBody")[1] == 17,
    ),
    Case("S0-6", lambda _: head("---\r\nname: a\r\n---\r\nBody")[1] == 19),
    Case(
        "The reader is advanced exactly to the byte after the closing `---` line; the body is not read.",
        lambda _: (
            (stream := io.BytesIO(b"---\nname: a\n---\nBody"))
            and prowess.parse_frontmatter(stream)
            and stream.read() == b"Body"
        ),
    ),
    Case(
        "ErrNoFrontmatter is returned if the first non-empty line is not `---`.",
        lambda _: (
            isinstance(refusal("\ntext\n---\n"), prowess.NoFrontmatterError)
            and refusal("\n\n---\nname: a\n---\n") is None
            and isinstance(refusal(""), prowess.NoFrontmatterError)
        ),
    ),
    Case(
        "ErrUnterminatedFrontmatter is returned if EOF is reached before a closing `---`.",
        lambda _: isinstance(refusal("---\nname: a\n----\n"), prowess.UnterminatedFrontmatterError),
    ),
    Case(
        "Validate returns an error if required fields are missing or malformed.",
        lambda _: (
            raised(prowess.Frontmatter(description="d").validate)
            and raised(prowess.Frontmatter(name="a").validate)
            and raised(prowess.Frontmatter(name="A b", description="d").validate)
            and raised(prowess.Frontmatter(name="a-b", description="d").validate) is None
        ),
    ),
    Case("S0-9", lambda _: head("---\nname: A b!\n---\n")[0].name == "A b!"),
    Case(
        "LoadSkillTool exposes a *Catalog to the agent loop as the `load_skill` tool.",
        lambda w: w.put() and [one.name for one in w.toolset("load_skill").tools()] == ["load_skill"],
    ),
    Case(
        "The tool returns the raw markdown body of the named skill on demand",
        lambda w: w.put(body="\nFill it. \n\n") and load(w, {"skill_name": "pdf"}).content == "\nFill it. \n\n",
    ),
    Case(
        "only the frontmatter summary is in the system prompt; full instructions are loaded lazily",
        lambda w: (
            w.put()
            and "- pdf: Fills forms." in w.toolset("load_skill").prompt()
            and "Fill it" not in w.toolset("load_skill").prompt()
        ),
    ),
    Case("Description returns the LLM-facing description.", lambda w: "full instructions" in tool(w).description),
    Case(
        "or an error listing the available names when the requested name is unknown",
        lambda w: (
            w.put()
            and w.put("skills/csv")
            and (result := load(w, {"skill_name": "x"}))
            and (result.is_error, result.content) == (True, 'load_skill: skill "x" not found; available: csv, pdf')
        ),
    ),
    Case(
        "Execute(_ context.Context, params json.RawMessage) (string, error)",
        lambda w: w.put() and load(w, '{"skill_name": "pdf"}').content == "Fill it.\n" and load(w, "{").is_error,
    ),
    Case("Name returns the tool identifier.", lambda w: tool(w).name == "load_skill"),
    Case("Parallel reports that load_skill is safe to run concurrently", lambda w: tool(w).parallel is True),
    Case(
        "Schema returns the JSON schema for the tool's parameters.",
        lambda w: (
            tool(w).parameters["type"] == "object"
            and [*tool(w).parameters["properties"]] == tool(w).parameters["required"] == ["skill_name"]
        ),
    ),
    Case("Path is the absolute filesystem path to the SKILL.md file.", lambda w: w.put() == w.scan()["pdf"].path),
    Case("Frontmatter is the parsed YAML metadata.", lambda w: w.put() and w.scan()["pdf"].frontmatter.name == "pdf"),
    Case(
        "(i.e. the byte immediately after the closing `---` line)",
        lambda w: w.put().read_bytes()[w.scan()["pdf"].body_offset :] == b"Fill it.\n",
    ),
    Case(
        "Description returns the skill's frontmatter description.",
        lambda w: w.put() and w.scan()["pdf"].description == "Fills forms.",
    ),
    Case(
        "S0-28", lambda w: (bad := w.put(text="# T\n")) and str(w.scan(**SCAN).issues[0]).startswith(f"{bad}:1: error")
    ),
)
