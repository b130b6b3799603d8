"""The models of the agent: a provider's, one at an address, or a script; and messages for their errors."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UsageLimitExceeded, UserError
from pydantic_ai.models import infer_model

from prowess.agent.api_keys import hide_keys
from prowess.agent.scripted_model import load_scripted_model
from prowess.errors import ModelError, ResourceError, SkillError
from prowess.files.tree import hash_file
from prowess.limits import DEFAULT_LIMITS
from prowess.text.redaction import hide_secrets, scrub_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import httpx2
    from pydantic_ai.models import Model

    from prowess.limits import Limits

SCRIPTED = "scripted:"
"""What the name of a model begins with that plays a script."""
KEY_VARIABLE = "PROWESS_API_KEY"
"""The variable with the key for a server that ``--base-url`` names. The key of another provider is never sent there."""

_VARIABLE = re.compile(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`")


class ModelChoice(NamedTuple):
    """A model by the words that name it, from which it can be made again and again."""

    name: str
    base_url: str = ""

    def make(self) -> Model:
        """Return a new model, as ``make_model`` does; a script begins with its first turn again."""
        return make_model(self.name, self.base_url)

    def identify(self) -> str:
        """Return a string that identifies the model: two choices have equal strings when they mean one model.

        It has the name and the address of the model. For a script it has the digest of the file, so that an edited
        script is another model. Raises ``ModelError`` (``bad-script``) for a script that cannot be read.
        """
        if not self.name.startswith(SCRIPTED):
            return f"{self.name} {hide_secrets(self.base_url)}"
        folder, file = os.path.split(os.path.abspath(self.name.removeprefix(SCRIPTED)))
        try:
            return SCRIPTED + hash_file(folder, (file,), DEFAULT_LIMITS.max_file_bytes).sha256
        except ResourceError as error:
            raise ModelError(f"cannot read the script of the model: {error.message}", file, "bad-script") from None


def make_model(name: str, base_url: str = "") -> Model:
    """Return the model that a name means: ``provider:name``, ``scripted:FILE``, or any name with ``base_url``.

    ``base_url``: the address of a server that speaks OpenAI's Chat Completions. Nothing is sent yet. Raises
    ``ModelError``: ``no-model`` without a name, ``bad-model`` for a name that means no model, ``no-model-key`` where a
    key is missing, ``bad-script`` for a script that cannot be played.
    """
    if not name:
        raise ModelError("no model is set", code="no-model")
    if name.startswith(SCRIPTED):
        return load_scripted_model(name.removeprefix(SCRIPTED))
    if base_url:
        return _make_compatible_model(name, base_url)
    try:
        return infer_model(name)
    except ImportError as error:  # the extra brings two providers; the message names the package of this one
        raise ModelError(f"model {name!r} needs another package: {error}", code="bad-model") from None
    except (UserError, ValueError) as error:
        raise _explain_refusal(name, str(error)) from None


def _make_compatible_model(name: str, base_url: str) -> Model:
    try:
        address = urlsplit(base_url)
    except ValueError:  # such as a bracket that is not closed
        address = urlsplit("")
    if address.scheme not in {"http", "https"} or not address.hostname:
        raise ModelError(f"{hide_secrets(base_url)!r} is not the address of a server", code="bad-model")
    if "@" in address.netloc or address.query or address.fragment:  # a server may repeat them, and transcripts are kept
        message = (
            f"{hide_secrets(base_url)!r} holds a user, a query or a fragment: put the key into {KEY_VARIABLE} instead"
        )
        raise ModelError(message, code="bad-model")
    # Their import takes a second, and a script needs none of it.
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    provider = OpenAICompatibleProvider(address.hostname, base_url=base_url, api_key=os.environ.get(KEY_VARIABLE))
    # The client takes these from variables of OpenAI, as it would take the key.
    provider.client.organization = provider.client.project = None
    return OpenAIChatModel(name.removeprefix("openai:"), provider=provider)


def _explain_refusal(name: str, message: str) -> ModelError:
    """Return the error for a name that the framework refuses; its message names the variable that is missing."""
    provider = name.partition(":")[0]
    variables = list(dict.fromkeys(_VARIABLE.findall(message)))
    if variables:
        return ModelError(f"there is no key for {provider}: set {' or '.join(variables)}", code="no-model-key")
    return ModelError(f"{name!r} is not a model: {message}", code="bad-model")


_MAX_ERROR_CHARS = 500
_UNAUTHORIZED = frozenset((401, 403))
_BAD_REQUEST, _SERVER_ERROR = 400, 500
_TEMPORARY = frozenset((408, 409, 425, 429))
"""Statuses of a refusal that another try may not meet."""
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
        return _explain_status(f"the server of {name} answered with status {error.status_code}: {said}", error, model)
    if isinstance(error, UnexpectedModelBehavior):
        return ModelError(f"{name} did not answer as a model should: {said}")
    if isinstance(error, ModelAPIError):
        return ModelError(f"{name} could not be reached, or its answer was cut: {said}")
    return ModelError(f"{name} failed: {said or type(error).__name__}")


def _explain_status(message: str, error: ModelHTTPError, model: Model) -> ModelError:
    status = error.status_code
    if status in _UNAUTHORIZED:
        variable = _name_key_variable(model)
        return ModelError(f"{message} (the key is in {variable})" if variable else message, code="no-model-key")
    is_refused = _BAD_REQUEST <= status < _SERVER_ERROR and status not in _TEMPORARY
    return ModelError(message, code="model-refused" if is_refused else "model-failed")


def _name_key_variable(model: Model) -> str:
    """Return the name of the variable with the key for a model's server; ``""`` for a model without a server."""
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    if isinstance(model.provider, OpenAICompatibleProvider):
        return KEY_VARIABLE
    return "" if model.provider is None else f"{model.system.partition('-')[0].upper()}_API_KEY"


