"""The walk through folders that finds skills.

The walk looks at each root itself first, then at its folders in the order of their names, depth first, down to
``max_depth``. A folder with a SKILL.md that loads is a skill, and what is below it belongs to that skill
(``nested=True`` looks there too). A file that does not load is an issue, and its folder is searched like any other: a
bad skill never hides a good one. Folders that are skipped by their names, and the depth at which the walk ends, are
reported as information. The links of a root are followed last, as far as ``LinkPolicy`` permits.
"""

from __future__ import annotations

import errno
import os
import time
from collections import deque
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.errors import Issue, ResourceError, SkillLoadError, SourceError
from prowess.files.directory import Folder, open_folder_beneath, real_path, stat_folder
from prowess.files.paths import PathResolver, is_inside
from prowess.files.read import OpenFile, identity_of
from prowess.format.frontmatter import parse
from prowess.format.head import LoadPolicy, allows_quick, read_head
from prowess.names import GIT_FIRST_CHARS, SKILL_FILE, is_git_name
from prowess.skills.explanation import Place
from prowess.skills.skill import Skill, make_skill_from_document, make_skill_from_match
from prowess.skills.skill_files import SkillLocation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from prowess.errors import Severity
    from prowess.files.directory import HeadRead
    from prowess.files.read import Identity
    from prowess.literals import FollowLinks
    from prowess.skills.explanation import SkillScope


class _SkillPath(NamedTuple):
    """Where a SKILL.md was found."""

    base: str
    """The folder that reads stay below."""
    rel: str
    """The way from ``base`` to the folder of the skill, ``""`` for ``base`` itself."""
    name: str
    """The name of the folder."""
    file: str
    shown: str | None = None
    """The path by which people know the folder, when that is a link."""

    @property
    def path(self) -> str:
        folder = self.shown or (os.path.join(self.base, self.rel) if self.rel else self.base)
        return os.path.join(folder, self.file)


