"""The sources that a catalogue is made from: checked, started together, loaded in their order."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from prowess.arguments import check_method, raise_bad_argument
from prowess.errors import SourceError
from prowess.files.paths import show_path_argument

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.skills.catalog import Catalog


def load_sources(sources: Iterable[SkillSource]) -> list[Catalog]:
    """Return the catalogue of each source; raises ``SourceError`` that names the source by its place in the list."""
    given = _check_sources(sources)
    _check_namespaces(given)
    for source in given:  # sources that wait for a server start first, so that they wait side by side
        if hasattr(source, "begin"):
            source.begin()
    catalogs: list[Catalog] = []
    for index, source in enumerate(given):
        try:
            catalogs.append(source.load())
        except SourceError as error:
            raise SourceError(f"sources[{index}]: {error.message}", error.path, error.code) from None
    return catalogs


def _check_sources(sources: Iterable[SkillSource]) -> tuple[SkillSource, ...]:
    """Return the sources as a tuple; raises ``SourceError`` for a path, or anything without a ``load``, among them."""
    if isinstance(sources, str | os.PathLike):
        raise_bad_argument(
            "sources", "must be a list of sources", sources, f"pass [Source.directory({show_path_argument(sources)})]"
        )
    if not hasattr(sources, "__iter__"):
        raise_bad_argument(
            "sources", "must be a list of sources", sources, "pass [source]" if hasattr(sources, "load") else ""
        )
    given = tuple(sources)
    for index, source in enumerate(given):
        check_method(source, f"sources[{index}]", "load", f"pass Source.directory({show_path_argument(source)})")
    return given


def _check_namespaces(sources: tuple[SkillSource, ...]) -> None:
    """Raise ``SourceError`` (``duplicate-label``) where two sources have one name that the caller chose for them."""
    index_of: dict[str, int] = {}
    for index, source in enumerate(sources):
        namespace = getattr(source, "namespace", "")
        first = index_of.setdefault(namespace, index) if namespace else index
        if sources[first] is not source:  # one source given twice is not a conflict
            raise SourceError(
                f"sources[{index}]: {namespace} is the name of sources[{first}] already", code="duplicate-label"
            )


class SkillSource(Protocol):
    """A place that skills come from: anything with a ``load`` that gives a ``Catalog``."""

    def load(self) -> Catalog:
        """Return the skills that are there now."""
        ...
