"""The cases of the documentation of docker-agent's skills toolset."""

# A check is one expression: "and" follows what a step returns, which may always be true, or None.
# mypy: disable-error-code="truthy-bool, truthy-function, redundant-expr, func-returns-value"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import prowess
from tests.behaviour.documented import Case, World, raised

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORK = "context: fork\n"


def tools(w: World, **options: Any) -> prowess.Toolset:
    options.setdefault("fork", "host")
    return w.toolset("read_skill", **options)


def names(toolset: prowess.Toolset) -> list[str]:
    return [tool.name for tool in toolset.tools()]


def prepared(w: World, task: str = "", *, fields: str = FORK, body: str = "Fill it.\n") -> prowess.PreparedFork:
    w.put(fields=fields, body=body)
    found = tools(w).prepare_fork("pdf", task)
    assert isinstance(found, prowess.PreparedFork), found.content
    return found


def refused(w: World, name: str) -> str:
    found = tools(w).prepare_fork(name, "x")
    assert isinstance(found, prowess.ToolResult)
    assert found.is_error
    return found.content


def parameters(w: World, tool: str) -> Mapping[str, Any]:
    w.put(fields=FORK)
    w.write("skills/pdf/references/FORMS.md")
    (found,) = (one for one in tools(w).tools() if one.name == tool)
    return found.parameters


def described(w: World, tool: str, name: str) -> str:
    return str(parameters(w, tool)["properties"][name]["description"])


def trusting(w: World) -> prowess.Session:
    return w.session(trust=prowess.Trust(w.folder / "trust.json", ask=lambda _: True))


def in_order(text: str, parts: Iterable[str]) -> bool:
    places = [text.find(part) for part in parts]
    return -1 not in places and places == sorted(places)


REST = (
    "This section is empty.",
    "Callers (typically the runtime) use it to build the child session;",
)
"""Sentences that state nothing that a program could check, or what the words of a case state."""

