"""The decision of an activation, a pure function: every state has one next step, and refusals come first."""

from itertools import product

import pytest

import prowess
from prowess.conversation.activation import ActivationState, ActiveSkill, CommandDecision, next_step

LOADED = prowess.Catalog.from_sources([prowess.Source.inline("greet", "Greets.", "Say hello.")])["greet"].load()
READY = ActiveSkill(LOADED, ())
DECISION = CommandDecision("granted", "digest", None)
ENTRIES = (
    *(None, READY, READY._replace(stale=True)),
    *(READY._replace(commands_unrun=True), READY._replace(command_decision=DECISION)),
)


def state(**known: object) -> ActivationState:
    """Return the state of a skill that may be activated, with the given fields."""
    base = ActivationState(passes_filter=True, has_room=True, run=True, active=None)
    return base._replace(**known)  # type: ignore[arg-type]  # each test names fields of the state


@pytest.mark.parametrize(
    ("known", "step"),
    [
        ({}, "read"),
        ({"active": READY}, "keep"),
        ({"active": READY._replace(stale=True)}, "read"),
        ({"active": READY._replace(commands_unrun=True)}, "read"),
        ({"active": READY._replace(commands_unrun=True), "run": False}, "keep"),
        ({"active": READY._replace(stale=True), "run": False}, "read"),
        ({"active": READY._replace(command_decision=DECISION)}, "check-grant"),
        ({"active": READY._replace(command_decision=DECISION), "run": False}, "keep"),
        ({"active": READY._replace(command_decision=DECISION, gone=True)}, "keep"),
        ({"active": READY, "has_room": False}, "keep"),
        ({"has_room": False}, "refuse-full"),
        ({"is_read": True}, "remember"),
        ({"is_read": True, "has_room": False}, "refuse-full"),
        ({"is_read": True, "active": READY, "before": READY}, "remember"),
        ({"is_read": True, "active": READY, "before": None}, "keep"),
        ({"is_read": True, "active": READY._replace(stale=True), "before": None}, "remember"),
    ],
)
def test_each_state_has_one_next_step(known: dict[str, object], step: str) -> None:
    assert next_step(state(**known)) == step


def test_what_a_filter_hides_is_refused_in_every_state() -> None:
    for active, before in product(ENTRIES, ENTRIES):
        for run, is_read, has_room in product((False, True), repeat=3):
            known = {"active": active, "before": before, "run": run, "is_read": is_read, "has_room": has_room}
            assert next_step(state(passes_filter=False, **known)) == "refuse-filtered"
