"""``python -m bench.corpus``: how real skills fare, from the optional data folder beside the checkout.

The corpus is other people's text: it is parsed and shown escaped, never run, and never copied into the project.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import sys
import tarfile
import tempfile
import time
from collections import Counter, deque
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import prowess
from bench import measure, table
from prowess.format.frontmatter.fences import decode_frontmatter, find_fences
from prowess.format.frontmatter.quick.common_heads import heads_before_compiling, match_head
from prowess.format.head import LoadPolicy, is_repair, read_head

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prowess.format.head import Head as ParsedHead

CORPUS = measure.CHECKOUT.parent / "shared" / "corpus"
USABLE_BOUND = 0.998
SAMPLE = 20
SHOWN = 150  # characters of each side of a repair
LENIENT = LoadPolicy("lenient", repair=True)


class Head(NamedTuple):
    """The first bytes of a real file: which one, PyYAML's verdict, whether its frontmatter opened and closed."""

    id: str
    yaml: str | None
    status: str | None
    data: bytes

    @property
    def folder(self) -> str:
        """The name of the skill's folder."""
        parts = self.id.partition(":")[2].split("/")
        return parts[-2] if len(parts) > 1 else self.id.partition(":")[0].rpartition("+")[2]


class Outcome(NamedTuple):
    """What became of a head under lenient rules with repair: a document, or the code that refused it."""

    head: Head
    document: ParsedHead | None
    refused: str = ""

    @property
    def is_usable(self) -> bool:
        """Whether a model could be told about it; the folder's name stands in for a missing one."""
        front = self.document.front if self.document else None
        return front is not None and bool(front.name.strip() and front.description.strip())

    @property
    def repairs(self) -> list[prowess.Issue]:
        return [issue for issue in self.document.issues if is_repair(issue)] if self.document else []

    @property
    def opens(self) -> bool:
        """Whether the head opens frontmatter, by the corpus's own word or since ours found some."""
        return self.head.status in {"ok", "unclosed"} or self.document is not None

    @property
    def kind(self) -> str:
        if self.document is None:
            return "refused" if self.opens else "no frontmatter"
        if self.repairs:
            return "repaired"
        return "loads, with warnings" if self._warned else "loads"

    @property
    def _warned(self) -> bool:
        return any(issue.severity == "warning" for issue in self.document.issues) if self.document else False


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    if not CORPUS.is_dir():
        print("Skipped: there is no ../shared/corpus beside the checkout, so there are no real skills to read.")
        return 0
    seed = options.seed if options.seed is not None else random.randrange(2**32)
    outcomes = [outcome_of(head) for head in _heads()]
    figures = "\n".join([_by_outcome(outcomes), _fast(outcomes), _usable(outcomes), _repaired(outcomes), _whole()])
    print(figures)
    _print_sample(outcomes, seed, options.sample)
    if options.write:
        table.write_between("corpus", figures)
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.corpus", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, help="what the sample is drawn with (default: random, and printed)")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="repairs to show (%(default)s)")
    parser.add_argument(
        "--write", action="store_true", help=f"put the figures, not the sample, into {table.DOCUMENT_NAME}"
    )
    return parser.parse_args(arguments)


# -- heads -------------------------------------------------------------------------------------------------------------


