"""A library of generated skills, the same for the same seed.

Frontmatter of 300 to 600 bytes, a body of 2 to 8 KB, and half of the skills have files, unless a library is even. Which
fields there are, in which order, and how their values are written is drawn by the weights in the tables below. Those of
descriptions follow real files, of which 12 in 100 are blocks and 18 quoted; optional fields are more frequent than in
real files. Every skill is valid: how bad files are treated is for the tests to show.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEED = 7
FRONTMATTER_BYTES = (300, 600)
BODY_BYTES = (2_000, 8_000)

_TEXT = """
    build check clean convert deploy draft extract fetch fill index inspect merge plan publish review
    archive budget chart contract dataset diagram email form invoice ledger pipeline report schema
    a the each every our files pages rows cells columns figures headings notes totals dates tables drafts sources
    summaries results changes errors and or with from into before after while without reading writing sorting
    comparing checking quickly carefully once again short long plain tidy weekly monthly user's CSV PDF JSON
"""
_VERBS, _NOUNS, *_OTHERS = (line.split() for line in _TEXT.strip().splitlines())
_WORDS = [word for line in _OTHERS for word in line]
_LICENSES = ("MIT", "Apache-2.0", "BSD-3-Clause", "Proprietary. LICENSE.txt has complete terms")
_TOOLS = ("Read", "Write", "Edit", "Grep", "Glob", "Bash(git:*)", "Bash(python3:*)", "WebFetch")
_TAGS = ("documents", "data", "finance", "writing", "review", "release", "office", "web")


class Field(NamedTuple):
    """An optional field: how many skills in a hundred have it, and how it is written."""

    share: int
    write: Callable[[random.Random], str]


class Mix(NamedTuple):
    """What a library is like: in how many of a hundred the description is a block, the other fields, and files."""

    blocks: int
    fields: tuple[Field, ...]
    has_files: bool = True
    """Whether half of the skills have more files than their SKILL.md."""


# -- how values are written --------------------------------------------------------------------------------------------


def _rows(text: str, width: int = 90) -> list[str]:
    rows = [""]
    for word in text.split():
        if rows[-1] and len(rows[-1]) + len(word) >= width:
            rows.append("")
        rows[-1] = f"{rows[-1]} {word}".lstrip()
    return rows


def _block(mark: str, text: str) -> str:
    return mark + "".join(f"\n  {row}" for row in _rows(text))


# Quotes have a reason in real files: the quoted texts hold what would mean something to YAML without them.
_ON_ONE_LINE: tuple[tuple[int, Callable[[str], str]], ...] = (
    (80, lambda text: text),
    (15, lambda text: f'"{text.replace(" and ", ": ", 1)}"'),
    (5, lambda text: f"'{text.replace(chr(39), '').replace(' or ', ': ', 1)}'"),
)
_BLOCKS: tuple[tuple[int, Callable[[str], str]], ...] = ((8, lambda t: _block("|", t)), (4, lambda t: _block(">-", t)))
_LISTS: tuple[tuple[int, Callable[[list[str]], str]], ...] = (
    (60, lambda items: f" [{', '.join(items)}]"),
    (40, lambda items: "".join(f"\n  - {item}" for item in items)),
)


def _described(rng: random.Random, text: str, blocks: int) -> str:
    table = _BLOCKS if rng.randrange(100) < blocks else _ON_ONE_LINE
    write = rng.choices([way for _, way in table], [weight for weight, _ in table])[0]
    return f"description: {write(text)}\n"


def _listed(rng: random.Random, items: list[str]) -> str:
    write = rng.choices([way for _, way in _LISTS], [weight for weight, _ in _LISTS])[0]
    return write(items)


def _license(rng: random.Random) -> str:
    return f"license: {rng.choice(_LICENSES)}\n"


def _compatibility(rng: random.Random) -> str:
    return f"compatibility: Needs Python 3.{rng.randint(9, 14)} and network access\n"


def _version(rng: random.Random) -> str:
    number = f"{rng.randint(0, 3)}.{rng.randint(0, 20)}.{rng.randint(0, 9)}"
    return rng.choice((f"version: {number}\n", f'version: "{number}"\n'))


def _metadata(rng: random.Random) -> str:
    rows = [f"author: {rng.choice(_VERBS)}-team", f'version: "{rng.randint(0, 4)}.{rng.randint(0, 12)}"']
    rows += [f"category: {rng.choice(_TAGS)}", "source: https://example.com/skills"][: rng.randint(0, 2)]
    return "metadata:\n" + "".join(f"  {row}\n" for row in rows)


def _tags(rng: random.Random) -> str:
    return f"tags:{_listed(rng, rng.sample(_TAGS, rng.randint(2, 4)))}\n"


def _tools_as_text(rng: random.Random) -> str:
    return f"allowed-tools: {' '.join(rng.sample(_TOOLS, rng.randint(2, 5)))}\n"


def _tools(rng: random.Random) -> str:
    tools = rng.sample(_TOOLS, rng.randint(2, 5))
    if rng.random() < 0.15:
        return f"allowed-tools:{_listed(rng, tools)}\n"
    return f"allowed-tools: {rng.choice((' ', ', ')).join(tools)}\n"


VARIED = Mix(
    blocks=12,
    fields=(
        Field(80, _license),
        Field(80, _metadata),
        Field(70, _tools),
        Field(15, _compatibility),
        Field(25, _tags),
        Field(20, _version),
    ),
)
"""What real files hold, in the forms that they use."""

PLAIN = Mix(
    blocks=0,
    fields=(Field(80, _license), Field(80, _metadata), Field(70, _tools_as_text), Field(15, _compatibility)),
)
"""The specification's own fields in the form that it gives, each value on one line: what every loader reads."""

