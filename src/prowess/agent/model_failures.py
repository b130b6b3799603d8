"""What goes wrong with a model: the errors of providers, of clients and the framework, in messages for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UsageLimitExceeded

from prowess.agent.api_keys import hide_keys
from prowess.errors import ModelError, SkillError
from prowess.text.redaction import scrub_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_ai.models import Model

_MAX_ERROR_CHARS = 500
_UNAUTHORIZED = frozenset((401, 403))
_CLIENTS = frozenset(("openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2", "anyio"))
"""The packages whose errors are about a provider or the network."""


def is_client_error(error: BaseException) -> bool:
    """Return whether an error, or what led to it, comes from a provider's client or from the network."""
    causes = tuple(_iter_causes(error))
    # A model may call a tool by half a character, which no client can send back.
    is_unsendable = any(isinstance(each, UnicodeEncodeError) for each in causes)
    return is_unsendable or any(type(each).__module__.split(".")[0] in _CLIENTS for each in causes)


def is_limit(error: BaseException) -> bool:
    """Return whether an error says that a run has reached its turns or its tokens."""
    return isinstance(error, UsageLimitExceeded)


def _read_message(error: Exception) -> str:
    """Return what an error says, without what the framework writes around the words of a server or of its own."""
    if isinstance(error, UnexpectedModelBehavior):
        return error.message
    if isinstance(error, ModelHTTPError) and isinstance(error.body, dict) and "message" in error.body:
        return str(error.body["message"])
    return str(error)


def _iter_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def explain_failure(error: Exception, model: Model) -> SkillError:
    """Return the error for people: what the model's server answered, or why the model cannot go on."""
    if isinstance(error, SkillError):
        return error
    ours = next((each for each in _iter_causes(error) if isinstance(each, SkillError)), None)
    if ours is not None:  # a scripted model raises our own
        return ours
    name = model.model_name
    said = hide_keys(scrub_text(" ".join(_read_message(error).split())))[:_MAX_ERROR_CHARS]
    if isinstance(error, ModelHTTPError):
        code = "no-model-key" if error.status_code in _UNAUTHORIZED else "model-failed"
        return ModelError(f"the server of {name} answered with status {error.status_code}: {said}", code=code)
    if isinstance(error, UnexpectedModelBehavior):
        return ModelError(f"{name} did not answer as a model should: {said}")
    if isinstance(error, ModelAPIError):
        return ModelError(f"{name} could not be reached, or its answer was cut: {said}")
    return ModelError(f"{name} failed: {said or type(error).__name__}")
