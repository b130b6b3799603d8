"""The offer of a source, for a person who decides: what each skill costs, what of it could run, what is wrong."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from prowess.authoring.descriptions import description_issues
from prowess.authoring.findings import find_secret_issues
from prowess.errors import Issue
from prowess.install.abilities import read_skill_head
from prowess.install.plugins import choose_plugins, limit_to_listed
from prowess.install.source_survey import survey_source
from prowess.install.source_tree import REFUSAL_REASONS
from prowess.names import SKILL_FILE, link_name
from prowess.select.budget import listing_costs
from prowess.skills.inventory import list_scripts
from prowess.skills.parse import text_issues
from prowess.skills.skill import Skill
from prowess.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    from prowess.addresses.source_spec import SourceSpec
    from prowess.install.find_skills import TreeSkill
    from prowess.install.source_survey import SourceSurvey
    from prowess.install.source_tree import SourceTree
    from prowess.limits import Limits


@dataclass(frozen=True, slots=True)
class OfferedSkill:
    """A skill of a source, as far as its SKILL.md and the names of its files show."""

    name: str
    description: str
    folder: str
    """Its folder in the source; ``""`` when the whole source is this skill."""
    listing_tokens: int
    """About how many tokens its line in a listing costs, in every conversation."""
    body_tokens: int
    """About how many tokens its instructions cost, once it is activated."""
    files: tuple[str, ...]
    """The paths of its files below its folder."""
    bytes: int
    """The bytes of its files, as far as they were fetched (``is_complete``)."""
    is_complete: bool
    """Whether ``bytes`` counts all of its files; of a partial fetch it counts its SKILL.md alone."""
    commands: tuple[str, ...] = ()
    """The commands that its instructions ask to run when it is activated."""
    scripts: tuple[str, ...] = ()
    """The files that could be run as a script."""
    powers: tuple[str, ...] = ()
    """Keys of its frontmatter that ask for power over the host, such as ``hooks``.

    Prowess treats them as data; other agents may obey them.
    """
    allowed_tools: tuple[str, ...] = ()
    """The tools that it asks to use without a question."""
    is_internal: bool = False
    """True when it is installed only when somebody names it."""
    plugin: str = ""
    """The plugin of the source that it belongs to, or ``""``."""
    issues: tuple[Issue, ...] = ()
    """What ``check`` finds in its SKILL.md, and the entries of its folder that keep it from being installed."""

    @property
    def acts(self) -> bool:
        """Whether anything of it could run."""
        return bool(self.commands or self.scripts or self.powers)


@dataclass(frozen=True, slots=True)
class OfferedPlugin:
    """A plugin of a source: a group of its skills, or a source elsewhere."""

    name: str
    description: str
    skills: tuple[str, ...]
    """The names of its skills; none for a plugin elsewhere, which was not fetched."""
    source: SourceSpec | None = None
    """Its source, when that is another repository."""
    problem: str = ""
    """Why its source elsewhere cannot be used."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a source has at one moment, as ``Installer.offers`` found it."""

    spec: SourceSpec
    """The source. Where a plugin was chosen, it has the names of the plugin's skills, or is the plugin's own source."""
    commit: str
    """The commit of a repository; ``""`` when the source has none."""
    date: datetime | None
    """When that commit was made, as its committer says, in UTC."""
    skills: tuple[OfferedSkill, ...]
    """The skills, sorted by folder; chosen skills are in the order of the choice."""
    issues: tuple[Issue, ...] = ()
    """What is wrong with skills that the source has and cannot give, and which files are in no skill's folder."""
    in_memory: SourceTree | None = field(default=None, repr=False, compare=False)
    """The files themselves, when the source has no commit by which they could be fetched again."""
    plugins: tuple[OfferedPlugin, ...] = ()
    """The plugins that the source names in its manifests; none where skills were chosen."""

    def chosen(self, names: Sequence[str] = ()) -> tuple[OfferedSkill, ...]:
        """Return the skills that an install takes: those with these names or folders.

        Without names all but internal ones.
        """
        if not names:
            return tuple(skill for skill in self.skills if not skill.is_internal)
        return tuple(skill for skill in self.skills if {skill.name, posixpath.basename(skill.folder)} & {*names})

    def with_skills(self, names: Collection[str]) -> Offer:
        """Return the offer with only the skills of these names."""
        return replace(self, skills=tuple(skill for skill in self.skills if skill.name in names))

    @property
    def bytes(self) -> int:
        """The bytes of the skills' files, as far as they were fetched; other files of the source never count."""
        return sum(skill.bytes for skill in self.skills)

    @property
    def files(self) -> int:
        """How many files the skills have together."""
        return sum(len(skill.files) for skill in self.skills)

    @property
    def is_complete(self) -> bool:
        """Whether ``bytes`` counts all of these files; of a partial fetch it counts the SKILL.md files alone."""
        return all(skill.is_complete for skill in self.skills)


