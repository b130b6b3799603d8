"""``python -m bench.security``: how many ordinary skills get a warning of ``check --security``, and how many bad ones.

Ordinary skills are those of the optional data folder beside the checkout. Labelled ones are in a folder of your own:
``LABELLED/malicious/REPOSITORY/…/SKILL.md`` and ``LABELLED/ordinary/REPOSITORY/…``. It is all other people's text: it
is parsed and counted, never run, and never copied into the project.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import prowess
from bench import corpus, table
from prowess.authoring.security import examine
from prowess.limits import DEFAULT_LIMITS
from prowess.names import SKILL_FILE

ORDINARY_BOUND = 0.04


class Count(NamedTuple):
    """The skills of some repositories: how many there are, and how many have a warning, by repository and code."""

    skills: Counter[str]
    warned: Counter[str]
    codes: Counter[str]

    @property
    def share(self) -> float:
        return self.warned.total() / max(self.skills.total(), 1)


def count_warnings(root: Path) -> Count:
    """Examine every skill below a folder, whose first folders are repositories."""
    skills: Counter[str] = Counter()
    warned: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    for path in sorted(root.rglob(SKILL_FILE)):
        try:
            skill = prowess.read_metadata(path, mode="lenient")
        except prowess.SkillError:
            continue
        repository = path.relative_to(root).parts[0]
        found = {issue.code for issue in examine(skill, DEFAULT_LIMITS).issues}
        skills[repository] += 1
        warned[repository] += bool(found)
        codes.update(found)
    return Count(skills, warned, codes)


def report(title: str, count: Count, *, each: bool) -> str:
    """Return what was counted: the share, the codes, and with ``each`` a row for each repository."""
    lines = [f"{title}: {count.warned.total()} of {count.skills.total()} skills with a warning ({count.share:.1%})"]
    if count.codes:
        lines.append(table.render(("code", "skills"), [(code, f"{n}") for code, n in count.codes.most_common()]))
    if each:
        rows = [(name, f"{count.warned[name]}", f"{count.skills[name]}") for name in sorted(count.skills)]
        lines.append(table.render(("repository", "with a warning", "skills"), rows, numbers=frozenset((1, 2))))
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench.security", description=__doc__)
    parser.add_argument("--labelled", type=Path, default=os.environ.get("PROWESS_LABELLED_SKILLS"))
    options = parser.parse_args(arguments)
    status = 0
    if corpus.CORPUS.is_dir():
        with tempfile.TemporaryDirectory() as temporary:
            corpus.extract_skills(Path(temporary))
            ordinary = count_warnings(Path(temporary, "skills"))
        print(report("ordinary skills", ordinary, each=False))
        if ordinary.share > ORDINARY_BOUND:
            print(f"OVER: at most {ORDINARY_BOUND:.0%} of ordinary skills may have a warning")
            status = 1
    else:
        print("Skipped: there is no ../shared/corpus beside the checkout, so there are no ordinary skills to count.")
    for label in ("malicious", "ordinary") if options.labelled is not None else ():
        folder = Path(options.labelled, label)
        if folder.is_dir():
            print(report(f"labelled {label}", count_warnings(folder), each=True))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
