"""The cases of the documentation of llm_agents_from_scratch, run through its own names (``llm_agents_shim.py``)."""

# A check is one expression: "and" follows what a step returns, which may always be true, or None.
# mypy: disable-error-code="truthy-bool, truthy-function, redundant-expr, func-returns-value"

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from tests.behaviour import llm_agents_shim as system
from tests.behaviour.documented import Case, World, raised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import prowess

USER, PROJECT = system.SkillScope.USER, system.SkillScope.PROJECT
PLACE = ".agents/skills"


def put(w: World, folder: str = "pdf", *, at: str = "", **parts: str) -> Path:
    """Write a skill of the project, or with ``at="home"`` of the user."""
    return w.put(f"{at or '.'}/{PLACE}/{folder}", **parts)


def found(*scopes: prowess.SkillScope) -> dict[str, system.Skill]:
    """The skills of the scopes (both, unless they are named), without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return system.discover_skills(scopes) if scopes else system.discover_skills()


def warned(function: Callable[[], object]) -> list[type[Warning]]:
    """The categories of the warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return [warning.category for warning in caught]


def pdf(w: World, **parts: str) -> system.Skill:
    put(w, **parts)
    return found()["pdf"]


def files(w: World, *paths: str) -> system.Skill:
    for path in paths:
        w.write(f"{PLACE}/pdf/{path}")
    return pdf(w)


def body_error(w: World, text: str | None) -> prowess.SkillError | None:
    """The error of reading a body after the file was changed; ``None`` for a file that was deleted."""
    skill = pdf(w)
    if text is None:
        skill.location.unlink()
    else:
        skill.location.write_text(text, encoding="utf-8")
    return raised(skill.read_body)


def folder_error(w: World, text: str) -> prowess.SkillError | None:
    return raised(system.validate_skill_dir, put(w, text=text).parent)


def tool(w: World, explicit_only: Iterable[str] = ()) -> system.UseSkillTool:
    put(w)
    put(w, "csv")
    return system.UseSkillTool(found(), explicit_only)


REST = (
    "Skip to content Skill Skill construct.",
    "This conforms to the Agent Skills specification, which advises keeping file references one level deep",
    "Instantiate a Skill.",
    "SkillValidationError If the file cannot be read.",
    "InvalidFrontmatterError If the frontmatter delimiters are missing or malformed.",
    "EmptySkillBodyError If the body is empty or whitespace-only.",
)
"""Sentences that state nothing that a program could check, or what the words of a case state."""

