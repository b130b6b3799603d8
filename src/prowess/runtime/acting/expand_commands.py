"""Commands in instructions, run for skills on this machine that a person trusts, and for no others.

The text comes from a private copy whose hash was granted. Each command runs once, in the caller's folder, bounded in
time and output; what it prints takes its place and is never looked at again. Commands are not sandboxed.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prowess.errors import Issue, SkillError
from prowess.runtime.acting.snapshot import take_snapshot
from prowess.runtime.acting.supervised import ProcessLimits, make_environment, run_under_supervisor
from prowess.runtime.acting.trust import TrustRequest
from prowess.runtime.concurrency import get_pools
from prowess.spec.commands import ExpandedText, find_commands, insert_outputs, may_have_commands
from prowess.spec.hidden_characters import to_one_line
from prowess.spec.placeholders import FOLDER_NAMES, PROJECT_NAMES, split_arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.limits import Limits
    from prowess.runtime.acting.supervised import ProcessResult
    from prowess.runtime.consent import Consent
    from prowess.skills.skill import Skill
    from prowess.spec.commands import EmbeddedCommand

    ReadText = Callable[[Skill], str]
    OnCommand = Callable[[str, ProcessResult | None], None]

_MAX_COMMAND_SHOWN = 200
_MAX_STDERR_SHOWN = 500
_SHELLS = ("bash", "sh")
_RETRYABLE_CODES = frozenset(("needs-approval", "ask-needs-acall", "busy"))
"""Errors of a load that can be made again: to show the text without its outputs would end the matter."""


@dataclass(frozen=True, slots=True)
class CommandExpander:
    """How a session runs the commands of its skills."""

    consent: Consent
    folder: str
    limits: Limits
    on_command: OnCommand
    variables: tuple[str, ...] = ()
    """The variables of the host's environment that they see besides the allow-list, by name."""

    def expand(
        self, skill: Skill, read: ReadText, *, arguments: str = "", begin: ReadText | None = None
    ) -> ExpandedText:
        """What ``read`` gives of a skill, with its commands run if that is trusted.

        ``begin``: the part at the beginning of that text which is left alone. Raises ``SkillError`` where nothing is to
        be shown yet: a person is to be asked first, or too much runs already.
        """
        text = read(skill)
        if not may_have_commands(text):
            return ExpandedText(text)
        commands = find_commands(text, len(begin(skill)) if begin else 0)
        if not commands:
            return ExpandedText(text)
        refused = self._find_refusal(skill, commands)
        if refused:
            return _skip_commands(text, skill, commands, *refused)
        try:
            return self._expand_from_copy(skill, read, arguments, begin)
        except SkillError as error:
            if error.code in _RETRYABLE_CODES:
                raise
            if error.code == "not-trusted":
                return _skip_commands(
                    text, skill, commands, "the skill is not trusted as it is now", "commands-not-run"
                )
            return _skip_commands(text, skill, commands, error.message, error.code)

    def _find_refusal(self, skill: Skill, commands: tuple[EmbeddedCommand, ...]) -> tuple[str, str] | None:
        if not skill.is_local:
            return "the skill is not a folder on this machine", "not-local"
        trust = self.consent.trust
        if trust is None or trust.policy == "never":
            return "nothing runs in this session: it has no trust", "no-trust"
        if len(commands) > self.limits.max_commands:
            return f"there are more than {self.limits.max_commands}", "too-many-commands"
        return None

    def _expand_from_copy(self, skill: Skill, read: ReadText, arguments: str, begin: ReadText | None) -> ExpandedText:
        with take_snapshot(skill) as taken:
            text = read(taken.skill)
            commands = find_commands(text, len(begin(taken.skill)) if begin else 0)
            refused = self._find_refusal(skill, commands)
            if refused:
                return _skip_commands(text, skill, commands, *refused)
            said = (arguments,) if arguments else ()
            texts = tuple(command.text for command in commands)
            leave = self.consent.require(TrustRequest(skill, taken.digest, texts, "", said, taken.files))
            with get_pools(self.limits).scripts.hold_place():
                outputs = [self._run_command(text, taken.folder, arguments) for text in texts]
        made, spans = insert_outputs(text, commands, [said for said, _ in outputs])
        failed = (Issue("command-failed", "body", why, skill.location, 0, "warning") for _, why in outputs if why)
        return ExpandedText(made, spans, tuple(failed), leave, taken.digest)

    def _run_command(self, command: str, folder: str, arguments: str) -> tuple[str, str]:
        """What takes the command's place, and what went wrong."""
        shell = next(filter(None, map(shutil.which, _SHELLS)), None)
        if shell is None:
            return _describe_failure(command, "there is no shell on this machine")
        said = arguments.replace("\0", " ")
        folders = {**dict.fromkeys(FOLDER_NAMES, folder), **dict.fromkeys(PROJECT_NAMES, self.folder)}
        try:
            found = run_under_supervisor(
                [shell, "-c", "--", command, *(split_arguments(said) or (shell,))],
                ProcessLimits.for_commands(self.limits),
                cwd=self.folder,
                env=make_environment({**folders, "ARGUMENTS": said}, self.variables),
            )
        except SkillError as error:
            self.on_command(command, None)
            return _describe_failure(command, error.message)
        self.on_command(command, found)
        return _describe_outcome(command, found, self.limits)


def _describe_outcome(command: str, found: ProcessResult, limits: Limits) -> tuple[str, str]:
    if found.limit == "timeout":
        return _describe_failure(command, f"command timed out after {limits.max_command_seconds:g}s")
    if found.limit not in {"", "output"}:
        return _describe_failure(command, f"stopped: {found.limit}")
    if found.status != 0 and not found.limit:
        said = to_one_line(found.stderr.decode("utf-8", "replace"))[:_MAX_STDERR_SHOWN]
        return _describe_failure(command, f"exit status {found.status}" + (f": {said}" if said else ""))
    text = found.stdout.decode("utf-8", "replace").rstrip("\r\n")
    most = limits.max_command_output_bytes
    if found.limit and not found.stdout_cut:
        return f"{text}\n[stopped: it said more than {most} bytes on its error stream]".lstrip("\n"), ""
    return (f"{text}\n[output cut at {most} bytes]" if found.limit else text), ""


def _describe_failure(command: str, why: str) -> tuple[str, str]:
    shown = to_one_line(command)[:_MAX_COMMAND_SHOWN]
    return f"[error executing `{shown}`: {why}]", f"`{shown}`: {why}"


def _skip_commands(text: str, skill: Skill, commands: tuple[EmbeddedCommand, ...], why: str, code: str) -> ExpandedText:
    """Return the text as it is, and the issue that says why: for the host, since no model can allow commands."""
    count = f"{len(commands)} command{'s' if len(commands) != 1 else ''} in these instructions"
    issue = Issue(code, "body", f"{count} did not run: {why}", skill.location, 0, "warning")
    return ExpandedText(text, (), (issue,), "refused")