EVEN = PLAIN._replace(has_files=False)
"""The commonest shape: such fields, and no file besides SKILL.md."""


# -- a skill -----------------------------------------------------------------------------------------------------------


def frontmatter(rng: random.Random, name: str, mix: Mix) -> str:
    """The text between the dashes."""
    others = [field.write(rng) for field in mix.fields if rng.randrange(100) < field.share]
    rng.shuffle(others)
    named = f"name: {name}\n"
    rest = len(named) + sum(map(len, others)) + len("description: \n")
    target = rng.randint(FRONTMATTER_BYTES[0] + 20, FRONTMATTER_BYTES[1] - 30)
    entries = [named, _described(rng, _description(rng, max(60, target - rest)), mix.blocks), *others]
    if rng.random() < 0.1:
        rng.shuffle(entries)
    text = "".join(entries)
    assert FRONTMATTER_BYTES[0] <= len(text.encode()) <= FRONTMATTER_BYTES[1]
    return text


def _description(rng: random.Random, length: int) -> str:
    dash = " \u2014" if rng.random() < 0.1 else "."
    text = f"{rng.choice(_VERBS).title()} {_prose(rng, length // 2)}{dash} Use when {_prose(rng, length)}"
    return text[: length - 1].rsplit(" ", 1)[0] + "."


def _prose(rng: random.Random, length: int) -> str:
    return " ".join(rng.choices(_WORDS, k=length // 5 + 1))[:length].strip()


def body(rng: random.Random) -> str:
    """Instructions: headings, paragraphs, steps, and a rule or a code block now and then."""
    target = rng.randint(*BODY_BYTES)
    parts = [f"# {rng.choice(_VERBS).title()}\n\n"]
    size = len(parts[0])
    while size < target:
        parts.append(_section(rng))
        size += len(parts[-1])
    return "".join(parts)[: BODY_BYTES[1] - 2] + "\n"


def _section(rng: random.Random) -> str:
    head = f"## {rng.choice(_NOUNS).title()}\n\n{_prose(rng, rng.randint(150, 400))}.\n\n"
    steps = "".join(f"{n}. {_prose(rng, 60)}\n" for n in range(1, rng.randint(2, 6)))
    extra = rng.choice(("", "", "", "```sh\npython3 scripts/run.py --check\n```\n\n", "---\n\n"))
    return f"{head}{steps}\n{extra}"


_FILES = ("references/guide.md", "scripts/run.py", "assets/template.txt")


def make_library(root: Path, count: int, *, mix: Mix = VARIED, seed: int = SEED) -> None:
    """``count`` skills in ``root``, which is made."""
    rng = random.Random(f"{seed} {count}")
    for number in range(count):
        folder = root / f"{rng.choice(_VERBS)}-{rng.choice(_NOUNS)}-{number:05d}"
        folder.mkdir(parents=True)
        text = f"---\n{frontmatter(rng, folder.name, mix)}---\n\n{body(rng)}"
        (folder / "SKILL.md").write_bytes(text.encode())
        if mix.has_files and number % 2:
            _make_files(rng, folder)


def _make_files(rng: random.Random, folder: Path) -> None:
    for name in rng.sample(_FILES, rng.randint(1, len(_FILES))):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(_prose(rng, rng.randint(200, 2_000)).encode())
