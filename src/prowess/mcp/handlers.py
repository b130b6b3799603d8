"""What is answered to the extension's methods and to those for resources, from one shelf."""

from __future__ import annotations

import base64
from functools import cache, partial
from typing import TYPE_CHECKING

from prowess.errors import ResourceNotFoundError, ResourceTooLargeError, SkillError
from prowess.files.directory import folder_beneath
from prowess.files.identity import identity_at
from prowess.files.read import as_resource_error
from prowess.mcp.pagination import FRESH, complete, item_before
from prowess.mcp.uris import SKILL_MD, TEMPLATE, parts_of, uri_of
from prowess.names import is_git_name
from prowess.spec.hidden_characters import one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from mimetypes import MimeTypes

    from prowess.limits import Limits
    from prowess.mcp.manifests import Manifests
    from prowess.mcp.served_skills import Shelf
    from prowess.skills.skill import Skill
    from prowess.spec.frontmatter.json_types import Json

    Result = dict[str, Json]

FOLDER_TYPE = "inode/directory"
MARKDOWN = "text/markdown"
_LARGE = 256 * 1024
_GONE = frozenset(("not-found", "missing-skill-md"))
_MOST_ROWS = 4_000  # of files in one page, however few skills they belong to


class BehindError(Exception):
    """Skills of the shelf are gone from the disk; ``answer`` is what can be said without them."""

    def __init__(self, answer: Result) -> None:
        super().__init__()
        self.answer = answer


class OutdatedError(Exception):
    """The SKILL.md of the skill in question is another than was loaded; ``answer`` is what the loaded one gives."""

    def __init__(self, answer: Result) -> None:
        super().__init__()
        self.answer = answer


class LargeError(Exception):
    """A file is so large that not many are to be read at once; ``read`` gives the answer."""

    def __init__(self, read: Callable[[], Result]) -> None:
        super().__init__()
        self.read = read


