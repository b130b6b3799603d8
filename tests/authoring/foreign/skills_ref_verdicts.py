"""What skills-ref says: of each folder that is named on a line of the input, or of each text there, one line of JSON.

A line of the input is JSON: ``{"folder": path}`` or ``{"text": the bytes of a SKILL.md as latin-1}``, without a folder.
"""

from __future__ import annotations

import io
import json
import sys
import warnings
from pathlib import Path

from skills_ref.parser import parse_frontmatter
from skills_ref.validator import validate, validate_metadata


def messages_about(asked: dict[str, str]) -> list[str]:
    """Its messages; an exception that leaves it ends its program with a failure, so that is a refusal as well."""
    try:
        if "folder" in asked:
            return list(validate(Path(asked["folder"])))
        text = io.TextIOWrapper(io.BytesIO(asked["text"].encode("latin-1")), encoding="utf-8").read()
        fields, _ = parse_frontmatter(text)
        return list(validate_metadata(fields))
    except Exception as error:  # noqa: BLE001 - arbitrary files
        return [f"{type(error).__name__}: {error}"]


warnings.simplefilter("ignore")
for line in sys.stdin:
    print(json.dumps(messages_about(json.loads(line))), flush=True)  # noqa: T201 - its answer
