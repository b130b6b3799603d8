"""The cases of the documentation of PromptKit's package ``skills``."""

# A check is one expression: "and" follows what a step returns, which may always be true, or None.
# mypy: disable-error-code="truthy-bool, truthy-function, redundant-expr, func-returns-value"

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import prowess
from tests.behaviour.documented import Case, World, raised
from tests.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SOURCE: dict[str, Any] = {
    "missing": "error",
    "mode": "strict",
    "check_dir": False,
    "max_depth": None,
    "nested": True,
    "skip_prefixes": (),
    "follow_links": "never",
}
"""The keywords that give a source the behaviour of a ``SkillSource``."""
TOOLS = "allowed-tools: [Read, Write]\n"


class Chooser:
    """A selector as a host of that system writes it: it reads the query's text and kind."""

    strict = False

    def __init__(self, *names: str) -> None:
        self.names = names
        self.asked: list[tuple[str, str]] = []

    def select(self, query: str, candidates: Sequence[prowess.Skill]) -> list[str]:
        """Return the names, or fail where there are none."""
        assert isinstance(query, prowess.SkillQuery)
        self.asked.append((query.text, query.kind))
        if not self.names:
            raise RuntimeError(f"{len(candidates)} are too many")
        return [*self.names]


def source(w: World, root: str = "skills", **options: Any) -> prowess.SkillSource:
    return prowess.Source.directory(w.folder / root, **{**SOURCE, **options})


def registry(*sources: prowess.SkillSource) -> prowess.Catalog:
    return prowess.Catalog.from_sources(sources)


def executor(w: World, *, root: str = "skills", **options: Any) -> prowess.Session:
    options.setdefault("tools", ["Read", "Write"])
    return prowess.Session(registry(source(w, root)), **options)


def kit(w: World, **options: Any) -> prowess.Toolset:
    return prowess.Toolset(executor(w), "skill__activate", **options)


def answer(w: World, tool: str, **arguments: str) -> prowess.ToolResult:
    return kit(w).call(tool, arguments)


def installer(w: World) -> prowess.Installer:
    return prowess.Installer(w.folder / "user", w.folder / "project")


def two(w: World) -> Path:
    """Two skills that share the tool Read."""
    w.put("skills/csv", fields="allowed-tools: [Read]\n")
    return w.put(fields=TOOLS)


def content(*rows: str) -> prowess.ParsedSkill:
    return prowess.parse_skill("---\n" + "".join(f"{row}\n" for row in rows) + "---\n\nBody.\n\n", check_dir=False)


PARSED = ("name: a", "description: d")
INLINE = {"name": "greet", "description": "Greets.", "instructions": "Say hello."}
REF = "@anthropic/pdf-processing@v1.0.0"

REST = (
    "Package skills provides types and utilities for loading, parsing, and managing PromptKit skills",
    "NewExecutor creates a new Executor from the given configuration.",
    "callers typically wire this at capability-registration time based on RuntimeConfig.",
    "NewModelDrivenSelector creates a new ModelDrivenSelector.",
    "A source is either:",
    "For directory-based skills.",
    "NewToolExecutor creates a new ToolExecutor wrapping the given skills Executor.",
    "Preload is OR-combined: a later source can",
)
"""Sentences that state nothing that a program could check, or what the words of a case state."""

