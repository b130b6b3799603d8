"""Finding skills in folders that the caller names, and in the standard places."""

from __future__ import annotations

import os

from prowess.arguments import check_callable, check_number, check_path, check_texts
from prowess.discovery.walk import MAX_DEPTH, SKIP_PREFIXES, ScanRules, Walk
from prowess.errors import SourceError
from prowess.limits import DEFAULT_LIMITS
from prowess.model import Place
from prowess.names import SKILL_FILE
from prowess.on_demand import OnDemand
from prowess.records import NamedTuple
from prowess.skills.catalog import Catalog
from prowess.spec.document import LoadPolicy, check_mode

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Literal

    from prowess.discovery import search_paths
    from prowess.errors import Issue
    from prowess.files import projects
    from prowess.limits import Limits
    from prowess.literals import Mode, OnDuplicate
    from prowess.skills.skill import Skill

    OnIssue = Callable[[Issue], object]
    SkillVerifier = Callable[[list[Skill]], tuple[list[Skill], list[Issue]]]
else:
    projects, search_paths = OnDemand("prowess.files.projects"), OnDemand("prowess.discovery.search_paths")


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
    follow_links: bool = False,
    invalid: Literal["load", "skip"] = "load",
    on_issue: OnIssue | None = None,
    limits: Limits | None = None,
) -> Catalog:
    """The skills below ``roots``, in a catalogue that also holds every issue met on the way.

    Strict mode raises ``SkillLoadError`` with every violation of the first bad file. ``missing="error"`` raises
    ``SourceError`` for a root that is no folder. A root that is a SKILL.md means its folder. An empty root (``""``)
    is no root; no root at all raises ``SourceError``.

    ``invalid="skip"`` leaves out every file that the specification refuses, with all of its violations as issues, and
    goes on, in strict mode too; in lenient mode the name need not be the folder's. ``on_issue`` is called with each of
    the catalogue's issues before it is returned.
    """
    if not roots:
        raise SourceError("scan needs a folder: scan('skills'); discover() looks in the standard places")
    check_options(mode=mode, missing=missing, max_depth=max_depth)
    if invalid not in {"load", "skip"}:
        raise SourceError(f"invalid must be 'load' or 'skip', not {invalid!r}")
    check_callable(on_issue, "on_issue")
    rules = ScanRules(
        LoadPolicy(mode, repair, limits or DEFAULT_LIMITS),
        missing,
        max_depth,
        nested,
        check_texts(skip_prefixes, "skip_prefixes"),
        filename,
        follow_links,
        invalid,
    )
    places = [Place(folder) for folder in (root_folder(root, filename) for root in roots) if folder]
    return _report_issues(scan_places(places, rules, on_duplicate=on_duplicate), on_issue)


def check_options(*, mode: str, missing: str, max_depth: int | None) -> None:
    """Raise ``SourceError`` for a mode, a treatment of missing folders or a depth that there is not."""
    check_mode(mode)
    if missing not in {"ignore", "error"}:
        raise SourceError(f"missing must be 'ignore' or 'error', not {missing!r}")
    if max_depth is not None:
        check_number(max_depth, "max_depth")
        if max_depth < 0:
            raise SourceError(f"max_depth must be 0 or more, or None, not {max_depth}")


def _report_issues(catalog: Catalog, on_issue: OnIssue | None) -> Catalog:
    """The catalogue, once ``on_issue`` was called with each of its issues; what it raises is the caller's to see."""
    if on_issue is not None:
        for issue in catalog.issues:
            on_issue(issue)
    return catalog


def root_folder(root: str | os.PathLike[str], filename: str = SKILL_FILE) -> str:
    """The absolute folder that a root means: for a skill's own file the folder around it; ``""`` for ``""``.

    Raises ``SourceError`` for what is neither a text nor a path.
    """
    written = check_path(root, "a folder to scan", "pass scan(*folders)")
    if not written:
        return ""
    path = os.path.abspath(written)
    # Something that is not there stays what it is: it may be made later, and a missing root is told by its own name.
    return os.path.dirname(path) if os.path.basename(path) == filename and os.path.isfile(path) else path


