"""Scanning: the catalogue of the skills in folders that the caller names, or in the standard places."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.arguments import check_callable, check_number, check_texts
from prowess.discovery.walk import MAX_DEPTH, SKIP_PREFIXES, ScanRules, Walk
from prowess.errors import Issue, SourceError
from prowess.files import paths
from prowess.files.paths import check_path
from prowess.format.head import LoadPolicy, check_mode
from prowess.limits import DEFAULT_LIMITS
from prowess.names import SKILL_FILE
from prowess.skills.catalog import Catalog
from prowess.skills.explanation import Place, SkillScope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.literals import FollowLinks, Mode, OnDuplicate, Severity
    from prowess.skills.skill import Skill

    OnIssue = Callable[[Issue], object]


_SEVERITIES = ("info", "warning", "error")


def scan(
    *roots: str | os.PathLike[str],
    mode: Mode = "lenient",
    repair: bool = True,
    missing: Literal["ignore", "error"] = "ignore",
    max_depth: int | None = MAX_DEPTH,
    nested: bool = False,
    skip_prefixes: Sequence[str] = SKIP_PREFIXES,
    filename: str = SKILL_FILE,
    on_duplicate: OnDuplicate = "first",
    follow_links: FollowLinks = False,
    invalid: Literal["load", "skip"] = "load",
    check_dir: bool = True,
    on_issue: OnIssue | None = None,
    on_issue_from: Severity = "info",
    limits: Limits | None = None,
) -> Catalog:
    """Return a catalogue of the skills below ``roots``, with every issue that was met on the way.

    Strict mode raises ``SkillLoadError`` with every violation of the first bad file. ``missing="error"`` raises
    ``SourceError`` for a root that is not a folder. A root that is a SKILL.md means its folder. An empty root (``""``)
    is not a root; no root at all raises ``SourceError``.

    ``invalid="skip"`` leaves out every file that the specification refuses, reports all of its violations as issues,
    and goes on, in strict mode too; in lenient mode the name may differ from the folder's. ``check_dir=False`` does not
    compare the two in any mode. ``on_issue`` is called with each issue of the catalogue before the catalogue is
    returned, and with ``on_issue_from="warning"`` or ``"error"`` only with those that are at least as severe.
    """
    if not roots:
        raise SourceError("scan needs a folder: scan('skills'); discover() looks in the standard places")
    check_options(mode=mode, missing=missing, max_depth=max_depth, invalid=invalid)
    if follow_links not in {True, False, "never"}:
        raise SourceError(f"follow_links must be True, False or 'never', not {follow_links!r}")
    _check_on_issue(on_issue, on_issue_from)
    rules = ScanRules(
        LoadPolicy(mode, repair, limits or DEFAULT_LIMITS, check_dir),
        missing,
        max_depth,
        nested,
        check_texts(skip_prefixes, "skip_prefixes"),
        filename,
        follow_links,
        invalid,
    )
    places = [Place(folder) for folder in (root_folder(root, filename) for root in roots) if folder]
    return _report_issues(scan_places(places, rules, on_duplicate=on_duplicate), on_issue, on_issue_from)


def check_options(*, mode: str, missing: str, max_depth: int | None, invalid: str = "load") -> None:
    """Raise ``SourceError`` for an unknown word, or a depth that is not a whole number from 0."""
    check_mode(mode)
    if missing not in {"ignore", "error"}:
        raise SourceError(f"missing must be 'ignore' or 'error', not {missing!r}")
    if max_depth is not None:
        check_number(max_depth, "max_depth")
        if max_depth < 0:
            raise SourceError(f"max_depth must be 0 or more, or None, not {max_depth}")
    if invalid not in {"load", "skip"}:
        raise SourceError(f"invalid must be 'load' or 'skip', not {invalid!r}")


def _check_on_issue(on_issue: OnIssue | None, least: str) -> None:
    """Raise ``SourceError`` for a value that cannot be called, or an unknown severity."""
    check_callable(on_issue, "on_issue")
    if least not in _SEVERITIES:
        raise SourceError(f"on_issue_from must be 'info', 'warning' or 'error', not {least!r}")


def _report_issues(catalog: Catalog, on_issue: OnIssue | None, least: Severity) -> Catalog:
    """Call ``on_issue`` with each issue of the catalogue that is at least as severe, and return the catalogue."""
    if on_issue is not None:
        severities = _SEVERITIES[_SEVERITIES.index(least) :]
        for issue in catalog.issues:
            if issue.severity in severities:
                on_issue(issue)
    return catalog


def root_folder(root: str | os.PathLike[str], filename: str = SKILL_FILE) -> str:
    """Return the absolute folder that a root means: for a SKILL.md the folder around it, for ``""`` the text ``""``.

    Raises ``SourceError`` for a root that is neither a string nor a path.
    """
    written = check_path(root, "a folder to scan", "pass scan(*folders)")
    if not written:
        return ""
    path = os.path.abspath(written)
    # A path that is not there stays as it is: it may be made later, and a missing root is reported by its own name.
    return os.path.dirname(path) if os.path.basename(path) == filename and os.path.isfile(path) else path


def discover(
    cwd: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    agents: Iterable[str] | None = None,
    project: bool = True,
    verify: Literal["lock"] | None = None,
    *,
    user: bool = True,
    skip_prefixes: Sequence[str] = SKIP_PREFIXES,
    max_depth: int | None = MAX_DEPTH,
    on_duplicate: OnDuplicate = "first",
    on_issue: OnIssue | None = None,
    on_issue_from: Severity = "info",
    limits: Limits | None = None,
) -> Catalog:
    """Return a catalogue of the skills in the standard places.

    The project's skills win over the user's, and the nearest folder wins. ``agents`` are the ids of further agents
    whose folders count. ``project=False`` leaves the project's skills out, ``user=False`` the user's. With ``home``
    given, no environment variable moves a folder. ``skip_prefixes``, ``max_depth``, ``on_duplicate`` and ``on_issue``
    (with ``on_issue_from``) are those of ``scan``; a missing place is not an issue.

    An installed skill that its lock file does not record is an issue, and is not in the catalogue: a teammate may have
    removed it. With ``verify="lock"`` it counts only while every file of it is what the lock file says. That is checked
    now, on each activation and on each read. Skills outside the install folders are in no lock file, and stay.
    """
    if verify not in {None, "lock"}:
        raise SourceError(f"verify must be 'lock' or None, not {verify!r}")
    check_options(mode="lenient", missing="ignore", max_depth=max_depth)
    _check_on_issue(on_issue, on_issue_from)
    prefixes = check_texts(skip_prefixes, "skip_prefixes")
    rules = ScanRules(LoadPolicy(limits=limits or DEFAULT_LIMITS), max_depth=max_depth, skip_prefixes=prefixes)
    standard = resolve_standard_places(cwd, home, agents=agents, project=project, user=user)
    found = find_standard_skills(standard, rules, verify=verify)
    return _report_issues(_make_catalog(found, on_duplicate), on_issue, on_issue_from)


def _resolve_environment(
    cwd: str | os.PathLike[str] | None, home: str | os.PathLike[str] | None
) -> tuple[str, str, Mapping[str, str]]:
    """Return the working folder, the home folder, and the environment variables that may move other folders."""
    here = os.path.abspath(os.fspath(cwd) if cwd is not None else os.getcwd())
    home_folder = os.path.abspath(os.fspath(home) if home is not None else os.path.expanduser("~"))
    return here, home_folder, os.environ if home is None else {}


class StandardPlaces(NamedTuple):
    """The standard places, and what decides about the skills in them."""

    places: tuple[Place, ...]
    allowed: tuple[str, ...]
    """Further folders to which links in the places may lead."""
    project: str
    """The root of the repository; a place of the project that leads out of it and of ``allowed`` is not searched."""
    lock_scopes: Callable[[], tuple[InstallScope, ...]]
    """Returns the scopes whose lock files record what is installed in the places."""

    @property
    def lock_files(self) -> list[str]:
        """The paths of the lock files of the install bases among the places, whether or not they exist."""
        from prowess.discovery.agents import lock_file_of

        return [path for place in self.places if (path := lock_file_of(place.path))]


def resolve_standard_places(
    cwd: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    *,
    agents: Iterable[str] | None = None,
    project: bool = True,
    user: bool = True,
) -> StandardPlaces:
    """Return the places that ``discover`` looks at."""
    from prowess.discovery.agents import install_bases, standard_places
    from prowess.files import projects
    from prowess.installed import scopes

    here, home_folder, env = _resolve_environment(cwd, home)
    chosen = check_texts(agents or (), "agents")
    places = standard_places(here, home_folder, agents=chosen, project=project, user=user, env=env)
    root = projects.git_root(here, home_folder) if project else None
    allowed = (*([root] if root else ()), *install_bases(home_folder, env))
    around = projects.project_folders(here, home_folder)[-1:] if project else ()
    # The lock files are where the skills are looked for, so the folders are resolved by one rule.
    return StandardPlaces(
        places, allowed, "".join(around), lambda: scopes.standard_scopes(here, home_folder, env, project=project)
    )


def find_standard_skills(
    standard: StandardPlaces, rules: ScanRules, *, verify: Literal["lock"] | None = None
) -> ScanResult:
    """Return the skills in the standard places.

    An installed skill counts only if its lock file records it, and with ``verify="lock"`` only while its files are what
    the lock file says. An issue names each of the others.
    """
    from prowess.installed import policy_check, verifier
    from prowess.policy.files import current_policy

    policy = current_policy(standard.project)
    found = _find_in_places(standard, rules)
    must_verify = verify is not None or policy.word("run.verify") == "true"
    if not must_verify and not policy.judges_skills and not _may_have_installs(found):
        return found
    lock_scopes, limits = standard.lock_scopes(), rules.policy.limits
    if must_verify:
        skills, refusals = verifier.LockVerifier(lock_scopes, limits).verify_skills(found.skills)
    else:
        skills, refusals = verifier.drop_unrecorded(found.skills, lock_scopes, limits)
    if policy.judges_skills:
        skills, refused = policy_check.drop_refused(skills, lock_scopes, policy, limits)
        refusals += refused
    return ScanResult(skills, [*found.issues, *refusals], found.places)


def _find_in_places(standard: StandardPlaces, rules: ScanRules) -> ScanResult:
    """Return the skills in the standard places, and an issue for each that a project's link leads to elsewhere."""
    real = {place: os.path.realpath(place.path) for place in standard.places if place.scope is SkillScope.PROJECT}
    if all(target == place.path for place, target in real.items()):
        return find_skills(standard.places, rules, allowed=standard.allowed)
    inside = tuple(map(os.path.realpath, (standard.project, *standard.allowed)))
    refused = {
        place: target for place, target in real.items() if not any(paths.is_inside(target, base) for base in inside)
    }
    found = find_skills([place for place in standard.places if place not in refused], rules, allowed=standard.allowed)
    issues = [
        Issue("link-refused", "", f"it leads out of the project, to {target}, and is not searched", place.path)
        for place, target in refused.items()
    ]
    return ScanResult(found.skills, [*issues, *found.issues], found.places)


