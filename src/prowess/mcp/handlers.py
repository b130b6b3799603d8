"""What is answered to the extension's methods and to those for resources, from one shelf."""

from __future__ import annotations

import base64
from functools import cache, partial
from typing import TYPE_CHECKING

from prowess.errors import ResourceNotFoundError, ResourceTooLargeError, SkillError
from prowess.files.directory import open_folder_beneath
from prowess.files.identity import identity_at
from prowess.files.read import as_resource_error
from prowess.mcp.pagination import NO_CACHE, decode_cursor, make_page
from prowess.mcp.uris import URI_TEMPLATE, make_uri, split_uri
from prowess.names import SKILL_FILE, is_git_name
from prowess.spec.hidden_characters import to_one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from mimetypes import MimeTypes

    from prowess.limits import Limits
    from prowess.mcp.manifests import ManifestCache
    from prowess.mcp.served_skills import ServedSkills
    from prowess.skills.skill import Skill
    from prowess.spec.frontmatter.json_types import Json

    Result = dict[str, Json]

FOLDER_TYPE = "inode/directory"
MARKDOWN_TYPE = "text/markdown"
_LARGE_FILE_BYTES = 256 * 1024
_GONE_CODES = frozenset(("not-found", "missing-skill-md"))
_MAX_PAGE_FILES = 4_000  # of files in one page, however few skills they belong to


class StaleSnapshotError(Exception):
    """Skills of the shelf are gone from the disk; ``answer`` is what can be said without them."""

    def __init__(self, answer: Result) -> None:
        super().__init__()
        self.answer = answer


class SkillChangedError(Exception):
    """The SKILL.md of the skill in question is another than was loaded; ``answer`` is what the loaded one gives."""

    def __init__(self, answer: Result) -> None:
        super().__init__()
        self.answer = answer


class LargeFileError(Exception):
    """A file is so large that not many are to be read at once; ``read`` gives the answer."""

    def __init__(self, read: Callable[[], Result]) -> None:
        super().__init__()
        self.read = read


