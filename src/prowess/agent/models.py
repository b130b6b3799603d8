"""The models of the agent, by the names that people write: a provider's, one at an address, or a script."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import infer_model

from prowess.agent.scripted_model import load_scripted_model
from prowess.errors import ModelError, ResourceError
from prowess.files.tree import hash_file
from prowess.limits import DEFAULT_LIMITS
from prowess.text.redaction import hide_secrets

if TYPE_CHECKING:
    from pydantic_ai.models import Model

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
