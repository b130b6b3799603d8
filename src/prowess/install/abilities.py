"""What a skill can do beside giving instructions, and what of it a new version adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.errors import SkillLoadError
from prowess.format.commands import find_commands
from prowess.format.head import LoadPolicy, read_head
from prowess.format.rules import INERT_FIELDS
from prowess.names import SKILL_FILE, group_by_folder
from prowess.skills.inventory import list_scripts
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from prowess.files.write import NewFile
    from prowess.format.head import Head
    from prowess.install.install_tree import InstallTree
    from prowess.limits import Limits

AdditionKind = Literal["skill", "script", "command", "allowed-tool", "power"]
_TITLES: dict[AdditionKind, str] = {
    "skill": "new skill",
    "script": "new script",
    "command": "new command",
    "allowed-tool": "new allowed tool",
    "power": "new field",
}
"""What each kind of addition is called, in the order of display."""


@dataclass(frozen=True, slots=True)
class UpdateAddition:
    """Something that a new version has and the old one has not, and that a user should know before the diff."""

    skill: str
    kind: AdditionKind
    value: str
    """The name of a new skill; the path of a script in its skill; a command; a tool of ``allowed-tools`` that the old
    version did not cover; a key of the frontmatter that asks for power over the host, such as ``hooks``."""

    @property
    def title(self) -> str:
        """What it is, for people: ``new script``."""
        return _TITLES[self.kind]


class SkillHead(NamedTuple):
    """What the SKILL.md of a skill alone asks for."""

    commands: tuple[str, ...] = ()
    """The commands that its instructions ask to run when it is activated."""
    allowed_tools: tuple[str, ...] = ()
    powers: tuple[str, ...] = ()
    """Keys of its frontmatter that ask for power over the host, such as ``hooks``."""


def read_skill_head(document: Head, text: bytes) -> SkillHead:
    """Return what a SKILL.md asks for."""
    front = document.front
    body = text[document.body_offset :].decode("utf-8", "replace").strip()
    commands = tuple([command.text for command in find_commands(body)])
    powers = tuple(key for key in front.extra if key in INERT_FIELDS - {"model"})
    return SkillHead(commands, front.allowed_tools, powers)


class OldVersion(NamedTuple):
    """What is known of the version that another one is compared with."""

    skills: Mapping[str, str]
    """The folder of each skill."""
    paths: Collection[str]
    """The paths of all files."""
    files: Iterable[NewFile]
    """The files, or at least those that differ."""


def list_additions(
    tree: InstallTree, changed: Collection[str], before: OldVersion, limits: Limits
) -> tuple[UpdateAddition, ...]:
    """Return what a tree has that the version before it had not; ``changed`` are the paths of the files that differ."""
    additions: list[UpdateAddition] = []
    new, old = ({file.path: file.content for file in files} for files in (tree.files, before.files))
    # Of thousands of skills, an update changes a few.
    changed_paths = group_by_folder((path for path in changed if path in new), tree.skills.values(), str)
    for skill, folder in tree.skills.items():
        if not changed_paths[folder]:
            continue
        folder_before = before.skills.get(skill)
        is_new = folder_before is None
        prefix, prefix_before = (f"{one}/" if one else "" for one in (folder, folder_before))
        scripts = list_scripts(path.removeprefix(prefix) for path in sorted(changed_paths[folder]))
        additions += [UpdateAddition(skill, "skill", skill)] if is_new else []
        additions += (
            UpdateAddition(skill, "script", path)
            for path in scripts
            if is_new or prefix_before + path not in before.paths
        )
        head = _parse_head(new.get(prefix + SKILL_FILE), skill, limits)
        head_before = _parse_head(None if is_new else old.get(prefix_before + SKILL_FILE), skill, limits)
        if prefix + SKILL_FILE in changed:
            additions += _compare_heads(skill, head, head_before)
    order = [*_TITLES]
    return tuple(sorted(additions, key=lambda addition: (order.index(addition.kind), addition.skill)))


def _compare_heads(skill: str, head: SkillHead, before: SkillHead) -> Iterator[UpdateAddition]:
    yield from (
        UpdateAddition(skill, "command", one) for one in dict.fromkeys(head.commands) if one not in before.commands
    )
    if head.allowed_tools:
        from prowess.conversation.tool_rules import find_wider_tools  # most commands compare no tools

        tools = find_wider_tools(head.allowed_tools, before.allowed_tools)
        yield from (UpdateAddition(skill, "allowed-tool", tool) for tool in tools)
    yield from (UpdateAddition(skill, "power", key) for key in head.powers if key not in before.powers)


def _parse_head(text: bytes | None, skill: str, limits: Limits) -> SkillHead:
    """Return what a SKILL.md asks for; nothing where there is none, or none that can be loaded."""
    if text is None:
        return SkillHead()
    size = limits.max_frontmatter_bytes
    policy = LoadPolicy(limits=limits, check_dir=False)
    try:
        document = read_head(
            text[:size], quick=False, whole=len(text) <= size, policy=policy, folder=skill, path=SKILL_FILE
        )
    except SkillLoadError:
        return SkillHead()
    return read_skill_head(document, text)


def summarize_additions(additions: Iterable[UpdateAddition]) -> str:
    """Return how many additions there are of each kind, such as ``1 new skill and 2 new scripts``, or ``""``."""
    counts = dict.fromkeys(_TITLES, 0)
    for addition in additions:
        counts[addition.kind] += 1
    parts = [format_count(count, _TITLES[kind]) for kind, count in counts.items() if count]
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