def _heads() -> Iterator[Head]:
    with lzma.open(CORPUS / "heads.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            yield head_of(line)


def make_real_library(root: Path, count: int) -> None:
    """Write a library of ``count`` real heads, taken evenly from the whole corpus, each in a folder of its own name.

    Of folders with the same name, or with one that a scan skips, all but the first get the number of the head.
    """
    heads = list(_heads())
    for number in range(count):
        head = heads[number * len(heads) // count]
        folder = root / head.folder
        if folder.exists() or head.folder.startswith("."):
            folder = root / f"{head.folder.lstrip('.')}-{number:05}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_bytes(head.data)


def head_of(line: str | bytes) -> Head:
    """One line of the corpus."""
    row = json.loads(line)
    return Head(row["id"], row["yaml"], row["status"], row["head"].encode("latin-1"))


def outcome_of(head: Head) -> Outcome:
    """What becomes of a head under lenient rules with repair."""
    try:
        return Outcome(head, read_head(head.data, quick=False, policy=LENIENT, folder=head.folder))
    except prowess.SkillLoadError as error:
        return Outcome(head, None, error.code)


def _counted(title: str, counts: Counter[str], whole: int) -> str:
    rows = [(what, f"{count:,}", _share(count, whole)) for what, count in counts.most_common()]
    return table.render((title, "heads", "share"), rows, numbers=frozenset((1, 2)))


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2%}" if whole else "-"


def _by_outcome(outcomes: list[Outcome]) -> str:
    return _counted("outcome (lenient, with repair)", Counter(o.kind for o in outcomes), len(outcomes))


def _fast(outcomes: list[Outcome]) -> str:
    deque(heads_before_compiling, maxlen=0)  # as in a library that is large enough for every pattern
    closed = [(o, text) for o in outcomes if (text := _between_fences(o.head.data)) is not None]
    accepted = [(o, text) for o, text in closed if o.head.yaml == "ok" and o.document is not None]
    rows = [_fast_row("closed frontmatter", closed), _fast_row("the same, which PyYAML and the rules accept", accepted)]
    return table.render(("heads with", "heads", "at a glance"), rows, numbers=frozenset((1, 2)))


def _fast_row(what: str, heads: list[tuple[Outcome, str]]) -> table.Row:
    glanced = sum(match_head(outcome.head.data) is not None for outcome, _ in heads)
    return (what, f"{len(heads):,}", _share(glanced, len(heads)))


def _between_fences(data: bytes) -> str | None:
    try:
        fences = find_fences(data, whole=True)
        return None if fences is None else decode_frontmatter(data, fences)
    except prowess.SkillLoadError:
        return None


def count_usable(outcomes: list[Outcome]) -> tuple[int, int]:
    """How many heads that open frontmatter have a usable name and description, and how many open frontmatter."""
    opening = [outcome for outcome in outcomes if outcome.opens]
    return sum(outcome.is_usable for outcome in opening), len(opening)


def _usable(outcomes: list[Outcome]) -> str:
    opening = [outcome for outcome in outcomes if outcome.opens]
    usable, _ = count_usable(outcomes)
    verdict = "PASS" if usable >= USABLE_BOUND * len(opening) else "UNDER"
    share = f"{_share(usable, len(opening))}, demanded at least {USABLE_BOUND:.1%}: {verdict}"
    classes = Counter(outcome.refused or "blank" for outcome in opening if not outcome.is_usable)
    return (
        f"{usable:,} of {len(opening):,} heads that open frontmatter have a usable name and description\n({share}).\n\n"
        + _counted("not usable, by code", classes, len(opening))
    )


def _repaired(outcomes: list[Outcome]) -> str:
    codes = Counter(code for o in outcomes for code in {issue.code for issue in o.repairs})
    return _counted("repaired, by code", codes, len(outcomes))


# -- the sample --------------------------------------------------------------------------------------------------------


def _print_sample(outcomes: list[Outcome], seed: int, size: int) -> None:
    # Collections made by machines repeat the same line thousands of times: each text counts once.
    repairs = {(i.code, _before(o.head, i)): (o, i) for o in outcomes for i in o.repairs}
    chosen = random.Random(seed).sample(list(repairs), min(size, len(repairs)))
    print(f"{len(chosen)} of {len(repairs):,} different repairs, drawn with --seed {seed}:\n")
    for code, before in chosen:
        outcome, issue = repairs[code, before]
        print(f"{code}  {_on_one_line(outcome.head.id)}  line {issue.line}")
        print(f"  before  {_on_one_line(before)}")
        print(f"  after   {_on_one_line(_after(outcome, issue))}\n")


def _before(head: Head, issue: prowess.Issue) -> str:
    """What the author wrote from the line of the issue on, up to the next key or the dashes."""
    lines = head.data.decode("utf-8", "replace").split("\n")[max(issue.line, 1) - 1 :]
    if not issue.field:
        return "\n".join(lines[:3])
    more = []
    for line in lines[1:]:
        if line.startswith("---") or (line[:1].isalpha() and ":" in line):
            break
        more.append(line)
    return "\n".join([*lines[:1], *more]).rstrip()


def _after(outcome: Outcome, issue: prowess.Issue) -> str:
    assert outcome.document is not None
    front = outcome.document.front
    key, _, inner = issue.field.partition(".")
    if not key:
        return f"name: {front.name}; description: {front.description}"
    value = getattr(front, key.replace("-", "_"), None)
    value = front.extra.get(key) if value is None else value
    if key == "allowed-tools":
        value = front.allowed_tools_raw
    if inner and isinstance(value, dict):
        value = value.get(inner)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _on_one_line(text: str) -> str:
    """Printable, without anything that a terminal would obey, and cut."""
    shown = repr(text)[1:-1]
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}… (+{len(shown) - SHOWN})"


# -- whole skills ------------------------------------------------------------------------------------------------------


def _whole() -> str:
    with tempfile.TemporaryDirectory(prefix="prowess-corpus-") as temporary:
        extract_skills(Path(temporary))
        root = Path(temporary, "skills")
        listed = len((root / "MANIFEST.jsonl").read_text(encoding="utf-8").splitlines())
        begin = time.process_time()
        catalogs = [prowess.scan(path) for path in sorted(root.iterdir()) if path.is_dir()]
        seconds = time.process_time() - begin
        issues = [issue for catalog in catalogs for issue in catalog.issues]
    loaded = sum(map(len, catalogs))
    shadowed = sum(len(catalog.shadowed) for catalog in catalogs)
    refused = len({issue.path for issue in issues if issue.severity == "error"})
    counts = Counter((issue.severity, issue.code) for issue in issues)
    rows = [(severity, code, f"{count:,}") for (severity, code), count in counts.most_common()]
    return (
        f"Whole skills: {listed:,} in {len(catalogs)} repositories, each scanned by itself"
        f" ({seconds * 1e3:,.0f} ms of CPU time):\n"
        f"{loaded:,} load, {shadowed:,} lose to another of their name, {refused:,} are refused,\n"
        f"and {listed - loaded - shadowed - refused:,} lie inside another skill or where a scan does not look.\n\n"
        + table.render(("severity", "issue", "count"), rows, numbers=frozenset((2,)))
    )


def extract_skills(folder: Path) -> None:
    """Folders and regular files only, by the rules for archives that nobody vouches for."""
    with tarfile.open(CORPUS / "skills.tar.xz") as archive:
        archive.extractall(folder, members=_ordinary(archive), filter="data")


def _ordinary(archive: Iterable[tarfile.TarInfo]) -> Iterator[tarfile.TarInfo]:
    return (member for member in archive if member.isreg() or member.isdir())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
