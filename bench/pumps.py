"""``python -m bench.pumps``: every pattern and every parser with texts that repeat themselves, under a watchdog.

A pattern that goes on from each place of a text to each other place takes minutes for a text of a few kilobytes. For
each repetition in a pattern, texts are made that enter it, repeat it many times, and then fail. A child process tries
them, and the operating system kills a child that takes more processor time for a text than it may.
Exits with 1 when a child was killed.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import random
import re
import signal
import sys
import traceback
from collections import deque
from contextlib import suppress
from functools import partial
from itertools import product
from mmap import mmap
from re import _constants as ops  # type: ignore[attr-defined]  # Python's own parser of patterns has no public name
from re import _parser as parser  # type: ignore[attr-defined]  # see above
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import prowess
from bench import measure
from prowess.addresses.source_spec import MAX_ADDRESS_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

SOURCES = (measure.CHECKOUT / "src", measure.CHECKOUT / "packages" / "prowess-retriever" / "src")
CHARS = 20_000
"""How long a text is. What takes a millisecond when each place is looked at once takes seconds when it is squared."""
PATTERN_SECONDS, PARSER_SECONDS = 0.1, 2.0
"""The processor time that a text may take. A parser has loops in Python, which are slower."""
PUMPS = 60
"""How many further texts a pattern or parser gets, beyond those that are made for it."""
_ATTEMPTS = 3
_METHODS = frozenset(("match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"))
_USUAL = " \t\n\r\x0b!\"'`#$%&()*+,-./0aAzZ_:;<=>?@[]\\{}|~\x00\x85\xa0\xe9\u3042"
_EXAMPLES: Mapping[str, Any] = {
    "alternatives": "/srv/skills|/srv",
    "brackets": "<",
    "indentation": b"  ",
    "keys": ("sk-0123456789", "sk-01234567"),
    "marks": "@:/",
    "tags": ("skills", "skill"),
}
"""Values of the parameters and variables by which patterns are made while the program runs, by their names."""
_OWN_TEXT = frozenset(("prowess.text.patterns", "prowess.cli.commands.demo"))
"""Modules whose patterns see nothing but what Prowess itself has written."""
_LONGEST = {"prowess.mcp.prompts": 200, "prowess.addresses.source_spec": MAX_ADDRESS_CHARS}
"""How long the texts can be that the patterns of a module see, where that is short: longer ones are refused or cut."""


# -- the patterns of the packages --------------------------------------------------------------------------------------


class PatternUse(NamedTuple):
    """A compiled pattern, the line that makes it, and the methods that the package calls on it."""

    place: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]


def list_patterns() -> list[PatternUse]:
    """Return every pattern that a module of the packages compiles; raise ``NameError`` for one without an example."""
    files = {
        ".".join(file.relative_to(source).with_suffix("").parts): file
        for source in SOURCES
        for file in sorted(source.rglob("*.py"))
    }
    modules = [_ModulePatterns(name, ast.parse(file.read_text(encoding="utf-8"))) for name, file in files.items()]
    return [use for module in modules for use in module.list_all(modules)]


class _ModulePatterns:
    """The patterns of one module: found in its source, and compiled with its names."""

    def __init__(self, module: str, tree: ast.Module) -> None:
        self._module = module
        self._parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self._imported = {
            (node.module, alias.name)
            for node in self._parents
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        calls = [node for node in self._parents if isinstance(node, ast.Call) and _takes_pattern(node)]
        # What the module of patterns compiles are the patterns of the others.
        self._calls = [
            call for call in calls if module != "prowess.text.patterns" or isinstance(call.args[0], ast.Constant)
        ]

    def list_all(self, modules: Sequence[_ModulePatterns]) -> Iterator[PatternUse]:
        names = self._import_names() if self._calls else {}
        for call in self._calls:
            methods = self._find_methods(call, modules)
            for pattern in self._compile(call, names):
                yield PatternUse(f"{self._module}:{call.lineno}", pattern, methods)

    def _import_names(self) -> dict[str, Any]:
        try:
            return dict(vars(importlib.import_module(self._module)))
        except ImportError:  # an adapter whose framework is not installed
            return {"re": re}

    def _compile(self, call: ast.Call, names: dict[str, Any]) -> Iterator[re.Pattern[Any]]:
        maker = self._find_function(call)
        if maker is not None and maker.returns is not None and "Pattern" in ast.unparse(maker.returns):
            yield names[maker.name](*(_EXAMPLES[argument.arg] for argument in maker.args.args))
            return
        written = call.args[0]
        flags = next((word.value for word in call.keywords if word.arg == "flags"), None)
        if flags is None and ast.unparse(call.args[-1]).startswith("re."):
            flags = call.args[-1]
        for one in (written.body, written.orelse) if isinstance(written, ast.IfExp) else (written,):
            pattern = _evaluate(one, names)
            yield re.compile(pattern, 0 if flags is None else _evaluate(flags, names))

    def _find_function(self, node: ast.AST) -> ast.FunctionDef | None:
        while node in self._parents:
            node = self._parents[node]
            if isinstance(node, ast.FunctionDef):
                return node
        return None

    def _find_methods(self, call: ast.Call, modules: Sequence[_ModulePatterns]) -> frozenset[str]:
        """Return the methods that are called on a pattern; all if that cannot be seen."""
        for function in (call.func, self._parents[call]):
            if isinstance(function, ast.Attribute) and function.attr in _METHODS:
                return frozenset((function.attr,))
        name = self._find_name(call)
        users = [module for module in modules if module is self or (self._module, name) in module._imported]  # noqa: SLF001 - of one class
        return frozenset(method for module in users for method in module.list_methods(name)) & _METHODS or _METHODS

    def _find_name(self, call: ast.Call) -> str:
        """Return the name of the variable that has a pattern, or of the function that returns it."""
        parent = self._parents[call]
        if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
            return parent.targets[0].id
        maker = self._find_function(call)
        return maker.name if maker is not None and isinstance(parent, ast.Return) else ""

    def list_methods(self, name: str) -> Iterator[str]:
        """Yield what is called on a name, and on any variable where the name is passed on."""
        is_passed_on = not name
        for use in self._parents:
            if isinstance(use, ast.Name) and use.id == name and isinstance(use.ctx, ast.Load):
                above = self._parents[use]
                if isinstance(above, ast.Call) and above.func is use:
                    above = self._parents[above]
                if isinstance(above, ast.Attribute):
                    yield above.attr
                else:
                    is_passed_on = True
        if is_passed_on:
            own = {"re", *map(self._find_name, self._calls)}
            attributes = (node for node in self._parents if isinstance(node, ast.Attribute))
            others = (node for node in attributes if not (isinstance(node.value, ast.Name) and node.value.id in own))
            yield from (node.attr for node in others if node.attr != "split")  # nearly always that of a string


def _takes_pattern(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == "compile_pattern"
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    return function.value.id == "re" and function.attr in {*_METHODS, "compile"}


def _evaluate(node: ast.expr, names: dict[str, Any]) -> Any:
    code = compile(ast.Expression(node), "<pattern>", "eval")
    return eval(code, {**_EXAMPLES, **names})  # noqa: S307 - a line of this checkout


# -- texts that a pattern may be slow with -----------------------------------------------------------------------------


class Pump(NamedTuple):
    """A text: a beginning, a part that is repeated until the text is long enough, and an end."""

    begin: str
    part: str
    end: str

    def write(self, chars: int) -> str:
        return f"{self.begin}{self.part * (chars // len(self.part))}{self.end}"


def make_pumps(pattern: re.Pattern[Any], rng: random.Random, count: int) -> list[Pump]:
    """Return texts for a pattern: first those that its repetitions were made for, then mixtures."""
    source = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    sampler = _Sampler(parser.parse(source, pattern.flags), rng)
    return list(dict.fromkeys(_draw_pumps(sampler, rng, count)))


def _draw_pumps(sampler: _Sampler, rng: random.Random, count: int) -> Iterator[Pump]:
    ends = ("", "\0", "\n", "!")
    begins, parts = [""], list(sampler.alphabet)
    repetitions = list(sampler.list_repetitions())
    for begin, body in repetitions:
        begins.append(begin)
        parts += filter(None, (body, begin, begin + body))
    # What a repetition was made for, behind what leads to it; and what leads to it, again and again.
    for (begin, body), end in product(repetitions, ends[:2]):
        yield from (Pump(first, body, end) for first in (begin, "") if body)
        if begin:
            yield Pump("", begin, end)
    yield from (Pump("", char, end) for char, end in product(sampler.alphabet, ends[:2]))
    for _ in range(count):
        part = rng.choice(parts) + (rng.choice(parts) if rng.random() < 0.5 else "")
        yield Pump(rng.choice(begins), part, rng.choice(ends))


class _Sampler:
    """Writes samples of what a parsed pattern matches."""

    def __init__(self, tree: Any, rng: random.Random) -> None:
        self._tree = tree
        self._rng = rng
        self._groups: dict[int, str] = {}
        self.alphabet = _choose_alphabet(tree)

    def list_repetitions(self) -> Iterator[tuple[str, str]]:
        """Yield, for each repetition, samples of what leads to it and of what it repeats."""
        yield from self._walk(self._tree, "")

    def _walk(self, items: Any, begin: str) -> Iterator[tuple[str, str]]:
        for op, value in items:
            if op in {ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT}:
                _, most, body = value
                if most > 1:
                    for _ in range(3):
                        yield begin, self._write(body)
                yield from self._walk(body, begin)
            elif op is ops.SUBPATTERN:
                yield from self._walk(value[-1], begin)
            elif op is ops.ATOMIC_GROUP:
                yield from self._walk(value, begin)
            elif op is ops.BRANCH:
                for branch in value[1]:
                    yield from self._walk(branch, begin)
            elif op in {ops.ASSERT, ops.ASSERT_NOT}:
                yield from self._walk(value[1], begin)
            begin += self._write_item(op, value)

    def _write(self, items: Any) -> str:
        return "".join(self._write_item(op, value) for op, value in items)

    def _write_item(self, op: Any, value: Any) -> str:  # noqa: PLR0911 - one line for each kind of item
        match op:
            case ops.LITERAL:
                return chr(value)
            case ops.ANY | ops.NOT_LITERAL:
                return self._rng.choice([char for char in self.alphabet if char != "\n" and ord(char) != value])
            case ops.IN:
                fitting = [char for char in self.alphabet if _is_in(char, value)]
                return self._rng.choice(fitting) if fitting else ""
            case ops.MAX_REPEAT | ops.MIN_REPEAT | ops.POSSESSIVE_REPEAT:
                least, most, body = value
                return "".join(self._write(body) for _ in range(min(max(least, self._rng.choice((0, 1, 3))), most)))
            case ops.SUBPATTERN:
                written = self._write(value[-1])
                if value[0] is not None:
                    self._groups[value[0]] = written
                return written
            case ops.ATOMIC_GROUP:
                return self._write(value)
            case ops.BRANCH:
                return self._write(self._rng.choice(value[1]))
            case ops.GROUPREF:
                return self._groups.get(value, "")
            case _:  # a place, or what must be ahead or behind
                return ""


def _choose_alphabet(tree: Any) -> str:
    """Return characters of which no two are alike to a pattern: each set of characters in it has both or none."""
    items = list(_list_items(tree))
    literals = (chr(value) for op, value in items if op in {ops.LITERAL, ops.NOT_LITERAL})
    ends = dict.fromkeys(chr(code) for op, value in items if op is ops.RANGE for code in value)
    sets = {repr(value): value for op, value in items if op is ops.IN}.values()
    chosen: dict[tuple[bool, ...], str] = {}
    for char in (*_USUAL, *ends):
        chosen.setdefault(tuple(_is_in(char, one) for one in sets), char)
    return "".join(dict.fromkeys([*literals, *chosen.values()]))


def _list_items(items: Any) -> Iterator[tuple[Any, Any]]:
    for item in items:
        if isinstance(item, tuple) and len(item) == 2 and type(item[0]) is type(ops.IN):
            yield item
        if isinstance(item, tuple | list | parser.SubPattern):
            yield from _list_items(item)


def _is_in(char: str, items: Sequence[tuple[Any, Any]]) -> bool:
    is_negated = bool(items) and items[0][0] is ops.NEGATE
    return any(_fits(char, op, value) for op, value in items) != is_negated


def _fits(char: str, op: Any, value: Any) -> bool:
    match op:
        case ops.LITERAL:
            return ord(char) == value
        case ops.RANGE:
            return bool(value[0] <= ord(char) <= value[1])
        case ops.CATEGORY:
            kind, is_not = _CATEGORIES[str(value)]
            return (re.match(kind, char) is not None) != is_not
        case _:
            return False


_CATEGORIES = {
    f"CATEGORY_{'NOT_' if is_not else ''}{name}": (kind, is_not)
    for name, kind in (("DIGIT", r"\d"), ("SPACE", r"\s"), ("WORD", r"\w"))
    for is_not in (False, True)
}


# -- parsers -----------------------------------------------------------------------------------------------------------

_PARTS = (
    *("[", "![", "](", "[a](", "*", "**a ", "_", "*a_", "`", "`a``", "~~", "~~~\n", "```\n", "<", "<!--", "-->", "> "),
    *("- ", "1. ", "# ", "|", "|-|\n", "\\", "&", "\n", "\r\n", " ", "\t", "    ", "a", "a ", "a_", "a-", "A", "1"),
    *("\u65e5", "\u200b", "a: ", "a:\n", "- a\n", '"', "'", '\\"', "[true", "[true ", "true ", "{", "}", "{{", "("),
    *(")", ";", "$", "$(", "${", "$1", "!`", "!`a`", "/", "/srv/skills", "\\/", "%2F", "%", "@", ":", "#", "?", "://"),
    *("https://a", "do not use ", "skill ", "\0"),
)


def list_parsers() -> dict[str, Callable[[str], object]]:
    """Return, by names, what reads the text of skills, of requests, of models and of servers."""
    from prowess.agent.eval_judgement import parse_verdicts
    from prowess.authoring.findings import mask_secrets
    from prowess.conversation.rendering import mask_paths
    from prowess.format.commands import find_commands
    from prowess.format.frontmatter.fields import parse_allowed_tools
    from prowess.format.placeholders import fill_placeholders
    from prowess.search.terms import drop_exclusions, make_index_text, split_request
    from prowess.select.auto import find_named_skills
    from prowess.select.selectors import Candidates
    from prowess.skills.catalog import Catalog
    from prowess.skills.parse import find_file_references
    from prowess.sources.mcp.quota import JsonMeter
    from prowess.text.markup import neutralize_tags
    from prowess.text.redaction import scrub_text
    from prowess.text.tokens import estimate_tokens
    from prowess.web.markdown import render_markdown

    nothing = Candidates((), Catalog())
    return {
        "Markdown of the console": lambda text: render_markdown(text, (), str, str),
        "exclusions of a description": drop_exclusions,
        "text of an index": make_index_text,
        "words of a request": split_request,
        "names in a request": lambda text: find_named_skills(text, nothing),
        "verdicts of a judge": parse_verdicts,
        "JSON of an MCP server": lambda text: JsonMeter().measure(text.encode()),
        "paths in an output": lambda text: mask_paths(text, ["/srv/skills", "/srv"]),
        "secrets in a line": mask_secrets,
        "secrets in a message": scrub_text,
        "tools of a skill": parse_allowed_tools,
        "commands of a body": find_commands,
        "files that a body names": lambda text: list(find_file_references(text)),
        "tags in a listing": lambda text: neutralize_tags(text, "skill", "skills"),
        "placeholders of a body": lambda text: fill_placeholders(text, "a b", names=("a",), folder="/srv"),
        "tokens of a text": estimate_tokens,
    }


def draw_parts(rng: random.Random, count: int) -> list[Pump]:
    """Return texts for a parser: each part alone, then mixtures of two and three."""
    pumps = [Pump("", part, "") for part in _PARTS]
    mixtures = ("".join(rng.choices(_PARTS, k=rng.choice((2, 2, 3)))) for _ in range(count))
    return [*pumps, *(Pump(rng.choice(("", *_PARTS)), part, "") for part in mixtures)]


# -- the watchdog ------------------------------------------------------------------------------------------------------


class Trial(NamedTuple):
    """A text for a pattern or a parser, and the processor time that it may take."""

    subject: str
    try_text: Callable[[str], object]
    text: Pump
    seconds: float
    longest: int = sys.maxsize
    """How long the text may be."""


def find_slow(trials: Sequence[Trial], chars: int) -> list[Trial]:
    """Return the first trial of each subject that takes more processor time than it may, at each of three attempts."""
    slow: list[Trial] = []
    place = mmap(-1, 8)
    start = attempts = 0
    while (at := _run_child(trials, start, place, {trial.subject for trial in slow}, chars)) is not None:
        # On a busy machine an attempt may take longer than the text needs.
        attempts = attempts + 1 if at == start else 1
        start = at
        if attempts == _ATTEMPTS:
            slow.append(trials[at])
            start, attempts = at + 1, 0
    return slow


def _run_child(trials: Sequence[Trial], start: int, place: mmap, skipped: set[str], chars: int) -> int | None:
    """Try each text in a child process; return the place of the one for which the system ended it, if it did."""
    child = os.fork()
    if not child:
        _try_all(trials, start, place, skipped, chars)
    _, status = os.waitpid(child, 0)
    at = int.from_bytes(place[:8], "big")
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
        return at
    if status:
        raise RuntimeError(f"the child ended with status {status} at {trials[at]}")
    return None


def _try_all(trials: Sequence[Trial], start: int, place: mmap, skipped: set[str], chars: int) -> NoReturn:
    """Try each text in this child process, which ends here. The system ends it where one takes too long."""
    status = 1
    try:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process, whatever it is doing
        for at in range(start, len(trials)):
            trial = trials[at]
            if trial.subject in skipped:
                continue
            place[:8] = at.to_bytes(8, "big")
            text = trial.text.write(min(chars, trial.longest))
            signal.setitimer(signal.ITIMER_PROF, trial.seconds)
            with suppress(prowess.SkillError):
                trial.try_text(text)
            signal.setitimer(signal.ITIMER_PROF, 0)
        status = 0
    except BaseException:  # noqa: BLE001 - shown, and the status says that it was raised
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def list_trials(rng: random.Random, count: int) -> list[Trial]:
    """Return the texts that are made for each pattern and parser, and ``count`` further ones for each."""
    trials: list[Trial] = []
    for use in list_patterns():
        module = use.place.partition(":")[0]
        if module in _OWN_TEXT:
            continue
        longest = _LONGEST.get(module, sys.maxsize)
        pumps = make_pumps(use.pattern, rng, count)
        for method in sorted(_group_methods(use.methods)):
            subject = f"{use.place} {method} {use.pattern.pattern!r}"
            try_text = partial(_try_pattern, use.pattern, method)
            trials += (Trial(subject, try_text, pump, PATTERN_SECONDS, longest) for pump in pumps)
    for name, parse in list_parsers().items():
        trials += (Trial(name, parse, pump, PARSER_SECONDS) for pump in draw_parts(rng, count))
    return trials


def _group_methods(methods: frozenset[str]) -> set[str]:
    """Return the methods to try: those that look at a whole text do the same work."""
    return {method if method in {"match", "fullmatch"} else "finditer" for method in methods}


def _try_pattern(pattern: re.Pattern[Any], method: str, text: str) -> None:
    given: Any = text.encode("utf-8") if isinstance(pattern.pattern, bytes) else text
    if method == "finditer":
        deque(pattern.finditer(given), maxlen=0)
    else:
        getattr(pattern, method)(given)


def main(words: Sequence[str] | None = None) -> int:
    """The whole sweep; 1 when something is slow."""
    options = argparse.ArgumentParser(prog="python -m bench.pumps", description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--seed", type=int, default=None, help="repeat the texts of another run")
    options.add_argument("--pumps", type=int, default=PUMPS, help="further texts for each (%(default)s)")
    options.add_argument("--chars", type=int, default=CHARS, help="how long each is (%(default)s)")
    given = options.parse_args(words)
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    trials = list_trials(random.Random(seed), given.pumps)
    slow = find_slow(trials, given.chars)
    subjects = len({trial.subject for trial in trials})
    print(f"{subjects} patterns and parsers, {len(trials):,} texts, {len(slow)} slow (--seed {seed})")
    for trial in slow:
        print(f"\n{trial.subject[:300]}\n  more than {trial.seconds} s for {trial.text}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