_MAX_BYTES_PER_CHAR = 12  # a character outside the basic plane, escaped in JSON


@contextmanager
def bound_answers(model: Model, limits: Limits) -> Iterator[None]:
    """Bound each answer of the model's server, before anything is made of it, until the block ends.

    A redirect to another server raises ``ModelError``, since that one would get the conversation and perhaps the key.
    So does an answer that is larger than ``limits`` allow, or has too long a line. All this counts for child agents
    too. A model without a client of its own, such as a scripted one, is left as it is.
    """
    import httpx2

    client = getattr(model.provider, "_own_http_client", None)
    if not isinstance(client, httpx2.AsyncClient):
        yield
        return

    async def refuse_compression(request: httpx2.Request) -> None:
        request.headers["accept-encoding"] = "identity"  # otherwise a kilobyte can become a megabyte in memory

    async def check_answer(response: httpx2.Response) -> None:
        if response.has_redirect_location:
            here, there = response.url, response.url.join(response.headers["location"])
            if (here.scheme, here.host, here.port) != (there.scheme, there.host, there.port):
                raise ModelError(f"the server of the model redirects to another server, {hide_secrets(str(there))}")
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise ModelError("the server of the model compressed its answer, which it was not asked to")
        response.stream = _make_bounded_stream(response, limits)

    client.event_hooks["request"].append(refuse_compression)
    client.event_hooks["response"].append(check_answer)
    try:
        yield
    finally:
        client.event_hooks["request"].remove(refuse_compression)
        client.event_hooks["response"].remove(check_answer)


def _make_bounded_stream(response: httpx2.Response, limits: Limits) -> httpx2.AsyncByteStream:
    import httpx2

    body, most = response.stream, limits.max_model_answer_bytes
    most_in_line = min(most, _MAX_BYTES_PER_CHAR * limits.max_model_answer_chars)

    class BoundedStream(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            received = in_line = 0
            async for piece in body:  # type: ignore[union-attr]  # an asynchronous client has no other streams
                received += len(piece)
                end = piece.rfind(b"\n")
                in_line = in_line + len(piece) if end < 0 else len(piece) - end - 1
                if received > most:
                    raise ModelError(f"the server of the model sent an answer of more than {most:,} bytes")
                if in_line > most_in_line:
                    raise ModelError(f"the server of the model sent a line of more than {most_in_line:,} bytes")
                yield piece

        async def aclose(self) -> None:
            await body.aclose()  # type: ignore[union-attr]  # see above

    return BoundedStream()
