"""The page of one run of an evaluation with a model: its outcome, its answer, its transcript and its files."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prowess.web.skill_rows import make_skill_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.web.eval_runs import KeptRun
    from prowess.web.library import Library


class RunView(NamedTuple):
    """What the page shows, and the id of the skill that was evaluated."""

    kept: KeptRun
    skill_id: str


def make_run_view(library: Library, parameters: Mapping[str, str]) -> RunView:
    """Return the page of the run whose folder has this name. Raises ``ResourceNotFoundError`` where there is none."""
    kept = library.eval_runs.read(parameters.get("id", ""))
    return RunView(kept, make_skill_id(kept.run.skill))
