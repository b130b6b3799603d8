"""Who may call a skill: the keys, and the spellings of them that real files use."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from prowess.spec.frontmatter.fields import Frontmatter

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
    """Whether people may call it by name: unless ``user-invocable`` says no."""
    return not any(_has_value_in(front, key, _FALSE) for key in _USER_KEYS)


def is_model_invocable(front: Frontmatter) -> bool:
    """Whether models see it: unless ``disable-model-invocation`` says yes."""
    return not any(_has_value_in(front, key, _TRUE) for key in _MODEL_KEYS)


def is_true(text: str) -> bool:
    """Whether a value says yes, in any of the usual ways."""
    return text.strip().lower() in _TRUE


def _has_value_in(front: Frontmatter, key: str, words: frozenset[str]) -> bool:
    value = front.extra.get(key)
    return isinstance(value, str) and value.strip().lower() in words
