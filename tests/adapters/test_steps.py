"""Conversations of a framework that runs several calls in one step, all of which begin with the same checkpoint."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from prowess.adapters.core import SkillsAdapter
from tests.adapters.skill_library import write_library

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("is_async", [False, True])
def test_calls_of_one_step_do_not_undo_each_other(tmp_path: Path, *, is_async: bool) -> None:
    conversations = SkillsAdapter(write_library(tmp_path)).conversations
    saved = conversations.open("one").save()
    for name in ("greet", "careful"):
        conversation = (
            asyncio.run(conversations.aopen("one", saved, "step 1"))
            if is_async
            else conversations.open("one", saved, "step 1")
        )
        conversation.call("load_skill", {"name": name})
        conversation.save()
    assert conversations.open("one", saved, "step 1").session.active_skills == ("careful", "greet")


def test_another_step_with_an_earlier_save_goes_back(tmp_path: Path) -> None:
    conversations = SkillsAdapter(write_library(tmp_path)).conversations
    conversation = conversations.open("one", "", "step 1")
    begun = conversation.save()
    conversation.call("load_skill", {"name": "greet"})
    conversation.save()
    assert conversations.open("one", begun, "step 2").session.active_skills == ()
