"""The survey of a source: the skills in the part of it that somebody wants."""

from __future__ import annotations

import posixpath
import re
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import InstallError, Issue
from prowess.install.find_skills import find_skills
from prowess.install.plugins import refuse_plugin
from prowess.names import SKILL_FILE, find_unsafe_paths, group_by_folder, select_below
from prowess.text.quantities import format_count, join_first
from prowess.text.spelling import did_you_mean, sort_by_similarity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prowess.addresses.source_spec import SourceSpec
    from prowess.install.find_skills import TreeSkill
    from prowess.install.plugins import Plugin
    from prowess.install.source_tree import SourceTree
    from prowess.limits import Limits

_VERSION = re.compile(r"v?\d")
"""How a version begins; people write ``owner/repo@v1`` and mean a version, where ``@`` chooses a skill."""
_MAX_LISTED = 20
"""How many skills of a source a message names."""
_MAX_LEFT_OUT = 3
"""How many files outside of the skills' folders a message names."""


class SourceSurvey(NamedTuple):
    """The part of a source that somebody wants: its files, how they are read, and the skills among them."""

    tree: SourceTree
    subpath: str
    """The folder of the source at which all of these paths start."""
    paths: list[str]
    irregular: list[tuple[str, str]]
    skills: list[TreeSkill]
    files_by_folder: dict[str, list[str]]
    """The paths of the files in the folder of each skill."""
    irregular_by_folder: dict[str, list[tuple[str, str]]]
    """The code and the path of each irregular entry in the folder of each skill."""
    issues: tuple[Issue, ...]
    outside: tuple[str, ...]
    """The files that are in no skill's folder."""
    plugins: tuple[Plugin, ...]
    limits: Limits

    @property
    def names(self) -> dict[str, TreeSkill]:
        """The skills by their names, and by the names of their folders where no skill has that name."""
        by_name = {skill.name: skill for skill in self.skills}
        # Names win over folders: a folder must not pass for a skill that was shown by its name.
        for skill in self.skills:
            by_name.setdefault(posixpath.basename(skill.folder), skill)
        return by_name

    def choose_skills(self, names: Sequence[str]) -> list[TreeSkill]:
        """Return the skills of these names, or of folders of these names.

        Raises ``InstallError`` for one that is missing.
        """
        by_name = self.names
        for name in names:
            if name not in by_name:
                refuse_plugin(name, self.plugins)
                raise _unknown_skill_error(name, self.skills)
        return [by_name[name] for name in names]

    def prefetch(self, skills: Iterable[TreeSkill]) -> None:
        """Fetch the files of some skills, by one request."""
        paths = (path for skill in skills for path in self.files_by_folder[skill.folder])
        self.tree.contents.prefetch([posixpath.join(self.subpath, path) for path in paths])

    def sizes_of(self, skill: TreeSkill) -> list[int | None]:
        """Return how many bytes each file of a skill has; ``None`` where only fetching it would show that."""
        paths = self.files_by_folder[skill.folder]
        return self.tree.contents.sizes_of([posixpath.join(self.subpath, path) for path in paths])


def survey_source(source: SourceTree, spec: SourceSpec, limits: Limits) -> SourceSurvey:
    """Return the survey of the part of a source that ``spec`` names.

    Raises ``InstallError`` when that part has no SKILL.md, and ``UnsafeTreeError`` when the source could not be listed
    whole.
    """
    survey = source.surveys.get((spec.subpath, spec.name))
    if survey is None:
        survey = _survey_part(source, spec, limits)
        source.surveys[spec.subpath, spec.name] = survey
    # Whoever chooses skills by name expects nothing else of the source; whoever takes all may miss a shared folder.
    outside = survey.outside if survey.skills and not spec.skills else ()
    return survey._replace(issues=(*survey.issues, *_left_out_issues(outside)))


def _survey_part(source: SourceTree, spec: SourceSpec, limits: Limits) -> SourceSurvey:
    """Return the survey of the part of a source that ``spec`` names, whichever of its skills are wanted."""
    # First of all: in a listing that is not whole, even the choice of skills could be wrong.
    source.refuse_incomplete()
    paths, irregular = _paths_below(source, spec.subpath)

    def read_file(path: str) -> bytes:
        return source.read_files([path], below=spec.subpath)[0].content

    def prefetch(paths: Sequence[str]) -> None:
        source.contents.prefetch([posixpath.join(spec.subpath, path) for path in paths])

    skills, issues, plugins = find_skills(paths, read_file, name=spec.name, limits=limits, prefetch=prefetch)
    claimed = find_claimed_folders(paths)
    if not claimed and not any(plugin.is_elsewhere for plugin in plugins):
        raise InstallError(f"{spec} does not contain a SKILL.md file", code="missing-skill-md")
    passed_over = [] if skills or issues else [path for path in paths if posixpath.basename(path) == SKILL_FILE]
    if passed_over:
        message = f"{spec} has no SKILL.md where skills are looked for, but {join_first(passed_over, _MAX_LEFT_OUT)}"
        raise InstallError(f"{message}: a folder is chosen with SOURCE:FOLDER", code="missing-skill-md")
    folders = [skill.folder for skill in skills]
    inside = set(select_below(paths, claimed, str))
    return SourceSurvey(
        source,
        spec.subpath,
        paths,
        irregular,
        skills,
        group_by_folder(paths, folders, str),
        group_by_folder(irregular, folders, itemgetter(1)),
        (*source.issues, *issues),
        tuple(path for path in paths if path not in inside),
        plugins,
        limits,
    )


def _left_out_issues(paths: Sequence[str]) -> Iterator[Issue]:
    """Yield a note about the files of a library that are in no skill's folder, and so are not installed."""
    if paths:
        count = format_count(len(paths), "file")
        message = f"{count} outside of the skills' folders will not be installed: {join_first(paths, _MAX_LEFT_OUT)}"
        yield Issue("outside-skills", "", message, severity="info")


def find_claimed_folders(paths: Iterable[str]) -> set[str]:
    """Return the folders that hold a SKILL.md, in whatever case its name is written."""
    return {posixpath.dirname(path) for path in paths if posixpath.basename(path).lower() == SKILL_FILE.lower()}


def _paths_below(source: SourceTree, subpath: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the safe paths below a folder of a source, and the irregular entries there with their codes."""
    prefix = f"{subpath}/" if subpath else ""
    paths = [path.removeprefix(prefix) for path in source.paths_below(subpath)]
    if not paths and subpath:  # an empty source is refused later, for it has no SKILL.md
        raise InstallError(f"there is no folder {subpath!r} with files", code="unknown-subpath")
    irregular = [(code, path.removeprefix(prefix)) for code, path in source.irregular_below(subpath)]
    # An unsafe name is refused like a link: only when the folder of a wanted skill holds it.
    unsafe = dict.fromkeys(find_unsafe_paths(paths))
    return [path for path in paths if path not in unsafe], [*irregular, *(("unsafe-name", path) for path in unsafe)]


def _unknown_skill_error(name: str, skills: Sequence[TreeSkill]) -> InstallError:
    # The most similar names come first, since the message names only some.
    names = sort_by_similarity(name, sorted(skill.name for skill in skills))
    listed = join_first(names, _MAX_LISTED) or "none"
    suggestion = did_you_mean(name, names)
    meant = f"; {suggestion}" if suggestion else f"; a version is written #{name}" if _VERSION.match(name) else ""
    return InstallError(f"there is no skill {name!r}; the source has: {listed}{meant}", code="unknown-skill")
