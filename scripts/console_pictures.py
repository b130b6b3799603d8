"""Make the pictures of the console for the documentation: ``python -m scripts.console_pictures [NAME]…``.

They show the examples, with two installs of invented repositories, and a library of 2,000 invented skills. Both are
made in a folder that is removed at the end. ``make pictures`` runs this in the environment of ``make test-web``.
"""

from __future__ import annotations

import io
import os
import random
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from scripts.browser_programs import ROOT, install_chromium

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playwright.sync_api import Browser, Page

PICTURES = ROOT / "docs" / "how-to" / "console"
MAX_BYTES = 150_000
"""The size that no picture may have, so that the checkout stays small."""
LARGE_LIBRARY = 2_000
_COLOURS = 128
_SEED = 20
_VERBS = ("draft", "review", "translate", "summarise", "convert", "merge", "split", "audit", "publish", "compare")
_SUBJECTS = (
    "invoice",
    "contract",
    "budget",
    "survey",
    "release",
    "incident",
    "schema",
    "pipeline",
    "newsletter",
    "backup",
)
_FORMATS = ("pdf", "csv", "docx", "xlsx", "html", "yaml", "json", "svg", "markdown", "sql")
_READERS = ("a customer", "the board", "new colleagues", "the auditors", "the support team", "the press", "engineers")


class Picture(NamedTuple):
    """A picture: the page it shows, and how."""

    path: str
    """The address of the page on its console."""
    library: str = "examples"
    scheme: str = "light"
    width: int = 1200
    height: int = 800
    prepare: Callable[[Page], None] | None = None
    """What a person does on the page before the picture is taken."""


def _ask_for_update(tab: Page) -> None:
    tab.get_by_role("button", name="Compare with the sources").click()
    tab.locator("h1 .mark-ready").wait_for()


def _ask_for_install(tab: Page) -> None:
    tab.get_by_role("textbox", name="Source").fill("~/repositories/office")
    tab.get_by_role("button", name="Look at the source").click()
    tab.locator("h1 .mark-choosing").wait_for()


PICTURES_BY_NAME = {
    "library": Picture("/"),
    "library-large": Picture("/?q=summarise+a+contract+for+the+board", "large"),
    "library-dark": Picture("/?sort=cost", "large", scheme="dark"),
    "library-narrow": Picture("/", width=400, height=800),
    "skill": Picture("/skills/folder-report"),
    "sees": Picture("/sees?q=profile+a+csv+file&skill=csv-report&budget=500"),
    "sees-large": Picture("/sees?q=translate+an+invoice&budget=4000", "large"),
    "agents": Picture("/agents"),
    "changes": Picture("/changes"),
    "install": Picture("/changes", prepare=_ask_for_install),
    "update": Picture("/changes", prepare=_ask_for_update),
}


# -- what they show ----------------------------------------------------------------------------------------------------


def fill_examples(home: Path) -> None:
    """Write the examples, two installs with newer sources, and a repository to install from, into a home folder."""
    project = home / "project"
    for name in (".claude", ".codex", ".gemini"):
        (home / name).mkdir(parents=True)
    skills = project / ".agents" / "skills"
    for folder in ("skills", "acting"):
        shutil.copytree(ROOT / "examples" / folder, skills, dirs_exist_ok=True)
    for name in ("unquoted-colon", "never-closed"):
        shutil.copytree(ROOT / "examples" / "broken" / name, skills / name)
    shutil.copytree(ROOT / "examples" / "skills" / "deep-review", home / ".agents" / "skills" / "deep-review")
    (project / ".git").mkdir()
    for name, text in (("meeting-minutes", _MINUTES), ("style-guide", _STYLE)):
        repository = home / "repositories" / name
        _write_skill(repository, name, text)
        _run_git(repository, "init", "--quiet", "--initial-branch=main", ".")
        _commit(repository)
        _run_prowess(home, "install", f"file://{repository}", "--project", "--yes", "--agent", "claude-code")
        path = repository / "SKILL.md"
        path.write_text(path.read_text(encoding="utf-8").replace("at most ten", "at most seven"), encoding="utf-8")
        _commit(repository)
    edited = skills / "style-guide" / "SKILL.md"
    edited.write_text(edited.read_text(encoding="utf-8").replace("at most ten", "at most five"), encoding="utf-8")
    office = home / "repositories" / "office"
    for name in ("agenda", "letter", "slide-deck", "budget-table"):
        purpose = f"Writes the {name.replace('-', ' ')} in the style of the company. Use it for office work."
        _write_skill(office / name, name, f"{purpose}\n---\nAsk for the template, and fill it in.\n")
    (office / "slide-deck" / "scripts").mkdir()
    (office / "slide-deck" / "scripts" / "render.py").write_text("print()\n", encoding="utf-8")


