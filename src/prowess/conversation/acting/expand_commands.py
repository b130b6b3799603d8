"""Running the commands in instructions of trusted skills, and putting what they print in their place.

The text comes from a private copy whose digest was granted. Each command runs once, in the working folder, bounded in
time and output. No command or placeholder is looked for in what it prints. Commands are not sandboxed.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prowess.conversation.acting.snapshot import take_snapshot
from prowess.conversation.acting.supervised import ProcessLimits, make_environment, run_under_supervisor
from prowess.conversation.acting.trust_request import TrustRequest
from prowess.conversation.work_pools import get_pools
from prowess.errors import Issue, SkillError
from prowess.format.commands import ExpandedText, find_commands, insert_outputs, may_have_commands
from prowess.format.placeholders import FOLDER_NAMES, PROJECT_NAMES, split_arguments
from prowess.text.hidden_characters import to_one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.conversation.acting.supervised import ProcessResult
    from prowess.conversation.consent import Consent
    from prowess.format.commands import EmbeddedCommand
    from prowess.limits import Limits
    from prowess.skills.skill import Skill

    ReadText = Callable[[Skill], str]
    OnCommand = Callable[[str, ProcessResult | None], None]

_MAX_COMMAND_SHOWN = 200
_MAX_STDERR_SHOWN = 500
_SHELLS = ("bash", "sh")
_RETRYABLE_CODES = frozenset(("needs-approval", "ask-needs-acall", "busy"))
"""Errors after which the call can be made again: text without the outputs would look like the final answer."""


@dataclass(frozen=True, slots=True)
class CommandExpander:
    """Runs the commands in the text of skills."""

    consent: Consent
    folder: str
    limits: Limits
    on_command: OnCommand
    variables: tuple[str, ...] = ()
    """The names of the host's environment variables that commands see besides the allow-list."""

    def expand(
        self, skill: Skill, read: ReadText, *, arguments: str = "", begin: ReadText | None = None
    ) -> ExpandedText:
        """Return the text that ``read`` returns for a skill, with its commands run if the skill is trusted.

        ``begin`` returns the beginning of that text, where no commands run. Raises ``SkillError`` where nothing can
        be shown yet: a person is to be asked first, or too many programs run already.
        """
        text = read(skill)
        if not may_have_commands(text):
            return ExpandedText(text)
        commands = find_commands(text, len(begin(skill)) if begin else 0)
        if not commands:
            return ExpandedText(text)
        # Before the snapshot, which copies every file: most hosts have no trust.
        refusal = self._find_refusal(skill, commands)
        if refusal:
            return _skip_commands(text, skill, commands, *refusal)
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
        """Return why commands do not run, whatever was granted, and the code of the issue; ``None``: they may run."""
        if not skill.is_local:
            return "the skill is not a folder on this machine", "not-local"
        trust = self.consent.trust
        if trust is None or trust.policy == "never":
            return "nothing runs in this session: it has no trust", "no-trust"
        if len(commands) > self.limits.max_commands:
            return f"there are more than {self.limits.max_commands}", "too-many-commands"
        return None

    def _expand_from_copy(self, skill: Skill, read: ReadText, arguments: str, begin: ReadText | None) -> ExpandedText:
        with take_snapshot(skill) as snapshot:
            # Everything is read again from the copy: the file may have changed since the first look.
            text = read(snapshot.skill)
            commands = find_commands(text, len(begin(snapshot.skill)) if begin else 0)
            refusal = self._find_refusal(skill, commands)
            if refusal:
                return _skip_commands(text, skill, commands, *refusal)
            given = (arguments,) if arguments else ()
            lines = tuple(command.text for command in commands)
            permission = self.consent.require(TrustRequest(skill, snapshot.digest, lines, "", given, snapshot.files))
            with get_pools(self.limits).scripts.hold_place():
                outputs = [self._run_command(command, snapshot.folder, arguments) for command in lines]
        expanded, spans = insert_outputs(text, commands, [output for output, _ in outputs])
        failed = (Issue("command-failed", "body", why, skill.location, 0, "warning") for _, why in outputs if why)
        return ExpandedText(expanded, spans, tuple(failed), permission, snapshot.digest)

    def _run_command(self, command: str, folder: str, arguments: str) -> tuple[str, str]:
        """Return the text that takes the place of a command, and what went wrong (``""``: nothing)."""
        shell = next(filter(None, map(shutil.which, _SHELLS)), None)
        if shell is None:
            return _describe_failure(command, "there is no shell on this machine")
        words = arguments.replace("\0", " ")  # a program cannot be given NUL
        folders = {**dict.fromkeys(FOLDER_NAMES, folder), **dict.fromkeys(PROJECT_NAMES, self.folder)}
        try:
            result = run_under_supervisor(
                # The arguments are $0, $1 and so on of the command, never a part of its text: they cannot inject code.
                [shell, "-c", "--", command, *(split_arguments(words) or (shell,))],
                ProcessLimits.for_commands(self.limits),
                cwd=self.folder,
                env=make_environment({**folders, "ARGUMENTS": words}, self.variables),
            )
        except SkillError as error:
            self.on_command(command, None)
            return _describe_failure(command, error.message)
        self.on_command(command, result)
        return _describe_outcome(command, result, self.limits)


def _describe_outcome(command: str, result: ProcessResult, limits: Limits) -> tuple[str, str]:
    """Return the text that takes the place of a command that ran, and what went wrong (``""``: nothing)."""
    if result.limit == "timeout":
        return _describe_failure(command, f"command timed out after {limits.max_command_seconds:g}s")
    if result.limit not in {"", "output"}:
        return _describe_failure(command, f"stopped: {result.limit}")
    if result.status != 0 and not result.limit:
        stderr = to_one_line(result.stderr.decode("utf-8", "replace"))[:_MAX_STDERR_SHOWN]
        return _describe_failure(command, f"exit status {result.status}" + (f": {stderr}" if stderr else ""))
    # A command that printed too much is not a failure: a model can use the beginning of a long output.
    text = result.stdout.decode("utf-8", "replace").rstrip("\r\n")
    limit = limits.max_command_output_bytes
    if result.limit and not result.stdout_cut:
        return f"{text}\n[stopped: it said more than {limit} bytes on its error stream]".lstrip("\n"), ""
    return (f"{text}\n[output cut at {limit} bytes]" if result.limit else text), ""


def _describe_failure(command: str, why: str) -> tuple[str, str]:
    shown = to_one_line(command)[:_MAX_COMMAND_SHOWN]
    return f"[error executing `{shown}`: {why}]", f"`{shown}`: {why}"


def _skip_commands(text: str, skill: Skill, commands: tuple[EmbeddedCommand, ...], why: str, code: str) -> ExpandedText:
    """Return the text with its commands unrun, and an issue for the host that says why."""
    count = f"{len(commands)} command{'s' if len(commands) != 1 else ''} in these instructions"
    issue = Issue(code, "body", f"{count} did not run: {why}", skill.location, 0, "warning")
    return ExpandedText(text, (), (issue,), "refused")
