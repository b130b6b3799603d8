"""Who may call a skill, in every spelling that real files use."""

from __future__ import annotations

import pytest

from prowess.format.frontmatter.fields import build_frontmatter, is_model_invocable, is_user_invocable

USER_KEYS = ["user-invocable", "user-invokable", "user_invocable", "user-invokeable", "user_invokable", "userInvocable"]
MODEL_KEYS = ["disable-model-invocation", "disable_model_invocation", "disableModelInvocation"]


def test_both_may_call_a_skill_that_says_nothing() -> None:
    front = build_frontmatter({"name": "a"})
    assert is_user_invocable(front)
    assert is_model_invocable(front)


@pytest.mark.parametrize("key", USER_KEYS)
@pytest.mark.parametrize(
    ("word", "expected"), [("false", False), ("No", False), (" off ", False), ("true", True), ("", True)]
)
def test_people_may_call_a_skill_unless_the_key_says_no(key: str, word: str, expected: bool) -> None:
    front = build_frontmatter({key: word})
    assert is_user_invocable(front) is expected
    assert is_model_invocable(front)


@pytest.mark.parametrize("key", MODEL_KEYS)
@pytest.mark.parametrize(
    ("word", "expected"), [("true", False), ("YES", False), ("1", False), ("false", True), ("", True)]
)
def test_models_see_a_skill_unless_the_key_says_yes(key: str, word: str, expected: bool) -> None:
    front = build_frontmatter({key: word})
    assert is_model_invocable(front) is expected
    assert is_user_invocable(front)


@pytest.mark.parametrize("key", [*USER_KEYS, *MODEL_KEYS])
def test_a_value_that_is_not_text_decides_nothing(key: str) -> None:
    front = build_frontmatter({key: ["true", "false"]})
    assert is_user_invocable(front)
    assert is_model_invocable(front)
