"""The pages of one skill, of its files and of its evaluation runs: text, fields, origin, scripts, similar skills."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import BinaryResourceError, ResourceNotFoundError, SkillError
from prowess.format.commands import find_commands
from prowess.search.ranking import find_missing_words
from prowess.skills.inventory import Inventory, inventory, list_scripts
from prowess.skills.search_library import make_head_text
from prowess.web.skill_rows import make_skill_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.authoring.evals import EvalReport
    from prowess.authoring.findings import Finding
    from prowess.installed.compare import Difference
    from prowess.lockfile.read import LockEntry
    from prowess.skills.explanation import Shadowed
    from prowess.skills.skill import Skill
    from prowess.web.eval_runs import KeptRun, StoredRun
    from prowess.web.library import Library
    from prowess.web.library_state import LibraryState
    from prowess.web.skill_rows import SkillRow


_MAX_NEIGHBOURS = 5
_MAX_APART_WORDS = 12


class Field(NamedTuple):
    """A row of the frontmatter."""

    name: str
    value: str


class Piece(NamedTuple):
    """A part of a line: its text, and whether it would run."""

    text: str
    runs: bool = False


class RawLine(NamedTuple):
    """A line of the SKILL.md, in pieces, with the findings about it."""

    number: int
    pieces: tuple[Piece, ...]
    findings: tuple[Finding, ...] = ()


class Neighbour(NamedTuple):
    """A skill that a model may confuse this one with, and the words that only one of the two has."""

    id: str
    name: str
    description: str
    why: str
    only_here: tuple[str, ...]
    only_there: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InstallFacts:
    """What the lock file says of an installed skill."""

    entry: LockEntry
    state: str
    """How an installed skill compares with its lock file, in words."""
    differences: Sequence[Difference]
    links: Sequence[str]
    """Where agents find it, as the lock file records it."""


@dataclass(frozen=True, slots=True)
class SkillView:
    """What the page shows."""

    id: str
    name: str
    location: str
    kind: str
    why: str
    """Why a copy lost, or why a file does not load."""
    winner_id: str
    """The id of the skill that a copy lost to; ``""`` for any other."""
    description: str = ""
    scope: str = ""
    source: str = ""
    marks: tuple[str, ...] = ()
    tokens: int | None = None
    is_fetched: bool = True
    """False for a skill of a server or a site: its files are there, and looking at it fetches none of them."""
    body: str = ""
    body_tokens: int = 0
    is_cut: bool = False
    """Whether the text is longer than what a page shows."""
    raw: Sequence[RawLine] = ()
    findings: Sequence[Finding] = ()
    contents: Inventory | None = None
    paths: tuple[str, ...] = ()
    fields: Sequence[Field] = ()
    digest: str = ""
    install: InstallFacts | None = None
    agents: Sequence[tuple[str, str]] = ()
    """Each agent, and how it has this skill."""
    shadowed: Sequence[tuple[str, Shadowed]] = ()
    """The copies that lost to this skill, each with its id."""
    needs: Sequence[tuple[str, str, str]] = ()
    """What the skill needs: its kind, its name, and of a variable whether it is set where the console runs."""
    is_fork: bool = False
    model: str = ""
    """The model of the sub-agent of a fork."""
    trust: str = ""
    neighbours: Sequence[Neighbour] = ()
    evals: EvalReport | None = None
    eval_runs: Sequence[StoredRun] = ()
    """The runs of evaluations with a model, from the file of results that the console was given."""
    problems: Sequence[str] = ()
    """What could not be found out, each in a sentence."""


def make_skill_view(library: Library, parameters: Mapping[str, str]) -> SkillView:
    """Return what the page shows for the id in its address. Raise ``UnknownSkillError`` for an id that no skill has."""
    state = library.state
    row = state.find_row(parameters["id"])
    return _SkillReader(library, state, row).read()


class _SkillReader:
    """Finds out about one skill. What cannot be found out is a problem on the page, and hides nothing else."""

    def __init__(self, library: Library, state: LibraryState, row: SkillRow) -> None:
        self._limits = library.limits
        self._eval_runs = library.eval_runs
        self._state = state
        self._row = row
        self._problems: list[str] = []

    def read(self) -> SkillView:
        """Return what the page shows. The problems are taken last, because every step may add to them."""
        skill = self._state.read_skill(self._row)
        view = self._view_unloaded_file() if skill is None else self._view_skill(skill)
        return replace(view, problems=tuple(self._problems))

    def _view_row(self) -> SkillView:
        row = self._row
        winner = make_skill_id(row.name) if row.kind == "shadowed" else ""
        return SkillView(row.id, row.name, row.location, row.kind, row.why, winner)

    def _view_unloaded_file(self) -> SkillView:
        """Return the view of a SKILL.md that does not load: where it is, and its text."""
        place = self._state.find_place(self._row.location)
        scope = place.scope.value if place.scope else ""
        return self._add_lines(replace(self._view_row(), scope=scope, source=place.path))

    def _view_skill(self, skill: Skill) -> SkillView:
        self._state.forget_states(skill)
        view = self._add_fields(self._view_row(), skill)
        if skill.is_local or skill.is_inline:
            view = self._add_contents(view, skill)
        else:
            view = replace(view, paths=skill.readable_paths(), is_fetched=False)
        view = self._add_places(view, skill)
        return self._add_choice(view, skill) if self._row.kind == "skill" else view

    def _add_fields(self, view: SkillView, skill: Skill) -> SkillView:
        return replace(
            view,
            description=skill.description,
            scope=skill.scope.value if skill.scope else "",
            source=skill.source_label or self._state.find_source(skill),
            needs=self._state.list_needs(skill),
            is_fork=skill.is_fork,
            model=skill.model or "",
            fields=list(_list_fields(skill)),
            trust=self._state.find_trust_state(skill) or "not trusted",
        )

    def _add_contents(self, view: SkillView, skill: Skill) -> SkillView:
        """Add the files and the text of a skill that is on this machine."""
        contents = self._take_inventory(skill)
        if skill.is_local:
            view = self._add_lines(view)
        body = self._read_body(skill)
        return replace(
            view,
            body=body[: self._limits.max_page_chars],
            body_tokens=contents.tokens if contents else 0,
            is_cut=view.is_cut or len(body) > self._limits.max_page_chars,
            contents=contents,
            paths=tuple(file.path for file in contents.files) if contents else skill.readable_paths(),
            digest=self._find_digest(skill),
        )

    def _add_lines(self, view: SkillView) -> SkillView:
        """Add the lines of the SKILL.md, and what is wrong with them."""
        findings = self._find_findings()
        raw, is_cut = self._read_raw(findings)
        return replace(view, raw=raw, findings=findings, is_cut=is_cut)

    def _add_places(self, view: SkillView, skill: Skill) -> SkillView:
        """Add the install of the skill, the agents that have it, and the copies that lost to it."""
        return replace(
            view,
            install=self._find_install(skill),
            agents=self._find_agents(skill),
            shadowed=self._find_shadowed_skills(skill),
        )

    def _add_choice(self, view: SkillView, skill: Skill) -> SkillView:
        """Add what matters when a model chooses among the skills of the catalogue: the cost, and similar skills."""
        return replace(
            view,
            marks=self._state.find_marks(skill),
            tokens=self._state.costs.get(skill.name),
            neighbours=self._find_neighbours(skill),
            evals=self._evaluate(skill) if skill.is_local else None,
            eval_runs=self._list_eval_runs(skill),
        )

    def _list_eval_runs(self, skill: Skill) -> Sequence[StoredRun]:
        try:
            return self._eval_runs.list(skill.name)
        except SkillError as error:
            self._note(error)
            return ()

    def _note(self, error: SkillError) -> None:
        self._problems.append(f"{error.code}: {error.message}")

    # -- its text ----------------------------------------------------------------------------------------------------

    def _read_body(self, skill: Skill) -> str:
        try:
            return skill.read_body(errors="replace")
        except SkillError as error:
            self._note(error)
            return ""

    def _find_findings(self) -> Sequence[Finding]:
        try:
            return self._state.find_findings(self._row)
        except SkillError as error:
            self._note(error)
            return ()

    def _read_raw(self, findings: Sequence[Finding]) -> tuple[list[RawLine], bool]:
        """Return the lines of a SKILL.md, as far as a page shows them, and whether there are more."""
        lines = self._state.read_lines(self._row)
        text = "\n".join(lines)
        by_line: dict[int, list[Finding]] = {}
        for finding in findings:
            if finding.path == self._row.location:  # a secret may be in another file of the skill
                by_line.setdefault(finding.line, []).append(finding)
        shown: list[RawLine] = []
        spans = [(command.begin, command.end) for command in find_commands(text, _find_body(text))]
        begin = 0
        for number, line in enumerate(lines, 1):
            if begin > self._limits.max_page_chars:
                return shown, True
            pieces = _split_line(line, begin, spans)
            shown.append(RawLine(number, pieces, tuple(by_line.get(number, ()))))
            begin += len(line) + 1
        return shown, False

    # -- its files ---------------------------------------------------------------------------------------------------

    def _take_inventory(self, skill: Skill) -> Inventory | None:
        try:
            contents = inventory(skill)
        except SkillError as error:
            self._note(error)
            return None
        self._problems += [f"{issue.code}: {issue.field}: {issue.message}" for issue in contents.issues]
        return contents

    def _find_digest(self, skill: Skill) -> str:
        try:
            return skill.digest()
        except SkillError as error:
            self._note(error)
            return ""

    # -- where it is -------------------------------------------------------------------------------------------------

    def _find_install(self, skill: Skill) -> InstallFacts | None:
        recorded = self._state.locks.find_entry(skill)
        if recorded is None:
            return None
        entry, folder = recorded
        links = [link for link in entry.links if entry.folder_for_link(os.path.basename(link)) == folder]
        try:
            differences = self._state.locks.find_differences(skill.folder)
        except OSError as error:
            self._problems.append(f"{skill.folder} cannot be compared with the lock file: {error.strerror}")
            differences = []
        return InstallFacts(entry, self._state.find_lock_state(skill), differences, links)

    def _find_agents(self, skill: Skill) -> Sequence[tuple[str, str]]:
        coverage = self._state.coverage
        scope = skill.scope.value if skill.scope else ""
        rows = [row for row in coverage.skills if row.name == skill.name] if coverage is not None else []
        chosen = next((row for row in rows if row.location == scope), rows[0] if rows else None)
        return list(chosen.states.items()) if chosen is not None else ()

    def _find_shadowed_skills(self, skill: Skill) -> Sequence[tuple[str, Shadowed]]:
        lost = (one for one in self._state.catalog.shadowed if one.winner == skill.location and one.name == skill.name)
        return [(make_skill_id(one.name, one.location), one) for one in lost]

    # -- what resembles it -------------------------------------------------------------------------------------------

    def _find_neighbours(self, skill: Skill) -> list[Neighbour]:
        catalog = self._state.catalog
        request = f"{skill.name.replace('-', ' ')} {skill.description}"
        # One more than is shown, because the skill itself fits best.
        hits = catalog.rank_skills(request, None, _MAX_NEIGHBOURS + 1)
        head = make_head_text(skill)
        return [
            Neighbour(
                make_skill_id(hit.name),
                hit.name,
                hit.description,
                hit.why,
                find_missing_words(make_head_text(hit.skill), skill.description)[:_MAX_APART_WORDS],
                find_missing_words(head, hit.description)[:_MAX_APART_WORDS],
            )
            for hit in hits
            if hit.name != skill.name
        ][:_MAX_NEIGHBOURS]

    def _evaluate(self, skill: Skill) -> EvalReport | None:
        try:
            return self._state.evaluate(skill)
        except SkillError as error:
            self._note(error)
            return None


def _split_line(line: str, begin: int, spans: Sequence[tuple[int, int]]) -> tuple[Piece, ...]:
    """Return a line in pieces, so that what would run is apart; ``begin`` is where the line begins in the text."""
    pieces: list[Piece] = []
    at, end = begin, begin + len(line)
    for first, last in spans:
        if last <= at or first >= end:
            continue
        if first > at:
            pieces.append(Piece(line[at - begin : first - begin]))
        pieces.append(Piece(line[max(first, at) - begin : min(last, end) - begin], runs=True))
        at = min(last, end)
    if at < end or not pieces:
        pieces.append(Piece(line[at - begin :]))
    return tuple(pieces)


def _find_body(text: str) -> int:
    """Return where the instructions begin: after the line that closes the frontmatter, 0 where there is none."""
    end = text.find("\n---", 3) if text.startswith("---") else -1
    return text.find("\n", end + 1) + 1 if end >= 0 else 0


def _list_fields(skill: Skill) -> list[Field]:
    front = skill.frontmatter
    known = {
        "name": skill.written_name,
        "description": front.description,
        "license": front.license,
        "compatibility": front.compatibility,
        "allowed-tools": ", ".join(front.allowed_tools),
        "tags": ", ".join(front.tags),
        "version": front.version,
        "model": front.model,
        "context": front.context,
    }
    rows = [Field(name, value) for name, value in known.items() if value]
    rows += [Field(f"metadata.{name}", value) for name, value in front.metadata.items()]
    shown = {row.name for row in rows}
    rows += [Field(name, str(value)) for name, value in front.extra.items() if name not in shown]
    return rows


_IMAGE_STARTS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_WEBP = b"WEBP"
_WEBP_AT = 8


@dataclass(frozen=True, slots=True)
class _FileView:
    """What the page of a file shows: its text, or that it is an image, or that it is neither."""

    id: str
    name: str
    path: str
    size: int
    text: str | None = None
    is_image: bool = False
    is_cut: bool = False
    would_run: bool = False


def make_file_view(library: Library, parameters: Mapping[str, str]) -> _FileView:
    """Return what the page shows for the id and the ``path`` in its address.

    Raises ``UnknownSkillError`` for an id that no skill has, and ``ResourceError`` for a file that it does not have.
    """
    row, skill = _find_local_skill(library, parameters)
    path = parameters.get("path", "")
    data = skill.read_bytes(path)
    view = _FileView(row.id, row.name, path, len(data), would_run=bool(list_scripts([path])))
    if _find_image_type(data):
        return replace(view, is_image=True)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return view
    most = library.limits.max_page_chars
    return view if "\0" in text else replace(view, text=text[:most], is_cut=len(text) > most)


def read_image(library: Library, parameters: Mapping[str, str]) -> tuple[bytes, str]:
    """Return the bytes of an image of a skill, and its type by what it begins with, whatever its name says.

    Raises ``BinaryResourceError`` for anything but a PNG, JPEG, GIF or WebP: an SVG can hold scripts, and is shown as
    text.
    """
    _, skill = _find_local_skill(library, parameters)
    path = parameters.get("path", "")
    data = skill.read_bytes(path)
    kind = _find_image_type(data)
    if not kind:
        raise BinaryResourceError(f"{path!r} is not a PNG, JPEG, GIF or WebP", path)
    return data, kind


def _find_image_type(data: bytes) -> str:
    """Return the media type of a PNG, JPEG, GIF or WebP; ``""`` for anything else."""
    if data.startswith(b"RIFF") and data[_WEBP_AT : _WEBP_AT + len(_WEBP)] == _WEBP:
        return "image/webp"
    return next((kind for start, kind in _IMAGE_STARTS if data.startswith(start)), "")


def _find_local_skill(library: Library, parameters: Mapping[str, str]) -> tuple[SkillRow, Skill]:
    state = library.state
    row = state.find_row(parameters["id"])
    skill = state.read_skill(row)
    if skill is None or not skill.is_local:
        # Files of a server or a site are not fetched for somebody who only looks.
        raise ResourceNotFoundError(f"{row.name!r} has no files on this machine", parameters.get("path", ""))
    return row, skill


class _RunView(NamedTuple):
    """What the page shows, and the id of the skill that was evaluated."""

    kept: KeptRun
    skill_id: str


def make_run_view(library: Library, parameters: Mapping[str, str]) -> _RunView:
    """Return the page of the run whose folder has this name. Raises ``ResourceNotFoundError`` where there is none."""
    kept = library.eval_runs.read(parameters.get("id", ""))
    return _RunView(kept, make_skill_id(kept.run.skill))
