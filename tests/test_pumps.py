"""The sweep for slow patterns: those of the packages are fast on every text, and a slow one would be found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.pumps import list_patterns

CHECKOUT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="NOT TESTED: the sweep needs fork")
# The patterns as they were when single texts took minutes, and textbook cases of both kinds of growth.
SLOW_PATTERNS = (
    r"(?:^|(?<=[.;!?\n(]))\s*(?:do not|never) (?:use|load)\b[^.;!?\n]*",
    r"\[\s*(?:(?:true|false)\s*,?\s*)+\]",
    r"[/$](\w+(?:[-_.:]\w+)*)\s+skill",
    r'"[^"\\\n]*+(?:\\[^\n]?[^"\\\n]*+)*+["\n]',
    r"(?:a|a)*b",
    r"(?:a+)+b",
    r"\s+$",
    r"<!--.*?-->",
)
FIND_SLOW = """
import random, re, sys
from functools import partial
from bench.pumps import Trial, _try_pattern, find_slow, make_pumps
patterns = [re.compile(word, re.DOTALL) for word in sys.argv[1:]]
trials = [
    Trial(one.pattern, partial(_try_pattern, one, "finditer"), pump, 0.1)
    for one in patterns
    for pump in make_pumps(one, random.Random(1), 5)
]
print("\\n".join(trial.subject for trial in find_slow(trials, 20_000)))
"""


def test_no_pattern_and_no_parser_is_slow_on_repeated_text(seed: int, full: bool) -> None:
    pumps = "60" if full else "3"
    words = [sys.executable, "-m", "bench.pumps", "--seed", str(seed), "--pumps", pumps]
    ran = subprocess.run(words, cwd=CHECKOUT, capture_output=True, encoding="utf-8", check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_sweep_ends_and_finds_every_pattern_that_blows_up() -> None:
    linear = (r"(?<![a-z])[a-z]++,", r"(?:ab|c)+?", r'"[^"]*+(?:"|\Z)')
    words = [sys.executable, "-c", FIND_SLOW, *linear, *SLOW_PATTERNS]
    ran = subprocess.run(words, cwd=CHECKOUT, capture_output=True, encoding="utf-8", check=True)
    assert set(ran.stdout.splitlines()) == set(SLOW_PATTERNS)


def test_the_sweep_has_patterns_however_they_are_made() -> None:
    uses = [(use.place.partition(":")[0], use.methods) for use in list_patterns()]
    assert ("prowess.agent.eval_judgement", frozenset({"findall"})) in uses  # a name of its module
    assert ("prowess.search.terms", frozenset({"sub"})) in uses  # returned by a function
    assert ("prowess.text.markup", frozenset({"search"})) in uses  # made of the parameters of a function
    assert ("prowess.addresses.source_grammar", frozenset({"match"})) in uses  # used where it is compiled
    assert ("prowess.addresses.source_grammar", frozenset({"split"})) in uses  # never compiled by name
    assert len({module for module, _ in uses}) > 60
