"""Forks: skills that run as a sub-agent, with its messages, its tools, and a runner that starts a process."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prowess.arguments import check_instance, check_text, check_texts, raise_bad_argument
from prowess.conversation.acting.supervised import ProcessLimits, run_under_supervisor
from prowess.conversation.rendering import wrap_instructions
from prowess.conversation.tool_rules import (
    ALLOWED,
    NOT_MENTIONED,
    REFUSED,
    is_tool_match,
    judge_call,
    parse_tool_pattern,
)
from prowess.errors import InvalidFrontmatterError, SandboxError, SkillError
from prowess.format.frontmatter.fences import find_fences
from prowess.format.head import LoadPolicy, read_head
from prowess.limits import DEFAULT_LIMITS
from prowess.text.hidden_characters import to_one_line
from prowess.text.markup import CONTENT_TAG, neutralize_tags

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from prowess.conversation.tool_rules import ToolAnswer
    from prowess.limits import Limits

    ForkRunner = Callable[["PreparedFork"], "str | Awaitable[str]"]

_PLACEHOLDER = re.compile(r"\{(prompt|system|model|skill)\}")
_MAX_STDERR_SHOWN = 500
PARENT_ONLY_TOOLS = frozenset(("run_skill",))
"""Tools that a sub-agent does not get: a fork does not fork."""
FILE_TOOLS = frozenset(("read_skill_file", "skill__read_resource", "skill_resource"))
"""Tools that read the files of skills: a sub-agent always gets them, since its instructions may name such files."""


@dataclass(frozen=True, slots=True)
class PreparedFork:
    """A skill that is about to run as a sub-agent: it may be called, and its content is expanded."""

    skill_name: str
    task: str
    content: str
    """The whole SKILL.md, its commands run if it is trusted, its placeholders filled from the task."""
    model: str = ""
    """The model that the skill asks for; ``""``: the parent's."""
    allowed_tools: tuple[str, ...] = ()
    """The only tools of the parent that the child gets, as names or patterns within the session's ceiling. When empty,
    the child gets all of the parent's tools, unless ``allows_nothing`` is true."""
    head: int | None = None
    """How many characters of the content precede the instructions; ``None``: as many as its frontmatter has."""
    allows_nothing: bool = False
    """Whether the session's ceiling leaves the child no tool at all."""
    grants_tools: bool = True
    """Whether the host lets skills approve tools, and this one lists some. Otherwise ``allowed_tools`` bounds the child
    but approves nothing."""
    toolsets: tuple[str, ...] = ()
    """The names of the host's toolsets that the skill asks for besides. No list bounds them: the host decides which of
    them a skill may have."""

    @property
    def title(self) -> str:
        """The title of the child's conversation."""
        return f"Skill: {self.skill_name}"

    @property
    def is_bounded(self) -> bool:
        """Whether the child gets only some of the parent's tools."""
        return self.allows_nothing or bool(self.allowed_tools)

    def allows(self, tool: str, command: str | None = None) -> ToolAnswer:
        """Return whether the child may make a call: ``allowed``, ``refused``, or ``not-mentioned``.

        Only ``allowed`` is true. ``not-mentioned`` leaves the call to the host's own rules. It is the answer where
        nothing bounds the child, and for the tools within the ceiling where ``grants_tools`` is false, since then the
        skill approves nothing. A tool outside of the list is refused, and so is a command that the patterns of its tool
        do not cover, and a fork of the fork. The tools that read files of skills are allowed.
        """
        check_text(tool, "tool")
        if command is not None:
            check_text(command, "command")
        if tool in PARENT_ONLY_TOOLS:
            return REFUSED
        if tool in FILE_TOOLS:
            return ALLOWED
        answer = judge_call(tool, command, self.allowed_tools, has_families=True)
        if answer and not self.grants_tools:
            return NOT_MENTIONED
        return REFUSED if answer == NOT_MENTIONED and self.is_bounded else answer

    def child_tools(self, offered: Iterable[str]) -> tuple[str, ...]:
        """Return which of the parent's tools the child gets, in their order.

        A partly allowed tool is returned with its pattern, such as ``Bash(git:*)``. The tools that
        read files of skills are always included.
        """
        names = check_texts(offered, "offered")
        return tuple(tool for name in names if name not in PARENT_ONLY_TOOLS for tool in self._narrow_tool(name))

    def _narrow_tool(self, name: str) -> tuple[str, ...]:
        """Return what the child gets of one tool: the tool, its patterns, or nothing."""
        patterns = [
            pattern for pattern in map(parse_tool_pattern, self.allowed_tools) if is_tool_match(name, pattern.tool)
        ]
        is_whole = not self.is_bounded or name in FILE_TOOLS
        if is_whole or any(pattern.inside is None for pattern in patterns):
            return (name,)
        return tuple(f"{name}({pattern.inside})" for pattern in patterns)


