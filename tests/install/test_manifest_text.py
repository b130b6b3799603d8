"""A manifest whose entries are changed by a command: everything else in it stays as people wrote it."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess.install.manifest_text import ManifestEntry, UneditableError, change_entries, manifest_entry_text

MANY = """\
# What we need.
agents = ["claude-code"]  # all of us

skills = [
  # The first is the oldest.
  "acme/pdf#v1",  # do not update before May
  { source = "acme/skills", skills = ["a", "b"] },

  './tools/notes'  # ours
]

[settings]
strict = true
"""


@pytest.mark.parametrize(
    ("edits", "added", "old", "new"),
    [
        ({0: "acme/pdf#v2"}, [], '"acme/pdf#v1"', '"acme/pdf#v2"'),
        ({0: None}, [], '  "acme/pdf#v1",  # do not update before May\n', ""),
        ({2: None}, [], "  './tools/notes'  # ours\n", ""),
        ({1: {"source": "acme/skills", "skills": ["b"]}}, [], '["a", "b"]', '["b"]'),
        ({}, ["new/one"], "'  # ours\n", '\',  # ours\n  "new/one"\n'),
    ],
)
def test_one_entry_is_changed_and_every_other_character_stays(
    edits: dict[int, ManifestEntry | None], added: list[ManifestEntry], old: str, new: str
) -> None:
    assert MANY.count(old) == 1
    assert change_entries(MANY, (), edits, added) == MANY.replace(old, new)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'skills = [\n  "new/one",\n]\n'),
        ("# ours", '# ours\nskills = [\n  "new/one",\n]\n'),
        ("skills = []\n", 'skills = [\n  "new/one",\n]\n'),
        ('skills = ["a/b"]', 'skills = ["a/b", "new/one"]'),
        ('skills = [ "a/b", ] # ours\n', 'skills = [ "a/b", "new/one", ] # ours\n'),
        ("[settings]\nstrict = true\n", 'skills = [\n  "new/one",\n]\n\n[settings]\nstrict = true\n'),
        ('skills = [\r\n\t"a/b",\r\n]\r\n', 'skills = [\r\n\t"a/b",\r\n\t"new/one",\r\n]\r\n'),
        ("skills = [\n  # none yet\n]\n", 'skills = [\n  # none yet\n  "new/one",\n]\n'),
    ],
)
def test_an_entry_is_added_as_the_others_are_written(before: str, after: str) -> None:
    assert change_entries(before, (), {}, ["new/one"]) == after


def test_a_table_of_pyproject_is_changed_and_the_rest_of_it_is_not() -> None:
    before = '[project]\nname = "x"\n\n[tool.prowess]\nagents = []\n\n[tool.other]\nskills = ["not ours"]\n'
    after = change_entries(before, ("tool", "prowess"), {}, ["a/b"])
    assert after == before.replace("agents = []\n\n", 'agents = []\n\nskills = [\n  "a/b",\n]\n')
    assert change_entries(after, ("tool", "prowess"), {0: None}, []).count("a/b") == 0


@pytest.mark.parametrize(
    "text",
    ['[[skills]]\nsource = "a/b"\n', "skills.x = 1\n", "x = 1\n[skills]\n", 'tool = { prowess = {} }\nskills = "x"'],
)
def test_what_is_written_otherwise_is_refused_and_not_guessed(text: str) -> None:
    with pytest.raises((UneditableError, TypeError, AttributeError, ValueError)):
        change_entries(text, (), {}, ["new/one"])


SOURCES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
ENTRIES = SOURCES | st.fixed_dictionaries({"source": SOURCES}, optional={"skills": st.lists(SOURCES, max_size=2)})
GLUE = st.sampled_from(["", " ", "\n", "\n  ", ' # a ] comment, "\n', "\t", "\r\n  # b\r\n"])


@given(st.lists(st.tuples(GLUE, ENTRIES, GLUE), max_size=4), GLUE, st.booleans(), st.data())
def test_whatever_a_list_looks_like_the_result_says_what_was_meant_or_it_is_refused(
    rows: list[tuple[str, ManifestEntry, str]], end: str, comma: bool, data: st.DataObject
) -> None:
    inner = ",".join(f"{before}{manifest_entry_text(entry)}{after}" for before, entry, after in rows)
    text = f"a = 1\nskills = [{inner}{',' if comma and rows else ''}{end}]\n[b]\nc = '''x]'''\n"
    entries: list[ManifestEntry] = [entry for _, entry, _ in rows]
    index = data.draw(st.integers(0, len(rows)))
    edits: dict[int, ManifestEntry | None] = {index: data.draw(st.none() | ENTRIES)} if index < len(rows) else {}
    added = data.draw(st.lists(ENTRIES, max_size=2))
    changed = change_entries(text, (), edits, added)
    wanted = [edits.get(at, entry) for at, entry in enumerate(entries)]
    expected = [*(entry for entry in wanted if entry is not None), *added]
    assert tomllib.loads(changed) == {"a": 1, "skills": expected, "b": {"c": "x]"}}
    assert (changed.count("# b\r\n") == text.count("# b\r\n")) or edits
