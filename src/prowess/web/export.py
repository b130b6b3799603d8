"""Export of the console's read-only pages as a static site, with relative links between the pages."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from prowess.errors import SkillError, SourceError
from prowess.files import syscalls
from prowess.files.delete import delete_tree, temporary_folder
from prowess.files.write import NewFile, make_folders, write_tree
from prowess.progress_steps import report_steps
from prowess.web.links import ExportedLinks
from prowess.web.pages.agents import make_agents_view
from prowess.web.pages.library import FILTERS, make_library_view
from prowess.web.pages.sees import make_sees_view
from prowess.web.pages.skill import make_file_view, make_skill_view, read_image
from prowess.web.rendering import STATIC_FOLDER, ErrorView, render_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from prowess.web.library import Library
    from prowess.web.pages.agents import AgentsView
    from prowess.web.pages.sees import SeesView
    from prowess.web.skill_rows import SkillRow

MARKER_FILE = ".prowess-console"
"""The file by which the next export knows a folder that it may replace."""
_STATIC_FILES = ("console.css", "icon.svg")
_PAGE_ENDING = ".html"


def export_site(library: Library, folder: str | os.PathLike[str]) -> int:
    """Write the pages of the library and of all its skills below ``folder``, and return how many pages there are.

    An earlier export in the folder is replaced as a whole. Raises ``SourceError`` (``already-there``) for a folder that
    holds anything else, and ``OSError`` where nothing can be written.
    """
    target = os.path.abspath(os.fspath(folder))
    _check_target(target)
    parent = os.path.dirname(target)
    make_folders(parent)
    pages = 0

    def count_pages() -> Iterator[NewFile]:
        nonlocal pages
        for file in _make_files(library):
            pages += file.path.endswith(_PAGE_ENDING)
            yield file

    # Beside the target, so that a reader of the site sees the old one or the new one, and never half of it.
    with temporary_folder(".prowess-export-", parent) as staged:
        write_tree(staged, count_pages())
        syscalls.set_mode(staged, 0o755)
        delete_tree(target)
        syscalls.rename(staged, target)
    return pages


def _check_target(target: str) -> None:
    """Raise ``SourceError`` when a folder holds something that is not an earlier export."""
    if not os.path.lexists(target):
        return
    is_free = os.path.isdir(target) and not os.path.islink(target)
    names = os.listdir(target) if is_free else []
    if not is_free or (names and MARKER_FILE not in names):
        raise SourceError("this is neither an empty folder nor an earlier export", target, "already-there")


def _make_files(library: Library) -> Iterator[NewFile]:
    yield NewFile(MARKER_FILE, b"Made by 'prowess ui --export', which replaces this folder the next time.\n")
    for name in _STATIC_FILES:
        with open(os.path.join(STATIC_FOLDER, name), "rb") as file:
            yield NewFile(f"static/{name}", file.read())
    yield from _make_library_pages(library)
    yield from _make_numbered_pages("sees", partial(make_sees_view, library))
    yield from _make_numbered_pages("agents", partial(make_agents_view, library))
    state = library.state
    rows = (*state.rows, *state.shadowed, *state.broken)
    for row in report_steps(rows, lambda row: row.name):
        yield from _make_skill_pages(library, row)


def _make_library_pages(library: Library) -> Iterator[NewFile]:
    links = ExportedLinks()
    for entry in FILTERS:
        page, pages = 1, 1
        while page <= pages:
            view = make_library_view(library, {"show": entry.name, "page": str(page), "counts": "1"})
            yield _make_page(links.page("library", view.query.to_parameters()), "library", view, links)
            page, pages = page + 1, view.pages


def _make_numbered_pages(
    name: str, make_view: Callable[[Mapping[str, str]], SeesView | AgentsView]
) -> Iterator[NewFile]:
    """Yield the pages of a table, as they are without a request and without a filter."""
    links = ExportedLinks()
    page, pages = 1, 1
    while page <= pages:
        view = make_view({"page": str(page)})
        number = {} if page == 1 else {"page": str(page)}
        yield _make_page(links.page(name, number), name, view, links)
        page, pages = page + 1, view.pages


def _make_skill_pages(library: Library, row: SkillRow) -> Iterator[NewFile]:
    """Yield the page of a skill, the pages of its files, and its images."""
    top, links, inner = ExportedLinks(), ExportedLinks(1), ExportedLinks(2)
    view = make_skill_view(library, {"id": row.id})
    yield _make_page(top.skill(row.id), "skill", view, links)
    for file in view.contents.files if view.contents is not None else ():
        parameters = {"id": row.id, "path": file.path}
        try:
            shown = make_file_view(library, parameters)
            if shown.is_image:
                yield NewFile(top.image(row.id, file.path), read_image(library, parameters)[0])
        except SkillError as error:  # too large, or gone by now: one file must not end the export
            yield _make_page(top.file(row.id, file.path), "error", ErrorView(422, error.message, error.code), inner)
            continue
        yield _make_page(top.file(row.id, file.path), "file", shown, inner)


def _make_page(path: str, name: str, view: object, links: ExportedLinks) -> NewFile:
    return NewFile(path, render_page(name, view, links).encode("utf-8", "backslashreplace"))
