"""The walk through folders that finds skills.

Each root is looked at first itself, then its folders in order of their names, depth first, down to ``max_depth``. A
folder with a SKILL.md that loads is a skill, and what lies below it belongs to it (``nested=True`` looks there too). A
file that does not load is an issue, and its folder is searched like any other: a bad skill never hides a good one.
What is not entered is information: a folder that is skipped by its name, and the depth at which the walk ends.
Links come last in their root; one that leads to a folder is followed only when its target lies in a scanned root, in
the git repository around the root, or where installers put skills.
"""

from __future__ import annotations

import errno
import os
import time
from collections import deque

from prowess.errors import Issue, ResourceError, SkillLoadError, SourceError
from prowess.files.directory import Folder, open_folder_beneath, real_path, stat_folder
from prowess.files.paths import PathResolver, is_inside
from prowess.files.read import OpenFile
from prowess.model import Place
from prowess.names import SKILL_FILE, is_git_name
from prowess.on_demand import OnDemand
from prowess.records import NamedTuple
from prowess.skills.location import SkillLocation
from prowess.skills.skill import Skill, make_skill_from_document, make_skill_from_match
from prowess.spec.document import LoadPolicy, read_document
from prowess.spec.frontmatter.fast_match import match_head
from prowess.spec.frontmatter.plain_yaml import can_skip_limit_checks

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from prowess.discovery import search_paths
    from prowess.errors import Severity
    from prowess.files import projects
    from prowess.files.directory import HeadRead
    from prowess.files.read import Identity
    from prowess.model import SkillScope
    from prowess.spec.frontmatter import parse
else:
    projects, search_paths = OnDemand("prowess.files.projects"), OnDemand("prowess.discovery.search_paths")
    parse = OnDemand("prowess.spec.frontmatter.parse")

SKIP_PREFIXES = (".", "_", "node_modules")
MAX_DEPTH = 6


class ScanRules(NamedTuple):
    """How a scan goes about it."""

    policy: LoadPolicy = LoadPolicy()
    missing: Literal["ignore", "error"] = "ignore"
    max_depth: int | None = MAX_DEPTH
    nested: bool = False
    skip_prefixes: tuple[str, ...] = SKIP_PREFIXES
    filename: str = SKILL_FILE
    follow_links: bool = False
    invalid: Literal["load", "skip"] = "load"
    """What becomes of a file that breaks a rule of the specification and could be used all the same."""

    @property
    def head_policy(self) -> LoadPolicy:
        """The policy by which heads are judged: nothing is overlooked or mended where invalid files are skipped."""
        if self.invalid == "load":
            return self.policy
        return LoadPolicy("strict", repair=False, limits=self.policy.limits)

    @property
    def check_dir(self) -> bool:
        """True unless a scan that skips invalid files was asked to be lenient: then any folder may hold any name."""
        return self.invalid == "load" or self.policy.mode == "strict"

    @property
    def raises(self) -> bool:
        """True when the first bad file ends the scan."""
        return self.policy.mode == "strict" and self.invalid == "load"


class _SkillPath(NamedTuple):
    """Where a file lies: below which base, in which folder, under which names."""

    base: str
    rel: str
    name: str
    file: str
    shown: str | None = None

    @property
    def path(self) -> str:
        folder = self.shown or (os.path.join(self.base, self.rel) if self.rel else self.base)
        return os.path.join(folder, self.file)