CASES = (
    Case(
        "A skill that can be discovered and activated by an LLM agent.",
        lambda w: pdf(w) and "Fill it." in system.UseSkillTool(found())({"name": "pdf"}).content,
    ),
    Case(
        "Parsed frontmatter metadata from the skill's SKILL.md file.",
        lambda w: pdf(w, fields="license: MIT\n").frontmatter.license == "MIT",
    ),
    Case(
        "Absolute path to the skill's SKILL.md file on disk.",
        lambda w: pdf(w).location == w.folder / PLACE / "pdf/SKILL.md",
    ),
    Case(
        "The scope of the skill (`SkillScope.PROJECT` or `SkillScope.USER`).",
        lambda w: pdf(w).scope is PROJECT and put(w, "csv", at="home") and found()["csv"].scope is USER,
    ),
    Case(
        "Used to resolve name collisions via deterministic precedence",
        lambda w: put(w, at="home") and pdf(w, description="Project.").frontmatter.description == "Project.",
    ),
    Case(
        "with `SkillScope.PROJECT` taking priority over `SkillScope.USER`",
        lambda w: put(w, at="home") and pdf(w).scope is PROJECT,
    ),
    Case(
        "resource files found in the skill's optional subdirectories (assets/, scripts/, references/).",
        lambda w: files(w, "scripts/a.py", "x.md").resources == [Path("scripts/a.py")],
    ),
    Case(
        "Returns an empty list if none of those directories exist.",
        lambda w: pdf(w).catalog() and pdf(w).resources == [],
    ),
    Case("Empty list if none of those directories exist.", lambda w: pdf(w).resources == []),
    Case(
        "frontmatter: SkillFrontmatter, location: Path, scope: SkillScope,",
        lambda w: (
            system.Skill(system.SkillFrontmatter(name="a", description="d"), put(w), USER).read_body() == "Fill it."
        ),
    ),
    Case("Return body content as string.", lambda w: pdf(w).read_body() == "Fill it."),
    Case(
        "Most error conditions are caught during discovery. These errors can only be raised if the skill file is "
        "modified between discovery",
        lambda w: pdf(w).read_body() and body_error(w, "text"),
    ),
    Case(
        "SkillValidationError: If the file cannot be read.",
        lambda w: isinstance(body_error(w, None), system.SkillValidationError),
    ),
    Case(
        'f"Failed to read SKILL.md at {self.location}: {e}"',
        lambda w: str(w.folder / PLACE / "pdf/SKILL.md") in str(body_error(w, None)),
        "the messages of other errors",
    ),
    Case(
        "InvalidFrontmatterError: If the frontmatter delimiters are missing or malformed.",
        lambda w: (
            isinstance(body_error(w, "text"), system.InvalidFrontmatterError)
            and isinstance(body_error(w, "---\nname: pdf\n"), system.InvalidFrontmatterError)
        ),
    ),
    Case(
        "EmptySkillBodyError: If the body is empty or whitespace-only.",
        lambda w: (
            isinstance(body_error(w, "---\nname: pdf\ndescription: d\n---\n"), system.EmptySkillBodyError)
            and isinstance(body_error(w, "---\nname: pdf\ndescription: d\n---\n \n\t\n"), system.EmptySkillBodyError)
        ),
    ),
    Case(
        '_, _, body = skill_md.split("---", 2)',
        lambda w: pdf(w, description="a --- b").frontmatter.description == "a --- b",
        "Only a line that is `---` ends the frontmatter.",
    ),
    Case("return body.strip()", lambda w: pdf(w, body="\n\n  Fill it.  \n\n").read_body() == "Fill it."),
    Case(
        'with open(self.location, "r", encoding="utf-8") as f:',
        lambda w: pdf(w) and put(w, body="New é.\n") and found()["pdf"].read_body() == "New é.",
    ),
    Case(
        "Return relative paths of resource files in optional subdirectories.",
        lambda w: all(not path.is_absolute() for path in files(w, "assets/a", "scripts/b", "references/c").resources),
    ),
    Case(
        "the relative path of each file found",
        lambda w: [*map(str, files(w, "references/b", "references/a").resources)] == ["references/a", "references/b"],
    ),
    Case(
        "for subdir in OPTIONAL_SUBDIRS:",
        lambda w: (
            [path.parts[0] for path in files(w, "references/a", "scripts/a", "assets/a").resources]
            == [*system.OPTIONAL_SUBDIRS]
        ),
    ),
    Case(
        "Only top-level files within each optional subdirectory are",
        lambda w: files(w, "scripts/deep/a.py", "scripts/b.py").resources == [Path("scripts/b.py")],
    ),
    Case(
        "files.extend(sorted(p.iterdir()))",
        lambda w: files(w, "assets/.hidden", "assets/a").resources == [Path("assets/a")],
        "Hidden files are only in `skill.files()`.",
    ),
    Case(
        "def resources(self) -> list[Path]:",
        lambda w: (skill := files(w, "assets/a")) and w.write(f"{PLACE}/pdf/assets/b") and len(skill.resources) == 2,
    ),
    Case(
        "Returns XML structured string for cataloging skill.",
        lambda w: pdf(w).catalog().startswith("<skill>") and pdf(w).catalog().endswith("</skill>"),
    ),
    Case(
        "name=self.frontmatter.name, description=self.frontmatter.description,",
        lambda w: (
            "<name>pdf</name>" in pdf(w).catalog() and "<description>Fills forms.</description>" in pdf(w).catalog()
        ),
    ),
    Case(
        "location=self.location.as_posix(),",
        lambda w: f"<location>{pdf(w).location.as_posix()}</location>" in pdf(w).catalog(),
    ),
    Case(
        "Absolute path to the skill's SKILL.md file on disk. scope",
        lambda w: system.Skill(pdf(w).frontmatter, pdf(w).location, PROJECT).location.is_absolute(),
    ),
)
"""The statements of the page about ``Skill``."""