class Walk:
    """One scan: the skills and issues that it has found so far, and the limits that it keeps.

    ``allowed`` are the folders to which links may lead; see ``LinkPolicy``.
    """

    def __init__(self, rules: ScanRules, places: Sequence[Place], allowed: tuple[str, ...] | None) -> None:
        self.rules = rules
        self.skills: list[Skill] = []
        self.issues: list[Issue] = []
        self._pending_links: deque[tuple[str, str, int, tuple[str, ...]]] = deque()
        self._resolver = PathResolver()
        roots = (place.path for place in places)
        self._link_policy = LinkPolicy(roots, allowed, self._resolver, follow_all=rules.follow_links is True)
        self._links_to_here: tuple[str, ...] = ()
        """The links that led to where the walk is now."""
        self._link_targets: dict[str, int] = {}
        """The folders to which links led, each with the number of skills that were found in it."""
        self._repeat_count = 0
        """How many skills of this root were found through another link already."""
        limits = rules.policy.limits
        self._max_depth = (
            limits.max_scan_depth if rules.max_depth is None else min(rules.max_depth, limits.max_scan_depth)
        )
        # A quick reader looks only at what discovery needs. When invalid files are skipped, every rule counts.
        self._is_quick = rules.invalid == "load" and allows_quick(rules.policy)
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
        """Find everything below one root; return the place with its state and the number of skills."""
        self._folders_left = self.rules.policy.limits.max_dirs_per_root
        self._stopped = False
        self._scope = place.scope
        self._links_to_here = ()
        self._skipped_count = 0
        self._depth_stops = 0
        self._repeat_count = 0
        before, issues_before = len(self.skills), len(self.issues)
        state = self._enter_root(place.path)
        while self._pending_links:
            self._follow_link(*self._pending_links.popleft())
        self._add_summary(place.path)
        count = len(self.skills) - before + self._repeat_count
        # Many standard places are empty. A folder that somebody named was expected to have skills.
        if state == "scanned" and not count and place.scope is None and len(self.issues) == issues_before:
            self._add_issue("no-skills", place.path, "no skill is in this folder or below it", "info")
        return Place(place.path, place.scope, state, count)

    def _enter_root(self, path: str) -> str:
        try:
            with Folder(path) as folder:
                self._visit_folder(folder, path, "", 0)
        except FileNotFoundError:
            return self._report_bad_root(path, "missing-root", "the folder does not exist")
        except NotADirectoryError:
            return self._report_bad_root(path, "not-a-directory", "this is not a folder")
        except OSError as error:
            self._add_issue("unreadable-directory", path, f"cannot be read: {error.strerror}")
            return "unreadable"
        except ValueError:  # the path holds NUL, or half of a character
            return self._report_bad_root(ascii(path), "not-a-directory", "no folder can have this name")
        return "scanned"

    def _report_bad_root(self, path: str, code: str, message: str) -> str:
        if self.rules.missing == "error":
            raise SourceError(message, path, code)
        if code == "missing-root":
            if self._scope is None:  # most of the standard places are missing on every machine, which is not an issue
                self._add_issue(code, path, message, "info")
            return "missing"
        self._add_issue(code, path, message)
        return "not a folder"

    def _add_issue(self, code: str, path: str, message: str, severity: Severity = "error") -> None:
        self.issues.append(Issue(code, "", message, path, 0, severity))

    def _add_summary(self, path: str) -> None:
        """Add one issue for the skipped folders beyond those with an issue of their own, and one for the depth."""
        more = self._skipped_count - self.rules.policy.limits.max_noted_folders
        if more > 0:
            self._add_issue(
                "skipped-directory", path, f"{more} more folders below it are skipped by their names", "info"
            )
        if self._depth_stops:
            others = f", nor are those of {self._depth_stops - 1} other folders" if self._depth_stops > 1 else ""
            message = f"its folders are not looked at: they are more than {self._max_depth} deep{others}"
            self._add_issue("too-deep", self._first_depth_stop, message, "info")

    # -- folders -----------------------------------------------------------------------------------------------------

    def _visit_folder(self, folder: Folder, base: str, rel: str, depth: int) -> None:
        """Look at a folder that may itself be a skill, then at what is in it."""
        head_read = folder.read_head(self.rules.filename, self.rules.policy.limits.head_step)
        skill_path = _SkillPath(base, rel, os.path.basename(folder.path), self.rules.filename)
        is_skill = self._add_skill(head_read, skill_path)
        if is_skill and not self.rules.nested:
            return
        self._visit_entries(folder, base, rel, depth, in_skill=is_skill)

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
            if any(not name.startswith(skip) for name in entries.folders):
                self._note_depth(folder.path)
            return
        for name in entries.bad_names:
            self._add_issue("bad-file-name", folder.path, f"{name} is not a UTF-8 name", "warning")
        if not entries.complete:
            limit = self.rules.policy.limits.max_entries_per_folder
            self._add_issue("too-many-directories", folder.path, f"only {limit} entries were looked at")
        if not in_skill:  # A link below a skill is never followed: a skill shows only its own files.
            self._queue_links(folder.path, entries.links, depth + 1)
        names = self._drop_skipped(entries.folders)
        if len(names) < len(entries.folders):  # rare, so the thousands of names are not looked at one by one again
            self._add_skipped_issues(folder.path, entries.folders)
        self._scan_children(folder, base, rel, names, depth + 1, in_skill=in_skill)

    def _drop_skipped(self, names: list[str]) -> list[str]:
        """Return the names of the folders to look into: neither git's own nor those that are skipped by their names."""
        skip = self.rules.skip_prefixes
        # Fast path of the bench row "scan": the first letter shows of nearly every name that it is an ordinary one. An
        # empty prefix, with which every name begins, has no first letter.
        odd = GIT_FIRST_CHARS.union(prefix[0] for prefix in skip if prefix)
        plain = all(skip)
        return [
            name
            for name in names
            if (plain and name[0] not in odd and name.isascii()) or not (name.startswith(skip) or is_git_name(name))
        ]

    def _queue_links(self, path: str, names: Sequence[str], depth: int) -> None:
        """Remember the links of a folder. They are followed last, so that a skill is known by its own folder first."""
        if self.rules.follow_links == "never":
            return
        skill_file = self.rules.filename.lower()
        self._pending_links += [
            (path, name, depth, self._links_to_here)
            for name in names
            if not name.startswith(self.rules.skip_prefixes) and name.lower() != skill_file and not is_git_name(name)
        ]

    def _add_skipped_issues(self, path: str, names: Sequence[str]) -> None:
        """Report the folders that are skipped by their names, as many as the limits allow.

        git's own folders are skipped whatever ``skip_prefixes`` says, and are not reported.
        """
        skipped = [name for name in names if name.startswith(self.rules.skip_prefixes) and not is_git_name(name)]
        room = max(0, self.rules.policy.limits.max_noted_folders - self._skipped_count)
        for name in skipped[:room]:
            prefix = next(prefix for prefix in self.rules.skip_prefixes if name.startswith(prefix))
            self._add_issue("skipped-directory", os.path.join(path, name), f"its name begins with {prefix!r}", "info")
        self._skipped_count += len(skipped)

    def _note_depth(self, path: str) -> None:
        """Report a folder whose folders are too deep: for the caller as information, for the limit as an error."""
        if self.rules.max_depth is not None and self.rules.max_depth <= self._max_depth:
            self._first_depth_stop = self._first_depth_stop if self._depth_stops else path
            self._depth_stops += 1
        else:
            self._add_issue("too-deep", path, f"folders more than {self._max_depth} deep are not looked at")

    def _scan_children(
        self, folder: Folder, base: str, rel: str, names: list[str], depth: int, *, in_skill: bool
    ) -> None:
        """Add the skills among the child folders, and go down into those that are none.

        This is the inner loop of a scan (the bench row "scan"), hence the local names. A head that a quick
        reader knows makes a skill at once; ``_add_skill`` parses every other head.
        """
        policy = self.rules.policy
        filename, nested = self.rules.filename, self.rules.nested
        location = SkillLocation(
            base, filename, self._scope, policy, links=self._links_to_here, is_searched_below=nested
        )
        fast = self._is_quick
        prefix = rel + os.sep if rel else ""
        add, make = self.skills.append, make_skill_from_match
        for heads in folder.read_heads(names, filename, policy.limits.head_step):
            if time.monotonic() > self._deadline:
                self._stop(folder.path)
                return
            left = self._folders_left
            for name, head, info, error in heads:
                if left <= 0:
                    self._folders_left = left
                    self._stop(folder.path)
                    return
                left -= 1
                head_match = read_head(head, policy=policy, quick="only") if fast and head is not None else None
                if head_match is not None and info is not None:
                    # ``identity_of`` written out: a call for each folder is 2 % of the bench row "scan 10,000".
                    identity = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
                    add(make(location, prefix + name, head_match, identity))
                    if not nested:
                        continue
                    is_skill = True
                else:
                    skill_path = _SkillPath(base, prefix + name, name, filename)
                    is_skill = self._add_skill((name, head, info, error), skill_path)
                if is_skill and not nested:
                    continue
                self._folders_left = left
                self._descend(folder, name, base, prefix + name, depth, in_skill=in_skill or is_skill)
                if self._stopped:
                    return
                left = self._folders_left
            self._folders_left = left

    def _descend(self, folder: Folder, name: str, base: str, rel: str, depth: int, *, in_skill: bool) -> None:
        try:
            with folder.open_child(name, lists=True) as child:
                self._visit_entries(child, base, rel, depth, in_skill=in_skill)
        except OSError as error:
            self._add_issue(
                "unreadable-directory", os.path.join(folder.path, name), f"cannot be read: {error.strerror}"
            )

    def _stop(self, path: str) -> None:
        """End the walk of this root, with one issue that names the limit."""
        if self._stopped:
            return
        self._stopped = True
        limits = self.rules.policy.limits
        if self._folders_left <= 0:
            self._add_issue("too-many-directories", path, f"stopped after {limits.max_dirs_per_root} folders")
        else:
            self._add_issue("deadline", path, f"stopped after {limits.max_scan_seconds:g} seconds")

    # -- files -------------------------------------------------------------------------------------------------------

    def _add_skill(self, head_read: HeadRead, skill_path: _SkillPath) -> bool:
        """Add the skill of a file, or its issues; return whether it is one. Strict mode raises ``SkillLoadError``."""
        _, head, info, error = head_read
        if error is not None:
            self._report_bad_file(Issue(*_describe_error(error), skill_path.path))
        if head is None or info is None:
            return False
        try:
            self.skills.append(self._parse_skill(head, identity_of(info), skill_path))
        except SkillLoadError as bad:
            if self.rules.raises:
                raise
            self.issues += bad.issues if self.rules.invalid == "skip" else bad.issues[:1]
            return False
        except ResourceError as bad:
            self._report_bad_file(Issue(bad.code, "", bad.message, skill_path.path))
            return False
        return True

    def _report_bad_file(self, issue: Issue) -> None:
        if self.rules.raises:
            raise SkillLoadError([issue], issue.path)
        self.issues.append(issue)

    def _parse_skill(self, head: bytes, identity: Identity, skill_path: _SkillPath) -> Skill:
        if self._is_quick and skill_path.shown is not None:  # a quick reader has seen every head but those behind links
            found = read_head(head, policy=self.rules.policy, quick="only")
            if found is not None:
                return make_skill_from_match(self._locate(skill_path), skill_path.rel, found, identity)
        policy = self.rules.head_policy
        size = identity[2]
        whole = not head or 0 < size <= len(head)  # Files in /proc and the like say that their size is 0.
        # The first read takes one step of bytes; a longer head is read on below its folder, without following links.
        if not whole and parse.needs_more_bytes(head, repair=policy.repairs):
            head, whole, identity = self._read_full_head(skill_path)
        document = read_head(
            head,
            quick=False,
            whole=whole,
            policy=policy,
            folder=skill_path.name,
            path=skill_path.path,
        )
        has_body = bool(head[document.body_offset :].decode("utf-8", "ignore").strip())
        location = self._locate(skill_path, is_body_seen=has_body)
        return make_skill_from_document(location, skill_path.rel, document, identity)

    def _locate(self, skill_path: _SkillPath, *, is_body_seen: bool = True) -> SkillLocation:
        """Return the location of the skill at a path."""
        return SkillLocation(
            skill_path.base,
            skill_path.file,
            self._scope,
            self.rules.policy,
            link_folder=skill_path.shown,
            links=self._links_to_here,
            is_body_seen=is_body_seen,
            is_searched_below=self.rules.nested,
        )

    def _read_full_head(self, skill_path: _SkillPath) -> tuple[bytes, bool, Identity]:
        policy = self.rules.head_policy
        parts = (*skill_path.rel.split(os.sep), skill_path.file) if skill_path.rel else (skill_path.file,)
        with OpenFile(skill_path.base, parts) as file:
            head, whole = file.read_head(
                policy.limits.head_step,
                policy.limits.max_frontmatter_bytes,
                lambda head: parse.needs_more_bytes(head, repair=policy.repairs),
            )
            return head, whole, file.identity

    def _add_other_spelling(self, folder: Folder, base: str, rel: str, files: list[str]) -> bool:
        """Add the skill of a ``skill.md`` in a folder without ``SKILL.md``, with a warning; return whether it is one.

        Systems that ignore case would load such a file anyway, so it is loaded on every system.
        """
        expected = self.rules.filename
        other = next((name for name in files if name != expected and name.lower() == expected.lower()), None)
        if other is None or expected in files or self.rules.policy.mode == "strict":
            return False
        head_read = folder.read_head(other, self.rules.policy.limits.head_step)
        is_skill = self._add_skill(head_read, _SkillPath(base, rel, os.path.basename(folder.path), other))
        if is_skill:
            message = f"the file is named {other}, not {expected}"
            self._add_issue("filename-case", os.path.join(folder.path, other), message, "warning")
        return is_skill

    # -- links -------------------------------------------------------------------------------------------------------

    def _follow_link(self, folder: str, name: str, depth: int, way: tuple[str, ...]) -> None:
        """Visit the folder to which a link leads, or report why not; ``way`` are the links that led to this one."""
        link = os.path.join(folder, name)
        if stat_folder(link) is None:
            self._refuse_link(link)
            return
        target = self._resolver.resolve(link).end
        if target in self._link_targets:  # Another link led there: the skills count here too, and are not added again.
            self._repeat_count += self._link_targets[target]
            return
        if is_inside(self._resolver.resolve(folder).end, target):
            self._add_issue("link-loop", link, "the link leads to a folder around itself")
            return
        base = self._link_policy.find_base(target, folder)
        if base is None:
            self._add_issue("link-refused", link, f"the link leads out of every scanned folder, to {target}")
            return
        self._link_targets[target] = 0
        self._links_to_here = (*way, link)
        before = len(self.skills)
        self._enter_link(link, os.path.relpath(target, base), base, depth)
        self._link_targets[target] = len(self.skills) - before

    def _refuse_link(self, link: str) -> None:
        """Report why a link leads to no folder; a link to a file is not an issue."""
        try:
            real_path(link)
        except FileNotFoundError:
            self._add_issue("link-refused", link, "the link leads nowhere", "warning")
        except OSError as error:
            code = "link-loop" if error.errno == errno.ELOOP else "link-refused"
            self._add_issue(code, link, f"the link cannot be followed: {error.strerror}")

    def _enter_link(self, link: str, rel: str, base: str, depth: int) -> None:
        """Visit the folder ``rel`` below ``base``, which people know as ``link``."""
        rel = "" if rel == os.curdir else rel
        try:
            with open_folder_beneath(base, tuple(rel.split(os.sep)) if rel else ()) as child:
                head_read = child.read_head(self.rules.filename, self.rules.policy.limits.head_step)
                skill_path = _SkillPath(base, rel, os.path.basename(link), self.rules.filename, link)
                is_skill = self._add_skill(head_read, skill_path)
                if not is_skill or self.rules.nested:
                    self._visit_entries(child, base, rel, depth, in_skill=is_skill)
        except OSError as error:
            self._add_issue("unreadable-directory", link, f"cannot be read: {error.strerror}")

    def unique_skills(self) -> list[Skill]:
        """Return the skills, each file once: a link to a skill that was found already adds nothing."""
        if not self._link_targets:
            return self.skills
        first: dict[tuple[int, ...], Skill] = {}
        for skill in self.skills:
            first.setdefault(tuple(skill.identity or (id(skill),))[:2], skill)  # by device and inode
        return list(first.values())


