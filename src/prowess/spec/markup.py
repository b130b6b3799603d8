"""Text of skills inside the elements that we put around it: it cannot end them, nor begin others of their kind.

A model is a careless reader: it may take full-width brackets, or a tag with an invisible code point in it, for the tag
itself. So tags are looked for in the text with compatible forms made alike (NFKC), without what nobody sees, and
without case. Letters of other scripts that only look alike are not taken for a tag.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

from prowess.spec.hidden_characters import STRIPPED_RANGES, strip_hidden, to_one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTENT_TAG = "skill_content"
"""The element around instructions that a model has loaded."""
USER_CALL_TAG = "skill"
"""The element around instructions that a person has called."""

# ``<``, and the two code points that are ``<`` after NFKC.
_AS_ENTITIES = {"<": "&lt;", "\ufe64": "&#xFE64;", "\uff1c": "&#xFF1C;"}
_IN_JSON = {"<": "\\u003c", "\ufe64": "\\ufe64", "\uff1c": "\\uff1c"}
_BRACKETS = f"[{''.join(_AS_ENTITIES)}]"
_IN_ELEMENT = str.maketrans({"&": "&amp;", ">": "&gt;", **_AS_ENTITIES})
# In an attribute whatever becomes a quotation mark or ``>`` could end the attribute or its tag as well.
_IN_ATTRIBUTE = {
    **_IN_ELEMENT,
    **str.maketrans({'"': "&quot;", "\uff02": "&#xFF02;", "\ufe65": "&#xFE65;", "\uff1e": "&#xFF1E;"}),
}
_SPECIAL = re.compile('[&<>"\ufe64\ufe65\uff02\uff1c\uff1e]')


def escape_xml(text: str) -> str:
    """``text`` as the content of an element: a parser reads exactly ``text``, and nobody reads a tag."""
    return text.translate(_IN_ELEMENT) if _SPECIAL.search(text) else text


def escape_attribute(text: str) -> str:
    """``text`` as the value of an attribute in double quotes; right as the content of an element too."""
    return text.translate(_IN_ATTRIBUTE) if _SPECIAL.search(text) else text


def wrap_in_element(tag: str, name: str, text: str) -> str:
    """An element ``tag`` with the attribute ``name`` around ``text``, in which no tag of that element is left."""
    return f'<{tag} name="{escape_attribute(to_one_line(name))}">\n{neutralize_tags(text, tag)}</{tag}>'


def neutralize_tags(text: str, *tags: str) -> str:
    """``text`` in which each ``<`` that begins one of ``tags`` (none: that around loaded instructions) is an entity.

    Text without such a tag is returned as it is, byte for byte.
    """
    return _neutralize(text, tags or (CONTENT_TAG,), _AS_ENTITIES)


def neutralize_json(text: str) -> str:
    """JSON text that means exactly what ``text`` means, without a tag of the element around loaded instructions."""
    return _neutralize(text, (CONTENT_TAG,), _IN_JSON)


def _neutralize(text: str, tags: tuple[str, ...], escapes: Mapping[str, str]) -> str:
    # Fast path of the bench row "load_skill, first call": nearly no text holds such a tag, and to fold a text costs as
    # much as to read it. In ASCII the one bracket is a literal, which ``re`` finds ten times as fast as one of three.
    if not _compile_quick_pattern(tags, "<" if text.isascii() else _BRACKETS).search(text):
        return text
    pattern = _compile_tag_pattern(tags)
    # Whole strings are folded much faster than single characters.
    if not pattern.search(_fold(text)):
        return text
    folded = [_fold_character(char) for char in text]
    places = [place for place, piece in enumerate(folded) for _ in piece]
    begins = {places[match.start()] for match in pattern.finditer("".join(folded))}
    return "".join(escapes[char] if place in begins else char for place, char in enumerate(text))


@cache
def _compile_tag_pattern(tags: tuple[str, ...]) -> re.Pattern[str]:
    # ``<skill-name>`` is a placeholder that people write, and no tag of ``skill``: what XML allows in names goes on.
    return re.compile(rf"<[\s/]*(?:{'|'.join(tags)})(?![\w.:-])")


@cache
def _compile_quick_pattern(tags: tuple[str, ...], brackets: str) -> re.Pattern[str]:
    """A pattern that matches in every text whose folded form holds one of ``tags``, and in few others.

    What is not ASCII may fold to anything and thus ends the search; what is hidden may stand anywhere.
    """
    hidden = f"[{STRIPPED_RANGES}]*+"
    end = f"(?!{hidden}[A-Za-z0-9_.:-])"
    names = "|".join(
        "".join(f"{hidden}(?:[^\x00-\x7f]|[{char}{char.upper()}]" for char in tag) + end + ")" * len(tag)
        for tag in tags
    )
    return re.compile(rf"{brackets}(?:[\s/]|[{STRIPPED_RANGES}])*+(?:{names})")


def _fold(text: str) -> str:
    return strip_hidden(unicodedata.normalize("NFKC", text)).casefold()


_fold_character = cache(_fold)  # at most as many entries as there are code points
