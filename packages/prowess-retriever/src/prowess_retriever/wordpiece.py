"""Text to token ids: the WordPiece tokenizer of BERT, uncased.

It gives the ids that the package ``tokenizers`` gives for the vocabulary of all-MiniLM-L6-v2. Only characters that came
into Unicode after version 8 may differ, because each takes the classes of characters from the Unicode of its own
language. It is written here because that package installs a client for downloads, which an offline package should not
bring along.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

UNKNOWN, START, END = "[UNK]", "[CLS]", "[SEP]"
_SPECIAL = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])")
_LONGEST_WORD = 100
"""Characters beyond which BERT takes a word for unknown."""
_MOST_WORDS_KEPT = 50_000
"""Split words that are remembered; the memory is emptied when it is full, so that it stays at a few megabytes."""
_IDEOGRAPHS = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F)),
    *((0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)
"""The ranges that BERT splits into single characters."""


class Tokenizer:
    """Splits texts into the ids of a vocabulary, whose tokens come in the order of their ids.

    ``start`` and ``end`` are the ids of the marks around each text. A tokenizer may be shared by threads. Raises
    ``KeyError`` when the vocabulary lacks a mark.
    """

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self._ids = {token: number for number, token in enumerate(vocabulary)}
        self._unknown, self.start, self.end = (self._ids[token] for token in (UNKNOWN, START, END))
        self._letters = _Letters()
        self._splits: dict[str, list[int]] = {}

    def encode(self, text: str, length: int) -> list[int]:
        """Return the ids of ``text`` between the marks of its start and its end, cut at ``length`` ids in all."""
        ids = [self.start]
        # A line break always separates words, and only the first few lines of a long text matter.
        for line in text.split("\n"):
            for word in self._words(line):
                ids += self._split_word(word)
            if len(ids) >= length:
                break
        return [*ids[: length - 1], self.end]

    def _words(self, line: str) -> Iterator[str]:
        """The words of a line; the names of the special tokens are words of their own, also where they are written."""
        for number, part in enumerate(_SPECIAL.split(line)):
            if number % 2:
                yield part
            else:
                yield from part.translate(self._letters).split()

    def _split_word(self, word: str) -> list[int]:
        known = self._ids.get(word)
        if known is not None:
            return [known]
        pieces = self._splits.get(word)
        if pieces is None:
            if len(self._splits) >= _MOST_WORDS_KEPT:
                self._splits.clear()
            pieces = self._splits[word] = self._find_pieces(word)
        return pieces

    def _find_pieces(self, word: str) -> list[int]:
        """The longest piece that begins the word, then the longest that goes on, and so forth."""
        if len(word) > _LONGEST_WORD:
            return [self._unknown]
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self._ids.get(prefix + word[start:end])
                if piece is not None:
                    pieces.append(piece)
                    start = end
                    break
            else:
                return [self._unknown]
        return pieces


class _Letters(dict[int, str]):
    """What each character becomes, for ``str.translate``: each is worked out when it first occurs.

    BERT cleans a text in several passes: it drops control characters, sets ideographs apart, takes accents off, lowers
    letters, and sets punctuation apart. Each pass looks at single characters, so one table does the same in one pass.
    """

    def __missing__(self, code: int) -> str:
        text = self[code] = _clean_character(chr(code))
        return text


def _clean_character(character: str) -> str:
    if character in "\t\n\r" or unicodedata.category(character) in {"Zs", "Zl", "Zp"}:
        return " "
    if character == "\ufffd" or unicodedata.category(character) in {"Cc", "Cf", "Co", "Cs"}:
        return ""
    parts = [_lower_part(part) for part in unicodedata.normalize("NFD", character)]
    cleaned = "".join(parts)
    return f" {cleaned} " if _is_ideograph(ord(character)) else cleaned


def _lower_part(part: str) -> str:
    if unicodedata.category(part) == "Mn":
        return ""
    if _is_punctuation(part):
        return f" {part} "
    return part.lower()


def _is_punctuation(character: str) -> bool:
    """True for Unicode's punctuation and for every ASCII character that is neither letter, digit nor blank."""
    if character.isascii():
        return not character.isalnum() and character.isprintable() and character != " "
    return unicodedata.category(character).startswith("P")


def _is_ideograph(code: int) -> bool:
    return any(first <= code <= last for first, last in _IDEOGRAPHS)
