"""Trees that are to be installed: the files of skills, taken from a source and checked before anything is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING

from prowess.addresses.source_spec import SourceSpec, with_skills
from prowess.errors import InstallError, Issue, UnsafeTreeError
from prowess.files.tree import GUESSED_CODE, HAS_EXECUTABLE_BITS, digest_tree, find_guesses, hash_files
from prowess.install.entry_source import policy_address
from prowess.install.plugins import refuse_only_plugins
from prowess.install.source_survey import find_claimed_folders, survey_source
from prowess.install.source_tree import check_paths, refuse_irregular
from prowess.names import link_name, select_below
from prowess.policy.files import current_policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prowess.files.tree import FileHash
    from prowess.files.write import NewFile
    from prowess.install.find_skills import TreeSkill
    from prowess.install.source_survey import SourceSurvey
    from prowess.install.source_tree import SourceTree
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntry


@dataclass(frozen=True)  # Without slots, because ``hashes`` is kept once it was asked for.
class InstallTree:
    """What goes to one place in the install base."""

    spec: SourceSpec
    commit: str
    """The commit that the source gave; ``""`` for a source that has none."""
    name: str
    """``org/name``: the place."""
    subpath: str
    """The folder of the source that the files come from; ``""`` for all of it."""
    select: str
    """The one skill that somebody chose; ``""`` when the tree holds every skill of its source."""
    files: tuple[NewFile, ...]
    skills: dict[str, str]
    """The folder of each skill below the place, by the name of the skill."""
    issues: tuple[Issue, ...] = ()
    load_error: Issue | None = None
    """Why no skill of the tree can be loaded; ``None`` when one can."""
    signer: str = ""
    """The fingerprint of the key that signed the version, or ``""``."""

    @cached_property
    def hashes(self) -> dict[str, FileHash]:
        """The hash of every file, by path, as a lock entry has them."""
        return hash_files(self.files)

    @property
    def digest(self) -> str:
        """The digest of the whole tree, as a lock entry has it."""
        return digest_tree(self.hashes)


def with_skill_files_only(tree: InstallTree) -> InstallTree:
    """Return the tree without skills that get no folder where agents look, and without their files.

    That is what an install in copy mode can hold: it has no folder in the base for the rest.
    """
    by_link: dict[str, str] = {}
    for skill in tree.skills:
        by_link.setdefault(link_name(skill), skill)
    skills = {skill: tree.skills[skill] for link, skill in by_link.items() if link}
    if len(skills) == len(tree.skills):
        return tree  # nearly always, and no tree holds files outside of its skills' folders
    prefixes = tuple(f"{folder}/" if folder else "" for folder in skills.values())
    return replace(tree, files=tuple(file for file in tree.files if file.path.startswith(prefixes)), skills=skills)


def take_recorded_modes(
    files: Iterable[NewFile], recorded: Mapping[str, FileHash], *, has_bits: bool = HAS_EXECUTABLE_BITS
) -> tuple[NewFile, ...]:
    """Return the files of a folder, with the executable bits of a lock file where the disk has none."""
    if has_bits:
        return tuple(files)
    return tuple(
        file._replace(executable=recorded[file.path].executable) if file.path in recorded else file for file in files
    )


def trees_for(source: SourceTree, spec: SourceSpec, limits: Limits) -> list[InstallTree]:
    """The trees that ``spec`` asks for: one for each skill that it chooses, or one with all skills but internal ones.

    No tree holds files outside of its skills' folders. Raises ``InstallError`` for a skill that the source does not
    have, and ``UnsafeTreeError`` for files that cannot be installed safely.
    """
    survey = survey_source(source, spec, limits)
    if not spec.skills:
        refuse_only_plugins(spec, survey.plugins, has_skill=bool(survey.skills))
        return [_tree_of_all(spec, survey)]
    skills = survey.choose_skills(spec.skills)
    # One request for the files of all chosen skills, instead of one for each skill.
    survey.prefetch(skills)
    return [_tree_of_skill(spec, survey, skill) for skill in skills]


def _tree_of_all(spec: SourceSpec, survey: SourceSurvey) -> InstallTree:
    skills = {skill.name: skill.folder for skill in survey.skills if skill.is_default}
    load_error = survey.issues[0] if survey.issues and not survey.skills else None
    # When no skill can be loaded, the tree holds everything that claims to be one, for those who compare it.
    folders = set(skills.values()) or find_claimed_folders(survey.paths)
    refuse_irregular(select_below(survey.irregular, folders, itemgetter(1)))
    paths = select_below(survey.paths, folders, str)
    check_paths(paths, survey.limits)
    files = survey.tree.read_files(paths, below=spec.subpath)
    issues = (*survey.issues, *_guesses_of(spec, files))
    commit, signer = survey.tree.commit, survey.tree.signer
    return InstallTree(spec, commit, spec.full_name, spec.subpath, "", files, skills, issues, load_error, signer)


def _tree_of_skill(spec: SourceSpec, survey: SourceSurvey, skill: TreeSkill) -> InstallTree:
    paths = survey.files_by_folder[skill.folder]
    refuse_irregular(survey.irregular_by_folder[skill.folder])
    check_paths(paths, survey.limits)
    name = link_name(skill.name)
    if not name:
        raise UnsafeTreeError(f"the skill's name {skill.name!a} cannot name a folder", code="bad-name")
    subpath = "/".join(part for part in (spec.subpath, skill.folder) if part)
    prefix = f"{skill.folder}/" if skill.folder else ""
    files = survey.tree.read_files([path.removeprefix(prefix) for path in paths], below=subpath)
    issues = _guesses_of(spec, files)
    full_name, commit = f"{spec.org}/{name}", survey.tree.commit
    skills, signer = {skill.name: ""}, survey.tree.signer
    return InstallTree(spec, commit, full_name, subpath, skill.name, files, skills, issues, None, signer)


def _guesses_of(spec: SourceSpec, files: Iterable[NewFile]) -> tuple[Issue, ...]:
    # A repository and an archive say which files are executable.
    return find_guesses((file.path for file in files if file.executable), spec.address) if spec.kind == "folder" else ()


def refuse_unloadable(trees: Iterable[InstallTree]) -> None:
    """Raise ``InstallError`` when no skill of a tree can be loaded: there would be nothing to use."""
    for tree in trees:
        if (issue := tree.load_error) is not None:
            message = f"{tree.spec} has no skill that can be loaded: {issue.path}: {issue.message}"
            raise InstallError(message, code=issue.code)


def refuse_by_policy(trees: Iterable[InstallTree], folder: str = "") -> None:
    """Raise ``PolicyError`` for a skill that is revoked, or that nobody reviewed where the policy wants that.

    ``folder``: the project whose policy counts.
    """
    policy = current_policy(folder)
    if not policy.judges_skills:
        return
    for tree in trees:
        for name, inside in tree.skills.items():
            prefix = f"{inside}/" if inside else ""
            files = {path[len(prefix) :]: one for path, one in tree.hashes.items() if path.startswith(prefix)}
            digest = digest_tree(files)
            policy.check_skill(name, digest, policy_address(tree.spec), tree.spec.ref)


def recorded_tree(entry: LockEntry, spec: SourceSpec, files: tuple[NewFile, ...]) -> InstallTree:
    """Return the tree that an entry records, from files that are known to be those of its commit."""
    skills, signer = dict(entry.skills), entry.signer
    return InstallTree(spec, entry.commit, entry.name, entry.subpath, entry.select, files, skills, signer=signer)


def read_recorded_tree(source: SourceTree, entry: LockEntry, spec: SourceSpec, limits: Limits) -> InstallTree:
    """The files that a lock entry records, as far as the source has them, with the skills that the entry records."""
    # The entry decides, not a survey: an earlier version may have chosen the files of a skill by other rules.
    prefix = f"{entry.subpath}/" if entry.subpath else ""
    paths = [path for path in entry.files if source.has_file(prefix + path)]
    check_paths(paths, limits)
    files = source.read_files(paths, below=entry.subpath)
    if entry.kind == "folder":
        files = take_recorded_modes(files, entry.files)
    return recorded_tree(entry, spec, files)


def tree_for_entry(entry: LockEntry, source: SourceTree, spec: SourceSpec, limits: Limits) -> InstallTree:
    """Return the tree that takes the place of an entry, from another version of its source.

    A chosen skill that is no longer in its folder is looked for by its name. Raises what ``trees_for`` raises.
    """
    source.refuse_incomplete()
    if entry.select:
        same = _unchanged_tree(entry, source, spec, limits)
        if same is not None:
            return same
    # Repositories move skills between folders; an update follows the name that the person chose.
    if entry.select and entry.subpath and not source.paths_below(entry.subpath):
        spec = with_skills(replace(spec, subpath=""), (entry.select,))
    tree = trees_for(source, spec, limits)[0]
    tree = with_skill_files_only(tree) if entry.is_copied else tree
    if spec.kind == "folder":
        tree = with_recorded_modes(tree, entry)
    return replace(tree, name=entry.name, select=entry.select)


def with_recorded_modes(tree: InstallTree, entry: LockEntry) -> InstallTree:
    """Return the tree of a plain folder; where the disk has no executable bits, those that an entry records count."""
    new = (file.path for file in tree.files if file.executable and file.path not in entry.files)
    issues = (*(issue for issue in tree.issues if issue.code != GUESSED_CODE), *find_guesses(new, entry.source))
    return replace(tree, files=take_recorded_modes(tree.files, entry.files), issues=issues)


def _unchanged_tree(entry: LockEntry, source: SourceTree, spec: SourceSpec, limits: Limits) -> InstallTree | None:
    """Return the tree of a chosen skill whose folder has exactly the files that are recorded.

    ``None`` when it has others.
    """
    # Of thousands of chosen skills, an update changes a few: only these have to be parsed.
    prefix = f"{entry.subpath}/" if entry.subpath else ""
    paths = source.paths_below(entry.subpath)
    is_listed = len(paths) == len(entry.files) and all(path.removeprefix(prefix) in entry.files for path in paths)
    if not is_listed or source.irregular_below(entry.subpath):
        return None
    tree = replace(read_recorded_tree(source, entry, spec, limits), commit=source.commit, signer=source.signer)
    return tree if tree.digest == entry.digest else None