CASES = (
    # -- names, folders and references
    Case('SkillActivateTool = "skill__activate"', lambda _: prowess.SKILL_ACTIVATE_TOOL == "skill__activate"),
    Case('SkillDeactivateTool = "skill__deactivate"', lambda _: prowess.SKILL_DEACTIVATE_TOOL == "skill__deactivate"),
    Case(
        'SkillReadResourceTool = "skill__read_resource"',
        lambda _: prowess.SKILL_READ_RESOURCE_TOOL == "skill__read_resource",
    ),
    Case('SkillNamespace = "skill"', lambda _: prowess.SKILL_NAMESPACE == "skill"),
    Case('SkillExecutorName = "skill"', lambda _: prowess.SKILL_EXECUTOR_NAME == "skill"),
    Case(
        'errors.New("resource path escapes skill directory")',
        lambda w: (
            w.put()
            and "resource path escapes skill directory"
            in answer(w, "skill__read_resource", skill_name="pdf", path="../x").content
        ),
    ),
    Case(
        "ErrPathTraversal is returned when a resource path attempts to escape the skill directory.",
        lambda w: w.put() and isinstance(raised(w.scan().read_resource, "pdf", "../x"), prowess.PathTraversalError),
    ),
    Case(
        "BuildSkillActivateDescriptor returns the tool descriptor for skill__activate.",
        lambda _: kit_empty(index_in_description=False)[0].name == "skill__activate",
    ),
    Case(
        "Description includes the available-skills index so the LLM can discover which skills are available.",
        lambda w: w.put() and "- pdf: Fills forms." in kit(w).possible_tools()[0].description,
    ),
    Case(
        "BuildSkillDeactivateDescriptor returns the tool descriptor for skill__deactivate.",
        lambda _: kit_empty()[1].name == "skill__deactivate",
    ),
    Case(
        "BuildSkillReadResourceDescriptor returns the tool descriptor for skill__read_resource.",
        lambda _: kit_empty()[2].name == "skill__read_resource",
    ),
    Case(
        "DefaultSkillsProjectDir returns the project-level skills directory.",
        lambda _: prowess.default_project_dir() == Path.cwd() / ".prowess/skills",
        "The folders of the installer are `prowess/skills`.",
    ),
    Case(
        "DefaultSkillsUserDir returns the XDG-compliant user-level skills directory.",
        lambda _: (
            prowess.default_user_dir()
            == Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "prowess/skills"
        ),
        "The folders of the installer are `prowess/skills`.",
    ),
    Case(
        "IsLocalPath returns true if the argument looks like a local filesystem path "
        'rather than a skill reference (starts with "./", "../", or "/")',
        lambda _: (
            all(map(prowess.is_local_path, ("./x", "../x", "/x")))
            and not any(map(prowess.is_local_path, ("@org/x", "x", "org/x", "~/x", ".")))
        ),
    ),
    Case(
        'ParseSkillRef parses "@org/name[@version]" into a SkillRef.',
        lambda _: (
            prowess.SkillRef.parse("@org/name") == prowess.SkillRef("org", "name")
            and prowess.SkillRef.parse("@org/name@v1").version == "v1"
            and all(raised(prowess.SkillRef.parse, text) for text in ("org/name", "@org", "@org/a/b", "@org/a@"))
        ),
    ),
    Case(
        "SkillRef represents a parsed skill reference like @org/skill-name@v1.0.0.",
        lambda _: prowess.SkillRef.parse("@org/skill-name@v1.0.0") == prowess.SkillRef("org", "skill-name", "v1.0.0"),
    ),
    Case('Org string // e.g., "anthropic"', lambda _: prowess.SkillRef.parse(REF).org == "anthropic"),
    Case('Name string // e.g., "pdf-processing"', lambda _: prowess.SkillRef.parse(REF).name == "pdf-processing"),
    Case(
        'Version string // e.g., "v1.0.0" (empty = latest)',
        lambda _: prowess.SkillRef.parse(REF).version == "v1.0.0" and prowess.SkillRef.parse("@a/b").version == "",
    ),
    # -- parsing
    Case(
        "ParseSkillFile parses a SKILL.md file at the given path into a Skill.",
        lambda w: prowess.parse_skill_file(w.put()).skill.name == "pdf",
    ),
    Case(
        "It extracts YAML frontmatter and markdown body.",
        lambda w: (
            (parsed := prowess.parse_skill_file(w.put()))
            and (parsed.skill.description, parsed.body) == ("Fills forms.", "Fill it.")
        ),
    ),
    Case(
        "ParseSkillContent parses SKILL.md content from bytes.",
        lambda _: prowess.parse_skill(b"---\nname: a\ndescription: d\n---\nB", check_dir=False).skill.name == "a",
    ),
    Case(
        "It returns the parsed metadata, the markdown body, and any error.",
        lambda _: content(*PARSED).body == "Body." and raised(prowess.parse_skill, b"", check_dir=False),
    ),
    Case(
        "ParseSkillMetadata parses only the YAML frontmatter from a SKILL.md file.",
        lambda w: prowess.read_metadata(w.put(text=b"---\nname: pdf\ndescription: d\n---\n\xff")).name == "pdf",
    ),
    Case(
        "Used for Phase 1 discovery — avoids loading the full body.",
        lambda w: (
            (file := w.put(body="x" * (3 << 20)))
            and prowess.read_metadata(file).name == "pdf"
            and raised(registry(source(w)).load, "pdf")
        ),
    ),
    Case(
        "This is the Phase 1 data — loaded at discovery time (~50 tokens per skill).",
        lambda w: (
            (file := w.put())
            and (found := registry(source(w)))
            and file.unlink() is None
            and found["pdf"].description == "Fills forms."
        ),
    ),
    Case('License string `yaml:"license,omitempty"', lambda _: content(*PARSED, "license: MIT").skill.license == "MIT"),
    Case(
        'Compatibility string `yaml:"compatibility,omitempty"',
        lambda _: content(*PARSED, "compatibility: Python").skill.compatibility == "Python",
    ),
    Case(
        'Metadata map[string]string `yaml:"metadata,omitempty"',
        lambda _: content(*PARSED, "metadata:", "  version: 1.0").skill.metadata == {"version": "1.0"},
    ),
    Case(
        'AllowedTools []string `yaml:"allowed-tools,omitempty"',
        lambda _: content(*PARSED, "allowed-tools: [a, b]").skill.allowed_tools == ("a", "b"),
    ),
    Case(
        'Instructions string `json:"instructions"` // Markdown body from SKILL.md',
        lambda w: w.put() and registry(source(w)).load("pdf").instructions == "Fill it.",
    ),
    Case(
        "Skill holds a fully loaded skill — metadata + instructions + path.",
        lambda w: (
            w.put(fields="license: MIT\n")
            and (loaded := registry(source(w, mount_as="team")).load("pdf"))
            and (loaded.skill.license, loaded.instructions, loaded.skill.virtual_path)
            == ("MIT", "Fill it.", "team/pdf")
        ),
    ),
    Case(
        "This is the Phase 2 data — loaded on activation.",
        lambda w: (
            w.put()
            and (session := executor(w))
            and w.put(body="New.\n")
            and session.activate("pdf").instructions == "New."
        ),
    ),
    Case(
        "For sources without MountAs this is the real on-disk path.",
        lambda w: (file := w.put()) and registry(source(w))["pdf"].virtual_path == str(file.parent),
    ),
    Case(
        "For sources with MountAs it is the *virtual* path (MountAs prefix + relative subpath under the // source "
        "dir) — workflow glob filters and ListForDir match against // this.",
        lambda w: (
            w.put("skills/forms/pdf")
            and (found := registry(source(w, mount_as="team")))
            and found["pdf"].virtual_path == "team/forms/pdf"
            and [skill.name for skill in found.under("team/forms")] == ["pdf"]
            and prowess.Session(found, filter="team/forms/*").activate("pdf")
        ),
    ),
    Case(
        "always go through Registry.ReadResource; do not treat Path as a filesystem path",
        lambda w: (
            w.put()
            and w.write("skills/pdf/a.md")
            and registry(source(w, mount_as="team")).read_resource("pdf", "a.md") == "text\n"
        ),
    ),
    # -- the registry
    Case(
        "Registry holds discovered skills and provides access by name and directory.",
        lambda w: (
            (file := two(w))
            and (found := registry(source(w)))
            and found["pdf"].path == file
            and [skill.name for skill in found.under(str(file.parent))] == ["pdf"]
        ),
    ),
    Case(
        "Discover scans skill sources and registers all found skills.",
        lambda w: w.put() and w.put("more/csv") and len(registry(source(w), source(w, "more"))) == 2,
    ),
    Case(
        "Sources are processed in order: the first source to register a skill name wins for path/metadata",
        lambda w: (
            w.put()
            and w.put("more/pdf", description="Second.")
            and registry(source(w), source(w, "more"))["pdf"].description == "Fills forms."
        ),
    ),
    Case(
        "a later source may upgrade the preload flag from false to true",
        lambda w: w.put() and registry(source(w), source(w, preload=True))["pdf"].preload,
    ),
    Case(
        "a later source can upgrade preload from false to true but never the reverse",
        lambda w: w.put() and registry(source(w, preload=True), source(w))["pdf"].preload,
    ),
    Case(
        "a broad `path: skills/` entry followed by narrower per-directory entries that mark specific skills as preload",
        lambda w: (
            w.put()
            and w.put("skills/csv")
            and [one.skill.name for one in registry(source(w), source(w, "skills/csv", preload=True)).preloaded()]
            == ["csv"]
        ),
    ),
    Case(
        "List returns metadata for all registered skills, sorted by name.",
        lambda w: two(w) and [skill.name for skill in registry(source(w)).skills] == ["csv", "pdf"],
    ),
    Case(
        "ListForDir returns metadata for skills whose virtual path is under the given directory.",
        lambda w: (
            w.put("skills/billing/pay")
            and w.put("skills/billing-x")
            and [s.name for s in registry(source(w)).under(str(w.folder / "skills/billing"))] == ["pay"]
        ),
    ),
    Case(
        "If dir is empty, returns all skills.",
        lambda w: two(w) and [skill.name for skill in registry(source(w)).under("")] == ["csv", "pdf"],
    ),
    Case(
        "Results are sorted by name.",
        lambda w: (
            w.put("skills/a/pdf")
            and w.put("skills/b/csv")
            and [skill.name for skill in registry(source(w)).under(str(w.folder / "skills"))] == ["csv", "pdf"]
        ),
    ),
    Case(
        "Matching uses the virtual path (i.e. honoring MountAs)",
        lambda w: w.put() and [s.name for s in registry(source(w, mount_as="team")).under("team")] == ["pdf"],
    ),
    Case(
        "which is what the workflow filter and consumers see. Inline skills are skipped.",
        lambda w: (
            w.put()
            and [s.name for s in registry(prowess.Source.inline("i", "d", "b"), source(w, mount_as="t")).under("t")]
            == ["pdf"]
        ),
    ),
    Case(
        "Load returns the full skill by name, reading instructions from disk on demand.",
        lambda w: (
            w.put()
            and (found := registry(source(w)))
            and w.put(body="New.\n")
            and found.load("pdf").instructions == "New."
        ),
    ),
    Case(
        "(r *Registry) Has(name string) bool",
        lambda w: w.put() and "pdf" in registry(source(w)) and "x" not in registry(source(w)),
    ),
    Case(
        "PreloadedSkills returns fully loaded skills marked with preload: true.",
        lambda w: (
            w.put() and [one.instructions for one in registry(source(w, preload=True)).preloaded()] == ["Fill it."]
        ),
    ),
    Case(
        "Returns error if the path escapes the skill directory (path traversal prevention).",
        lambda w: (
            w.put()
            and isinstance(raised(registry(source(w)).read_resource, "pdf", "a/../../x"), prowess.PathTraversalError)
        ),
    ),
    Case(
        "S1-26",
        lambda w: (
            w.put()
            and w.write("secret")
            and (w.folder / "skills/pdf/link").symlink_to(w.folder / "secret") is None
            and isinstance(raised(registry(source(w)).read_resource, "pdf", "link"), prowess.ResourceError)
        ),
    ),
    Case(
        "ReadResource reads a file from within a skill's directory.",
        lambda w: w.put() and w.write("skills/pdf/a.md") and registry(source(w))["pdf"].read_bytes("a.md") == b"text\n",
    ),
    # -- sources
    Case(
        "Dir is the real on-disk directory to walk for SKILL.md files.",
        lambda w: w.put("skills/a/b/pdf") and registry(source(w)).names == ("pdf",),
    ),
    Case(
        "SkillSource describes one source of skills to register with a Registry.",
        lambda w: two(w) and len(source(w).load()) == 2,
    ),
    Case(
        "directory-based — set Dir (or Path as an alias). The registry walks the directory for SKILL.md files "
        "and registers each one found. MountAs and Preload apply.",
        lambda w: (
            two(w)
            and (found := registry(source(w, mount_as="team", preload=True)))
            and [(skill.virtual_path, skill.preload) for skill in found] == [("team/csv", True), ("team/pdf", True)]
        ),
    ),
    Case(
        "inline — set Name, Description, and Instructions. The skill is registered as if it had been read from disk.",
        lambda _: (
            (session := prowess.Session(registry(prowess.Source.inline("greet", "Greets.", "Say hello."))))
            and session.index() == "Available skills:\n- greet: Greets."
            and session.activate("greet").instructions == "Say hello."
        ),
    ),
    Case(
        "MountAs is rejected here.",
        lambda _: isinstance(raised(configured, dict(INLINE, mount_as="/team")), prowess.SourceError),
    ),
    Case(
        "Multiple SkillSources can be passed to Registry.Discover. They are processed in order; the first source to "
        "register a given skill name wins for path and metadata.",
        lambda w: (
            w.put("skills/greet")
            and registry(prowess.Source.inline("greet", "Greets.", "Hi."), source(w))["greet"].description == "Greets."
            and registry(source(w), prowess.Source.inline("greet", "Greets.", "Hi."))["greet"].description
            == "Fills forms."
        ),
    ),
    Case(
        "Across // duplicate sources Preload is OR-combined: a later source can upgrade preload from false to // true, "
        "but never the reverse.",
        lambda w: (
            w.put()
            and registry(source(w), source(w, preload=True), source(w))["pdf"].preload
            and not registry(source(w), source(w))["pdf"].preload
        ),
    ),
    Case(
        "Path is a // YAML/JSON alias accepted for legacy schemas;",
        lambda w: w.put() and configured({"path": str(w.folder / "skills")}).names == ("pdf",),
    ),
    Case(
        "For inline skills — Name is required and uniquely identifies the // skill in the registry.",
        lambda _: (
            raised(configured, {"description": "d", "instructions": "i"})
            and configured(INLINE, dict(INLINE, description="Another."))["greet"].description == "Greets."
        ),
    ),
    Case(
        "if both are set Dir wins",
        lambda w: (
            w.put()
            and w.put("more/csv")
            and configured({"dir": str(w.folder / "skills"), "path": str(w.folder / "more")}).names == ("pdf",)
        ),
    ),
    Case(
        "Description and Instructions populate the in-memory Skill directly; no SKILL.md is read.",
        lambda _: (
            (found := registry(prowess.Source.inline("greet", "Greets.", "Say hello.")))
            and (found["greet"].description, found.load("greet").instructions) == ("Greets.", "Say hello.")
        ),
    ),
    Case(
        "as if they lived under this virtual directory prefix instead of",
        lambda w: w.put() and registry(source(w, mount_as="team"))["pdf"].virtual_path == "team/pdf",
    ),
    Case(
        "MountAs only affects display and glob matching, never IO",
        lambda w: (
            w.put()
            and w.write("skills/pdf/a.md")
            and registry(source(w, mount_as="/etc"))["pdf"].read_bytes("a.md") == b"text\n"
        ),
    ),
    Case(
        "Subdirectory structure under Dir is preserved: a skill at /foo/agentskills/billing/payments/SKILL.md "
        'discovered with Dir: "/foo/agentskills" and MountAs: "skills" is exposed as virtual path '
        '"skills/billing/payments"',
        lambda w: (
            w.put("agentskills/billing/payments")
            and registry(source(w, "agentskills", mount_as="skills"))["payments"].virtual_path
            == "skills/billing/payments"
        ),
    ),
    Case(
        '`skills: "skills/billing/*"` will match it',
        lambda w: (
            w.put("agentskills/billing/payments")
            and prowess.Session(
                registry(source(w, "agentskills", mount_as="skills")), filter="skills/billing/*"
            ).activate("payments")
        ),
    ),
    Case(
        "MountAs must be a literal directory prefix",
        lambda w: w.put() and all(raised(source(w, mount_as=mount).load) for mount in ("a*", "a?", "[a]", "a/../b")),
    ),
    Case(
        "MountAs on an inline source (Name set, Dir empty) is also rejected.",
        lambda _: raised(configured, dict(INLINE, mount_as="team")),
    ),
    Case(
        "Preload, when true, causes the skill's instructions to be loaded // into the system prompt at session start "
        "instead of being activated // on demand via skill__activate.",
        lambda w: (
            w.put()
            and "Fill it."
            in prowess.Toolset(prowess.Session(registry(source(w, preload=True))), "skill__activate").prompt()
        ),
    ),
    Case(
        "Use sparingly — preloaded skills // consume context budget every turn.",
        lambda w: (
            w.put()
            and (toolset := prowess.Toolset(prowess.Session(registry(source(w, preload=True))), "skill__activate"))
            and toolset.prompt() == toolset.prompt("Another request.")
            and "Fill it." in toolset.prompt("Another request.")
        ),
    ),
    Case(
        "Returns the empty string for inline sources.",
        lambda _: prowess.Source.inline("greet", "Greets.", "Say hello.").dir is None,
        "`None` for an inline source",
    ),
    Case(
        "EffectiveDir returns the real on-disk source directory, preferring Dir over the legacy Path alias.",
        lambda w: w.put() and prowess.Source.directory(w.folder / "skills").dir == w.folder / "skills",
    ),
    Case(
        "This is always the *real* path; MountAs has no effect here.",
        lambda w: prowess.Source.directory(w.folder / "skills", mount_as="team").dir == w.folder / "skills",
    ),
    # -- the executor
    Case(
        "If Selector is nil, a ModelDrivenSelector is used.",
        lambda w: two(w) and [skill.name for skill in executor(w).candidates("csv")] == ["csv", "pdf"],
    ),
    Case(
        "Executor manages the skill activation lifecycle and provides functions that implement the skill__ namespaced "
        "tools.",
        lambda w: (
            w.put()
            and (toolset := kit(w))
            and not toolset.call("skill__activate", {"name": "pdf"}).is_error
            and toolset.session.active_skills == ("pdf",)
            and not toolset.call("skill__deactivate", {"name": "pdf"}).is_error
            and not toolset.session.active_skills
        ),
    ),
    Case(
        "Activate loads a skill's instructions and returns them.",
        lambda w: w.put() and executor(w).activate("pdf").instructions == "Fill it.",
    ),
    Case(
        "It extends the active tool set with the skill's allowed-tools (capped by pack tools).",
        lambda w: w.put(fields=TOOLS) and executor(w, tools=["Read", "Bash"]).activate("pdf").added_tools == ("Read",),
    ),
    Case(
        "If the skill is already active, it returns the instructions again (idempotent).",
        lambda w: (
            w.put()
            and (session := executor(w, max_active=1))
            and session.activate("pdf").instructions == session.activate("pdf").instructions
        ),
    ),
    Case(
        "Returns error if skill not found or at max active limit.",
        lambda w: (
            two(w)
            and (session := executor(w, max_active=1))
            and session.activate("pdf")
            and isinstance(raised(session.activate, "csv"), prowess.MaxActiveError)
            and isinstance(raised(session.activate, "x"), prowess.UnknownSkillError)
        ),
    ),
    Case(
        "ActivateWithFilter is like Activate but applies the given filter instead of the executor's default filter.",
        lambda w: (
            two(w)
            and (session := executor(w, filter="skills/csv", base_dir=w.folder))
            and raised(session.activate, "pdf")
            and session.activate("pdf", filter="skills/pdf").instructions == "Fill it."
        ),
    ),
    Case(
        "This supports per-run filtering in concurrent scenarios.",
        lambda w: (
            two(w)
            and (session := executor(w, filter="skills/csv", base_dir=w.folder))
            and narrowed(session) == "No skills available."
            and narrowed(executor(w, base_dir=w.folder)) == "Available skills:\n- pdf: Fills forms."
        ),
        "`skill_filter(…)` for a run narrows that filter and never replaces it.",
    ),
    Case(
        'SkillFilterFromContext returns the skill filter from context, or "" if not set.',
        lambda _: prowess.current_skill_filter() == "",
    ),
    Case(
        "ActiveSkills returns the names of currently active skills, sorted.",
        lambda w: (
            two(w)
            and (session := executor(w))
            and session.activate("pdf")
            and session.activate("csv")
            and session.active_skills == ("csv", "pdf")
        ),
    ),
    Case(
        "ActiveTools returns the aggregate set of tools added by all active skills (each capped by pack tools). "
        "The result is deduplicated and sorted.",
        lambda w: (
            two(w)
            and (session := executor(w))
            and session.activate("pdf")
            and session.activate("csv")
            and session.active_tools == ("Read", "Write")
        ),
    ),
    Case(
        "Deactivate removes a skill from the active set.",
        lambda w: (
            w.put()
            and (session := executor(w))
            and session.activate("pdf")
            and session.deactivate("pdf") == ()
            and session.active_skills == ()
        ),
    ),
    Case(
        "Returns the tools that should be removed from the active tool set.",
        lambda w: (
            w.put(fields=TOOLS)
            and (session := executor(w, tools=["Read"]))
            and session.activate("pdf")
            and session.active_tools == session.deactivate("pdf") == ("Read",)
            and not session.active_tools
        ),
    ),
    Case(
        "A tool is only removed if no other active skill also needs it.",
        lambda w: (
            two(w)
            and (session := executor(w))
            and session.activate("pdf")
            and session.activate("csv")
            and session.deactivate("pdf") == ("Write",)
        ),
    ),
    Case(
        "Delegates to the underlying registry.",
        lambda w: (
            w.put()
            and w.write("skills/pdf/a.md")
            and (session := executor(w))
            and session.read_resource("pdf", "a.md") == session.catalog.read_resource("pdf", "a.md") == "text\n"
        ),
    ),
    Case(
        "SetFilter sets a glob pattern that restricts which skills can be activated.",
        lambda w: (
            two(w)
            and (session := executor(w, base_dir=w.folder))
            and session.set_filter("skills/c*") == ()
            and raised(session.activate, "pdf")
            and session.activate("csv")
        ),
    ),
    Case(
        "Empty string means all skills are available.",
        lambda w: (
            w.put()
            and (session := executor(w, filter="none"))
            and session.set_filter("") == ()
            and session.activate("pdf")
        ),
    ),
    Case(
        '"none" (case-insensitive) disables all.',
        lambda w: (
            w.put()
            and all(
                isinstance(raised(executor(w, filter=word).activate, "pdf"), prowess.SkillFilteredError)
                for word in ("none", "None", "NONE")
            )
        ),
    ),
    Case(
        "Returns names of skills that were deactivated because they no longer match.",
        lambda w: (
            w.put() and (session := executor(w)) and session.activate("pdf") and session.set_filter("none") == ("pdf",)
        ),
    ),
    Case(
        "SetNewSelector replaces the external selector after construction.",
        lambda w: (
            two(w)
            and (session := executor(w))
            and session.set_selector(Chooser("csv")) is None
            and session.index("x") == "Available skills:\n- csv: Fills forms."
        ),
    ),
    Case(
        "It is safe to call between Send()s",
        lambda w: (
            two(w)
            and (session := executor(w))
            and session.activate("pdf")
            and session.set_selector(Chooser("csv")) is None
            and session.active_skills == ("pdf",)
        ),
    ),
    Case(
        "SkillIndex returns the Phase 1 skill index string",
        lambda w: two(w) and executor(w).index() == "Available skills:\n- csv: Fills forms.\n- pdf: Fills forms.",
    ),
    Case(
        "It is a thin wrapper over SkillIndexFiltered with no query",
        lambda w: two(w) and (session := executor(w, selector=Chooser("csv"))) and session.index() == session.index(""),
    ),
    Case(
        "optionally narrowed by the configured external Selector",
        lambda w: two(w) and executor(w, selector=Chooser("csv")).index("q").count("\n- ") == 1,
    ),
    Case(
        "or the selector returns an error or an empty result, the full eligible set is returned",
        lambda w: (
            two(w)
            and executor(w, selector=Chooser()).index("q").count("\n- ") == 2
            and executor(w, selector=Chooser("unknown")).index("q").count("\n- ") == 2
        ),
    ),
    Case(
        "when empty, the selector is skipped entirely",
        lambda w: (
            two(w)
            and (chooser := Chooser("csv"))
            and executor(w, selector=chooser).index("").count("\n- ") == 2
            and chooser.asked == []
        ),
    ),
    Case(
        "query is the current-turn context the selector may rank against",
        lambda w: (
            two(w)
            and (chooser := Chooser("csv"))
            and executor(w, selector=chooser).index("a table")
            and chooser.asked == [("a table", "skill")]
        ),
    ),
    Case(
        "PackTools []string // all tools declared in the pack",
        lambda w: w.put(fields=TOOLS) and executor(w, tools=[]).activate("pdf").added_tools == (),
    ),
    Case(
        "MaxActive int // 0 = unlimited",
        lambda w: (
            two(w) and (session := executor(w, max_active=0)) and session.activate("pdf") and session.activate("csv")
        ),
    ),
    Case(
        "ConfigDir string // base directory for computing relative skill paths in filters",
        lambda w: w.put() and executor(w, base_dir=w.folder / "skills", filter="pdf").activate("pdf"),
    ),
    # -- selectors
    Case(
        "it returns all available skills, letting the model decide",
        lambda w: two(w) and prowess.ModelDrivenSelector().select("x", w.scan().skills) == ["csv", "pdf"],
    ),
    Case(
        "Effective for up to ~50 skills.",
        lambda w: (
            [w.put(f"skills/s{number:02}") for number in range(51)]
            and len(prowess.ModelDrivenSelector().select("x", w.scan().skills)) == 51
        ),
    ),
    Case(
        "Safe for concurrent use.",
        lambda w: (
            tagged(w)
            and in_threads(lambda: names_of(w, "a")) == [["pdf"]] * 8
            and in_threads(lambda: prowess.ModelDrivenSelector().select("x", w.scan().skills)) == [["pdf"]] * 8
        ),
    ),
    Case(
        "Select returns all skill names from available.",
        lambda _: prowess.ModelDrivenSelector().select("x", []) == [],
    ),
    Case(
        "TagSelector pre-filters skills based on metadata tags.",
        lambda w: tagged(w) and names_of(w, "a") == ["pdf"],
    ),
    Case(
        'a "tags" key with a comma-separated list are matched against the selector\'s required tags',
        lambda w: tagged(w) and names_of(w, "b") == ["pdf"],
    ),
    Case(
        "A skill is included if it has at least one tag in common with the selector's required tags.",
        lambda w: tagged(w) and names_of(w, "x", "b") == ["pdf"] and names_of(w, "x") == [],
    ),
    Case(
        'If a skill has no "tags" metadata key, it is excluded.',
        lambda w: tagged(w) and w.put("skills/csv") and names_of(w, "a", "b") == ["pdf"],
    ),
    Case(
        "creates a TagSelector that matches skills having at least one of the specified tags. "
        "Duplicate tags are deduplicated automatically.",
        lambda w: tagged(w) and names_of(w, "a", "a", " a ") == ["pdf"],
    ),
    Case(
        'Select returns the names of skills whose metadata["tags"] contains at least one tag matching the selector\'s '
        "required tags.",
        lambda w: tagged(w) and names_of(w, "b", "c") == ["pdf"] and names_of(w, "c") == [],
    ),
    Case(
        "Select returns the names of skills that should appear in the Phase 1 index.",
        lambda w: (
            two(w) and executor(w, selector=Chooser("pdf")).index("q") == "Available skills:\n- pdf: Fills forms."
        ),
    ),
    Case(
        "The query is typically the latest user message or conversation context.",
        lambda w: (
            two(w)
            and (chooser := Chooser("csv"))
            and prowess.Toolset(executor(w, selector=chooser), "skill__activate").tools("Sum this table.")
            and chooser.asked == [("Sum this table.", "skill")]
        ),
    ),
    Case(
        "SkillSelector determines which skills from the available set should be presented to the model in the Phase 1 "
        "index. Implementations can filter, rank, or transform the available skill list.",
        lambda w: (
            two(w) and w.put("skills/xml") and executor(w, selector=Chooser("xml", "csv")).index("q").count("\n- ") == 2
        ),
    ),
    Case(
        "Available contains all skills that passed directory filtering for the current state.",
        lambda w: (
            two(w)
            and (chooser := Chooser("pdf"))
            and executor(w, selector=chooser, filter="skills/csv", base_dir=w.folder).index("q").count("\n- ") == 1
        ),
    ),
    # -- tools
    Case(
        "Execute dispatches a skill tool call to the appropriate executor method.",
        lambda w: (
            w.put(fields=TOOLS)
            and json.loads(answer(w, "skill__activate", name="pdf").content)
            == {"instructions": "Fill it.", "added_tools": ["Read", "Write"]}
        ),
    ),
    Case(
        "ToolExecutor handles execution of skill__ tools by delegating to the Executor.",
        lambda w: (
            w.put(fields=TOOLS)
            and (toolset := kit(w))
            and toolset.call("skill__activate", {"name": "pdf"})
            and toolset.session.active_tools == ("Read", "Write")
        ),
    ),
    Case(
        "Name returns the executor name used for mode matching.",
        lambda _: prowess.SKILL_EXECUTOR_NAME == "skill",
    ),
    # -- the installer
    Case(
        "NewInstaller creates an Installer with default XDG-compliant paths.",
        lambda w: (
            w.put("src/pdf")
            and prowess.Installer().install_local(w.folder / "src/pdf") == prowess.default_user_dir() / "local/pdf"
        ),
        "The folders of the installer are `prowess/skills`.",
    ),
    Case(
        "Install clones a skill from its Git repository into the appropriate directory. If projectLevel is true, "
        "installs to .promptkit/skills/; otherwise to user-level.",
        lambda w: (
            (spec := hosted(w))
            and installer(w).install(spec) == w.folder / "user/acme/pdf"
            and installer(w).install(spec, project=True) == w.folder / "project/acme/pdf"
            and prowess.scan(w.folder / "project").names == ("pdf",)
        ),
    ),
    Case(
        "Returns the installation path.",
        lambda w: prowess.scan(installer(w).install(hosted(w))).names == ("pdf",),
    ),
    Case(
        "InstallInto clones a skill from its Git repository directly into a target directory (e.g., a workflow stage "
        "directory like ./skills/billing/). The skill is placed at <targetDir>/<name>/.",
        lambda w: (
            installer(w).install_into(hosted(w), w.folder / "skills/billing") == w.folder / "skills/billing/pdf"
            and prowess.scan(w.folder / "skills/billing").names == ("pdf",)
        ),
    ),
    Case(
        "InstallLocal copies a skill from a local path into the appropriate directory.",
        lambda w: (
            w.put("src/pdf")
            and installer(w).install_local(w.folder / "src/pdf") == w.folder / "user/local/pdf"
            and installer(w).install_local(w.folder / "src/pdf", project=True) == w.folder / "project/local/pdf"
        ),
    ),
    Case(
        "InstallLocalInto copies a skill from a local path directly into a target directory.",
        lambda w: (
            w.put("src/pdf")
            and installer(w).install_local_into(w.folder / "src/pdf", w.folder / "stage") == w.folder / "stage/pdf"
        ),
    ),
    Case(
        "List returns all installed skills from both user and project directories.",
        lambda w: (
            w.put("src/pdf")
            and w.put("src/csv")
            and installer(w).install_local(w.folder / "src/pdf")
            and installer(w).install_local(w.folder / "src/csv", project=True)
            and [(one.location, one.full_name) for one in installer(w).list()]
            == [("project", "local/csv"), ("user", "local/pdf")]
        ),
    ),
    Case(
        'Location string // "user" or "project"',
        lambda w: (
            w.put("src/pdf")
            and installer(w).install_local(w.folder / "src/pdf")
            and (one := installer(w).list()[0])
            and (one.org, one.name, one.location, one.path) == ("local", "pdf", "user", w.folder / "user/local/pdf")
        ),
    ),
    Case(
        "func (inst *Installer) Remove(ref SkillRef) error",
        lambda w: (
            w.put("src/pdf")
            and installer(w).install_local(w.folder / "src/pdf")
            and installer(w).remove(prowess.SkillRef("local", "pdf"))
            and installer(w).list() == ()
        ),
    ),
    Case(
        "func (inst *Installer) Resolve(ref SkillRef) (string, error)",
        lambda w: (
            w.put("src/pdf")
            and (path := installer(w).install_local(w.folder / "src/pdf"))
            and installer(w).resolve("@local/pdf") == path
            and raised(installer(w).resolve, "@a/b")
        ),
    ),
    Case(
        "GitCloneFunc func(url, dest string) error // injectable for testing",
        lambda w: raised(prowess.Installer(w.folder / "u", w.folder / "p", no_git).install, "@a/b"),
        "S1-67",
    ),
    Case(
        "GitCheckout func(dir, ref string) error // injectable for testing",
        lambda w: raised(prowess.Installer(w.folder / "u", w.folder / "p", no_git).install, "@a/b@v1"),
        "S1-67",
    ),
    Case(
        "CopyDirFunc func(src, dest string) error // injectable for testing",
        lambda w: (
            w.put("src/pdf")
            and (w.folder / "src/pdf/link").symlink_to("/etc") is None
            and raised(installer(w).install_local, w.folder / "src/pdf")
        ),
        "S1-67",
    ),
    Case(
        "UserDir string // ~/.config/promptkit/skills/",
        lambda w: (
            w.put("src/pdf")
            and prowess.Installer(w.folder / "promptkit").install_local(w.folder / "src/pdf")
            == w.folder / "promptkit/local/pdf"
        ),
    ),
    Case(
        "ProjectDir string // .promptkit/skills/",
        lambda w: (
            w.put("src/pdf")
            and prowess.Installer(w.folder / "user", ".promptkit/skills").install_local(
                w.folder / "src/pdf", project=True
            )
            == w.folder / ".promptkit/skills/local/pdf"
        ),
    ),
    Case(
        "Path string // filesystem path to the skill directory",
        lambda w: (
            w.put("src/pdf")
            and installer(w).install_local(w.folder / "src/pdf")
            and (installer(w).list()[0].path / "SKILL.md").is_file()
        ),
    ),
    Case("S1-57", lambda _: not prowess.is_local_path("..") and prowess.is_local_path("../")),
)