class Walk:
    """One scan: what it has found so far, and the bounds that it keeps."""

    def __init__(self, rules: ScanRules, places: Sequence[Place], allowed: tuple[str, ...] | None) -> None:
        self.rules = rules
        self.skills: list[Skill] = []
        self.issues: list[Issue] = []
        self._places = places
        self._allowed = allowed
        self._allowed_bases: tuple[str, ...] | None = None
        self._pending_links: deque[tuple[str, str, int, tuple[str, ...]]] = deque()
        self._trails = PathResolver()
        self._links_to_here: tuple[str, ...] = ()
        """The links that led to where the walk is now."""
        self._link_targets: dict[str, int] = {}
        """The folders to which links led, each with how many skills were found in it."""
        self._repeat_count = 0
        """How many skills of this root were found through another link already."""
        limits = rules.policy.limits
        self._max_depth = (
            limits.max_scan_depth if rules.max_depth is None else min(rules.max_depth, limits.max_scan_depth)
        )
        # The short cut sees only what discovery needs: where invalid files are skipped every rule counts.
        self._uses_fast_match = (
            rules.policy.mode == "lenient" and rules.invalid == "load" and can_skip_limit_checks(limits)
        )
        self._deadline = time.monotonic() + limits.max_scan_seconds
        self._folders_left = 0
        self._stopped = False
        self._skipped_count = 0
        """How many folders of this root were skipped by their names."""
        self._depth_stops = 0
        self._first_depth_stop = ""
        """In how many folders of this root the caller's depth ended the walk, and in which one first."""
        self._scope: SkillScope | None = None

    # -- roots -------------------------------------------------------------------------------------------------------

    def walk_root(self, place: Place) -> Place:
        """Everything below one root; what came of it."""
        self._folders_left = self.rules.policy.limits.max_dirs_per_root
        self._stopped = False
        self._scope = place.scope
        self._links_to_here = ()
        self._skipped_count = 0
        self._depth_stops = 0
        self._repeat_count = 0
        before = len(self.skills)
        state = self._enter_root(place.path)
        while self._pending_links:
            self._follow_link(*self._pending_links.popleft())
        self._add_summary(place.path)
        return Place(place.path, place.scope, state, len(self.skills) - before + self._repeat_count)

    def _enter_root(self, path: str) -> str:
        try:
            with Folder(path) as folder:
                self._visit_folder(folder, path, "", 0)
        except FileNotFoundError:
            return self._report_bad_root(path, "missing-root", "does not exist")
        except NotADirectoryError:
            return self._report_bad_root(path, "not-a-directory", "is not a folder")
        except OSError as error:
            self._add_issue("unreadable-directory", path, f"cannot be read: {error.strerror}")
            return "unreadable"
        except ValueError:  # NUL, or half a character
            return self._report_bad_root(ascii(path), "not-a-directory", "has a name that no folder can have")
        return "scanned"

    def _report_bad_root(self, path: str, code: str, why: str) -> str:
        if self.rules.missing == "error":
            raise SourceError(f"the root {why}", path, code)
        if code == "missing-root":
            if self._scope is None:  # of the standard places most are missing on every machine
                self._add_issue(code, path, f"the root {why}", "info")
            return "missing"
        self._add_issue(code, path, f"the root {why}")
        return "not a folder"

    def _add_issue(self, code: str, path: str, message: str, severity: Severity = "error") -> None:
        self.issues.append(Issue(code, "", message, path, 0, severity))

    def _add_summary(self, path: str) -> None:
        """Add one issue for the skipped folders that have none of their own, and one for the depth."""
        more = self._skipped_count - self.rules.policy.limits.max_noted_folders
        if more > 0:
            self._add_issue(
                "skipped-directory", path, f"{more} more folders below it are skipped by their names", "info"
            )
        if self._depth_stops:
            others = f", nor are those of {self._depth_stops - 1} other folders" if self._depth_stops > 1 else ""
            message = f"its folders are not looked at: they lie more than {self._max_depth} deep{others}"
            self._add_issue("too-deep", self._first_depth_stop, message, "info")

    # -- folders -----------------------------------------------------------------------------------------------------

    def _visit_folder(self, folder: Folder, base: str, rel: str, depth: int) -> None:
        """A folder that may itself be a skill, then what is in it."""
        found = folder.read_head(self.rules.filename, self.rules.policy.limits.head_step)
        spot = _SkillPath(base, rel, os.path.basename(folder.path), self.rules.filename)
        taken = self._add_skill(found, spot)
        if taken and not self.rules.nested:
            return
        self._visit_entries(folder, base, rel, depth, in_skill=taken)

    def _visit_entries(self, folder: Folder, base: str, rel: str, depth: int, *, in_skill: bool = False) -> None:
        try:
            entries = folder.list_entries(self.rules.policy.limits.max_entries_per_folder)
        except OSError as error:
            self._add_issue("unreadable-directory", folder.path, f"cannot be read: {error.strerror}")
            return
        if self._add_other_spelling(folder, base, rel, entries.files):
            if not self.rules.nested:
                return
            in_skill = True
        skip = self.rules.skip_prefixes
        if depth >= self._max_depth:
            self._note_depth(folder.path, any(not name.startswith(skip) for name in entries.folders))
            return
        for name in entries.bad_names:
            self._add_issue("bad-file-name", folder.path, f"{name} is not a UTF-8 name", "warning")
        if not entries.complete:
            most = self.rules.policy.limits.max_entries_per_folder
            self._add_issue("too-many-directories", folder.path, f"only {most} entries were looked at")
        if not in_skill:  # a link below a skill is never followed
            own = self.rules.filename.lower()
            links = (name for name in entries.links if not name.startswith(skip) and name.lower() != own)
            way = self._links_to_here
            self._pending_links += [(folder.path, name, depth + 1, way) for name in links if not is_git_name(name)]
        names = [name for name in entries.folders if not name.startswith(skip) and not is_git_name(name)]
        if len(names) < len(entries.folders):  # rare, and compared first: the inner loop is a bench row
            self._add_skipped_issues(folder.path, entries.folders)
        self._scan_children(folder, base, rel, names, depth + 1, in_skill=in_skill)

    def _add_skipped_issues(self, path: str, names: Sequence[str]) -> None:
        """Add the folders that are skipped by their names as information, as many as the limits allow.

        git's own folders are not among them: they are skipped whatever ``skip_prefixes`` says.
        """
        skipped = [name for name in names if name.startswith(self.rules.skip_prefixes) and not is_git_name(name)]
        room = max(0, self.rules.policy.limits.max_noted_folders - self._skipped_count)
        for name in skipped[:room]:
            prefix = next(one for one in self.rules.skip_prefixes if name.startswith(one))
            self._add_issue("skipped-directory", os.path.join(path, name), f"its name begins with {prefix!r}", "info")
        self._skipped_count += len(skipped)

    def _note_depth(self, path: str, more: bool) -> None:  # noqa: FBT001 - one caller
        """Note a folder whose folders are not looked at: the caller's own depth is information, the limit an error."""
        if not more:
            return
        if self.rules.max_depth is not None and self.rules.max_depth <= self._max_depth:
            self._first_depth_stop = self._first_depth_stop if self._depth_stops else path
            self._depth_stops += 1
        else:
            self._add_issue("too-deep", path, f"folders more than {self._max_depth} deep are not looked at")

    def _scan_children(
        self, folder: Folder, base: str, rel: str, names: list[str], depth: int, *, in_skill: bool
    ) -> None:
        """The inner loop: one glance at each child's file, the full path for the rest."""
        policy = self.rules.policy
        filename, nested = self.rules.filename, self.rules.nested
        home = SkillLocation(base, filename, self._scope, policy, links=self._links_to_here, searched=nested)
        quick = self._uses_fast_match
        prefix = rel + os.sep if rel else ""
        now, until = time.monotonic, self._deadline
        add, match, make = self.skills.append, match_head, make_skill_from_match
        for name, head, identity, error in folder.read_heads(names, filename, policy.limits.head_step):
            if self._folders_left <= 0 or now() > until:
                self._stop(folder.path)
                return
            self._folders_left -= 1
            seen = match(head) if quick and head is not None else None
            if seen is not None and identity is not None:
                add(make(home, prefix + name, seen, identity))
                if not nested:
                    continue
                taken = True
            else:
                path = _SkillPath(base, prefix + name, name, filename)
                taken = self._add_skill((name, head, identity, error), path)
                if taken and not nested:
                    continue
            self._descend(folder, name, base, prefix + name, depth, in_skill=in_skill or taken)
            if self._stopped:
                return

    def _descend(self, folder: Folder, name: str, base: str, rel: str, depth: int, *, in_skill: bool) -> None:
        try:
            with folder.open_child(name) as child:
                self._visit_entries(child, base, rel, depth, in_skill=in_skill)
        except OSError as error:
            self._add_issue(
                "unreadable-directory", os.path.join(folder.path, name), f"cannot be read: {error.strerror}"
            )

    def _stop(self, path: str) -> None:
        if self._stopped:
            return
        self._stopped = True
        limits = self.rules.policy.limits
        if self._folders_left <= 0:
            self._add_issue("too-many-directories", path, f"stopped after {limits.max_dirs_per_root} folders")
        else:
            self._add_issue("deadline", path, f"stopped after {limits.max_scan_seconds:g} seconds")

    # -- files -------------------------------------------------------------------------------------------------------

    def _add_skill(self, found: HeadRead, spot: _SkillPath) -> bool:
        """Whether the file made a skill. Strict mode raises where it did not."""
        _, head, identity, error = found
        if error is not None:
            self._report_bad_file(Issue(*_describe_error(error), spot.path))
        if head is None or identity is None:
            return False
        try:
            self.skills.append(self._parse_skill(head, identity, spot))
        except SkillLoadError as bad:
            if self.rules.raises:
                raise
            self.issues += bad.issues if self.rules.invalid == "skip" else bad.issues[:1]
            return False
        except ResourceError as bad:
            self._report_bad_file(Issue(bad.code, "", bad.message, spot.path))
            return False
        return True

    def _report_bad_file(self, issue: Issue) -> None:
        if self.rules.raises:
            raise SkillLoadError([issue], issue.path)
        self.issues.append(issue)

    def _parse_skill(self, head: bytes, identity: Identity, spot: _SkillPath) -> Skill:
        policy = self.rules.head_policy
        size = identity[2]
        whole = not head or 0 < size <= len(head)  # Files in /proc and the like say that their size is 0.
        if not whole and parse.needs_more_bytes(head, repair=policy.repairs):
            head, whole, identity = self._read_full_head(spot)
        document = read_document(
            head, whole=whole, policy=policy, folder=spot.name, path=spot.path, check_dir=self.rules.check_dir
        )
        seen = bool(head[document.body_offset :].decode("utf-8", "ignore").strip())
        home = SkillLocation(
            spot.base,
            spot.file,
            self._scope,
            self.rules.policy,
            shown=spot.shown,
            links=self._links_to_here,
            body_seen=seen,
            searched=self.rules.nested,
        )
        return make_skill_from_document(home, spot.rel, document, identity, head)

    def _read_full_head(self, spot: _SkillPath) -> tuple[bytes, bool, Identity]:
        policy = self.rules.head_policy
        parts = (*spot.rel.split(os.sep), spot.file) if spot.rel else (spot.file,)
        with OpenFile(spot.base, parts) as file:
            head, whole = file.read_head(
                policy.limits.head_step,
                policy.limits.max_frontmatter_bytes,
                lambda head: parse.needs_more_bytes(head, repair=policy.repairs),
            )
            return head, whole, file.identity

    def _add_other_spelling(self, folder: Folder, base: str, rel: str, files: list[str]) -> bool:
        """``skill.md`` where there is no ``SKILL.md``: loaded on every system, with a warning. Whether it was."""
        wanted = self.rules.filename
        odd = next((name for name in files if name != wanted and name.lower() == wanted.lower()), None)
        if odd is None or wanted in files or self.rules.policy.mode == "strict":
            return False
        found = folder.read_head(odd, self.rules.policy.limits.head_step)
        taken = self._add_skill(found, _SkillPath(base, rel, os.path.basename(folder.path), odd))
        if taken:
            message = f"the file is named {odd}, not {wanted}"
            self._add_issue("filename-case", os.path.join(folder.path, odd), message, "warning")
        return taken

    # -- links -------------------------------------------------------------------------------------------------------

    def _follow_link(self, folder: str, name: str, depth: int, way: tuple[str, ...]) -> None:
        link = os.path.join(folder, name)
        if stat_folder(link) is None:
            self._refuse_link(link)
            return
        target = self._trails.resolve(link).end
        if target in self._link_targets:
            self._repeat_count += self._link_targets[target]
            return
        if is_inside(self._trails.resolve(folder).end, target):
            self._add_issue("link-loop", link, "the link leads to a folder around itself")
            return
        base = self._find_allowed_base(target, folder)
        if base is None:
            self._add_issue("link-refused", link, f"the link leads out of every scanned folder, to {target}")
            return
        self._link_targets[target] = 0
        self._links_to_here = (*way, link)
        before = len(self.skills)
        self._enter_link(link, os.path.relpath(target, base), base, depth)
        self._link_targets[target] = len(self.skills) - before

    def _refuse_link(self, link: str) -> None:
        """Note why a link leads to no folder; one that leads to a file is none of ours."""
        try:
            real_path(link)
        except FileNotFoundError:
            self._add_issue("link-refused", link, "the link leads nowhere", "warning")
        except OSError as error:
            code = "link-loop" if error.errno == errno.ELOOP else "link-refused"
            self._add_issue(code, link, f"the link cannot be followed: {error.strerror}")

    def _enter_link(self, link: str, rel: str, base: str, depth: int) -> None:
        """The folder ``rel`` below ``base``, which is known as ``link``."""
        rel = "" if rel == os.curdir else rel
        try:
            with open_folder_beneath(base, tuple(rel.split(os.sep)) if rel else ()) as child:
                found = child.read_head(self.rules.filename, self.rules.policy.limits.head_step)
                taken = self._add_fast_match(found, base, rel, link)
                if not taken:
                    spot = _SkillPath(base, rel, os.path.basename(link), self.rules.filename, link)
                    taken = self._add_skill(found, spot)
                if not taken or self.rules.nested:
                    self._visit_entries(child, base, rel, depth, in_skill=taken)
        except OSError as error:
            self._add_issue("unreadable-directory", link, f"cannot be read: {error.strerror}")

    def _add_fast_match(self, found: HeadRead, base: str, rel: str, link: str) -> bool:
        """Whether the file behind a link made a skill at a glance. Else it is looked at closely."""
        _, head, identity, _ = found
        seen = match_head(head) if self._uses_fast_match and head is not None else None
        if seen is None or identity is None:
            return False
        policy, scope, way = self.rules.policy, self._scope, self._links_to_here
        home = SkillLocation(
            base, self.rules.filename, scope, policy, shown=link, links=way, searched=self.rules.nested
        )
        self.skills.append(make_skill_from_match(home, rel, seen, identity))
        return True

    def _find_allowed_base(self, target: str, folder: str) -> str | None:
        """The folder that makes following a link to ``target`` right, or ``None``."""
        if self.rules.follow_links:
            return os.path.dirname(target)
        return next((base for base in self._list_allowed_bases(folder) if is_inside(target, base)), None)

    def _list_allowed_bases(self, folder: str) -> tuple[str, ...]:
        if self._allowed_bases is None:
            home = os.path.expanduser("~")
            allowed = self._allowed if self._allowed is not None else search_paths.install_bases(home, os.environ)
            self._allowed_bases = tuple(os.path.realpath(base) for base in (*(p.path for p in self._places), *allowed))
        if self._allowed is not None:
            return self._allowed_bases
        root = projects.git_root(self._trails.resolve(folder).end, os.path.expanduser("~"))
        return (*self._allowed_bases, root) if root else self._allowed_bases

    def unique_skills(self) -> list[Skill]:
        """The skills found, each file once: a link to a skill that was found already adds nothing."""
        if not self._link_targets:
            return self.skills
        first: dict[tuple[int, ...], Skill] = {}
        for skill in self.skills:
            first.setdefault(tuple(skill.identity or (id(skill),))[:2], skill)
        return list(first.values())


def _describe_error(error: OSError) -> tuple[str, str, str]:
    """Code, field and message for a file that could not be read."""
    if error.errno == errno.ELOOP:
        return "link-refused", "", "the file is a link"
    if error.errno in {errno.EINVAL, errno.ENXIO, errno.EISDIR, errno.ENODEV}:
        return "not-a-regular-file", "", "the file is not a regular file"
    return "unreadable", "", f"the file cannot be read: {error.strerror}"