CASES = (
    Case('ToolNameReadSkill = "read_skill"', lambda w: w.put() and names(tools(w)) == ["read_skill"]),
    Case(
        'ToolNameReadSkillFile = "read_skill_file"',
        lambda w: w.put() and w.write("skills/pdf/a.md") and names(tools(w)) == ["read_skill", "read_skill_file"],
    ),
    Case('ToolNameRunSkill = "run_skill"', lambda w: w.put(fields=FORK) and names(tools(w))[-1] == "run_skill"),
    Case(
        "BuildSkillSystemMessage returns the system prompt of a forked skill sub-session.",
        lambda w: "pdf" in prowess.fork_system_message(prepared(w)),
    ),
    Case(
        'task-delegation boilerplate from buildTaskSystemMessage (which references <task> / "team of agents")',
        lambda w: (
            (text := prowess.fork_system_message(prepared(w, "Do it.")))
            and "<task>" not in text
            and "team of" not in text
        ),
    ),
    Case(
        "attachedFiles, when non-empty, exposes parent-attached files by absolute path.",
        lambda w: (
            "<attached_files>\n- /repo/a.diff\n</attached_files>"
            in prowess.fork_system_message(prepared(w), ["/repo/a.diff"])
            and "attached" not in prowess.fork_system_message(prepared(w))
        ),
    ),
    Case(
        "BuildSkillUserMessage formats a PreparedSkillFork as the implicit user message of a forked sub-session.",
        lambda w: "Fill it." in prowess.fork_user_message(prepared(w)),
    ),
    Case(
        "It mirrors the inline `<skill name=...>` envelope",
        lambda w: '<skill name="pdf">\nFill it.' in prowess.fork_user_message(prepared(w)),
    ),
    Case(
        "strips the YAML frontmatter (already consumed by the runtime)",
        lambda w: "description:" not in prowess.fork_user_message(prepared(w)),
    ),
    Case(
        'surfaces a non-empty Task as a "User\'s request:" header',
        lambda w: (
            "User's request: Do it.\n" in prowess.fork_user_message(prepared(w, "Do it."))
            and "User's request" not in prowess.fork_user_message(prepared(w))
        ),
    ),
    Case("SkillName is the validated skill name", lambda w: prepared(w).skill_name == "pdf"),
    Case('and sub-session titles ("Skill: <name>")', lambda w: prepared(w).title == "Skill: pdf"),
    Case("Task is the caller-supplied task description", lambda w: prepared(w, "Do it.").task == "Do it."),
    Case(
        "Content is the expanded SKILL.md content.",
        lambda w: prepared(w).content.startswith("---\nname: pdf\n") and prepared(w).content.endswith("Fill it.\n"),
    ),
    Case(
        "Wrap with // BuildSkillUserMessage to use as the child's first user message.",
        lambda w: prowess.fork_user_message(prepared(w)).startswith("Use the following skill.\n\n"),
    ),
    Case(
        "Model is the optional model override declared in the SKILL.md frontmatter.",
        lambda w: prepared(w, fields=FORK + "model: fast\n").model == "fast",
    ),
    Case(
        'Empty means "use the parent agent\'s current model".',
        lambda w: not prepared(w).model,
    ),
    Case(
        "the skill-specific business rules (lookup, fork validation, content expansion) live with the toolset",
        lambda w: w.put() and refused(w, "pdf") and refused(w, "x"),
    ),
    Case(
        'Name string `json:"name" jsonschema:"The name of the skill to run in a forked context"`',
        lambda w: described(w, "run_skill", "name") == "The name of the skill to run in a forked context",
    ),
    Case(
        'Task string `json:"task" jsonschema:"A clear description of the task the skill should achieve"`',
        lambda w: described(w, "run_skill", "task") == "A clear description of the task the skill should achieve",
    ),
    Case(
        "RunSkillArgs specifies the parameters for the run_skill tool.",
        lambda w: parameters(w, "run_skill")["required"] == ["name", "task"],
    ),
    Case(
        "let an agent load skill content and supporting resources by name",
        lambda w: (
            w.put()
            and w.write("skills/pdf/a.md")
            and "Fill it." in tools(w).call("read_skill", {"name": "pdf"}).content
            and tools(w).call("read_skill_file", {"skill_name": "pdf", "path": "a.md"}).content == "text\n"
        ),
    ),
    Case(
        "It hides whether a skill is local or remote — the agent just sees a name and description.",
        lambda w: (
            w.put()
            and (text := tools(w).prompt())
            and in_order(text, ("<name>pdf</name>", "<description>Fills forms.</description>"))
            and str(w.folder) not in text
        ),
    ),
    Case(
        "FindSkill returns the skill with the given name, or nil if not found.",
        lambda w: w.put() and w.scan().get("pdf") and w.scan().get("x") is None,
    ),
    Case(
        "PrepareForkSubSession validates a run_skill request and loads the expanded skill content.",
        lambda w: (
            prepared(w, body="Say !`echo hi`.\n") and "!`echo hi`" in prepared(w, body="Say !`echo hi`.\n").content
        ),
        "In Prowess it stays text until a person grants exactly these files of the skill",
    ),
    Case(
        "It returns either a populated PreparedSkillFork, or a ToolCallResult", lambda w: w.put() and refused(w, "pdf")
    ),
    Case(
        "(skill missing, skill not configured for fork mode, content read failure)",
        lambda w: (
            (file := w.put("skills/gone", fields=FORK))
            and w.put()
            and (toolset := tools(w))
            and file.unlink() is None
            and isinstance(failed := toolset.prepare_fork("gone", "x"), prowess.ToolResult)
            and failed.content.startswith("failed to read skill content: ")
            and refused(w, "x") == 'skill "x" not found'
            and refused(w, "pdf").startswith('skill "pdf" is not configured for forked execution')
        ),
    ),
    Case(
        "The caller is responsible for the runtime-specific orchestration",
        lambda w: w.put(fields=FORK) and tools(w).call("run_skill", {"name": "pdf", "task": "x"}).fork,
    ),
    Case(
        "ReadSkillContent returns the content of a skill's SKILL.md by name.",
        lambda w: (file := w.put()) and w.session().read_text("pdf", whole=True) == file.read_text(encoding="utf-8"),
    ),
    Case(
        "For local skills, it expands any !`command` patterns in the content by executing the commands",
        lambda w: w.put(body="Say !`echo hi`.\n") and "!`echo hi`" in w.session().read_text("pdf", whole=True),
        "In Prowess it stays text until a person grants exactly these files of the skill",
    ),
    Case(
        "replacing the patterns with their stdout output",
        lambda w: w.put(body="Say !`printf 'a  \\n\\n'`.\n") and "Say a  ." in trusting(w).read_text("pdf", whole=True),
    ),
    Case(
        "Command expansion is disabled for remote and inline skills to prevent arbitrary code execution.",
        lambda w: "!`echo hi`" in inlined(w).read_text("say", whole=True),
    ),
    Case(
        "ReadSkillFile returns the content of a supporting file within a skill.",
        lambda w: w.put() and w.write("skills/pdf/a.md") and w.session().read_resource("pdf", "a.md") == "text\n",
    ),
    Case(
        'The path is relative to the skill\'s base directory (e.g. "references/FORMS.md").',
        lambda w: (
            w.put()
            and w.write("skills/pdf/references/FORMS.md")
            and w.session().read_resource("pdf", "references/FORMS.md") == "text\n"
            and raised(w.session().read_resource, "pdf", "../x")
            and raised(w.session().read_resource, "pdf", "/etc/passwd")
        ),
    ),
    Case(
        "func (s *ToolSet) Skills() []skills.Skill",
        lambda w: w.put() and w.put("skills/csv") and [skill.name for skill in w.scan().skills] == ["csv", "pdf"],
    ),
    Case(
        "func (s *ToolSet) Instructions() string",
        lambda w: (
            w.put()
            and tools(w).prompt().endswith("</available_skills>")
            and prowess.Toolset(prowess.Session(prowess.Catalog()), "read_skill").prompt() == ""
        ),
    ),
    Case(
        "func (s *ToolSet) Tools(context.Context) ([]tools.Tool, error)",
        lambda w: names(tools(w)) == [],
    ),
    # -- other pages of its documentation
    Case(
        "S2-2",
        lambda w: (
            w.put("work/.agents/skills/pdf", description="Nearest.")
            and w.put("home/.agents/skills/pdf")
            and prowess.discover(w.folder / "work", w.folder / "home")["pdf"].description == "Nearest."
        ),
    ),
    Case(
        "S2-9",
        lambda w: (
            w.put()
            and w.put("skills/csv")
            and [skill.name for skill in w.session().moment().eligible()] == ["csv", "pdf"]
            and "csv" not in tools(w, allowed=["pdf"]).prompt()
            and raised(tools, w, allowed=["x"])
            and tools(w, allowed=["x"], missing="ignore").prompt() == ""
        ),
        "A name that no skill has is an error.",
    ),
    Case(
        "S2-10",
        lambda _: (
            raised(prowess.Source.inline("a b", "d", "i").load)
            and raised(prowess.Source.inline("a", "", "i").load)
            and raised(prowess.Source.inline("a", "d", "").load)
            and raised(prowess.Source.inline("a", "d", "i", context="x").load)
            and prowess.Source.inline("a", "d", "i", allowed_tools=["Read"]).load()["a"].allowed_tools == ("Read",)
        ),
        "S2-10",
    ),
    Case(
        "S2-32",
        lambda w: w.put(fields="version: !`echo hi`\n") and "!`echo hi`" in trusting(w).read_text("pdf", whole=True),
        "S2-32",
    ),
    Case("S2-37", lambda w: w.put() and refused(w, "x") == 'skill "x" not found'),
    Case("S2-38", lambda w: w.put(fields="context: Fork\n") and "run_skill" not in names(tools(w))),
    Case(
        "S2-39",
        lambda w: (
            prowess.fork_user_message(prepared(w, "Do it."))
            == 'Use the following skill.\n\nUser\'s request: Do it.\n\n<skill name="pdf">\nFill it.\n\n</skill>'
        ),
    ),
    Case(
        "S2-41",
        lambda w: "next user message" in prowess.fork_system_message(prepared(w)),
        "the system message of a fork",
    ),
    Case(
        "S2-42",
        lambda w: (
            prepared(w, fields=FORK + "allowed-tools: Read\n").child_tools(["Read", "Write"])
            and "run_skill" not in [tool.name for tool in tools(w).child(prepared(w)).possible_tools()]
        ),
    ),
    Case(
        "S2-43",
        lambda w: w.put(body="Say.\n") and "Say." in w.session().expand("/pdf now") and w.session().expand("pdf") == "",
        "It returns the instructions without the frontmatter.",
    ),
)


def inlined(w: World) -> prowess.Session:
    catalog = prowess.Catalog.from_sources([prowess.Source.inline("say", "Says.", "Say !`echo hi`.")])
    return prowess.Session(catalog, trust=prowess.Trust(w.folder / "trust.json", ask=lambda _: True))