class Answers:
    """The answers of a server over one shelf; safe from several threads."""

    def __init__(self, shelf: Shelf, manifests: Manifests, limits: Limits) -> None:
        self.shelf = shelf
        self._manifests = manifests
        self._limits = limits

    # -- skills ------------------------------------------------------------------------------------------------------

    def list_skills(self, cursor: str | None) -> Result:
        """A page of entries; a skill that cannot be read is left out.

        Raises ``BehindError`` where skills are gone, since the folders have changed and another shelf is on its way.
        """
        paths = self.shelf.after(item_before(cursor), self._limits.max_page_entries + 1)
        entries: list[Json] = []
        rows, last, gone = 0, None, False
        for count, path in enumerate(paths):
            if count == self._limits.max_page_entries or rows > _MOST_ROWS:
                last = paths[count - 1]
                break
            try:
                manifest = self._manifests.of(self.shelf.skills[path])
            except SkillError as error:
                gone = gone or error.code in _GONE
                continue
            rows += len(manifest.files)
            entries.append(manifest.entry(path))
        page = complete("skills", entries, last)
        if gone:
            raise BehindError(page)
        return page

    def get_skill(self, uri: str) -> Result:
        """The entry of a skill, listed or not."""
        path, rest = self._within(uri)
        if rest != (SKILL_MD,):
            raise ResourceNotFoundError(f"{uri[:200]!r} is no skill's {SKILL_MD}")
        entry: Json = self._manifests.of(self.shelf.skills[path]).entry(path)
        return {"resultType": "complete", "skill": entry, **FRESH}

    def remember(self, uri: str) -> None:
        """Know the state of the skill that a file belongs to from now on."""
        self._manifests.of(self.shelf.skills[self._within(uri)[0]])

    # -- resources ---------------------------------------------------------------------------------------------------

    def list_resources(self, cursor: str | None) -> Result:
        """A page of the SKILL.md files of listed skills."""
        most = self._limits.max_page_entries
        paths = self.shelf.after(item_before(cursor), most + 1)
        rows: list[Json] = [self._own_file(path) for path in paths[:most]]
        return complete("resources", rows, paths[most - 1] if len(paths) > most else None)

    def _own_file(self, path: str) -> Json:
        skill = self.shelf.skills[path]
        about = one_line(skill.description)
        return {"uri": uri_of(path, SKILL_MD), "name": skill.name, "description": about, "mimeType": MARKDOWN}

    def list_templates(self) -> Result:
        """The one template: every file of every skill."""
        about = "A file of a skill: the path of the skill, then the path of the file in it"
        row: Json = {"uriTemplate": TEMPLATE, "name": "skill-file", "description": about}
        return complete("resourceTemplates", [row], None)

    def read_resource(self, uri: str) -> Result:
        """A file: as text where it is UTF-8, byte for byte, else as base64. Raises ``LargeError`` for a large one."""
        path, rest = self._within(uri)
        if not rest:
            raise ResourceNotFoundError(f"no file {uri[:200]!r}")
        try:
            return self._read(path, "/".join(rest), min(_LARGE, self._limits.max_served_bytes))
        except ResourceTooLargeError:
            raise LargeError(partial(self._read, path, "/".join(rest), self._limits.max_served_bytes)) from None

    def _read(self, path: str, file: str, most: int) -> Result:
        data = self.shelf.skills[path].read_bytes(file, most)
        return {"resultType": "complete", "contents": [_contents(uri_of(path, file), data)], **FRESH}

    def read_directory(self, uri: str, cursor: str | None) -> Result:
        """A page of what lies directly in a folder of a skill."""
        path, rest = self._within(uri)
        after = item_before(cursor)
        rows = [row for row in self._children(self.shelf.skills[path], rest) if row[0] > after]
        most = self._limits.max_page_entries
        found: list[Json] = [_child(path, rest, name, folder=folder) for name, folder in rows[:most]]
        return complete("resources", found, rows[most - 1][0] if len(rows) > most else None)

    def _children(self, skill: Skill, rest: tuple[str, ...]) -> list[tuple[str, bool]]:
        """Names, and whether they are folders."""
        try:
            with folder_beneath(skill.base, (*skill.parts, *rest)) as folder:
                found = folder.entries(self._limits.max_entries_per_skill)
        except OSError as error:
            raise as_resource_error(error, "/".join(rest) or skill.name) from None
        rows = [*((name, True) for name in found.folders), *((name, False) for name in found.files)]
        return sorted(row for row in rows if not is_git_name(row[0]))

    def _within(self, uri: str) -> tuple[str, tuple[str, ...]]:
        found = self.shelf.resolve(parts_of(uri))
        if found is None:
            raise ResourceNotFoundError(f"no skill at {uri[:200]!r}")
        return found


def current_answer(skill: Skill | None, answer: Result) -> Result:
    """``answer``; raises ``OutdatedError`` with it where the skill's SKILL.md has changed since it was loaded.

    Instructions are read when they are asked for, and the name, the fields and whether it loads at all are older.
    """
    known = skill.identity if skill is not None and skill.is_local else None
    if skill is not None and known is not None and identity_at(skill.location) != known:
        raise OutdatedError(answer)
    return answer


def _child(path: str, rest: tuple[str, ...], name: str, *, folder: bool) -> Json:
    uri = uri_of(path, "/".join((*rest, name)))
    return {"uri": uri, "name": name, "mimeType": FOLDER_TYPE if folder else _guessed(name, "application/octet-stream")}


def _contents(uri: str, data: bytes) -> Json:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    name = uri.rpartition("/")[2]
    if "\0" in text:
        blob = base64.b64encode(data).decode("ascii")
        return {"uri": uri, "mimeType": _guessed(name, "application/octet-stream"), "blob": blob}
    return {"uri": uri, "mimeType": _guessed(name, "text/plain"), "text": text}


def _guessed(name: str, otherwise: str) -> str:
    return _types().guess_type(name)[0] or otherwise


@cache
def _types() -> MimeTypes:
    """Python's own table: the same on every machine."""
    from mimetypes import MimeTypes  # noqa: PLC0415 - only once something is read

    types = MimeTypes()
    types.add_type(MARKDOWN, ".md")
    return types
