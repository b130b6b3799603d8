"""The cases of the documentation of @drover/skills."""

# A check is one expression: "and" follows what a step returns, which may always be true, or None.
# mypy: disable-error-code="truthy-bool, truthy-function, redundant-expr, func-returns-value"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import prowess
from tests.behaviour.documented import Case, World, raised

if TYPE_CHECKING:
    from pathlib import Path

ALL = ["pdf", "csv"]


def parse(w: World, *rows: str, name: str = "pdf", folder: str = "pdf", **options: Any) -> prowess.ParsedSkill:
    """Parse the text of a SKILL.md as ``parseSkill(contents, filepath, opts)`` does."""
    text = f"---\nname: {name}\n" + "".join(f"{row}\n" for row in rows or ("description: d",)) + "---\n\nBody.\n\n"
    return prowess.parse_skill(text, w.folder / folder / "SKILL.md", **{"repair": False, **options})


def refusal(w: World, *rows: str, **options: Any) -> tuple[str, ...]:
    """Return the fields of the violations for which strict mode refuses a SKILL.md."""
    error = raised(parse, w, *rows, **options)
    return tuple(issue.field for issue in error.issues) if isinstance(error, prowess.SkillLoadError) else ()


def one(w: World, *rows: str, **options: Any) -> prowess.Skill:
    return parse(w, "description: d", *rows, **options).skill


def find(w: World, *roots: str, **options: Any) -> prowess.Catalog:
    """Scan as ``scanSkillDirs`` does."""
    folders = [w.folder / root for root in roots or ("skills",)]
    usual: dict[str, Any] = {"max_depth": 3, "mode": "strict", "repair": False, "follow_links": "never"}
    return prowess.scan(*folders, **{**usual, **options})


def full(w: World) -> prowess.Skill:
    """A skill with files of every kind."""
    w.put()
    for path in ("scripts/extract.py", "references/R.md", "assets/a.csv", "README.md", "LICENSE"):
        w.write(f"skills/pdf/{path}")
    return find(w)["pdf"]


def tools(w: World, allowed: list[str] | None = None, **options: Any) -> prowess.Toolset:
    options = {"missing": "ignore"} | options
    return prowess.Toolset(prowess.Session(find(w)), "skill_load", ALL if allowed is None else allowed, **options)


def load(w: World, name: str = "pdf", **options: Any) -> prowess.ToolResult:
    return tools(w, **options).call("skill_load", {"name": name})


def resource(w: World, path: str = "", **options: Any) -> prowess.ToolResult:
    return tools(w, **options).call("skill_resource", {"name": "pdf"} | ({"resource": path} if path else {}))


def broken(w: World) -> Path:
    """A broken skill and a sound one."""
    w.put("skills/bad", text="no frontmatter\n")
    return w.put()


def heard(w: World) -> list[str]:
    issues: list[prowess.Issue] = []
    find(w, mode="lenient", on_issue=issues.append, on_issue_from="warning")
    return [issue.path for issue in issues]


REST = (
    "Agent Skills loader + registry + skill_load / skill_resource tools.",
    "Implements the Agent Skills specification.",
    "function createSkillRegistry(skills: readonly SkillSpec[]): SkillRegistry;",
    "function skillResourceTool(opts: { registry: SkillRegistry;",
    "function skillLoadTool(opts: { registry: SkillRegistry;",
    "class SkillLoadError extends Error { readonly issues: readonly SkillIssue[];",
)
"""Sentences that state nothing that a program could check, or what the words of a case state."""

