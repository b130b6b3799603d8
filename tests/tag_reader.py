"""How a careless reader sees the tags around instructions: what tests of hostile text look for."""

from __future__ import annotations

import re
import unicodedata


def seen(text: str) -> str:
    """The text as a careless reader takes it: compatible forms made alike, nothing invisible, no case."""
    alike = unicodedata.normalize("NFKC", text)
    return "".join(
        char
        for char in alike
        if unicodedata.category(char) not in {"Cf", "Cs"}
        and not (unicodedata.category(char) == "Cc" and not char.isspace())
        and not 0xFE00 <= ord(char) <= 0xFE0F
        and not 0xE0000 <= ord(char) <= 0xE01EF
        and char not in "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u3164"
    ).casefold()


def tags_in(text: str, tag: str = "skill_content") -> list[str]:
    """The tags with that name in the order of the text: ``<`` or ``</`` each."""
    return ["</" if "/" in match else "<" for match in re.findall(rf"<([\s/]*){tag}(?![\w.:-])", seen(text))]


WHOLE = ["<", "</"]