def _may_have_installs(found: ScanResult) -> bool:
    """Return whether any of the skills can be in an install base; most programs need not load what reads lock files."""
    from prowess.discovery.agents import BASE_NAME, lock_file_of

    is_base_scanned = any(place.found and lock_file_of(place.path) for place in found.places)
    linked = (skill.real_folder for skill in found.skills if skill.found.link_folder is not None)
    return is_base_scanned or any(BASE_NAME in folder for folder in linked)


class ScanResult(NamedTuple):
    """Everything that a scan found, with the skills that lose to another skill of their name."""

    skills: list[Skill]
    issues: list[Issue]
    places: list[Place]


def find_skills(places: Sequence[Place], rules: ScanRules, *, allowed: tuple[str, ...] | None = None) -> ScanResult:
    """Return every skill in ``places``, in their order; ``allowed`` are further folders to which links may lead."""
    walk = Walk(rules, places, allowed)
    walked = [walk.walk_root(place) for place in places]
    return ScanResult(walk.unique_skills(), walk.issues, walked)


def scan_places(
    places: Sequence[Place],
    rules: ScanRules,
    *,
    on_duplicate: OnDuplicate = "first",
    allowed: tuple[str, ...] | None = None,
) -> Catalog:
    """Return the catalogue of the skills in ``places``; ``allowed`` are further folders to which links may lead."""
    return _make_catalog(find_skills(places, rules, allowed=allowed), on_duplicate)


def _make_catalog(found: ScanResult, on_duplicate: OnDuplicate) -> Catalog:
    return Catalog(found.skills, on_duplicate=on_duplicate, issues=found.issues, places=found.places)
