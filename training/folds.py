"""Five folds of the labelled requests, by skill: a model that was tuned on four of them is measured on the fifth.

Requests that share a right skill, directly or over others, are in one fold. So no model is asked for a skill, or for a
near copy of one, that it was tuned on.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDS = 5


def deal_folds(records: Sequence[dict[str, Any]]) -> list[int]:
    """Return the fold of each record: the largest groups first, each into the fold that has the fewest requests."""
    groups: dict[str, list[int]] = defaultdict(list)
    for number, group in enumerate(find_groups(records)):
        groups[group].append(number)
    sizes = [0] * FOLDS
    folds = [0] * len(records)
    for numbers in sorted(groups.values(), key=lambda numbers: (-len(numbers), records[numbers[0]]["id"])):
        fold = sizes.index(min(sizes))
        sizes[fold] += len(numbers)
        for number in numbers:
            folds[number] = fold
    return folds


def find_groups(records: Sequence[dict[str, Any]]) -> list[str]:
    """Return the group of each record, named by one of its skills: records that share a right skill are in one."""
    lists = [[*record["relevant"], *record["also_relevant"]] for record in records]
    parents: dict[str, str] = {}

    def find_root(item: str) -> str:
        while parents.setdefault(item, item) != item:
            item = parents[item]
        return item

    for items in lists:
        for item in items[1:]:
            parents[find_root(items[0])] = find_root(item)
    return [find_root(items[0]) for items in lists]
