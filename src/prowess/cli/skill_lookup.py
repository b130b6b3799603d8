"""The settings and the catalogue of a command line, and the skills that the words on it mean.

A word with a slash is a path. A bare word is the folder of a skill here, if one has that name, or else the name of a
skill; a note says so where it could be both. Any other folder with that name counts if no skill has it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from prowess.cli.issues import find_remedy
from prowess.cli.lock_states import (
    POLICY_CODES,
    LazyLockStates,
    suggest_sync,
    warn_edited_skills,
    warn_lock_problems,
    warn_unrecorded_skills,
    warn_withheld_skills,
    without_edited_skills,
)
from prowess.cli.render import printer
from prowess.cli.render.printer import with_dot_prefix
from prowess.discovery.scan import discover, scan
from prowess.errors import PolicyError, SkillValidationError, SourceError, UnknownSkillError
from prowess.files.paths import is_same_folder, shorten_path
from prowess.files.projects import user_config_file
from prowess.names import SKILL_FILE
from prowess.settings import Settings, load_settings
from prowess.skills.catalog import Catalog
from prowess.skills.explanation import SkillScope
from prowess.text.quantities import join_first

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import prowess
    from prowess.conversation.acting.trust import TrustStates
    from prowess.errors import Issue


_MAX_NAMED = 5
"""How many skills a message names."""
_MAX_LISTED = 1000
"""How many entries of a folder are looked at to suggest a name."""


# -- all skills --------------------------------------------------------------------------------------------------------


def load_cli_settings(**flags: Any) -> Settings:
    """Return the settings, overridden by the flags of the command line, and warn of mistakes in the files."""
    return _warn_of_mistakes(load_settings(flags=flags))


def load_settings_to_show(**flags: Any) -> Settings:
    """Return what ``load_cli_settings`` does, for a command that shows what there is and gives nothing to a model.

    Where the project's settings are in conflict, such a command goes on without them.
    """
    try:
        return load_cli_settings(**flags)
    except SourceError as error:
        if error.code != "manifest-conflict":
            raise
        printer.warn(f"[{error.code}] {error.message}; settings of the project do not count")
        printer.note(f"  hint: {find_remedy(error.code)}")
        return _warn_of_mistakes(load_settings(flags=flags, project=False))


def _warn_of_mistakes(settings: Settings) -> Settings:
    for issue in settings.issues:
        printer.warn(f"{issue.path}: [{issue.code}] {issue.field} {issue.message}")
    return settings


def load_catalog(settings: Settings) -> prowess.Catalog:
    """Return the skills below the folders that the settings name, or those of the standard places."""
    folders = settings.names("folders")
    if folders:
        # A folder that was named has to exist; a standard place may be missing.
        catalog = scan(*folders, missing="error")
        return without_edited_skills(catalog) if settings["verify"] else catalog
    verify: Literal["lock"] | None = "lock" if settings["verify"] else None
    catalog = discover(agents=settings.names("agents"), project=bool(settings["project"]), verify=verify)
    warn_unrecorded_skills(catalog)
    warn_withheld_skills(catalog)
    return catalog


def load_offered_catalog(settings: Settings) -> prowess.Catalog:
    """Return the skills of ``load_catalog`` without those that are switched off, or not in the set in use."""
    return drop_switched_off(settings, load_catalog(settings))


def drop_switched_off(settings: Settings, catalog: prowess.Catalog) -> prowess.Catalog:
    """Return a catalogue without the skills that are switched off, or not in the set in use."""
    if not settings.text("set") and not settings.names("off"):
        return catalog
    kept = [skill for skill in catalog if not settings.is_off(skill.name)]
    return Catalog(kept, issues=catalog.failures, places=catalog.places)


def suggest_sync_for(settings: Settings, lock_states: LazyLockStates | None = None) -> str:
    """Return advice about skills that a lock file records and that are not here, or ``""``.

    Folders that were named have no lock file, so there is no advice about them. Without ``lock_states`` the lock files
    are read here, with a warning for each that cannot be read.
    """
    if settings.names("folders"):
        return ""
    if lock_states is None:
        lock_states = LazyLockStates()
        warn_lock_problems(lock_states)
    return suggest_sync(location="all" if settings["project"] else "user", lock_states=lock_states)


def load_named_catalog(settings: Settings, names: tuple[str, ...]) -> prowess.Catalog:
    """Return the skills that ``names`` mean, or all that the settings choose if there are no names.

    Each name is the name of a skill, its folder, its file, or a folder of skills.
    """
    if not names:
        return load_catalog(settings)
    # Only a name needs the standard places: folders of skills alone are read without a look at them.
    catalog = Catalog() if all(map(_is_collection, names)) else load_catalog(settings)
    verify = bool(settings["verify"])
    return Catalog(skill for name in names for skill in _find_named_skills(catalog, name, verify=verify))


def _find_named_skills(catalog: prowess.Catalog, name: str, *, verify: bool) -> Iterator[prowess.Skill]:
    if name in catalog or not _is_collection(name):
        yield find_in_catalog(catalog, name, verify=verify)
        return
    collection = scan(name, missing="error")
    yield from without_edited_skills(collection) if verify else collection


def _is_collection(name: str) -> bool:
    """Return True for a folder that is not a skill itself, and so may hold some."""
    return os.path.isdir(name) and not is_skill_folder(name)


# -- one skill ---------------------------------------------------------------------------------------------------------


def find_skill(settings: Settings, name: str) -> prowess.Skill:
    """Return the skill that ``name`` means. Raise ``UnknownSkillError`` or ``SourceError`` if there is none."""
    # A path needs no catalogue: the standard places are read only for a name.
    catalog = Catalog() if is_path(name) else load_catalog(settings)
    return find_in_catalog(catalog, name, verify=bool(settings["verify"]))


def find_skill_and_warn(settings: Settings, name: str) -> prowess.Skill:
    """Return the skill that ``name`` means, and warn if somebody changed it after it was installed."""
    skill = find_skill(settings, name)
    warn_edited_skills([skill])
    return skill


def find_path(settings: Settings, written: str) -> str:
    """Return the path that a person means, for commands that take folders of skills too.

    A path that exists comes first, then the folder of the skill with that name. Raise ``UnknownSkillError`` if there
    is neither.
    """
    if is_path(written):
        return written
    if os.path.lexists(written):
        if is_skill_folder(written):
            _note_folder(load_catalog(settings), written)
        return written
    try:
        return find_skill(settings, written).folder
    except UnknownSkillError as error:
        why = suggest_sync(written) or "there is no such file or folder"
        raise UnknownSkillError(written, error.available, why=why) from None


def find_in_catalog(catalog: prowess.Catalog, name: str, *, verify: bool = False) -> prowess.Skill:
    """Return the skill that a person means by a name, a folder or the path of a SKILL.md.

    With ``verify`` a skill that differs from its lock file is refused. Raise ``UnknownSkillError`` if nothing fits.
    """
    if is_path(name):
        return _read_skill(name, verify=verify)
    if is_skill_folder(name) and not _is_folder_of(catalog, name):
        _note_folder(catalog, name)
        return _read_skill(with_dot_prefix(name), verify=verify)
    if name in catalog:
        return catalog[name]
    refused = next((one for one in catalog.failures if one.code in POLICY_CODES and _is_about(one, name)), None)
    if refused is not None:
        raise PolicyError(refused.message, refused.path, refused.code)
    # A folder of skills must not stand in for a skill that the lock file records, or that was found and refused.
    why = suggest_sync(name)
    if why:
        raise UnknownSkillError(name, catalog.names, why=why)
    if os.path.isdir(name) and not _has_load_failure(catalog, name) and scan(name):
        return _read_skill(with_dot_prefix(name), verify=verify)  # raises the error that names the skills in it
    try:
        return catalog[name]  # raises the error that names similar skills
    except UnknownSkillError as error:
        folders = [folder for folder in _list_skill_folders() if folder not in catalog]
        if not folders:
            raise
        raise UnknownSkillError(name, (*error.available, *folders), why=error.why) from None


def _list_skill_folders() -> list[str]:
    """Return the folders of skills in this folder, and in its folder ``skills``, as they can be named."""
    found: list[str] = []
    for folder in (os.curdir, "skills"):
        with suppress(OSError):  # it is missing, or cannot be read
            names = sorted(os.listdir(folder))[:_MAX_LISTED]
            found += [
                name if folder == os.curdir else f"{folder}/{name}"
                for name in names
                if is_skill_folder(os.path.join(folder, name))
            ]
    return found


def _is_folder_of(catalog: prowess.Catalog, name: str) -> bool:
    """Return True when the folder ``name`` here is that of the skill with this name."""
    return name in catalog and is_same_folder(catalog[name].folder, os.path.abspath(name))


def note_folders_here(skills: Iterable[prowess.Skill]) -> None:
    """Say which of the skills are not in the folders of these names here, which somebody may be editing."""
    namesakes = [skill for skill in skills if is_skill_folder(skill.name)]
    others = [skill for skill in namesakes if not is_same_folder(skill.folder, os.path.abspath(skill.name))]
    for skill in others[:_MAX_NAMED]:
        printer.note(
            f"this is about {shorten_path(skill.location)}; for the folder {with_dot_prefix(skill.name)}, say --dir ."
        )


def _note_folder(catalog: prowess.Catalog, name: str) -> None:
    """Say that the folder here is meant, if a skill with that name is elsewhere, or was installed and is not here."""
    if name not in catalog:
        other = suggest_sync(name)
    elif _is_folder_of(catalog, name):
        other = ""
    else:
        other = f"another skill with that name is {shorten_path(catalog[name].location)}"
    if other:
        printer.note(f"this is about the folder {with_dot_prefix(name)}; {other}")


def _read_skill(path: str, *, verify: bool) -> prowess.Skill:
    """Return the skill in a folder or of a SKILL.md; with ``verify`` only if its lock file agrees."""
    from prowess.skills.parse import read_metadata

    try:
        # Lenient, as in a scan: a person may look at a skill with mistakes.
        skill = read_metadata(path, mode="lenient")
    except SkillValidationError as error:
        if error.code == "missing-skill-md":
            raise _explain_no_skill(path) from None
        raise
    return without_edited_skills(Catalog([skill]))[skill.name] if verify else skill


def _explain_no_skill(path: str) -> SourceError:
    """Return the error for a path without a skill: nothing exists there, or it is a folder of skills."""
    from prowess.authoring.check import find_skill_files

    try:
        folders = [shorten_path(os.path.dirname(file)) for file in find_skill_files(path)]
    except SourceError as error:
        return error
    message = f"this is a folder of skills, not a skill: name one of {join_first(folders, _MAX_NAMED)}"
    return SourceError(message, os.path.abspath(path), "missing-skill-md")


def _is_about(issue: Issue, name: str) -> bool:
    """Return whether an issue of a catalogue is about the skill in a folder with that name."""
    return os.path.basename(os.path.dirname(issue.path)) == name


def _has_load_failure(catalog: prowess.Catalog, name: str) -> bool:
    """Return True when a skill in a folder with that name was found and could not be loaded."""
    return any(_is_about(issue, name) for issue in catalog.failures)


def is_path(name: str) -> bool:
    """Return True when a person means a folder or a file rather than the name of a skill."""
    return name in {".", ".."} or "/" in name or os.sep in name or name.endswith(SKILL_FILE)


def is_skill_folder(path: str) -> bool:
    """Return True when a SKILL.md is directly in the folder."""
    return os.path.lexists(os.path.join(path, SKILL_FILE))


def find_own_paths(settings: Settings) -> tuple[str, ...]:
    """Return this folder if it is a skill, or the folders of the settings, or those of the project that hold skills.

    Raise ``SourceError`` (``missing-skill-md``) if none of them holds a skill.
    """
    if is_skill_folder(os.curdir):
        return (".",)
    if settings.names("folders"):
        return settings.names("folders")
    places = discover(agents=settings.names("agents")).places
    paths = tuple(
        place.path
        for place in places
        if place.scope is SkillScope.PROJECT and place.state != "missing" and _has_skills_below(place.path)
    )
    if not paths:
        raise SourceError(f"there is no skill {_suggest_location()}", os.getcwd(), "missing-skill-md")
    return paths


def _suggest_location() -> str:
    """Return the end of a sentence: bring what the lock file records, or name a folder that has skills."""
    absent = suggest_sync()
    if not absent and any(map(_has_skill_folders, (os.curdir, "skills"))):
        return "where agents look; for those below this folder, name it: ."
    return "here: " + (absent or "name a skill's folder, or a folder of skills")


def _has_skill_folders(folder: str) -> bool:
    """Return True when a folder of a skill is directly in ``folder``."""
    # Only one level deep: a whole home folder may be below.
    return os.path.isdir(folder) and any(is_skill_folder(os.path.join(folder, name)) for name in os.listdir(folder))


def _has_skills_below(path: str) -> bool:
    """Return True when there is a skill at or below ``path``."""
    from prowess.authoring.check import find_skill_files

    try:
        # Links that lead out of the folder, as installs make them, do not count: their authors check those skills.
        return bool(find_skill_files(path))
    except SourceError:
        return False


class LazyTrustStates:
    """The grants of this user, read once for a command.

    It has the answers of ``TrustStates``, which is loaded only where there are
    grants.
    """

    def __init__(self) -> None:
        self._states: TrustStates | None = None
        # The path that Trust itself uses. 'prowess list' without grants does not load `conversation`: it only looks
        # for the file.
        if os.path.lexists(user_config_file("trust.json")):
            from prowess.conversation.acting.trust import Trust, TrustStates

            self._states = TrustStates(Trust())

    def find_state(self, skill: prowess.Skill) -> str:
        """Return ``trusted``, ``changed since trusted`` if an earlier state has a grant, or ``""``."""
        return "" if self._states is None else self._states.find_state(skill)
