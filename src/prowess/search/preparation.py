"""Preparation of a library for search by meaning: which skills lack a vector, and the vectors that they get.

Vectors are kept as they are made, a batch at a time, so an interrupted preparation goes on where it ended. They count
only when every skill of the catalogue has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import SourceError
from prowess.progress_steps import report_steps
from prowess.search.encoder import load_installed_encoder, require_installed_encoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.literals import SearchMode, Semantic
    from prowess.search.encoder import Encoder
    from prowess.search.index_database import IndexRow
    from prowess.search.library_index import LibraryIndex
    from prowess.search.vectors import Vectors

_SKILLS_PER_BATCH = 64
_MAX_ROUNDS = 4  # skills whose files change while others are encoded are encoded in the next round

_warned_errors: set[str] = set()


def find_prepared_encoder(index: LibraryIndex, semantic: Semantic | Encoder) -> Encoder | None:
    """Return the encoder to search with; ``None`` when ``semantic`` is ``"auto"`` and the library is not prepared.

    Raises ``SourceError`` for another ``semantic`` when no encoder is installed (``missing-extra``), or when a skill
    lacks a vector of it (``search-not-prepared``).
    """
    if semantic == "auto":
        names = index.run(lambda: [name for name in index.list_encoders() if _has_all_vectors(index, name)])
        encoder = _load_or_warn() if names else None
        return encoder if encoder is not None and encoder.name in names else None
    encoder = require_installed_encoder() if isinstance(semantic, bool) else semantic
    if not index.run(lambda: _has_all_vectors(index, encoder.name)):
        message = f"the skills of the catalogue are not prepared for the encoder {encoder.name!r}"
        raise SourceError(message, code="search-not-prepared")
    return encoder


def prepare_library(index: LibraryIndex, semantic: Semantic | Encoder) -> SearchMode:
    """Index every skill, make the vectors that are missing, and return what a search goes by from now on.

    Raises ``SourceError`` (``missing-extra``) when ``semantic`` asks for meaning and no encoder is installed.
    """
    index.run(index.bring_up_to_date)
    if isinstance(semantic, bool):
        encoder = require_installed_encoder() if semantic else None
    else:
        encoder = load_installed_encoder() if semantic == "auto" else semantic
    if encoder is None or not index.run(lambda: index.databases):
        return "words"
    for _ in range(_MAX_ROUNDS):
        rows = index.run(lambda: index.find_vectorless_rows(encoder.name))
        batches = [rows[start : start + _SKILLS_PER_BATCH] for start in range(0, len(rows), _SKILLS_PER_BATCH)]
        for batch in report_steps(batches, lambda batch: f"encoding {batch[0].name}"):
            _encode_skills(index, encoder, batch)
        if not batches:
            break
        index.run(index.drop_unused_vectors)
    if index.lacks_file:
        _warn_once(
            "the cache folder cannot be written, so what was prepared for searches by meaning "
            "is lost when this process ends; PROWESS_CACHE_DIR can name another folder"
        )
    return "words+meaning" if index.run(lambda: _has_all_vectors(index, encoder.name)) else "words"


def _encode_skills(index: LibraryIndex, encoder: Encoder, rows: Sequence[IndexRow]) -> None:
    """Make the vectors of some skills and keep them; skills whose files have changed are indexed again instead."""
    from prowess.search import vectors

    texts = {row: index.library.read_text(row.name) for row in rows}
    current = {row: text for row, text in texts.items() if text is not None and text.hash() == row.text_hash}
    if current:
        encoded = vectors.encode_texts(encoder, [text.to_encode() for text in current.values()])
        packed = [(row.text_hash, vector) for row, vector in zip(current, encoded, strict=True)]
        index.run(lambda: index.put_vectors(packed, encoder.name))
    index.run(lambda: index.refresh([row.name for row in rows if row not in current]))


def _has_all_vectors(index: LibraryIndex, encoder: str) -> bool:
    index.bring_up_to_date()
    return index.has_all_vectors(encoder)


def _load_or_warn() -> Encoder | None:
    """Return the installed encoder. Where it cannot be loaded, the log says so once, and words must do."""
    try:
        return load_installed_encoder()
    except SourceError as error:
        _warn_once(f"searching by words alone: {error.message}")
        return None


def encode_or_warn(encoder: Encoder, request: str) -> Vectors | None:
    """Return the vector of a request. Where the installed encoder fails, the log says so once, and words must do."""
    try:
        vector: Vectors = encoder.encode_requests([request])[0]
    except Exception as error:  # noqa: BLE001 - an optional part, without which every search works
        _warn_once(f"searching by words alone: the encoder {encoder.name!r} failed: {type(error).__name__}: {error}")
        return None
    return vector


def _warn_once(message: str) -> None:
    if message not in _warned_errors:
        import logging

        _warned_errors.add(message)
        logging.getLogger("prowess").warning("%s", message)