class SkillHandlers:
    """The answers of a server over one shelf; safe from several threads."""

    def __init__(self, shelf: ServedSkills, manifests: ManifestCache, limits: Limits) -> None:
        self.served = shelf
        self._manifests = manifests
        self._limits = limits

    # -- skills ------------------------------------------------------------------------------------------------------

    def list_skills(self, cursor: str | None) -> Result:
        """A page of entries; a skill that cannot be read is left out.

        Raises ``StaleSnapshotError`` where skills are gone, since the folders have changed and another shelf is on its
        way.
        """
        paths = self.served.next_paths(decode_cursor(cursor), self._limits.max_page_entries + 1)
        entries: list[Json] = []
        rows, last, gone = 0, None, False
        for count, path in enumerate(paths):
            if count == self._limits.max_page_entries or rows > _MAX_PAGE_FILES:
                last = paths[count - 1]
                break
            try:
                manifest = self._manifests.get_manifest(self.served.skills[path])
            except SkillError as error:
                gone = gone or error.code in _GONE_CODES
                continue
            rows += len(manifest.files)
            entries.append(manifest.to_entry(path))
        page = make_page("skills", entries, last)
        if gone:
            raise StaleSnapshotError(page)
        return page

    def get_skill(self, uri: str) -> Result:
        """The entry of a skill, listed or not."""
        path, rest = self._resolve_uri(uri)
        if rest != (SKILL_FILE,):
            raise ResourceNotFoundError(f"{uri[:200]!r} is no skill's {SKILL_FILE}")
        entry: Json = self._manifests.get_manifest(self.served.skills[path]).to_entry(path)
        return {"resultType": "complete", "skill": entry, **NO_CACHE}

    def load_manifest(self, uri: str) -> None:
        """Know the state of the skill that a file belongs to from now on."""
        self._manifests.get_manifest(self.served.skills[self._resolve_uri(uri)[0]])

    # -- resources ---------------------------------------------------------------------------------------------------

    def list_resources(self, cursor: str | None) -> Result:
        """A page of the SKILL.md files of listed skills."""
        most = self._limits.max_page_entries
        paths = self.served.next_paths(decode_cursor(cursor), most + 1)
        rows: list[Json] = [self._describe_skill_file(path) for path in paths[:most]]
        return make_page("resources", rows, paths[most - 1] if len(paths) > most else None)

    def _describe_skill_file(self, path: str) -> Json:
        skill = self.served.skills[path]
        about = to_one_line(skill.description)
        return {"uri": make_uri(path, SKILL_FILE), "name": skill.name, "description": about, "mimeType": MARKDOWN_TYPE}

    def list_templates(self) -> Result:
        """The one template: every file of every skill."""
        about = "A file of a skill: the path of the skill, then the path of the file in it"
        row: Json = {"uriTemplate": URI_TEMPLATE, "name": "skill-file", "description": about}
        return make_page("resourceTemplates", [row], None)

    def read_resource(self, uri: str) -> Result:
        """A file: as text where it is UTF-8, byte for byte, else as base64.

        Raises ``LargeFileError`` for a large one.
        """
        path, rest = self._resolve_uri(uri)
        if not rest:
            raise ResourceNotFoundError(f"no file {uri[:200]!r}")
        try:
            return self._read_file(path, "/".join(rest), min(_LARGE_FILE_BYTES, self._limits.max_served_bytes))
        except ResourceTooLargeError:
            raise LargeFileError(
                partial(self._read_file, path, "/".join(rest), self._limits.max_served_bytes)
            ) from None

    def _read_file(self, path: str, file: str, most: int) -> Result:
        data = self.served.skills[path].read_bytes(file, most)
        return {"resultType": "complete", "contents": [_encode_contents(make_uri(path, file), data)], **NO_CACHE}

    def read_directory(self, uri: str, cursor: str | None) -> Result:
        """A page of what lies directly in a folder of a skill."""
        path, rest = self._resolve_uri(uri)
        after = decode_cursor(cursor)
        rows = [row for row in self._list_children(self.served.skills[path], rest) if row[0] > after]
        most = self._limits.max_page_entries
        found: list[Json] = [_describe_child(path, rest, name, folder=folder) for name, folder in rows[:most]]
        return make_page("resources", found, rows[most - 1][0] if len(rows) > most else None)

    def _list_children(self, skill: Skill, rest: tuple[str, ...]) -> list[tuple[str, bool]]:
        """Names, and whether they are folders."""
        try:
            with open_folder_beneath(skill.base, (*skill.parts, *rest)) as folder:
                found = folder.list_entries(self._limits.max_entries_per_skill)
        except OSError as error:
            raise as_resource_error(error, "/".join(rest) or skill.name) from None
        rows = [*((name, True) for name in found.folders), *((name, False) for name in found.files)]
        return sorted(row for row in rows if not is_git_name(row[0]))

    def _resolve_uri(self, uri: str) -> tuple[str, tuple[str, ...]]:
        found = self.served.resolve_path(split_uri(uri))
        if found is None:
            raise ResourceNotFoundError(f"no skill at {uri[:200]!r}")
        return found


def ensure_current(skill: Skill | None, answer: Result) -> Result:
    """``answer``; raises ``SkillChangedError`` with it where the skill's SKILL.md has changed since it was loaded.

    Instructions are read when they are asked for, and the name, the fields and whether it loads at all are older.
    """
    known = skill.identity if skill is not None and skill.is_local else None
    if skill is not None and known is not None and identity_at(skill.location) != known:
        raise SkillChangedError(answer)
    return answer


def _describe_child(path: str, rest: tuple[str, ...], name: str, *, folder: bool) -> Json:
    uri = make_uri(path, "/".join((*rest, name)))
    return {
        "uri": uri,
        "name": name,
        "mimeType": FOLDER_TYPE if folder else _guess_type(name, "application/octet-stream"),
    }


def _encode_contents(uri: str, data: bytes) -> Json:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    name = uri.rpartition("/")[2]
    if "\0" in text:
        blob = base64.b64encode(data).decode("ascii")
        return {"uri": uri, "mimeType": _guess_type(name, "application/octet-stream"), "blob": blob}
    return {"uri": uri, "mimeType": _guess_type(name, "text/plain"), "text": text}


def _guess_type(name: str, otherwise: str) -> str:
    return _mime_types().guess_type(name)[0] or otherwise


@cache
def _mime_types() -> MimeTypes:
    """Python's own table: the same on every machine."""
    from mimetypes import MimeTypes  # noqa: PLC0415 - only once something is read

    types = MimeTypes()
    types.add_type(MARKDOWN_TYPE, ".md")
    return types
