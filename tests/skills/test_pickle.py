"""Skills and catalogues go to other processes and into caches, and come back as what they were."""

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import prowess

Again = Callable[[prowess.Catalog], prowess.Catalog]


def pickled(catalog: prowess.Catalog) -> prowess.Catalog:
    again = pickle.loads(pickle.dumps(catalog))  # noqa: S301 - made in the line itself
    assert isinstance(again, prowess.Catalog)
    return again


def kept_the_same(catalog: prowess.Catalog, again: prowess.Catalog) -> None:
    assert again.names == catalog.names
    assert again.issues == catalog.issues
    assert (again.shadowed, again.places, again.failures) == (catalog.shadowed, catalog.places, catalog.failures)
    for skill in catalog:
        other = again[skill.name]
        assert (other.frontmatter, other.location, other.scope) == (skill.frontmatter, skill.location, skill.scope)
        assert other.load().instructions == skill.load().instructions
        assert (other.own_files.resource_paths(), other.virtual_path) == (
            skill.own_files.resource_paths(),
            skill.virtual_path,
        )


@pytest.fixture
def catalog(tmp_path: Path) -> prowess.Catalog:
    for number, head in enumerate(["", "tags: [a, b]\nmetadata:\n  k: v\n", "allowed-tools: Read\nextra: {x: [1]}\n"]):
        folder = tmp_path / "skills" / f"s{number}"
        folder.mkdir(parents=True)
        text = f"---\nname: s{number}\ndescription: Does {number}.\n{head}---\nBody {number}.\n"
        (folder / "SKILL.md").write_text(text, encoding="utf-8")
        (folder / "notes.md").write_text("Notes.\n", encoding="utf-8")
    (tmp_path / "skills" / "broken").mkdir()
    (tmp_path / "skills" / "broken" / "SKILL.md").write_text("---\n", encoding="utf-8")
    folders = prowess.Source.directory(tmp_path / "skills", mount_as="mounted")
    inline = prowess.Source.inline("inline", "Is text.", "Say it.")
    return prowess.Catalog.from_sources([folders, inline])


@pytest.mark.parametrize("again", [pickled, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("searched", [False, True])
def test_a_catalogue_stays_what_it_is(again: Again, searched: bool, catalog: prowess.Catalog) -> None:
    if searched:  # it holds an index then, which is in no file
        assert catalog.search("does")
        assert catalog.issues
    other = again(catalog)
    kept_the_same(catalog, other)
    assert [hit.name for hit in other.search("does")] == [hit.name for hit in catalog.search("does")]


def names_and_bodies(catalog: prowess.Catalog) -> dict[str, str]:
    return {skill.name: skill.read_body() for skill in catalog}


def test_a_catalogue_works_in_another_process(catalog: prowess.Catalog) -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(names_and_bodies, catalog).result(60) == names_and_bodies(catalog)


def test_a_skill_stays_what_it_is(catalog: prowess.Catalog) -> None:
    for skill in catalog:
        for other in (pickle.loads(pickle.dumps(skill)), copy.copy(skill), copy.deepcopy(skill)):  # noqa: S301
            assert (repr(other), other.to_dict(), other.issues) == (repr(skill), skill.to_dict(), skill.issues)
            assert other.read_body() == skill.read_body()
            assert other.identity == skill.identity
