"""Skills that run as a sub-agent of their own: what the child is told, what it may use, a child that is a process."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prowess.arguments import check_instance, check_text, check_texts, raise_bad_argument
from prowess.errors import InvalidFrontmatterError, SandboxError, SkillError
from prowess.limits import DEFAULT_LIMITS
from prowess.runtime.acting.supervised import ProcessLimits, run_under_supervisor
from prowess.runtime.user_call import wrap_instructions
from prowess.spec.document import LoadPolicy, read_document
from prowess.spec.frontmatter.fences import find_fences
from prowess.spec.hidden_characters import to_one_line
from prowess.spec.markup import CONTENT_TAG, neutralize_tags
from prowess.spec.tool_rules import intersect_ceilings, is_tool_match, judge_call, parse_tool_pattern

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from prowess.limits import Limits
    from prowess.spec.tool_rules import ToolAnswer

    ForkRunner = Callable[["PreparedFork"], "str | Awaitable[str]"]

_PLACEHOLDER = re.compile(r"\{(prompt|system|model|skill)\}")
PARENT_ONLY_TOOLS = frozenset(("run_skill",))
"""Tools that a sub-agent does not get: a fork does not fork."""
FILE_TOOLS = frozenset(("read_skill_file", "skill__read_resource", "skill_resource"))
"""Tools that read the files of skills: a sub-agent always gets them, since its instructions may name such files."""


@dataclass(frozen=True, slots=True)
class PreparedFork:
    """A skill that is about to run as a sub-agent: checked, its content expanded."""

    skill_name: str
    task: str
    content: str
    """The whole SKILL.md, its commands run if it is trusted, its placeholders filled from the task."""
    model: str = ""
    """The model that the skill wishes for; ``""``: the parent's."""
    allowed_tools: tuple[str, ...] = ()
    """The only tools of the parent that the child gets, as names or patterns, after the session's ceiling; none listed:
    all of them, unless ``allows_nothing``."""
    head: int | None = None
    """How many characters of the content stand before the instructions; ``None``: whatever is its frontmatter."""
    allows_nothing: bool = False
    """Whether the session's ceiling leaves the child no tool at all."""
    grants_tools: bool = True
    """Whether the host said which tools skills may approve: where it did not, a list bounds the child and approves
    nothing."""
    toolsets: tuple[str, ...] = ()
    """The toolsets of the host that the skill wishes for besides, by name. No list bounds them: which of them a skill
    may have is for the host to decide."""

    @property
    def title(self) -> str:
        """What the child's conversation is called."""
        return f"Skill: {self.skill_name}"

    @property
    def is_bounded(self) -> bool:
        """Whether the child gets only some of the parent's tools."""
        return self.allows_nothing or bool(self.allowed_tools)

    def allows(self, tool: str, command: str | None = None) -> ToolAnswer:
        """Whether the child may make a call: ``allowed``, ``refused``, or ``not-mentioned``: what the host does anyway.

        It is ``not-mentioned`` where nothing bounds the child, and within its list where the session was given no
        ``tools``, since then no skill approves anything. A tool that is not in a list that bounds the child is
        refused, and so is a command that the patterns of its tool do not cover, and a fork of the fork. The tools that
        read files of skills are allowed.
        """
        check_text(tool, "tool")
        if command is not None:
            check_text(command, "command")
        if tool in PARENT_ONLY_TOOLS:
            return "refused"
        if tool in FILE_TOOLS:
            return "allowed"
        answer = judge_call(tool, command, self.allowed_tools, has_families=True)
        if answer == "allowed" and not self.grants_tools:
            return "not-mentioned"
        return "refused" if answer == "not-mentioned" and self.is_bounded else answer

    def child_tools(self, offered: Iterable[str]) -> tuple[str, ...]:
        """Those of the parent's tools that the child gets, in their order; ``Bash(git:*)`` where no more is allowed.

        The tools that read files of skills are always among them.
        """
        names = check_texts(offered, "offered")
        return tuple(tool for name in names if name not in PARENT_ONLY_TOOLS for tool in self._narrow_tool(name))

    def _narrow_tool(self, name: str) -> tuple[str, ...]:
        """What the child gets of one tool: the tool, its patterns, or nothing."""
        own = [one for one in self.allowed_tools if is_tool_match(name, parse_tool_pattern(one).tool)]
        is_whole = not self.is_bounded or name in FILE_TOOLS
        if is_whole or any(parse_tool_pattern(one).inside is None for one in own):
            return (name,)
        return tuple(f"{name}({parse_tool_pattern(one).inside})" for one in own)


