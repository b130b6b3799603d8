"""Escaping of what skills say, so that it can neither end the element around it nor begin another of that kind.

A model is a careless reader: it may take full-width brackets, or a tag with an invisible code point in it, for the tag
itself. So tags are searched in a folded form of the text: with compatible forms made equal (NFKC), without what nobody
sees, and without case. Letters of other scripts that only look alike are not taken for a tag.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from prowess.text.hidden_characters import STRIPPED_RANGES, strip_hidden, to_one_line
from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

CONTENT_TAG = "skill_content"
"""The element around instructions that a model has loaded."""
USER_CALL_TAG = "skill"
"""The element around instructions that a person has called."""

# The sign ``<``, and the two code points that are ``<`` after NFKC.
_AS_ENTITIES = {"<": "&lt;", "\ufe64": "&#xFE64;", "\uff1c": "&#xFF1C;"}
_IN_JSON = {"<": "\\u003c", "\ufe64": "\\ufe64", "\uff1c": "\\uff1c"}
_BRACKETS = f"[{''.join(_AS_ENTITIES)}]"
# In an attribute, what NFKC turns into a quotation mark or ``>`` could end the attribute or its tag as well.
_IN_ATTRIBUTE = str.maketrans(
    {
        **_AS_ENTITIES,
        "&": "&amp;",
        ">": "&gt;",
        '"': "&quot;",
        "\uff02": "&#xFF02;",
        "\ufe65": "&#xFE65;",
        "\uff1e": "&#xFF1E;",
    }
)
_SPECIAL = compile_pattern('[&<>"\ufe64\ufe65\uff02\uff1c\uff1e]')


def escape_xml(text: str) -> str:
    """Return ``text`` as the content of an element: a parser reads exactly ``text``, and nobody reads a tag."""
    # Single characters are found faster than a set of them, and nearly every string has none of these.
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    if not text.isascii():
        for bracket, entity in _AS_ENTITIES.items():
            text = text.replace(bracket, entity)
    return text


def escape_attribute(text: str) -> str:
    """Return ``text`` as the value of an attribute in double quotes, which may also be in an element."""
    return text.translate(_IN_ATTRIBUTE) if _SPECIAL.search(text) else text


def wrap_in_element(tag: str, name: str, text: str) -> str:
    """Return an element ``tag`` with the attribute ``name`` around ``text``, which then has no tag of that kind."""
    return f'<{tag} name="{escape_attribute(to_one_line(name))}">\n{neutralize_tags(text, tag)}</{tag}>'


def neutralize_tags(text: str, *tags: str) -> str:
    """Return ``text`` with an entity for each ``<`` that begins one of ``tags``.

    Without ``tags``, the tag around loaded instructions is meant. Text without such a tag is returned unchanged.
    """
    return _neutralize(text, tags or (CONTENT_TAG,), _AS_ENTITIES)


def neutralize_json(text: str) -> str:
    """Return JSON that means exactly what ``text`` means, without a tag of the element around loaded instructions."""
    return _neutralize(text, (CONTENT_TAG,), _IN_JSON)


def _neutralize(text: str, tags: tuple[str, ...], escapes: Mapping[str, str]) -> str:
    # Most strings hold no bracket and need no pattern: to compile one takes 10 ms.
    if not any(bracket in text for bracket in escapes):
        return text
    # Fast path of the bench row "load_skill, first call": nearly no string holds such a tag, and to fold one costs as
    # much as to read it. In ASCII the only bracket is a literal, which ``re`` finds ten times as fast as a set.
    if not _compile_quick_pattern(tags, "<" if text.isascii() else _BRACKETS).search(text):
        return text
    pattern = _compile_tag_pattern(tags)
    # A whole string is folded much faster than its characters one by one, so the slow way is only for real finds.
    if not pattern.search(_fold(text)):
        return text
    folded = [_fold_character(char) for char in text]
    # The index in the text of each folded character: one character may fold to several, or to none.
    origins = [index for index, piece in enumerate(folded) for _ in piece]
    brackets = {origins[match.start()] for match in pattern.finditer("".join(folded))}
    return "".join(escapes[char] if index in brackets else char for index, char in enumerate(text))


@cache
def _compile_tag_pattern(tags: tuple[str, ...]) -> re.Pattern[str]:
    # ``<skill-name>`` is a placeholder that people write, and no tag ``skill``: a name ends where XML says it does.
    return compile_pattern(rf"<[\s/]*(?:{'|'.join(tags)})(?![\w.:-])")


@cache
def _compile_quick_pattern(tags: tuple[str, ...], brackets: str) -> re.Pattern[str]:
    """Return a pattern that matches in every string whose folded form holds one of ``tags``, and in few others.

    A character outside ASCII may fold to anything, so that it counts as the rest of the tag. Hidden characters may
    occur anywhere.
    """
    hidden = f"[{STRIPPED_RANGES}]*+"
    end = f"(?!{hidden}[A-Za-z0-9_.:-])"
    names = "|".join(
        "".join(f"{hidden}(?:[^\x00-\x7f]|[{char}{char.upper()}]" for char in tag) + end + ")" * len(tag)
        for tag in tags
    )
    return compile_pattern(rf"{brackets}(?:[\s/]|[{STRIPPED_RANGES}])*+(?:{names})")


def _fold(text: str) -> str:
    from unicodedata import normalize

    return strip_hidden(normalize("NFKC", text)).casefold()


_fold_character = cache(_fold)  # at most as many entries as there are code points
