"""Sources as people type them, turned into a ``SourceSpec`` whose name is safe in a path."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from prowess.addresses.skill_ref import SkillRef, check_part
from prowess.addresses.source_spec import SourceSpec, parse_source, spec_from_ref, with_parts
from prowess.arguments import check_text
from prowess.files.directory import exists_from
from prowess.install.entry_source import local_path

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9._-]+")


def parse_typed_source(text: str, folder: str = "") -> SourceSpec:
    """Return the source that a person typed. The variable ``GH_HOST`` names an enterprise server of GitHub.

    A relative path starts at ``folder``, or at the working folder when that is ``""``. Raises ``BadReferenceError``
    for a string that names no source.
    """
    check_text(text, "source")
    return parse_source(text, github=os.environ.get("GH_HOST", ""), is_there=partial(exists_from, folder))


def to_spec(ref: str | SkillRef | SourceSpec, select: str | Sequence[str] | None = None) -> SourceSpec:
    """Return the source that a caller means, with the skills that ``select`` chooses.

    The name of the source is safe in a path. Raises ``BadReferenceError`` when the source chooses other skills itself,
    or has no safe name.
    """
    if isinstance(ref, SkillRef):
        spec = spec_from_ref(SkillRef.parse(str(ref)))  # parsed again, since a program may have put any string into it
    else:
        spec = ref if isinstance(ref, SourceSpec) else parse_typed_source(ref)
    names = (select,) if isinstance(select, str) else tuple(select or ())
    return with_safe_name(with_parts(spec, skills=names))


def with_safe_name(spec: SourceSpec) -> SourceSpec:
    """Return the source with a name that is safe in a path; raises ``BadReferenceError`` when there is none.

    A source such as ``.`` has no name of its own: it gets that of its folder on the disk.
    """
    if not spec.local:
        check_part(spec.org)
        check_part(spec.name)
        return spec
    name = spec.name or os.path.basename(local_path(spec))
    return replace(spec, name=check_part(_UNSAFE_CHARACTERS.sub("-", name).strip(".-")))


def to_local_spec(path: str | os.PathLike[str]) -> SourceSpec:
    """Return the source that is a folder or an archive at ``path``, even when the path looks like an address."""
    # The absolute path only gives the kind and the name; the lock file keeps the path as it was written.
    written = os.fspath(path)
    spec = to_spec(os.path.abspath(os.path.expanduser(written)))
    return SourceSpec("archive" if spec.kind == "archive" else "folder", written, "local", spec.name, local=True)
