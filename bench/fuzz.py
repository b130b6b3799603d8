"""``python -m bench.fuzz``: disturbed inputs for everything that parses; any answer is right but a raw exception.

Inputs grow from seeds (real heads from the optional data folder beside the checkout, or the examples; one or two of
each other format) by mutation. The sequence of inputs depends on ``--seed`` alone, and time only on how many are tried.
Before that, ``bench.pumps`` looks for patterns and parsers that texts with repetitions make slow.
Exits with 1 when a parser raised anything but a ``SkillError``, two readers that must agree did not, or one was slow.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import lzma
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import prowess
from bench import measure
from prowess.fetch.archive.unpack import unpack, unpack_tree
from prowess.files.tree import FileHash, digest_tree
from prowess.format.frontmatter.json_types import (
    find_differing_fields,
    find_type_issues,
    parse_styled_frontmatter,
    parse_typed_frontmatter,
)
from prowess.format.frontmatter.parse import needs_more_bytes, parse_head
from prowess.format.head import LoadPolicy, read_head
from prowess.install.manifest import MANIFEST_FILE, read_declarations
from prowess.installed.other_tools import parse_foreign_lock
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.read import LockEntry, parse_lock_file, parse_plain_toml
from prowess.lockfile.write import lock_text
from prowess.settings import load_settings
from prowess.sources.mcp.entry import parse_entry
from prowess.sources.site_index import read_index

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CORPUS = measure.CHECKOUT.parent / "shared" / "corpus" / "heads.jsonl.xz"
EXAMPLES = measure.CHECKOUT / "examples"
SECONDS = 600.0
REAL_HEADS = 500
TURN = 100
"""How many inputs one target gets before it is the next one's turn."""
LONGEST = 20_000
MUTATIONS_EACH = (1, 1, 1, 2, 2, 3, 6)
MOST_KEPT = 500
MOST_SHOWN = 20
PUMPS = 300
HASH = "0123456789abcdef" * 4
INTERESTING = (
    *(b"\0", b"\r", b"\n", b"\t", b" ", b"\x1b", b"\x7f", b"\xff", b"\xc2\x85", b"\xe2\x80\xa8", b"\xed\xa0\x80"),
    *(
        b"%",
        b"%00",
        b"%2e%2e",
        b"%ff",
        b"[",
        b"]",
        b"{",
        b"}",
        b"'",
        b'"',
        b"\\",
        b"\\u0000",
        b"\\ud800",
        b"../",
        b"//",
    ),
    *(b"-", b"---\n", b"@", b"#", b":", b": ", b"|", b">", b"&a", b"*a", b"!!", b"~", b"0x_", b"0b", b"0o8", b"1e999"),
    *(b"-0", b".inf", b".nan", b"9" * 30, b"null", b"true", b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80", b"<!-- ", b" -->"),
    *("\u202e".encode(), "\u0661".encode(), "\u00e9".encode(), b"CON", b"a" * 300, b"[" * 200, b"(", b"^", b"_"),
)
_TOKEN = re.compile(rb"[A-Za-z0-9]+|[^A-Za-z0-9]")


# -- seeds -------------------------------------------------------------------------------------------------------------

ADDRESSES = (
    *(
        "@acme/pdf@v1",
        "./skills",
        "../a/b.zip",
        "/srv/skills.git#v1@pdf",
        "~/skills",
        "C:\\skills",
        "file:///srv/a.git#v1",
    ),
    *(
        "github:acme/skills",
        "gitlab:acme/skills#main@pdf",
        "acme/skills/pdf@name",
        "https://github.com/acme/skills/tree/main/pdf",
    ),
    *("https://gitlab.com/a/b/c/-/blob/main/x/SKILL.md", "https://dev.azure.com/o/p/_git/r?path=/x&version=GBmain"),
    *(
        "https://h.example/x.tar.gz",
        "https://[::1]:8443/x.git",
        "ssh://git@h.example:22/~/x.git",
        "git@h.example:a/b.git",
    ),
    *("https://h.example/skills", "http://h.example", "git://h.example/x", "https://u:p@h.example/x.git?token=1#v1"),
)
MANIFEST = """agents = ["claude-code"]
skills = [
  "acme/skills#v1",
  "./local",
  { source = "https://h.example/x.git", ref = "v1.2", skills = ["pdf"], agents = ["cursor"] },
]

[settings]
folders = ["skills"]
sandbox = "auto"
"""
SOURCES = """skills:
  - dir: skills
    mount_as: mounted
    preload: true
  - dir: "@acme/pdf"
  - name: inline
    description: Does it.
    instructions: |
      Do it.
"""
NPM_LOCK = {"version": 1, "skills": {"pdf": {"source": "acme/skills", "sourceType": "github", "computedHash": HASH}}}
MCP_ENTRY = {
    "uri": "skill://pdf/SKILL.md",
    "frontmatter": {"name": "pdf", "description": "Does it.", "version": 1.1, "metadata": {"a": "b"}, "n": [1, None]},
    "resources": [{"uri": "skill://pdf/SKILL.md", "digest": f"sha256:{HASH}", "size": 12}],
}
PINNED_INDEX = {
    "$schema": "https://schemas.agentskills.io/discovery/0.2.0/schema.json",
    "skills": [
        {"name": "pdf", "type": "skill-md", "description": "x", "url": "pdf/SKILL.md", "digest": f"sha256:{HASH}"}
    ],
}
LISTED_INDEX = {"skills": [{"name": "pdf", "description": "Does it.", "files": ["SKILL.md", "references/a.md"]}]}


def read_heads(rng: random.Random) -> list[bytes]:
    """The first bytes of real files, or of the examples where there are none."""
    if CORPUS.is_file():
        with lzma.open(CORPUS) as file:
            rows = file.read().splitlines()
        return [json.loads(row)["head"].encode("latin-1") for row in rng.sample(rows, REAL_HEADS)]
    return [path.read_bytes() for path in sorted(EXAMPLES.rglob("SKILL.md"))]


def write_lock() -> bytes:
    """A lock file with two entries, as Prowess writes it."""
    files = {
        "SKILL.md": FileHash(12, executable=False, sha256=HASH),
        "a b.py": FileHash(1, executable=True, sha256=HASH),
    }
    one = LockEntry(
        "acme/pdf", "acme/skills#v1", ref="v1", skills={"pdf": "pdf"}, digest=digest_tree(files), files=files
    )
    two = LockEntry("local/x", "./x", kind="folder", digest=digest_tree({}), links=(".claude/skills/x",))
    three = LockEntry(
        "acme/b", "./b", select="b", skills={"b": ""}, digest=digest_tree({}), unknown=("seal = { at = 2026-01-02 }",)
    )
    return (lock_text({entry.name: entry for entry in (one, two, three)}, ["head = 1.5"]) or "").encode()


def pack_archives() -> list[bytes]:
    """The same skill as a tar, plain and compressed, and as a zip: the same bytes every time."""
    files = {"pdf/SKILL.md": b"---\nname: pdf\ndescription: Does it.\n---\nDo it.\n", "pdf/references/a.md": b"x" * 200}
    plain, zipped = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar, zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return [plain.getvalue(), gzip.compress(plain.getvalue(), mtime=0), zipped.getvalue()]


def to_json(*values: object) -> list[bytes]:
    """Each value as a document."""
    return [json.dumps(value, indent=1).encode() for value in values]


# -- targets -----------------------------------------------------------------------------------------------------------


class Disagreement(Exception):  # noqa: N818 - no error of the library
    """Two readers that must say the same did not."""


def parse_address(data: bytes) -> None:
    """As people type it, as git's configuration has it, as an argument with bytes that are not text has it."""
    spec = prowess.parse_source(data.decode("utf-8", "surrogateescape"), github="git.example")
    if "\0" in f"{spec}{spec.address}{spec.name}{spec.ref}":
        raise Disagreement("an address holds a NUL")


def check_head(data: bytes) -> None:
    """Strict, lenient and repaired; a beginning that needs no more means what the whole means."""
    for lenient, repair in ((False, False), (True, False), (True, True)):
        _expect_error(partial(parse_head, data, lenient=lenient, repair=repair))
    _expect_error(lambda: read_head(data, quick=False, policy=LoadPolicy("lenient", repair=True), folder="pdf"))
    shorter = data[: len(data) // 2]
    for repair in (False, True):
        if needs_more_bytes(shorter, repair=repair):
            continue
        if _head_meaning(shorter, whole=False, repair=repair) != _head_meaning(data, whole=True, repair=repair):
            raise Disagreement(f"more bytes behind it change its meaning (repair={repair})")


def _head_meaning(head: bytes, *, whole: bool, repair: bool) -> object:
    try:
        found = parse_head(head, whole=whole, lenient=True, repair=repair)
    except prowess.InvalidFrontmatterError as error:
        return type(error), [(issue.code, issue.line) for issue in error.issues]
    return found.front, found.body_offset, found.issues


def parse_typed(data: bytes) -> None:
    """As JSON for MCP, and compared with what a server announced."""
    styled = parse_styled_frontmatter(data)
    find_differing_fields(styled, dict.fromkeys(styled, 1))
    typed = parse_typed_frontmatter(data)
    find_type_issues(typed)
    json.dumps(typed, allow_nan=False)
    if find_differing_fields(styled, typed):
        raise Disagreement("what is typed is not a reading of what is written")


def check_lock_file(data: bytes) -> None:
    """The fast reader equals the reader of TOML wherever it answers."""
    import tomllib

    text = data.decode("utf-8", "replace")
    quick = parse_plain_toml(text)
    if quick is not None:
        try:
            slow: object = tomllib.loads(text)
        except ValueError as error:
            slow = error
        if quick != slow:
            raise Disagreement(f"the fast reader of lock files says {quick!r}, TOML says {slow!r}")
    locked = parse_lock_file(text)
    again = lock_text(*locked)
    if again is not None and parse_lock_file(again) != locked:
        raise Disagreement("a lock file that is written again says something else")


def parse_files(folder: Path) -> dict[str, Callable[[bytes], object]]:
    """What reads files: each input is written into a folder first."""

    def manifest(data: bytes) -> None:
        (folder / MANIFEST_FILE).write_bytes(data)
        for declared in read_declarations(str(folder), DEFAULT_LIMITS) or ():
            str(declared)

    def settings(data: bytes) -> None:
        (folder / MANIFEST_FILE).write_bytes(data)
        load_settings(cwd=folder, env={"HOME": str(folder / "home")})

    def sources(data: bytes) -> None:
        path = folder / ("sources.json" if data[:1] in {b"{", b"["} else "sources.yaml")
        path.write_bytes(data)
        for source in prowess.load_sources(path):
            _expect_error(source.load)

    return {"manifest": manifest, "settings": settings, "sources": sources}


def parse_mcp_entry(data: bytes) -> None:
    """An entry of a server's listing: any JSON."""
    entry = parse_entry(_load_json(data), DEFAULT_LIMITS)
    str((entry.name, entry.state, entry.to_frontmatter()))


def parse_index(data: bytes) -> None:
    """The index that a site publishes."""
    read_index(data, "https://h.example/.well-known/skills/index.json", DEFAULT_LIMITS, lambda _url: None)


def parse_archive(data: bytes) -> None:
    """A zip or a tar."""
    _expect_error(lambda: unpack_tree(data))
    unpack(data)


def _load_json(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _expect_error(parse: Callable[[], object]) -> None:
    try:
        parse()
    except prowess.SkillError:
        return


class Target(NamedTuple):
    """A parser, and inputs that it accepts."""

    parse: Callable[[bytes], object]
    seeds: Sequence[bytes]


def list_targets(folder: Path, rng: random.Random) -> dict[str, Target]:
    """Everything that parses, by name; ``folder`` is for those that read files."""
    heads = read_heads(rng)
    on_disk = parse_files(folder)
    return {
        "address": Target(parse_address, [text.encode() for text in ADDRESSES]),
        "head": Target(check_head, heads),
        "typed": Target(parse_typed, heads),
        "lock": Target(check_lock_file, [write_lock()]),
        "npm-lock": Target(lambda data: parse_foreign_lock(data.decode("utf-8", "replace")), to_json(NPM_LOCK)),
        "manifest": Target(on_disk["manifest"], [MANIFEST.encode()]),
        "settings": Target(on_disk["settings"], [MANIFEST.encode()]),
        "sources": Target(on_disk["sources"], [SOURCES.encode(), *to_json({"skills": [{"dir": "x"}, {"name": "y"}]})]),
        "mcp-entry": Target(parse_mcp_entry, to_json(MCP_ENTRY)),
        "index": Target(parse_index, to_json(PINNED_INDEX, LISTED_INDEX)),
        "archive": Target(parse_archive, pack_archives()),
    }


# -- mutation ----------------------------------------------------------------------------------------------------------


def mutate(data: bytes, seeds: Sequence[bytes], rng: random.Random) -> bytes:
    """``data`` with one to several disturbances."""
    for _ in range(rng.choice(MUTATIONS_EACH)):
        data = rng.choice(_MUTATIONS)(data, seeds, rng)[:LONGEST]
    return data


def _span(data: bytes, rng: random.Random) -> tuple[int, int]:
    begin = rng.randint(0, len(data))
    return begin, min(len(data), begin + rng.choice((1, 1, 2, 4, 16, 64)))


def _flip(data: bytes, _seeds: Sequence[bytes], rng: random.Random) -> bytes:
    if not data:
        return bytes([rng.randrange(256)])
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _delete(data: bytes, _seeds: Sequence[bytes], rng: random.Random) -> bytes:
    begin, end = _span(data, rng)
    return data[:begin] + data[end:]


def _duplicate(data: bytes, _seeds: Sequence[bytes], rng: random.Random) -> bytes:
    begin, end = _span(data, rng)
    return data[:end] + data[begin:end] * rng.choice((1, 1, 2, 50)) + data[end:]


def _insert(data: bytes, _seeds: Sequence[bytes], rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice(INTERESTING) + data[at:]


def _replace_token(data: bytes, seeds: Sequence[bytes], rng: random.Random) -> bytes:
    tokens = _TOKEN.findall(data[:LONGEST])
    if not tokens:
        return data
    others = _TOKEN.findall(rng.choice(seeds)[:2_000]) or [b""]
    tokens[rng.randrange(len(tokens))] = rng.choice((rng.choice(others), rng.choice(INTERESTING)))
    return b"".join(tokens)


def _splice(data: bytes, seeds: Sequence[bytes], rng: random.Random) -> bytes:
    other = rng.choice(seeds)
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


def _cut(data: bytes, _seeds: Sequence[bytes], rng: random.Random) -> bytes:
    return data[: rng.randint(0, len(data))]


_MUTATIONS = (_flip, _delete, _duplicate, _insert, _insert, _replace_token, _replace_token, _splice, _cut)


# -- the run -----------------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What became of the inputs of one target."""

    tried: int = 0
    refused: int = 0
    failures: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    """One input and its message by kind and place of the exception, so that one defect is shown once."""

    def try_input(self, parse: Callable[[bytes], object], data: bytes) -> bool:
        """Parse it and count what is raised; returns True when it was accepted."""
        self.tried += 1
        try:
            parse(data)
        except prowess.SkillError as error:
            self.refused += 1
            str(error)
        except Exception as error:  # noqa: BLE001 - what is looked for
            shorter = self.failures.get(_name_place(error))
            if shorter is None or len(data) < len(shorter[0]):
                self.failures[_name_place(error)] = (data, f"{type(error).__name__}: {error}")
        else:
            return True
        return False


def _name_place(error: BaseException) -> str:
    """The kind of an exception, and the innermost line of the library, or of a target, that it passed."""
    place = ""
    trace = error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if {"prowess", "bench"} & set(file.parts):
            place = f"{file.name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__} in {place}"


class Inputs:
    """The seeds as they are, then disturbed ones without end, of seeds and of inputs that were accepted.

    What is accepted reaches further into a parser than what its first check refuses.
    """

    def __init__(self, name: str, target: Target, seed: int) -> None:
        self.rng = random.Random(f"{seed} {name}")
        self.seeds = target.seeds
        self.fresh = list(reversed(target.seeds))
        self.kept: list[bytes] = []

    def draw(self) -> bytes:
        """The next input."""
        if self.fresh:
            return self.fresh.pop()
        parents = self.kept if self.kept and self.rng.random() < 0.5 else self.seeds
        return mutate(self.rng.choice(parents), self.seeds, self.rng)

    def keep(self, data: bytes) -> None:
        """Remember an input that was accepted, in place of another when there are many."""
        if len(self.kept) < MOST_KEPT:
            self.kept.append(data)
        else:
            self.kept[self.rng.randrange(MOST_KEPT)] = data


def fuzz(targets: dict[str, Target], *, seed: int, seconds: float, inputs: int = 0) -> dict[str, Tally]:
    """Give inputs to each target in turn, until the time is over or each had ``inputs``; returns the counts."""
    tallies = {name: Tally() for name in targets}
    streams = {name: Inputs(name, target, seed) for name, target in targets.items()}
    end = time.monotonic() + seconds
    while time.monotonic() < end and not (inputs and all(tally.tried >= inputs for tally in tallies.values())):
        for name, target in targets.items():
            for _ in range(min(TURN, inputs - tallies[name].tried) if inputs else TURN):
                data = streams[name].draw()
                if tallies[name].try_input(target.parse, data):
                    streams[name].keep(data)
    return tallies


def print_tallies(tallies: dict[str, Tally], seed: int) -> int:
    """The counts by target and what was found; returns how many defects."""
    rows = [(name, tally.tried, tally.refused, len(tally.failures)) for name, tally in tallies.items()]
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows), sum(row[3] for row in rows)))
    for name, tried, refused, failures in rows:
        print(f"{name:10} {tried:>10,} inputs  {refused:>10,} refused  {failures:>3} raw exceptions")
    for name, tally in tallies.items():
        for place, (data, message) in list(tally.failures.items())[:MOST_SHOWN]:
            print(f"\n{name}: {place} (--seed {seed})\n  {message[:500]}\n  {data!r}")
    return rows[-1][3]


def main(words: Sequence[str] | None = None) -> int:
    """The whole run; 1 when something was found."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.fuzz", description=__doc__.partition("\n")[0] if __doc__ else ""
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long to go on")
    parser.add_argument("--inputs", type=int, default=0, help="stop when each target had so many")
    parser.add_argument("--seed", type=int, default=None, help="repeat the inputs of another run")
    parser.add_argument("--target", action="append", help="only this one; may be given several times")
    parser.add_argument("--pumps", type=int, default=PUMPS, help="texts with repetitions for each pattern; 0 for none")
    given = parser.parse_args(words)
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    with tempfile.TemporaryDirectory() as folder:
        targets = list_targets(Path(folder), random.Random(seed))
        unknown = set(given.target or ()) - targets.keys()
        if unknown:
            parser.error(f"unknown target {min(unknown)}; one of {', '.join(targets)}")
        wanted = {name: target for name, target in targets.items() if name in (given.target or targets)}
        # A process of its own, because it forks.
        sweep = [sys.executable, "-m", "bench.pumps", "--seed", str(seed), "--pumps", str(given.pumps)]
        is_slow = given.pumps and subprocess.run(sweep, check=False, cwd=measure.CHECKOUT).returncode
        found = print_tallies(fuzz(wanted, seed=seed, seconds=given.seconds, inputs=given.inputs), seed)
    return 1 if found or is_slow else 0


if __name__ == "__main__":
    sys.exit(main())
