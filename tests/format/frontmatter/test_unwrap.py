"""Frontmatter in the wrong place is found, with the body that belongs to it."""

from __future__ import annotations

import pytest

from prowess.errors import InvalidFrontmatterError, NoFrontmatterError, UnterminatedFrontmatterError
from prowess.format.frontmatter.parse import needs_more_bytes, parse_head

FRONT = "---\nname: a\ndescription: b\n---\n"


@pytest.mark.parametrize(
    ("text", "code", "line", "body"),
    [
        (f"<!-- c -->\n{FRONT}body", "repaired-comment", 2, "body"),
        (f"<!-- c -->{FRONT}body", "repaired-comment", 1, "body"),
        (f"\n<!-- one\ntwo -->\n\n<!-- three -->\n{FRONT}body", "repaired-comment", 6, "body"),
        (f"<!--\n{FRONT}-->\nbody", "repaired-comment", 2, "body"),
        (f"<!--\n{FRONT}\n-->\n\nbody", "repaired-comment", 2, "\nbody"),
        (f"\ufeff<!-- c -->\n{FRONT}body", "repaired-comment", 2, "body"),
        (f"```yaml\n{FRONT}```\nbody", "repaired-code-fence", 2, "body"),
        (f"```\n{FRONT}```\n\nbody", "repaired-code-fence", 2, "\nbody"),
        (f"~~~ markdown\n{FRONT}body", "repaired-code-fence", 2, "body"),
        (f"````md\n{FRONT}body\n````\n", "repaired-code-fence", 2, "body\n````\n"),
        ("---\nname: a\ndescription: b\n---# Title\nbody", "repaired-glued-dashes", 4, "# Title\nbody"),
        ("---\nname: a\ndescription: b\n--- # Title\nbody", "repaired-glued-dashes", 4, "# Title\nbody"),
        ("---\nname: a\ndescription: b\n---## Title\nx\n---\ny", "repaired-glued-dashes", 4, "## Title\nx\n---\ny"),
        ("\ufeff\n---\nname: a\ndescription: b\n---# Title\nbody", "repaired-glued-dashes", 5, "# Title\nbody"),
        ("---\n  name: a\n  description: b\n  ---\nbody", "repaired-indentation", 1, "body"),
        ("---\n  name: a\n\n  description: b\n  ---\n  body\n---\nx", "repaired-indentation", 1, "  body\n---\nx"),
        ("  ---\n  name: a\n  description: b\n  ---\nbody", "repaired-indentation", 1, "body"),
        ("\ufeff\n\t---\n\tname: a\n\tdescription: b\n\t---", "repaired-indentation", 2, ""),
        (" ---  \r\n \tname: a\r\n \tdescription: b\r\n \t--- \r\nbody", "repaired-indentation", 1, "body"),
        ("---\r\nname: a\r\ndescription: b\r\n---# Title\r\nbody", "repaired-glued-dashes", 4, "# Title\r\nbody"),
    ],
)
def test_misplaced_frontmatter_is_found_with_its_body(text: str, code: str, line: int, body: str) -> None:
    head = text.encode()
    found = parse_head(head, lenient=True, repair=True)
    assert (found.front.name, found.front.description) == ("a", "b")
    assert [(i.code, i.line, i.severity) for i in found.issues] == [(code, line, "warning")]
    assert head[found.body_offset :].decode() == body


@pytest.mark.parametrize(
    "text",
    [
        f"<!-- c -->\n{FRONT}body",
        f"```\n{FRONT}```\nbody",
        "---\nname: a\ndescription: b\n---# Title\nbody",
        "---\n  name: a\n  description: b\n  ---\nbody",
        "  ---\n  name: a\n  description: b\n  ---\nbody",
    ],
)
def test_without_repair_misplaced_frontmatter_is_refused(text: str) -> None:
    with pytest.raises((NoFrontmatterError, UnterminatedFrontmatterError)):
        parse_head(text.encode(), lenient=True)