def configured(*entries: Mapping[str, str]) -> prowess.Catalog:
    """Return the skills of the sources that a configuration lists."""
    return prowess.Catalog.from_sources(prowess.load_sources({"skills": list(entries)}))


def hosted(w: World) -> prowess.SourceSpec:
    """Return the source that stands for the repository of ``@acme/pdf`` on a server."""
    repository = Repository(w.folder / "server/pdf")
    repository.skill("pdf")
    repository.commit(tag="v1")
    return prowess.SourceSpec("git", str(repository.path), "acme", "pdf", local=True)


def in_threads(function: Callable[[], Sequence[str]]) -> list[Sequence[str]]:
    """Return what eight calls at one time return."""
    with ThreadPoolExecutor(8) as pool:
        return [*pool.map(lambda _: function(), range(8))]


def no_git(args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
    raise prowess.GitError(f"no network for {args[0]} in {cwd} with {len(env)} variables")


def tagged(w: World) -> Path:
    return w.put(fields="metadata:\n  tags: a, b\n")


def names_of(w: World, *tags: str) -> list[str]:
    return [*prowess.TagSelector(tags).select("", w.scan().skills)]


def kit_empty(**options: Any) -> tuple[prowess.ToolDefinition, ...]:
    return prowess.Toolset(prowess.Session(prowess.Catalog()), "skill__activate", **options).possible_tools()


def narrowed(session: prowess.Session) -> str:
    with prowess.skill_filter("skills/pdf"):
        return session.index()