def discover(
    cwd: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    agents: Iterable[str] | None = None,
    project: bool = True,  # noqa: FBT001, FBT002 - the public signature
    verify: Literal["lock"] | None = None,
    *,
    user: bool = True,
    skip_prefixes: Sequence[str] = SKIP_PREFIXES,
    max_depth: int | None = MAX_DEPTH,
    on_duplicate: OnDuplicate = "first",
    on_issue: OnIssue | None = None,
    limits: Limits | None = None,
) -> Catalog:
    """The skills in the standard places: the project's win over the user's, the nearest folder first.

    ``agents``: further agents whose folders count, by id. ``project=False`` leaves the project's skills out,
    ``user=False`` the user's. With ``home`` given, no environment variable moves a folder. ``skip_prefixes``,
    ``max_depth``, ``on_duplicate`` and ``on_issue`` are those of ``scan``; a place that is missing is no issue.

    ``verify="lock"``: an installed skill counts only while every file of it is what the lock file says, which is looked
    at now, on each activation and on each read. Skills outside the install folders are not in lock files and stay.
    """
    if verify not in {None, "lock"}:
        raise SourceError(f"verify must be 'lock' or None, not {verify!r}")
    check_options(mode="lenient", missing="ignore", max_depth=max_depth)
    check_callable(on_issue, "on_issue")
    prefixes = check_texts(skip_prefixes, "skip_prefixes")
    rules = ScanRules(LoadPolicy(limits=limits or DEFAULT_LIMITS), max_depth=max_depth, skip_prefixes=prefixes)
    places, allowed = resolve_standard_places(cwd, home, agents=agents, project=project, user=user)
    sift = None
    if verify is not None:
        from prowess.lockfile.pins import LockVerifier  # noqa: PLC0415
        from prowess.lockfile.scopes import standard_scopes  # noqa: PLC0415 - only for those who ask

        here, house, env = _resolve_environment(cwd, home)
        sift = LockVerifier(standard_scopes(here, house, env, project=project), rules.policy.limits).verify_skills
    found = scan_places(places, rules, on_duplicate=on_duplicate, allowed=allowed, sift=sift)
    return _report_issues(found, on_issue)


def _resolve_environment(
    cwd: str | os.PathLike[str] | None, home: str | os.PathLike[str] | None
) -> tuple[str, str, Mapping[str, str]]:
    """The working folder, the home folder, and the environment that may move others."""
    here = os.path.abspath(os.fspath(cwd) if cwd is not None else os.getcwd())
    house = os.path.abspath(os.fspath(home) if home is not None else os.path.expanduser("~"))
    return here, house, os.environ if home is None else {}


def resolve_standard_places(
    cwd: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    *,
    agents: Iterable[str] | None = None,
    project: bool = True,
    user: bool = True,
) -> tuple[tuple[Place, ...], tuple[str, ...]]:
    """The places that ``discover`` looks at, and the folders that links in them may lead to besides."""
    here, house, env = _resolve_environment(cwd, home)
    chosen = check_texts(agents or (), "agents")
    places = search_paths.standard_places(here, house, agents=chosen, project=project, user=user, env=env)
    root = projects.git_root(here, house) if project else None
    return places, (*([root] if root else ()), *search_paths.install_bases(house, env))


class ScanResult(NamedTuple):
    """Everything that a scan met: also the skills that lose to another of their name."""

    skills: list[Skill]
    issues: list[Issue]
    places: list[Place]


def find_skills(places: Sequence[Place], rules: ScanRules, *, allowed: tuple[str, ...] | None = None) -> ScanResult:
    """Every skill in ``places``, in their order; ``allowed``: where links may lead besides."""
    walk = Walk(rules, places, allowed)
    looked = [walk.walk_root(place) for place in places]
    return ScanResult(walk.unique_skills(), walk.issues, looked)


def scan_places(
    places: Sequence[Place],
    rules: ScanRules,
    *,
    on_duplicate: OnDuplicate = "first",
    allowed: tuple[str, ...] | None = None,
    sift: SkillVerifier | None = None,
) -> Catalog:
    """The catalogue of what lies in ``places``, in their order; ``allowed``: where links may lead besides.

    ``verify_skills`` says which of the skills found count, and why the others do not.
    """
    found = find_skills(places, rules, allowed=allowed)
    skills, issues = found.skills, found.issues
    if sift is not None:
        skills, refused = sift(skills)
        issues = [*issues, *refused]
    return Catalog(skills, on_duplicate=on_duplicate, issues=issues, places=found.places)
