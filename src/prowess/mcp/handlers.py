"""The answers to the methods of the skills extension and to those for resources, from one set of served skills."""

from __future__ import annotations

import base64
from functools import cache, partial
from mimetypes import MimeTypes
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import ResourceNotFoundError, ResourceTooLargeError, SkillError
from prowess.files.directory import open_folder_beneath
from prowess.files.read import as_resource_error
from prowess.mcp.answers import NO_CACHE, Answer, LargeFile, decode_cursor, make_page
from prowess.mcp.prompts import Prompts
from prowess.mcp.served_skills import URI_TEMPLATE, make_uri, split_uri
from prowess.mcp.tools import ModelTools
from prowess.names import SKILL_FILE, is_git_name
from prowess.text.hidden_characters import to_one_line

if TYPE_CHECKING:
    from prowess.format.frontmatter.json_types import Json
    from prowess.limits import Limits
    from prowess.mcp.manifests import ManifestCache
    from prowess.mcp.options import ServeOptions
    from prowess.mcp.served_skills import ServedSkills
    from prowess.skills.skill import Skill


FOLDER_TYPE = "inode/directory"
MARKDOWN_TYPE = "text/markdown"
# Files up to this size are read without waiting for others. Base64 and JSON hold a larger file in memory several
# times over, so the server bounds how many of those it reads at once (Limits.max_large_reads).
_LARGE_FILE_BYTES = 256 * 1024
_GONE_CODES = frozenset(("not-found", "missing-skill-md"))
# A page ends after this many files, however few skills they belong to: its size is bounded by files, not skills.
_MAX_PAGE_FILES = 4_000