NEWER = (
    Case("S4-1", lambda _: (USER == "user", PROJECT == "project", json.dumps(USER)) == (True, True, '"user"')),
    Case("S4-2", lambda w: put(w) and put(w, "csv", at="home") and [*found()] == ["csv", "pdf"]),
    Case(
        "S4-4",
        lambda w: (
            isinstance(folder_error(w, "---\nname: pdf\n---\nB\n"), system.InvalidFrontmatterError)
            and isinstance(folder_error(w, "---\ndescription: d\n---\nB\n"), system.InvalidFrontmatterError)
            and isinstance(
                folder_error(w, "---\nname: pdf\ndescription: ' '\n---\nB\n"), system.InvalidFrontmatterError
            )
            and pdf(w, fields="metadata: {a: b}\nunknown: x\nallowed-tools: Read Grep\n").frontmatter.allowed_tools_raw
            == "Read Grep"
        ),
    ),
    Case(
        "S4-5",
        lambda w: (
            put(w, "n" * 100)
            and put(w, "odd", name="other")
            and {system.NameTooLongWarning, system.NameMismatchWarning} == {*warned(system.discover_skills)}
            and [*found()] == ["n" * 100, "other"]
            and len(pdf(w, description="d" * 3000).frontmatter.description) == 3000
        ),
    ),
    Case(
        "S4-7",
        lambda w: put(w, body="") and [*found()] == ["pdf"] and raised(found()["pdf"].read_body),
        "A skill with an empty body loads with a warning.",
    ),
    Case(
        "S4-8",
        lambda w: put(w) and w.put(f"{PLACE}/bad", text=b"---\nname: \xff\n---\n") and [*found()] == ["pdf"],
        "It does not end discovery.",
    ),
    Case(
        "S4-9",
        lambda w: (
            system.validate_skill_dir(put(w).parent)[0].name == "pdf"
            and isinstance(raised(system.validate_skill_dir, w.folder), system.MissingSkillMdError)
            and isinstance(folder_error(w, "text"), system.InvalidFrontmatterError)
            and isinstance(folder_error(w, "---\nname: pdf\ndescription: d\n---\n"), system.EmptySkillBodyError)
            and issubclass(system.MissingSkillMdError, system.SkillValidationError)
        ),
    ),
    Case(
        "S4-10",
        lambda w: (
            put(w)
            and put(w, ".hidden", name="hidden")
            and w.put("elsewhere/linked")
            and (w.folder / PLACE / "linked").symlink_to(w.folder / "elsewhere/linked") is None
            and w.write(f"{PLACE}/file.md")
            and put(w, "deep/inner")
            and [*found()] == ["hidden", "linked", "pdf"]
        ),
    ),
    Case(
        "S4-11",
        lambda w: (
            put(w, at="home")
            and put(w)
            and found(PROJECT, USER)["pdf"].scope is USER
            and system.SkillShadowedWarning in warned(system.discover_skills)
        ),
    ),
    Case(
        "S4-14",
        lambda w: (
            tool(w).catalog().startswith("The following skills are available.")
            and tool(w).catalog().endswith("</available_skills>")
            and system.UseSkillTool({}).catalog() == ""
        ),
    ),
    Case(
        "S4-15",
        lambda w: (
            tool(w).name == "from_scratch__use_skill"
            and tool(w, ["csv"]).parameters_json_schema["properties"]["name"]["enum"] == ["pdf"]
            and "csv" not in tool(w, ["csv"]).catalog()
            and not tool(w, ["csv"])({"name": "csv"}).is_error
        ),
    ),
    Case(
        "S4-16",
        lambda w: (
            w.write(f"{PLACE}/pdf/scripts/a.py")
            and tool(w)({"name": "pdf"}).content
            == f'<skill_content name="pdf">\nFill it.\n\nSkill directory: {w.folder / PLACE / "pdf"}\n'
            "Relative paths in this skill are relative to the skill directory.\n"
            "<skill_resources>\n  <file>scripts/a.py</file>\n</skill_resources></skill_content>"
        ),
    ),
    Case(
        "S4-17",
        lambda w: (
            json.loads(tool(w)({"name": "x"}).content)
            == {"error_type": "ValueError", "message": "Skill 'x' not found."}
            and json.loads(tool(w)({"name": 7}).content)["message"] == "'name' argument must be a string."
        ),
    ),
    Case(
        "S4-18",
        lambda w: (
            "This is a user-explicit skill activation. Call the from_scratch__use_skill tool with name='pdf'."
            in tool(w).explicit("pdf", "Now.")
            and "<user-instructions>Now.</user-instructions>" in tool(w).explicit("pdf", "Now.")
            and "user-instructions" not in tool(w).explicit("pdf")
        ),
    ),
    Case(
        "S4-19",
        lambda _: (
            issubclass(system.SkillValidationError, system.SkillsError)
            and issubclass(system.EmptySkillBodyError, system.SkillValidationError)
            and issubclass(system.InvalidFrontmatterError, system.SkillValidationError)
        ),
    ),
)
"""What discovery and the tool do, which newer versions document by name alone: as the manifest states it."""
