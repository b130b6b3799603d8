"""Images and PDF documents, which models can see, as content blocks in the shape of each provider."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.tools.shapes import AnthropicMedia, McpMedia, OpenAIMedia, OpenAIResponsesMedia

PDF_TYPE = "application/pdf"
_PDF_END_LENGTH = 1_024
"""A PDF document has its end mark within this many characters of its end; strict readers refuse others."""
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", PDF_TYPE),
)


class Media(NamedTuple):
    """A file that models can see: its type and content, and the skill and the path that it was read from."""

    media_type: str
    base64: str
    skill: str
    path: str

    @property
    def name(self) -> str:
        """The name of the file, without its folders."""
        return self.path.rpartition("/")[2]

    @property
    def content(self) -> bytes:
        """The file itself."""
        return b64decode(self.base64)

    @property
    def url(self) -> str:
        """The file as a ``data:`` address."""
        return f"data:{self.media_type};base64,{self.base64}"

    def to_anthropic(self) -> AnthropicMedia:
        """Return a block for a ``tool_result`` of the Messages API."""
        source = {"type": "base64", "media_type": self.media_type, "data": self.base64}
        block = {"type": "document", "title": self.name} if self.media_type == PDF_TYPE else {"type": "image"}
        return cast("AnthropicMedia", {**block, "source": source})

    def to_openai(self) -> OpenAIMedia:
        """Return a part of a user's message for the Chat Completions API."""
        return (
            {"type": "file", "file": {"filename": self.name, "file_data": self.url}}
            if self.media_type == PDF_TYPE
            else {"type": "image_url", "image_url": {"url": self.url}}
        )

    def to_openai_responses(self) -> OpenAIResponsesMedia:
        """Return a part of a function's output for the Responses API."""
        return (
            {"type": "input_file", "filename": self.name, "file_data": self.url}
            if self.media_type == PDF_TYPE
            else {"type": "input_image", "image_url": self.url, "detail": "auto"}
        )

    def to_mcp(self) -> McpMedia:
        """Return a block of a tool's result for the Model Context Protocol."""
        if self.media_type == PDF_TYPE:
            uri = f"skill://{quote(self.skill, safe='')}/{quote(self.path)}"
            return {"type": "resource", "resource": {"uri": uri, "mimeType": self.media_type, "blob": self.base64}}
        return {"type": "image", "data": self.base64, "mimeType": self.media_type}


def detect_media_type(content: bytes) -> str:
    """Return the media type of a file that models can see, ``""`` for any other file.

    Only the first bytes count and never the name: a provider refuses a call with a block of the wrong type.
    """
    # WebP has its mark behind the length of the file, so no fixed beginning can tell it from other RIFF files.
    return (
        "image/webp"
        if content.startswith(b"RIFF") and content[8:12] == b"WEBP"
        else next((kind for signature, kind in _SIGNATURES if content.startswith(signature)), "")
    )


def is_pdf_text(text: str) -> bool:
    """Return whether a text is a whole PDF document that happens to consist of characters only.

    The end is checked too: a text about the format may begin like one, and providers refuse a broken document.
    """
    return text.startswith("%PDF-") and "%%EOF" in text[-_PDF_END_LENGTH:]


def find_media(data: Mapping[str, Any]) -> Media | None:
    """Return the file in the data of a result, or ``None`` when there is none that models can see."""
    return Media(data["media_type"], data["base64"], data["skill"], data["path"]) if "media_type" in data else None