def find_offer(
    open_source: Callable[[SourceSpec], AbstractContextManager[SourceTree]], spec: SourceSpec, limits: Limits
) -> Offer:
    """Return the offer of a source, or of the plugin that it chooses, which may be in another repository.

    Raises ``InstallError`` when it has no skill, or does not have a chosen one.
    """
    with open_source(spec) as source:
        survey = survey_source(source, spec, limits)
        chosen, plugin = choose_plugins(spec, survey.plugins, survey.names)
        if plugin is None:
            return _make_offer(source, chosen, limits)
    with open_source(chosen) as source:
        chosen = limit_to_listed(chosen, plugin, survey_source(source, chosen, limits).skills)
        offer = _make_offer(source, chosen, limits)
    message = f"the plugin {plugin.name} of {spec.address} is in another repository: {chosen}"
    return replace(offer, issues=(Issue("mapped-plugin", "", message, "", 0, "info"), *offer.issues))


def _make_offer(source: SourceTree, spec: SourceSpec, limits: Limits) -> Offer:
    survey = survey_source(source, spec, limits)
    chosen = survey.choose_skills(spec.skills) if spec.skills else sorted(survey.skills, key=lambda skill: skill.folder)
    if spec.skills:  # who has chosen skills is likely to install them, so all of their files are fetched at once
        survey.prefetch(chosen)
    # A listing names the path of the skill, which costs tokens too: here it is the path of a link in this project.
    folders = [f".agents/skills/{link_name(skill.name) or 'skill'}" for skill in chosen]
    listed = [
        Skill(skill.document.front, f"{folder}/{SKILL_FILE}") for skill, folder in zip(chosen, folders, strict=True)
    ]
    costs = listing_costs(listed)
    skills = tuple(
        _make_offered_skill(skill, shown, costs[skill.name], survey, spec)
        for skill, shown in zip(chosen, listed, strict=True)
    )
    # A commit can be fetched again; other sources may give other files the next time.
    in_memory = source if source.is_in_memory else None
    plugins = tuple(
        OfferedPlugin(plugin.name, plugin.description, plugin.skills, plugin.spec, plugin.problem)
        for plugin in survey.plugins
        if plugin.name and (plugin.skills or plugin.is_elsewhere) and not spec.skills
    )
    return Offer(spec, source.commit, source.date, skills, survey.issues, in_memory, plugins)


def _make_offered_skill(
    skill: TreeSkill, listed: Skill, cost: int, survey: SourceSurvey, spec: SourceSpec
) -> OfferedSkill:
    body = skill.text[skill.document.body_offset :].decode("utf-8", "replace").strip()
    head = read_skill_head(skill.document, skill.text)
    prefix = f"{skill.folder}/" if skill.folder else ""
    files = tuple([path.removeprefix(prefix) for path in survey.files_by_folder[skill.folder]])
    sizes = survey.sizes_of(skill)
    return OfferedSkill(
        skill.name,
        skill.document.front.description.strip(),
        "/".join(part for part in (spec.subpath, skill.folder) if part),
        cost,
        estimate_tokens(body),
        files,
        sum(filter(None, sizes)),
        None not in sizes,
        head.commands,
        list_scripts(files),
        head.powers,
        head.allowed_tools,
        not skill.is_default,
        skill.plugin,
        _find_issues(skill, listed, survey, spec),
    )


def _find_issues(skill: TreeSkill, listed: Skill, survey: SourceSurvey, spec: SourceSpec) -> tuple[Issue, ...]:
    """What keeps a skill from being installed, and what ``check`` finds in its SKILL.md, with paths in the source."""
    # The rules compare the name of a skill with that of its folder; a skill at the top has no folder.
    folder = skill.folder.rpartition("/")[2] or skill.name
    issues = (
        *text_issues(skill.text, f"/{folder}/{SKILL_FILE}", limits=survey.limits, head=skill.document.parsed),
        *find_secret_issues(skill.text.decode("utf-8", "replace"), ""),
        *description_issues(listed),
    )
    path = "/".join(part for part in (spec.subpath, skill.path) if part)
    refusals = [
        Issue(code, refused, f"{REFUSAL_REASONS.get(code, code)}: the skill cannot be installed", refused)
        for code, refused in survey.irregular_by_folder[skill.folder]
    ]
    return (*refusals, *[replace(issue, path=path) for issue in issues])