CASES = (
    # -- SkillSpec
    Case(
        "name: string; // 1-64 chars, [a-z0-9-]+",
        lambda w: (
            one(w, name="a" * 64, folder="a" * 64).name == "a" * 64 and refusal(w, name="a" * 65, folder="a" * 65)
        ),
    ),
    Case(
        "description: string; // 1-1024 chars",
        lambda w: (
            parse(w, "description: " + "d" * 1024).skill.description == "d" * 1024
            and refusal(w, "description: " + "d" * 1025) == ("description",)
        ),
    ),
    Case(
        "license?: string; // optional",
        lambda w: one(w, "license: MIT").license == "MIT" and one(w).license is None,
    ),
    Case(
        "compatibility?: string; // optional, ≤500 chars",
        lambda w: (
            one(w, "compatibility: " + "c" * 500).compatibility == "c" * 500
            and refusal(w, "description: d", "compatibility: " + "c" * 501) == ("compatibility",)
        ),
    ),
    Case(
        "metadata: Readonly<Record<string, string>>; // typed metadata field",
        lambda w: one(w, "metadata: {a: b}").metadata == {"a": "b"} and one(w).metadata == {},
    ),
    Case(
        "allowedTools?: string; // raw `allowed-tools` value",
        lambda w: (
            one(w, "allowed-tools: Read, Bash(git add:*)").allowed_tools_raw == "Read, Bash(git add:*)"
            and one(w).allowed_tools_raw is None
        ),
    ),
    Case("body: string; // markdown after frontmatter", lambda w: parse(w).body == "Body."),
    Case("path: string; // abs path to SKILL.md", lambda w: one(w).path == w.folder / "pdf/SKILL.md"),
    Case("dir: string; // abs path to skill root", lambda w: one(w).dir == w.folder / "pdf"),
    Case(
        "extra: Readonly<Record<string, unknown>>; // non-spec frontmatter keys",
        lambda w: (
            (skill := one(w, "priority: 3", "metadata: {a: b}"))
            and {**skill.extra} == {"priority": "3"}
            and skill.frontmatter.typed()["priority"] == 3
        ),
    ),
    # -- parseSkill
    Case(
        'opts?: { mode?: "strict" | "lenient"; skipParentDirCheck?: boolean }',
        lambda w: parse(w, mode="lenient", check_dir=False).skill.name == "pdf",
    ),
    Case(
        "{ spec: SkillSpec; warnings: readonly SkillIssue[] }",
        lambda w: parse(w).skill.name == "pdf" and parse(w).warnings == (),
    ),
    Case(
        "interface SkillIssue { field: string; message: string; }",
        lambda w: (
            (issue := parse(w, mode="lenient", folder="other").warnings[0]) and issue.field == "name" and issue.message
        ),
    ),
    Case("Parses YAML frontmatter + body.", lambda w: (one(w).description, parse(w).body) == ("d", "Body.")),
    Case(
        "no leading/trailing/consecutive hyphens",
        lambda w: all(refusal(w, name=name, folder=name) == ("name",) for name in ("-a", "a-", "a--b", "A", "a_b")),
    ),
    Case("must equal parent directory name", lambda w: refusal(w, folder="other") == ("name",)),
    Case("(skip viaskipParentDirCheck)", lambda w: one(w, folder="other", check_dir=False).name == "pdf"),
    Case(
        "description: 1-1024 chars.",
        lambda w: refusal(w, "description: ''") == refusal(w, "license: a") == ("description",),
    ),
    Case(
        "compatibility: ≤500 chars.", lambda w: refusal(w, "description: d", "compatibility: ''") == ("compatibility",)
    ),
    Case("metadata: string→string map.", lambda w: refusal(w, "description: d", "metadata: [a]") == ("metadata",)),
    Case(
        "allowed-tools: string OR YAML list of strings.",
        lambda w: (
            one(w, "allowed-tools: Read Write").allowed_tools
            == one(w, "allowed-tools: [Read, Write]").allowed_tools
            == ("Read", "Write")
            and refusal(w, "description: d", "allowed-tools: {a: b}") == ("allowed-tools",)
        ),
    ),
    Case(
        "Strict mode (default) throws SkillLoadError on any violation.",
        lambda w: refusal(w, folder="other") and isinstance(raised(parse, w, folder="other"), prowess.SkillLoadError),
    ),
    Case(
        "Lenient mode returns the spec with warnings populated.",
        lambda w: (
            (parsed := parse(w, name="A_b", folder="other", mode="lenient"))
            and parsed.skill.name == "A_b"
            and {issue.code for issue in parsed.warnings} == {"bad-name", "name-mismatch"}
        ),
    ),
    Case(
        "S3-11",
        lambda w: (
            (error := raised(parse, w, "license: ''", folder="other"))
            and all(word in str(error) for word in ("description", "license", "name"))
        ),
        "The messages are different.",
    ),
    Case("S3-5", lambda w: len(refusal(w, "license: ''", name="A-", folder="x")) == 4),
    Case(
        "S3-9",
        lambda w: (
            one(w, "allowed-tools: [Read, 'Bash(git:*)']").allowed_tools_raw == "Read Bash(git:*)"
            and one(w, "allowed-tools: []").allowed_tools == ()
        ),
    ),
    # -- parseSkillFile, parseAllowedTools
    Case(
        "Strict-mode convenience around parseSkill. Returns the spec or throws.",
        lambda w: one(w).name == "pdf" and raised(prowess.parse_skill, "text", w.folder / "pdf/SKILL.md"),
    ),
    Case(
        "function parseAllowedTools(raw: string | undefined): readonly string[];",
        lambda _: prowess.parse_allowed_tools(None) == prowess.parse_allowed_tools("") == (),
    ),
    Case(
        "Accepts space- and comma-separated forms",
        lambda _: prowess.parse_allowed_tools("Read Write,Bash, Grep") == ("Read", "Write", "Bash", "Grep"),
    ),
    Case(
        "preserves parenthesised sub-patterns like Bash(git:*) as one token",
        lambda _: prowess.parse_allowed_tools("Bash(git:*) Bash(git add, x)") == ("Bash(git:*)", "Bash(git add, x)"),
    ),
    # -- scanSkillDirs
    Case(
        "roots: readonly string[]",
        lambda w: (
            w.put()
            and w.put("more/csv")
            and len(find(w, "skills", "more")) == 2
            and len(prowess.scan("", *[])) == 0
            and raised(prowess.scan)
        ),
        "`scan()` without any root raises.",
    ),
    Case(
        'filename?: string; // default "SKILL.md"',
        lambda w: (
            w.put().rename(w.folder / "skills/pdf/AGENT.md")
            and len(find(w)) == 0
            and find(w, filename="AGENT.md").names == ("pdf",)
        ),
    ),
    Case(
        "maxDepth?: number; // default 3",
        lambda w: (
            w.put("skills/a/b/c")
            and w.put("skills/x/y/z/deep")
            and find(w).names == ("c",)
            and find(w, max_depth=6).names == ("c", "deep")
        ),
        "`scan` searches six levels deep",
    ),
    Case(
        'skipPrefixes?: readonly string[]; // default [".", "_", "node_modules"]',
        lambda w: (
            all(
                w.put(f"skills/{name}/{index}x")
                for index, name in enumerate((".h", "_d", "node_modules", "node_modules2"))
            )
            and len(find(w)) == 0
            and len(find(w, skip_prefixes=())) == 4
        ),
    ),
    Case(
        'mode?: "strict" | "lenient"; // default "strict"',
        lambda w: broken(w) and raised(find, w) and w.scan().names == ("pdf",),
        '`scan` is lenient unless you pass `mode="strict"`.',
    ),
    Case(
        "onIssue?: (filepath: string, issues: readonly SkillIssue[]) => void;",
        lambda w: broken(w) and heard(w) == [str(w.folder / "skills/bad/SKILL.md")],
    ),
    Case("Promise<readonly SkillSpec[]>", lambda w: w.put() and isinstance(find(w).skills, tuple)),
    Case("Recursively scans for skill files.", lambda w: w.put("skills/group/pdf") and find(w).names == ("pdf",)),
    Case(
        "Each leaf dir holds at most one skill — descent stops once found.",
        lambda w: w.put() and w.put("skills/pdf/inner") and find(w).names == ("pdf",),
    ),
    Case(
        "Dedups by name (first wins).",
        lambda w: (
            w.put("a/pdf", description="First.") and w.put("b/pdf") and find(w, "a", "b")["pdf"].description == "First."
        ),
    ),
    Case("Absent roots are silently skipped.", lambda w: w.put() and find(w, "none", "skills").names == ("pdf",)),
    Case(
        "Strict mode throws; lenient mode reports parse failures via onIssue and continues.",
        lambda w: broken(w) and raised(find, w) and heard(w) and find(w, mode="lenient").names == ("pdf",),
    ),
    # -- createSkillRegistry
    Case(
        "get(name: string): SkillSpec | undefined;",
        lambda w: w.put() and find(w).get("pdf") and find(w).get("x") is None,
    ),
    Case("has(name: string): boolean;", lambda w: w.put() and "pdf" in find(w) and "x" not in find(w)),
    Case(
        "list(): readonly SkillSpec[];",
        lambda w: (
            w.put("b/pdf") and w.put("a/csv") and [skill.name for skill in find(w, "b", "a").skills] == ["csv", "pdf"]
        ),
        "A catalogue is sorted by name, not in the order of discovery.",
    ),
    Case(
        "In-process directory. First-wins dedup matches scanSkillDirs.",
        lambda w: (
            w.put("a/pdf", description="First.")
            and w.put("b/pdf")
            and prowess.Catalog((*find(w, "a"), *find(w, "b")))["pdf"].description == "First."
        ),
    ),
    # -- resources
    Case("scripts: readonly string[];", lambda w: full(w).resources().scripts == ("extract.py",)),
    Case("references: readonly string[];", lambda w: full(w).resources().references == ("R.md",)),
    Case("assets: readonly string[];", lambda w: full(w).resources().assets == ("a.csv",)),
    Case("other: readonly string[];", lambda w: full(w).resources().other == ("LICENSE", "README.md")),
    Case(
        "Enumerates supporting files one level deep under spec.dir.",
        lambda w: (
            full(w)
            and w.write("skills/pdf/scripts/deep/x.py")
            and find(w)["pdf"].resources().scripts == ("extract.py",)
        ),
        "`listSkillResources` counts folders.",
    ),
    Case(
        "basenames relative to each subdirectory (scripts/extract.py → extract.py under scripts)",
        lambda w: full(w).resources().scripts[0] == "extract.py",
    ),
    Case(
        "other collects top-level files outside the three well-known dirs (e.g. README.md, LICENSE)",
        lambda w: "SKILL.md" not in full(w).resources().other,
    ),
    Case("Reads a file under the skill root.", lambda w: full(w).read_resource("references/R.md") == "text\n"),
    Case(
        "Refuses absolute paths and any .. segments",
        lambda w: all(raised(full(w).read_resource, path) for path in ("/etc/passwd", "../x", "scripts/../README.md")),
    ),
    Case(
        "access stays inside spec.dir",
        lambda w: (
            full(w)
            and (w.folder / "skills/pdf/link").symlink_to("/etc") is None
            and raised(find(w)["pdf"].read_resource, "link/passwd")
        ),
    ),
    # -- tools
    Case("allowed: readonly string[];", lambda w: w.put() and tools(w, ["pdf"]).allowed == ("pdf",)),
    Case(
        "hintResources?: boolean; // default true",
        lambda w: full(w) and "\n\n---\n" in load(w).content and load(w, hint_resources=False).content == "Fill it.",
    ),
    Case(
        "ToolDef<{ name: string }>",
        lambda w: tools(w).possible_tools()[0].parameters["required"] == ["name"],
    ),
    Case(
        "skill list; names outside it return a deny result (the model can recover)",
        lambda w: w.put() and (result := load(w, "x")) and result.is_error and result.data["reason"] == "not_allowed",
    ),
    Case("The activation half of progressive disclosure", lambda w: w.put() and load(w).content == "Fill it."),
    Case(
        "suffixed with a pointer to skill_resource if the skill ships scripts, references, or assets",
        lambda w: full(w) and "skill_resource(" in load(w).content,
    ),
    Case("maxBytes?: number; // default 65536", lambda w: large(w, 65_536) and large(w, 65_537) is None),
    Case(
        "ToolDef<{ name: string; resource?: string }>",
        lambda w: (
            (schema := tools(w).possible_tools()[1].parameters)
            and [*schema["properties"]] == ["name", "resource"]
            and schema["required"] == ["name"]
        ),
    ),
    Case(
        "Without resource, lists supporting files",
        lambda w: full(w) and "## scripts\n- scripts/extract.py\n" in resource(w).content,
    ),
    Case(
        "with resource, reads one (sandboxed to the skill directory)",
        lambda w: (
            full(w) and resource(w, "references/R.md").content == "text\n" and resource(w, "../pdf/README.md").is_error
        ),
    ),
    Case(
        "Resources larger than maxBytes return a truncation notice.",
        lambda w: (
            full(w)
            and (result := resource(w, "README.md", max_bytes=3))
            and "exceeds 3 bytes" in result.content
            and result.data["reason"] == "too_large"
        ),
    ),
    # -- renderSkillsBlock
    Case(
        "Builds the “Available skills” block appended to the system prompt.",
        lambda w: w.put() and tools(w).prompt().startswith("\n## Available skills\n"),
    ),
    Case(
        "Lists name + one-line description",
        lambda w: w.put(description="Fills\n  forms.") and tools(w).prompt().endswith("\n- pdf: Fills forms."),
    ),
    Case(
        "(plus a compatibility hint when set)",
        lambda w: w.put(fields="compatibility: Python\n") and tools(w).prompt().endswith("\n  (compatibility: Python)"),
    ),
    Case(
        "for each allowlisted skill the registry knows about",
        lambda w: (
            w.put()
            and w.put("skills/csv")
            and w.put("skills/zip")
            and [row[2:5] for row in tools(w, ["pdf", "gone", "csv"]).prompt().split("\n") if row.startswith("- ")]
            == ["pdf", "csv"]
        ),
    ),
    Case(
        "Empty string when nothing matches.",
        lambda w: w.put() and tools(w, ["gone"]).prompt() == tools(w, []).prompt() == "",
    ),
    # -- SkillLoadError
    Case(
        "Thrown by parseSkill in strict mode.",
        lambda w: isinstance(raised(parse, w, folder="other"), prowess.SkillLoadError),
    ),
    Case(
        "issues lists every violation detected",
        lambda w: sorted(refusal(w, "license: ''", name="A", folder="x")) == ["description", "license", "name", "name"],
    ),
    Case(
        "the error message concatenates them with field: message",
        lambda w: (
            (error := raised(parse, w, folder="other"))
            and isinstance(error, prowess.SkillLoadError)
            and f"name: {error.issues[0].message}" in str(error)
        ),
    ),
)


def large(w: World, size: int) -> object:
    w.put()
    w.write("skills/pdf/large.txt", "x" * size)
    return None if resource(w, "large.txt").is_error else True