def limit_fork_tools(prepared: PreparedFork, ceiling: Iterable[str] | None) -> PreparedFork:
    """The same fork with no tool beyond ``ceiling``; ``None`` is no ceiling."""
    if ceiling is None:
        return prepared
    left = intersect_ceilings(prepared.allowed_tools or None, ceiling) or ()
    return replace(prepared, allowed_tools=left, allows_nothing=not left)


def fork_system_message(prepared: PreparedFork, attached_files: Iterable[str | os.PathLike[str]] = ()) -> str:
    """The system prompt of the child; attached files are named by their absolute paths."""
    check_instance(prepared, "prepared", PreparedFork, remedy="pass toolset.prepare_fork(name, task)")
    if isinstance(attached_files, str):  # it would count letter by letter
        raise_bad_argument("attached_files", "is a list of paths", attached_files, f"pass [{attached_files!r}]")
    name = neutralize_tags(to_one_line(prepared.skill_name))
    said = (
        f'You carry out the skill "{name}" on your own. The next user message contains the full skill instructions, '
        "and the request if there is one. Follow them to the end and answer with the result alone: nobody reads what "
        "you say on the way."
    )
    paths = [to_one_line(os.path.abspath(os.fspath(path))) for path in attached_files]
    if not paths:
        return said
    rows = neutralize_tags("".join(f"\n- {path}" for path in paths), "attached_files", CONTENT_TAG)
    return f"{said}\n\nThe user has attached files, which you can read:\n<attached_files>{rows}\n</attached_files>"


def fork_user_message(prepared: PreparedFork) -> str:
    """The first user message of the child: the request, and the instructions in an element."""
    head = find_body_start(prepared.content) if prepared.head is None else prepared.head
    body = prepared.content[head:]
    return wrap_instructions(prepared.skill_name, body, prepared.task)


def find_body_start(content: str) -> int:
    """How many characters stand before the instructions; 0 where there is no frontmatter, or no end to it."""
    data = content.encode("utf-8", "surrogatepass")
    return len(data[: _find_body_offset(data)].decode("utf-8", "surrogatepass"))


def _find_body_offset(data: bytes) -> int:
    try:
        document = read_document(
            data, whole=True, policy=LoadPolicy("lenient"), folder="skill", path="", check_dir=False
        )
    except SkillError:  # not a skill by itself: its dashes tell
        try:
            fences = find_fences(data, whole=True)
        except InvalidFrontmatterError:
            return 0
        return 0 if fences is None else fences.body
    return document.body_offset


def subprocess_fork(
    command: Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Callable[[PreparedFork], str]:
    """A runner for forks that starts a command-line agent and gives what it prints.

    The prompt goes to its standard input; where a word of ``command`` holds ``{prompt}``, it is put there instead, as
    are ``{system}``, ``{model}`` and ``{skill}``. The command is the host's own: it sees the whole environment, or
    ``env``.
    """
    if isinstance(command, str) or not command:
        raise SandboxError("command is a list: the program, then its words", code="bad-argument")
    words = tuple(command)

    def run_fork(prepared: PreparedFork) -> str:
        system, user = fork_system_message(prepared), fork_user_message(prepared)
        separate = any("{system}" in word for word in words)
        prompt = user if separate else f"{system}\n\n{user}"
        known = {"prompt": prompt, "system": system, "model": prepared.model, "skill": prepared.skill_name}
        by_word = any("{prompt}" in word for word in words)
        found = run_under_supervisor(
            [_fill_word(word, known) for word in words],
            ProcessLimits(limits.max_fork_seconds, limits.max_fork_output_bytes),
            cwd=os.path.abspath(os.fspath(cwd)) if cwd is not None else os.getcwd(),
            env=dict(os.environ if env is None else env),
            stdin=b"" if by_word else prompt.encode("utf-8", "replace"),
        )
        if found.limit or found.status != 0:
            why = f"met its limit of {found.limit}" if found.limit else f"ended with exit status {found.status}"
            said = to_one_line(found.stderr.decode("utf-8", "replace"))[-500:]
            raise SandboxError(f"the sub-agent {why}{f': {said}' if said else ''}", code="fork-failed")
        return found.stdout.decode("utf-8", "replace").strip()

    return run_fork


def _fill_word(word: str, known: Mapping[str, str]) -> str:
    """One pass: what is put in is not looked at again."""
    return _PLACEHOLDER.sub(lambda match: known[match[1]].replace("\0", ""), word)
