"""Markdown of skills as HTML that does nothing: no script, no style, and nothing that is loaded from elsewhere."""

from __future__ import annotations

from posixpath import normpath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from prowess.text.escapes import escape_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Any

    from markdown_it.rules_core import StateCore

    FileLink = Callable[[str], str]
    """A function that returns the address of the page, or of the image, of a file of the skill."""

_TAGS = {
    *("p", "br", "hr", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s", "a"),
    *("table", "thead", "tbody", "tr", "th", "td", "img"),
}
_ATTRIBUTES = {"a": {"href", "title"}, "img": {"src", "alt", "title"}, "ol": {"start"}}
_LINKED_SCHEMES = {"http", "https", "mailto"}
_IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_LOWEST_LEVEL = 6
_LEVELS_BELOW_PAGE = 2
"""The page has the first two levels of headings for itself."""

_MAX_NESTING = 60
# A person must see all that a model reads. So raw HTML, comments included, and definitions of links stay text:
# Markdown would show neither, and both are places to hide instructions in.
_PARSER = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_NESTING})
_PARSER.enable(["table", "strikethrough"]).disable("reference")
_MAX_BRACKET_WORK = 2_000_000
"""Characters that the parser may look at for the ends of links: for each bracket, all of its paragraph at worst."""


def _parse_inline(state: StateCore) -> None:
    """Parse the paragraphs; once the brackets in them are too much work, a paragraph stays as it is written."""
    work = 0
    for token in state.tokens:
        if token.type == "inline":
            work += token.content.count("[") * len(token.content)
            if work > _MAX_BRACKET_WORK:
                token.children = [Token("text", "", 0, content=token.content)]
            else:
                token.children = []
                state.md.inline.parse(token.content, state.md, state.env, token.children)


_PARSER.core.ruler.at("inline", _parse_inline)


def render_markdown(text: str, files: Collection[str], link_file: FileLink, link_image: FileLink) -> Markup:
    """Return Markdown of a skill as HTML.

    A link to one of ``files``, the paths of the skill's files, leads to the page of that file, and an image among them
    is shown. An image from elsewhere becomes text, so that nothing is loaded, and so do other relative links. Markdown
    that is nested too deeply, and paragraphs with too many brackets, are returned as they are written.
    """
    tokens = _PARSER.parse(escape_text(text))
    if any(token.level >= _MAX_NESTING - 2 for token in tokens):  # below that, the parser leaves text out
        return Markup("<pre>{}</pre>").format(escape_text(text))
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(_LOWEST_LEVEL, int(token.tag[1]) + _LEVELS_BELOW_PAGE)}"
        if token.children:
            token.children = list(_rewrite_inline(token.children, files, link_file, link_image))
    html = _PARSER.renderer.render(tokens, _PARSER.options, {})
    own = {link(path) for path in files for link in (link_file, link_image)}

    def keep_attribute(tag: str, name: str, value: str) -> str | None:
        if (tag, name) == ("img", "src"):
            return value if value in own else None
        if (tag, name) == ("a", "href"):
            return value if value in own or urlsplit(value).scheme in _LINKED_SCHEMES else None
        return value

    # A second wall: were there a mistake above or in the parser, this lets only these tags and attributes through.
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        attribute_filter=keep_attribute,
        url_schemes=_LINKED_SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(clean)  # noqa: S704 - it has just been cleaned


def _rewrite_inline(
    children: Iterable[Token], files: Collection[str], link_file: FileLink, link_image: FileLink
) -> Iterable[Token]:
    """Yield the parts of a paragraph with links that lead to pages of the console, or nowhere."""
    closing: list[bool] = []
    for token in children:
        if token.type == "image":
            yield from _rewrite_image(token, files, link_image)
        elif token.type == "link_open":
            target = _find_target(str(token.attrGet("href") or ""), files, link_file)
            closing.append(bool(target))
            if target:
                token.attrSet("href", target)
                yield token
        elif token.type == "link_close":
            if closing.pop():
                yield token
        else:
            yield token


def _rewrite_image(token: Token, files: Collection[str], link_image: FileLink) -> Iterable[Token]:
    source = str(token.attrGet("src") or "")
    path = _find_file(source, files)
    if path and path.lower().endswith(_IMAGE_ENDINGS):
        token.attrSet("src", link_image(path))
        yield token
        return
    yield Token("text", "", 0, content=f"[image: {token.content or source}, at {source}]")


def _find_target(href: str, files: Collection[str], link_file: FileLink) -> str:
    """Return where a link leads: to the page of a file, to the web, or nowhere (``""``)."""
    path = _find_file(href, files)
    if path:
        return link_file(path)
    try:
        return href if urlsplit(href).scheme in _LINKED_SCHEMES else ""
    except ValueError:
        return ""


def _find_file(href: str, files: Collection[str]) -> str:
    """Return the file of the skill that a relative address names; ``""`` when there is none."""
    try:
        parts: Any = urlsplit(href)
    except ValueError:
        return ""
    if parts.scheme or parts.netloc or not parts.path:
        return ""
    path = normpath(unquote(parts.path))
    return path if path in files else ""
