"""The page of one plan: what would be done, in which state it is, and at the end what was done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prowess.web.plans import PLAN_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.web.library import Library
    from prowess.web.plans import ChangePlan, PlanBook


@dataclass(frozen=True, slots=True)
class PlanView:
    """What the page shows: the plan, the action that its forms need, and the form that asks for it again."""

    plan: ChangePlan
    action: str
    again: Sequence[tuple[str, str]]
    """The fields of a form that makes the same plan anew."""

    @property
    def details(self) -> object:
        """What the kind of the plan shows beside its steps; ``None`` before it is prepared."""
        return self.plan.change.details if self.plan.change is not None else None

    @property
    def steps(self) -> Sequence[str]:
        """What would be done, a sentence each."""
        return self.plan.change.steps if self.plan.change is not None else ()


def make_plan_view(library: Library, parameters: Mapping[str, str], *, plans: PlanBook) -> PlanView:  # noqa: ARG001 - as every page
    """Return what the page shows for the plan with the id in the address; raise ``UnknownPlanError`` for none."""
    plan = plans.get(parameters["id"])
    return PlanView(plan, PLAN_KINDS[plan.kind].action, [("kind", plan.kind), *plan.fields.items()])
