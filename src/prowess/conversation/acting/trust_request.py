"""The request that a person decides on: exactly what would run, the skill, and the state of its files."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any

from prowess.errors import NotTrustedError
from prowess.text.hidden_characters import escape_invisible

if TYPE_CHECKING:
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill


@dataclass(frozen=True, slots=True)
class TrustRequest:
    """What a person is asked to allow: exactly what would run, the skill, and the state of its files."""

    skill: Skill
    digest: str
    commands: tuple[str, ...] = ()
    script: str = ""
    arguments: tuple[str, ...] = ()
    """The arguments of the script; for commands one string, which the user wrote after the name of the skill."""
    files: tuple[str, ...] = ()
    """Every file of the skill: what runs could use all of them."""
    stdin: str = ""
    """The standard input of the script; bytes that are not UTF-8 are lone surrogates."""
    variables: tuple[str, ...] = ()
    """The names of the variables of the host that the script sees because the skill declares them."""

    @property
    def id(self) -> str:
        """A hash of the skill's name, digest and files and of everything that would run: equal calls have equal ids."""
        # The names of the files follow from the digest; they are hashed too, so that nobody can show a person fewer.
        row = (self.skill.name, self.digest, self.commands, self.script, self.arguments, self.files, self.stdin)
        also = (self.variables,) if self.variables else ()
        return sha256(json.dumps((*row, *also)).encode()).hexdigest()[:32]

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON types, for ``from_dict`` in this or another process."""
        return {
            "version": 1,
            "id": self.id,
            "skill": self.skill.name,
            "digest": self.digest,
            "commands": list(self.commands),
            "script": self.script,
            "arguments": list(self.arguments),
            "files": list(self.files),
            "stdin": self.stdin,
            "variables": list(self.variables),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], catalog: Catalog) -> TrustRequest:
        """Return the request that ``to_dict`` wrote, about the skill with that name in ``catalog``.

        Raises ``UnknownSkillError`` where the catalogue has no such skill, ``NotTrustedError`` (code ``bad-request``)
        for anything that ``to_dict`` did not write.
        """
        # Nothing in the data is believed: an approval counts only for a call with an equal id, whose digest is computed
        # from the files when it runs.
        if not _is_saved_request(data):
            raise NotTrustedError("this is not a request that TrustRequest.to_dict wrote", code="bad-request")
        from prowess.conversation.session import check_catalog

        check_catalog(catalog)
        name = data["skill"]
        commands, arguments, files, variables = (tuple(data.get(key, ())) for key in _LIST_FIELDS)
        script = (data["script"], arguments, files, data["stdin"], variables)
        request = cls(catalog[name], data["digest"], commands, *script)
        if data["id"] != request.id:
            message = f"the request about {name!r} was changed after it was made: its id is that of another"
            raise NotTrustedError(message, request.skill.location, "bad-request")
        return request

    def __str__(self) -> str:
        """Return a few lines that show a person what would run."""
        # Commands have one string, as the user wrote it. A script has arguments, and nobody should take two for one.
        words = escape_invisible(shlex.join(self.arguments) if self.script else " ".join(self.arguments))
        runs = [f"  runs the command: {escape_invisible(command)}" for command in self.commands]
        runs += [f"  runs the script: {escape_invisible(self.script)} {words}".rstrip()] if self.script else []
        runs += [f"  with the arguments: {words}"] if words and not self.script else []
        runs += [f"  with the variables: {', '.join(self.variables)}"] if self.variables else []
        runs += [f"  which reads: {escape_invisible(self.stdin)}"] if self.stdin else []
        about = [f"{escape_invisible(self.skill.name)} ({escape_invisible(self.skill.location)})", *runs]
        files = ", ".join(map(escape_invisible, self.files))
        return "\n".join([*about, f"  files: {files}", f"  digest: {self.digest}"])


_TEXT_FIELDS = ("id", "skill", "digest", "script", "stdin")
_LIST_FIELDS = ("commands", "arguments", "files", "variables")


def _is_saved_request(data: Any) -> bool:
    """Return whether a value has the fields and types of what ``TrustRequest.to_dict`` writes."""
    if not isinstance(data, Mapping) or data.get("version") != 1:
        return False
    lists = [data.get(key, []) for key in _LIST_FIELDS if isinstance(data.get(key, []), list)]
    strings = [data.get(key) for key in _TEXT_FIELDS]
    return len(lists) == len(_LIST_FIELDS) and all(isinstance(text, str) for text in chain(strings, *lists))