def fill_large_library(home: Path) -> None:
    """Write 2,000 invented skills, always the same, into the project of a home folder."""
    rng = random.Random(_SEED)
    for folder in ("project/.git", ".claude", ".codex"):
        (home / folder).mkdir(parents=True)
    names = [f"{verb}-{subject}-{kind}" for verb in _VERBS for subject in _SUBJECTS for kind in _FORMATS]
    for number in range(LARGE_LIBRARY):
        name = names[number] if number < len(names) else f"{names[number % len(names)]}-{number // len(names) + 1}"
        verb, subject, kind = name.split("-")[:3]
        readers = rng.sample(_READERS, rng.randint(1, 4))
        purpose = f"{verb.capitalize()} the {subject} as {kind} for {', '.join(readers)}"
        # Every fourth belongs to the user, the others to the project.
        skills = home / (".agents" if number % 4 == 0 else "project/.agents") / "skills"
        _write_skill(
            skills / name, name, f"{purpose}. Use it when somebody asks for that.\n---\nRead the {subject} first.\n"
        )


_MINUTES = """Writes the minutes of a meeting from notes or a transcript. Use it when somebody asks for minutes.
---
# Meeting minutes

1. Name the date, the place and who was there.
2. Write each decision as one sentence, at most ten in all.
3. List every task with one name and one date.
"""
_STYLE = """Checks texts against the style guide of the company. Use it before a text is published.
---
# Style guide

- A sentence has one idea.
- A list has at most ten items.
"""


def _write_skill(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {text}", encoding="utf-8")


def _commit(repository: Path) -> None:
    _run_git(repository, "add", "--all")
    _run_git(repository, "commit", "--quiet", "--message", "Change")


def _run_git(folder: Path, *words: str) -> None:
    person = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com"}
    environment = {**os.environ, **person, "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com"}
    subprocess.run(["git", *words], cwd=folder, env=environment, check=True)


# -- taking them -------------------------------------------------------------------------------------------------------


def take_picture(browser: Browser, address: str, picture: Picture) -> bytes:
    """Return the picture of a page of the console with this first address, as a PNG of few colours."""
    size = {"width": picture.width, "height": picture.height}
    context = browser.new_context(base_url=address.partition("/?")[0], viewport=size, color_scheme=picture.scheme)
    tab = context.new_page()
    tab.goto(address)
    # The counts of the filters and the results of a search appear a moment after the page.
    tab.goto(picture.path, wait_until="load")
    if picture.path.startswith("/?") or picture.path == "/":
        tab.locator("#filters:not([data-hx-get])").wait_for()
    if picture.prepare:
        picture.prepare(tab)
    taken = tab.screenshot(animations="disabled")
    context.close()
    return _reduce_colours(taken)


def _reduce_colours(picture: bytes) -> bytes:
    from PIL import Image

    written = io.BytesIO()
    with Image.open(io.BytesIO(picture)) as image:
        image.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE).save(written, "PNG", optimize=True)
    return written.getvalue()


@contextmanager
def _serve(home: Path) -> Iterator[str]:
    """Yield the first address of a console of the skills in the standard places of a home folder."""
    words = [sys.executable, "-m", "prowess", "ui"]
    with subprocess.Popen(
        words, cwd=home / "project", env=_environment_of(home), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield re.findall(r"http://\S+", process.stdout.readline())[0]
        finally:
            process.terminate()


def _run_prowess(home: Path, *words: str) -> None:
    command = [sys.executable, "-m", "prowess", *words]
    subprocess.run(command, cwd=home / "project", env=_environment_of(home), check=True, stdout=subprocess.DEVNULL)


def _environment_of(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, "HOME": str(home), "XDG_CACHE_HOME": str(home.parent / "cache")}


def main(names: Sequence[str]) -> int:
    """Take the pictures with these names, or all; return 1 where one is too large."""
    from playwright.sync_api import sync_playwright

    if unknown := [name for name in names if name not in PICTURES_BY_NAME]:
        print(f"there is no picture {unknown[0]}; there are {', '.join(PICTURES_BY_NAME)}", file=sys.stderr)
        return 2
    wanted = {name: PICTURES_BY_NAME[name] for name in names or PICTURES_BY_NAME}
    PICTURES.mkdir(exist_ok=True)
    with TemporaryDirectory() as base, sync_playwright() as playwright:
        browser = install_chromium().launch(playwright)
        for library, fill in (("examples", fill_examples), ("large", fill_large_library)):
            if not any(picture.library == library for picture in wanted.values()):
                continue
            home = Path(base, library)
            fill(home)
            with _serve(home) as address:
                for name, picture in wanted.items():
                    if picture.library == library:
                        taken = take_picture(browser, address, picture)
                        (PICTURES / f"{name}.png").write_bytes(taken)
                        print(f"{name}.png: {len(taken):,} bytes", flush=True)
        browser.close()
    large = [path.name for path in PICTURES.glob("*.png") if path.stat().st_size > MAX_BYTES]
    if large:
        print(f"larger than {MAX_BYTES:,} bytes: {', '.join(large)}", file=sys.stderr)
    return int(bool(large))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