class SkillHandlers:
    """Answers requests from one set of served skills; safe to call from several threads."""

    def __init__(self, served: ServedSkills, manifests: ManifestCache, limits: Limits) -> None:
        self.served = served
        self.manifests = manifests
        self._limits = limits

    # -- skills ------------------------------------------------------------------------------------------------------

    def list_skills(self, cursor: str | None) -> Answer:
        """Return a page of skill entries, without the skills that cannot be read.

        The answer is ``skills-gone`` when skills of the page are no longer on the disk: the folders have changed, and
        a newer snapshot is on its way.
        """
        paths = self.served.next_paths(decode_cursor(cursor), self._limits.max_page_entries + 1)
        entries: list[Json] = []
        file_count, last, has_gone = 0, None, False
        for count, path in enumerate(paths):
            if count == self._limits.max_page_entries or file_count > _MAX_PAGE_FILES:
                last = paths[count - 1]
                break
            try:
                manifest = self.manifests.get_manifest(self.served.skills[path])
            except SkillError as error:
                has_gone = has_gone or error.code in _GONE_CODES
                continue
            file_count += len(manifest.files)
            entries.append(manifest.to_entry(path))
        return Answer(make_page("skills", entries, last), "skills-gone" if has_gone else "current")

    def get_skill(self, uri: str) -> Answer:
        """Return the entry of a skill, whether the listing shows it or not.

        Raises ``ResourceNotFoundError`` when ``uri`` is not the address of a skill's SKILL.md.
        """
        path, skill, rest = self._resolve_uri(uri)
        if rest != (SKILL_FILE,):
            raise ResourceNotFoundError(f"{uri[:200]!r} is not the address of a skill's {SKILL_FILE}")
        entry: Json = self.manifests.get_manifest(skill).to_entry(path)
        return Answer({"resultType": "complete", "skill": entry, **NO_CACHE})

    def load_manifest(self, uri: str) -> None:
        """Compute the manifest of the skill that a file belongs to, so that a later change of the file is noticed."""
        self.manifests.get_manifest(self._resolve_uri(uri)[1])

    # -- resources ---------------------------------------------------------------------------------------------------

    def list_resources(self, cursor: str | None) -> Answer:
        """Return a page of the SKILL.md files of the listed skills."""
        limit = self._limits.max_page_entries
        paths = self.served.next_paths(decode_cursor(cursor), limit + 1)
        resources: list[Json] = [self._describe_skill_file(path) for path in paths[:limit]]
        return Answer(make_page("resources", resources, paths[limit - 1] if len(paths) > limit else None))

    def _describe_skill_file(self, path: str) -> Json:
        skill = self.served.skills[path]
        about = to_one_line(skill.description)
        return {"uri": make_uri(path, SKILL_FILE), "name": skill.name, "description": about, "mimeType": MARKDOWN_TYPE}

    def list_templates(self) -> Answer:
        """Return the one resource template, which covers every file of every skill."""
        about = "A file of a skill: the path of the skill, then the path of the file in it"
        template: Json = {"uriTemplate": URI_TEMPLATE, "name": "skill-file", "description": about}
        return Answer(make_page("resourceTemplates", [template], None))

    def read_resource(self, uri: str) -> Answer | LargeFile:
        """Return the content of a file, as text where it is UTF-8 and as base64 otherwise.

        A large file is returned as a ``LargeFile``, which reads it later. Raises ``ResourceNotFoundError`` when no
        file has that address.
        """
        path, skill, rest = self._resolve_uri(uri)
        if not rest:
            raise ResourceNotFoundError(f"no file {uri[:200]!r}")
        file, limit = "/".join(rest), self._limits.max_served_bytes
        read = partial(_read_file, skill, file, make_uri(path, file))
        try:
            return read(min(_LARGE_FILE_BYTES, limit))
        except ResourceTooLargeError:
            return LargeFile(partial(read, limit))

    def read_directory(self, uri: str, cursor: str | None) -> Answer:
        """Return a page of the files and folders that lie directly in a folder of a skill."""
        path, skill, rest = self._resolve_uri(uri)
        after, limit = decode_cursor(cursor), self._limits.max_page_entries
        children = [child for child in self._list_children(skill, rest) if child[0] > after]
        resources: list[Json] = [
            _describe_child(path, rest, name, is_folder=is_folder) for name, is_folder in children[:limit]
        ]
        return Answer(make_page("resources", resources, children[limit - 1][0] if len(children) > limit else None))

    def _list_children(self, skill: Skill, rest: tuple[str, ...]) -> list[tuple[str, bool]]:
        """Return the sorted names in a folder of a skill, each with whether it is a folder."""
        try:
            with open_folder_beneath(skill.base, (*skill.parts, *rest)) as folder:
                entries = folder.list_entries(self._limits.max_entries_per_skill)
        except OSError as error:
            raise as_resource_error(error, "/".join(rest) or skill.name) from None
        children = [*((name, True) for name in entries.folders), *((name, False) for name in entries.files)]
        return sorted(child for child in children if not is_git_name(child[0]))

    def _resolve_uri(self, uri: str) -> tuple[str, Skill, tuple[str, ...]]:
        resolved = self.served.resolve_path(split_uri(uri))
        if resolved is None:
            raise ResourceNotFoundError(f"no skill at {uri[:200]!r}")
        return resolved


def _read_file(skill: Skill, file: str, uri: str, limit: int) -> Answer:
    contents = _encode_contents(uri, skill.read_bytes(file, limit))
    return Answer({"resultType": "complete", "contents": [contents], **NO_CACHE})


def _describe_child(path: str, rest: tuple[str, ...], name: str, *, is_folder: bool) -> Json:
    media_type = FOLDER_TYPE if is_folder else _guess_type(name, "application/octet-stream")
    return {"uri": make_uri(path, "/".join((*rest, name))), "name": name, "mimeType": media_type}


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


def _guess_type(name: str, default: str) -> str:
    return _mime_types().guess_type(name)[0] or default


@cache
def _mime_types() -> MimeTypes:
    """Return Python's built-in table, without the system's files, so that every machine gives one answer."""
    types = MimeTypes()
    types.add_type(MARKDOWN_TYPE, ".md")
    return types


class ServerSnapshot(NamedTuple):
    """Everything that answers requests from one load of the skills."""

    handlers: SkillHandlers
    tools: ModelTools
    prompts: Prompts


def make_snapshot(
    served: ServedSkills, manifests: ManifestCache, options: ServeOptions, limits: Limits
) -> ServerSnapshot:
    """Return the snapshot of these skills; ``manifests`` keeps the digests of their files between snapshots."""
    tools = ModelTools(served, options)
    return ServerSnapshot(SkillHandlers(served, manifests, limits), tools, Prompts(served, tools, limits))