@pytest.mark.parametrize(
    "text",
    [
        f"# Title\n{FRONT}",
        f"text <!-- c -->\n{FRONT}",
        f"<!-- never closed\n{FRONT.replace('---', '--')}",
        "<!-- c -->\n# Title\n",
        "```\ncode\n```\n",
        "```yaml\nname: a\n```\n",
        "<!-- c -->",
        "<!--",
        "```",
        "  ---\nname: a\ndescription: b\n---\n",
        "  ---\n  name: a\nmargin\n  ---\n",
        "  ---\n  name: a\n  description: b\n",
        "    ---\n  name: a\n  description: b\n  ---\n",
    ],
)
def test_text_that_is_not_frontmatter_is_not_taken_for_it(text: str) -> None:
    with pytest.raises(NoFrontmatterError):
        parse_head(text.encode(), lenient=True, repair=True)


@pytest.mark.parametrize("text", [f"<!-- {'c' * 5000} -->\n{FRONT}body", f"<!--\n---\nx: {'y' * 5000}\n---\n-->\n"])
def test_a_long_wrapper_asks_for_more_bytes(text: str) -> None:
    assert needs_more_bytes(text.encode()[:4096], repair=True)
    assert not needs_more_bytes(text.encode()[:4096], repair=False)
    assert not needs_more_bytes(text.encode() + b"more\n", repair=True)


@pytest.mark.parametrize("opener", ["---", "  ---"])
def test_indented_frontmatter_asks_for_more_bytes_until_it_is_closed(opener: str) -> None:
    text = f"{opener}\n  name: a\n  description: {'b' * 5000}\n  ---\nbody\n".encode()
    closed = text.index(b"  ---\nbody") + len(b"  ---\n")
    begins = range(1, 60) if opener == "---" else range(60)
    for end in (*begins, 4096, closed - 1):
        assert needs_more_bytes(text[:end], repair=True), end
    assert not needs_more_bytes(text[:closed], repair=True)
    assert parse_head(text[:closed], whole=False, lenient=True, repair=True).body_offset == closed


def test_indented_frontmatter_is_itself_repaired() -> None:
    found = parse_head(
        b"---\n  name: a\n  description: b: c\n  metadata:\n    k: v\n  ---\nbody", lenient=True, repair=True
    )
    assert (found.front.description, found.front.metadata) == ("b: c", {"k": "v"})
    assert [(i.code, i.line) for i in found.issues] == [("repaired-indentation", 1), ("repaired-colon", 3)]


def test_dashes_deeper_than_the_keys_and_indented_keys_alone_are_not_touched() -> None:
    head = b"---\n  name: a\n  description: |\n    b\n    ---\n    c\n---\nbody"
    found = parse_head(head, lenient=True, repair=True)
    assert (found.front.description, found.issues, head[found.body_offset :]) == ("b\n---\nc\n", (), b"body")


@pytest.mark.parametrize(
    "head", [b"<!--" * 16_000, b"<!-- -->" * 8_000, b"```\n" * 16_000, b"---\n" + b"---#" * 16_000, b" ---\n" * 12_000]
)
def test_a_mass_of_wrappers_is_refused(head: bytes) -> None:
    with pytest.raises(InvalidFrontmatterError):
        parse_head(head, lenient=True, repair=True)


def test_wrapped_frontmatter_is_itself_repaired() -> None:
    found = parse_head(b"<!-- c -->\n---\nname: a\ndescription: b: c\n---\nbody", lenient=True, repair=True)
    assert found.front.description == "b: c"
    assert [(i.code, i.line) for i in found.issues] == [("repaired-comment", 2), ("repaired-colon", 4)]


def test_dashes_glued_to_a_heading_after_broken_yaml_are_repaired_together() -> None:
    head = b"---\nname: a\ndescription: b: c\n---# Title\nx\n\n---\ny"
    found = parse_head(head, lenient=True, repair=True)
    assert found.front.description == "b: c"
    assert [(i.code, i.line) for i in found.issues] == [("repaired-glued-dashes", 4), ("repaired-colon", 3)]
    assert head[found.body_offset :] == b"# Title\nx\n\n---\ny"
