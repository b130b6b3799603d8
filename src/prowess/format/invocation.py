"""Who may call a skill, people or models, by the keys of its frontmatter and the spellings that real files use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prowess.format.frontmatter.fields import Frontmatter

_FALSE = frozenset(("false", "no", "off", "0", "n", "f"))
_TRUE = frozenset(("true", "yes", "on", "1", "y", "t"))
_USER_KEYS = (
    "user-invocable",
    "user-invokable",
    "user_invocable",
    "user-invokeable",
    "user_invokable",
    "userInvocable",
)
_MODEL_KEYS = ("disable-model-invocation", "disable_model_invocation", "disableModelInvocation")


def is_user_invocable(front: Frontmatter) -> bool:
    """Return whether people may call the skill by its name: they may unless ``user-invocable`` says no."""
    return not any(_has_value_in(front, key, _FALSE) for key in _USER_KEYS)


def is_model_invocable(front: Frontmatter) -> bool:
    """Return whether models see the skill: they do unless ``disable-model-invocation`` says yes."""
    return not any(_has_value_in(front, key, _TRUE) for key in _MODEL_KEYS)


def is_true(text: str) -> bool:
    """Return whether a value says yes in one of the usual ways, in any case: ``true``, ``yes``, ``on``, ``1``."""
    return text.strip().lower() in _TRUE


def _has_value_in(front: Frontmatter, key: str, words: frozenset[str]) -> bool:
    # Only words that clearly say yes or no count: an unclear value must not hide a skill from anybody.
    value = front.extra.get(key)
    return isinstance(value, str) and value.strip().lower() in words