def fork_system_message(prepared: PreparedFork, attached_files: Iterable[str | os.PathLike[str]] = ()) -> str:
    """Return the system prompt of the child; attached files are named by their absolute paths.

    Raises ``SourceError`` for anything but a prepared fork, and for a single path instead of a list.
    """
    check_instance(prepared, "prepared", PreparedFork, remedy="pass toolset.prepare_fork(name, task)")
    if isinstance(attached_files, str):  # each letter would be taken for a path
        raise_bad_argument("attached_files", "must be a list of paths", attached_files, f"pass [{attached_files!r}]")
    name = neutralize_tags(to_one_line(prepared.skill_name))
    prompt = (
        f'You carry out the skill "{name}" on your own. The next user message contains the full skill instructions, '
        "and the request if there is one. Follow them to the end and answer with the result alone: nobody reads what "
        "you say on the way."
    )
    paths = [to_one_line(os.path.abspath(os.fspath(path))) for path in attached_files]
    if not paths:
        return prompt
    # The name of a file may be hostile: it must not end the element that it is in.
    listing = neutralize_tags("".join(f"\n- {path}" for path in paths), "attached_files", CONTENT_TAG)
    return f"{prompt}\n\nThe user has attached files, which you can read:\n<attached_files>{listing}\n</attached_files>"


def fork_user_message(prepared: PreparedFork) -> str:
    """Return the first user message of the child: the request, and the instructions in an element."""
    head = find_body_start(prepared.content) if prepared.head is None else prepared.head
    return wrap_instructions(prepared.skill_name, prepared.content[head:], prepared.task)


def find_body_start(content: str) -> int:
    """Return how many characters precede the instructions; 0 without a complete frontmatter."""
    data = content.encode("utf-8", "surrogatepass")
    try:
        offset = read_head(data, quick=False, policy=LoadPolicy(check_dir=False), folder="skill").body_offset
    except SkillError:
        # A host may make a fork of text that is not a valid skill: the fences of a frontmatter still count.
        try:
            fences = find_fences(data, whole=True)
        except InvalidFrontmatterError:
            return 0
        offset = 0 if fences is None else fences.body
    return len(data[:offset].decode("utf-8", "surrogatepass"))


def subprocess_fork(
    command: Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Callable[[PreparedFork], str]:
    """Return a runner for forks that starts a command-line agent and returns what it prints.

    The prompt goes to the agent's standard input, or takes the place of ``{prompt}`` in a word of ``command``. The
    words ``{system}``, ``{model}`` and ``{skill}`` are filled as well. The command is the host's own: it sees the whole
    environment, or ``env``. The runner raises ``SandboxError`` (code ``fork-failed``) when the agent fails.
    """
    if isinstance(command, str) or not command:
        raise SandboxError("command is a list: the program, then its words", code="bad-argument")
    words = tuple(command)

    def run_fork(prepared: PreparedFork) -> str:
        system, user = fork_system_message(prepared), fork_user_message(prepared)
        separate = any("{system}" in word for word in words)
        prompt = user if separate else f"{system}\n\n{user}"
        values = {"prompt": prompt, "system": system, "model": prepared.model, "skill": prepared.skill_name}
        is_argument = any("{prompt}" in word for word in words)
        result = run_under_supervisor(
            # One pass: a prompt that holds "{model}" keeps it. NUL cannot be part of an argument of a program.
            [_PLACEHOLDER.sub(lambda match: values[match[1]].replace("\0", ""), word) for word in words],
            ProcessLimits(limits.max_fork_seconds, limits.max_fork_output_bytes),
            cwd=os.path.abspath(os.fspath(cwd)) if cwd is not None else os.getcwd(),
            env=dict(os.environ if env is None else env),
            stdin=b"" if is_argument else prompt.encode("utf-8", "replace"),
        )
        if result.limit or result.status != 0:
            why = f"met its limit of {result.limit}" if result.limit else f"ended with exit status {result.status}"
            # The end of what it printed: programs say last why they failed.
            stderr = to_one_line(result.stderr.decode("utf-8", "replace"))[-_MAX_STDERR_SHOWN:]
            raise SandboxError(f"the sub-agent {why}{f': {stderr}' if stderr else ''}", code="fork-failed")
        return result.stdout.decode("utf-8", "replace").strip()

    return run_fork
