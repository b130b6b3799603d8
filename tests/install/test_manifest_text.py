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
        ({}, ["new/one"], "'  # ours\n", '\',  # ours\n  "new/one",\n'),
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
        ('skills = ["a/b"]', 'skills = [\n  "a/b",\n  "new/one",\n]'),
        ('skills = [ "z/b", ] # ours\n', 'skills = [\n  "new/one",\n  "z/b",\n] # ours\n'),
        ('skills = [\n  # b\n  "z/b",\n]\n', 'skills = [\n  "new/one",\n  # b\n  "z/b",\n]\n'),
        ('skills = [\n "b", # b\n # z\n "z"]\n', 'skills = [\n "b", # b\n # z\n "z", "new/one"]\n'),
        ('skills = [\n "b", # b\n # z\n "z",\n]\n', 'skills = [\n "b", # b\n "new/one",\n # z\n "z",\n]\n'),
        ('skills = [\n  "z",\n  "b"\n]\n', 'skills = [\n  "z",\n  "b",\n  "new/one",\n]\n'),
        ("[settings]\nstrict = true\n", 'skills = [\n  "new/one",\n]\n\n[settings]\nstrict = true\n'),
        ('skills = [\r\n\t"a/b",\r\n]\r\n', 'skills = [\r\n\t"a/b",\r\n\t"new/one",\r\n]\r\n'),
        ("skills = [\n  # none yet\n]\n", 'skills = [\n  # none yet\n  "new/one",\n]\n'),
    ],
)
def test_an_entry_is_added_on_a_line_of_its_own_where_it_belongs(before: str, after: str) -> None:
    assert change_entries(before, (), {}, ["new/one"]) == after


ONE_LINE = 'skills = [{ source = "x", skills = ["d", "b"] }, "y"]\n'
ONE_NAME_A_LINE = """\
skills = [
  "a/b",
  { source = "x", ref = "v1", skills = [
    # The oldest.
    "b",  # until May
    "d"
  ] },
]
"""


@pytest.mark.parametrize(
    ("before", "index", "edit", "old", "new"),
    [
        (ONE_NAME_A_LINE, 1, {"ref": "v1", "skills": ["b", "c", "d"]}, "May\n", 'May\n    "c",\n'),
        (ONE_NAME_A_LINE, 1, {"ref": "v1", "skills": ["a", "b", "d"]}, "    # The", '    "a",\n    # The'),
        (ONE_NAME_A_LINE, 1, {"ref": "v1", "skills": ["b", "d", "e", "f"]}, '"d"', '"d",\n    "e",\n    "f",'),
        (ONE_NAME_A_LINE, 1, {"ref": "v1", "skills": ["b"]}, '    "d"\n', ""),
        (ONE_NAME_A_LINE, 1, {"ref": "v2", "skills": ["b", "d"]}, "v1", "v2"),
        (ONE_LINE, 0, {"skills": ["b", "c", "d"]}, '["d", "b"]', '[\n  "b",\n  "c",\n  "d",\n]'),
        (ONE_LINE, 0, {"skills": ["d"]}, '["d", "b"]', '["d"]'),
    ],
)
def test_a_name_that_comes_or_goes_leaves_the_lines_of_the_other_names(
    before: str, index: int, edit: dict[str, object], old: str, new: str
) -> None:
    assert before.count(old) == 1
    assert change_entries(before, (), {index: {"source": "x", **edit}}, []) == before.replace(old, new)


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
NAMES = st.lists(SOURCES, max_size=2, unique=True)
ENTRIES = SOURCES | st.fixed_dictionaries({"source": SOURCES}, optional={"skills": NAMES})
GLUE = st.sampled_from(["", " ", "\n", "\n  ", ' # a ] comment, "\n', "\t", "\r\n  # b\r\n"])


def meaning(entry: ManifestEntry) -> str:
    """An entry without the order of its names, which means nothing."""
    names = {"skills": sorted(entry["skills"])} if "skills" in entry and isinstance(entry, dict) else {}
    return manifest_entry_text({**entry, **names} if isinstance(entry, dict) else entry)


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
    said = tomllib.loads(changed)
    assert sorted(map(meaning, said.pop("skills"))) == sorted(map(meaning, expected))
    assert said == {"a": 1, "b": {"c": "x]"}}
    assert (changed.count("# b\r\n") == text.count("# b\r\n")) or edits