def _describe_error(error: OSError) -> tuple[str, str, str]:
    """Return the code, field and message of the issue for a file that could not be read."""
    if error.errno == errno.ELOOP:
        return "link-refused", "", "the file is a link"
    if error.errno in {errno.EINVAL, errno.ENXIO, errno.EISDIR, errno.ENODEV}:
        return "not-a-regular-file", "", "the file is not a regular file"
    return "unreadable", "", f"the file cannot be read: {error.strerror}"


class LinkPolicy:
    """The folders to which the links of one scan may lead.

    ``allowed`` are the folders beside the scanned ``roots``. ``None`` stands for those of the installers, and for the
    git repository around each link, or the installed skills of the project around it where there is no repository. With
    ``follow_all`` every link may be followed.
    """

    def __init__(
        self, roots: Iterable[str], allowed: tuple[str, ...] | None, resolver: PathResolver, *, follow_all: bool
    ) -> None:
        self._roots = tuple(roots)
        self._allowed = allowed
        self._resolver = resolver
        self._follow_all = follow_all
        self._bases: tuple[str, ...] | None = None

    def find_base(self, target: str, folder: str) -> str | None:
        """Return the folder that permits a link in ``folder`` to lead to ``target``; ``None`` when none does."""
        if self._follow_all:
            return os.path.dirname(target)
        return next((base for base in self._list_bases(folder) if is_inside(target, base)), None)

    def _list_bases(self, folder: str) -> tuple[str, ...]:
        from prowess.discovery.agents import install_bases
        from prowess.files import projects

        home = os.path.expanduser("~")
        if self._bases is None:  # resolved when the first link is met: most scans meet none
            allowed = self._allowed if self._allowed is not None else install_bases(home, os.environ)
            self._bases = tuple(os.path.realpath(base) for base in (*self._roots, *allowed))
        if self._allowed is not None:
            return self._bases
        here = self._resolver.resolve(folder).end
        root = projects.git_root(here, home)
        # Not resolved: an install base that is itself a link may lead anywhere.
        return (
            *self._bases,
            root or os.path.join(projects.project_root(here, home), *projects.NATIVE_PROJECT.split("/")),
        )


SKIP_PREFIXES = (".", "_", "node_modules")
MAX_DEPTH = 6


class ScanRules(NamedTuple):
    """The options of one scan."""

    policy: LoadPolicy = LoadPolicy()
    missing: Literal["ignore", "error"] = "ignore"
    max_depth: int | None = MAX_DEPTH
    nested: bool = False
    skip_prefixes: tuple[str, ...] = SKIP_PREFIXES
    filename: str = SKILL_FILE
    follow_links: FollowLinks = False
    invalid: Literal["load", "skip"] = "load"
    """What becomes of a file that breaks a rule of the specification and could be used nevertheless."""

    @property
    def head_policy(self) -> LoadPolicy:
        """The policy by which heads are judged.

        When invalid files are skipped, nothing is overlooked or repaired, except that in lenient mode a name may differ
        from that of its folder.
        """
        if self.invalid == "load":
            return self.policy
        check_dir = self.policy.check_dir and self.policy.mode == "strict"
        return LoadPolicy("strict", repair=False, limits=self.policy.limits, check_dir=check_dir)

    @property
    def raises(self) -> bool:
        """Whether the first bad file ends the scan."""
        return self.policy.mode == "strict" and self.invalid == "load"
