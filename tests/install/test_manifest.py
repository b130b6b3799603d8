"""Every manifest is read, or refused with a typed error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import prowess
from prowess.install.manifest import MANIFEST_FILE, read_declarations

if TYPE_CHECKING:
    from tests.install.conftest import World

PIECES = st.sampled_from(
    [
        *(
            "skills = [",
            "]",
            "\n",
            ", ",
            '"acme/skills#v1"',
            '"./local"',
            '"file://]/x"',
            '"file:///a%00b"',
            '"-x"',
            '""',
        ),
        *(
            "{",
            "}",
            "source = ",
            "ref = ",
            "skills = ",
            'agents = ["cursor"]',
            "agents = 1",
            '"@acme/pdf"',
            "[tool.prowess]",
        ),
        *(
            "1",
            "9" * 5_000,
            "2024-01-01",
            "true",
            "inf",
            '"\\u0000"',
            '"\\ud800"',
            "[" * 50,
            "# c\n",
            "'v1'",
            "[[skills]]",
        ),
    ]
)


@given(st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=60))
@example("a = " + "9" * 5_000)
@example("a = " + "[" * 5_000)
@example('skills = ["file://]/x"]')
@example('skills = [{source = "acme/skills", ref = 1}]')
@example('skills = [{source = "acme/skills", agents = [], skills = []}, {source = "acme/skills", ref = 2024-01-01}]')
def test_any_text_is_a_manifest_or_a_typed_refusal(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.getbasetemp() / "any-manifest"
    folder.mkdir(exist_ok=True)
    (folder / MANIFEST_FILE).write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        declared = read_declarations(str(folder), prowess.Limits())
    except prowess.InstallError:
        return
    assert all(str(one) for one in declared or ())


@pytest.mark.parametrize(
    "entry", ['{source = "acme/skills#v1", ref = "v2"}', '{source = "acme/skills@pdf", skills = ["csv"]}']
)
def test_an_entry_whose_keys_contradict_its_source_is_refused(
    world: World, installer: prowess.Installer, entry: str
) -> None:
    (world.project / "prowess.toml").write_text(f"skills = [{entry}]\n", encoding="utf-8")
    with pytest.raises(prowess.InstallError, match="is given beside it") as caught:
        installer.sync()
    assert caught.value.code == "bad-manifest"


@pytest.mark.parametrize(
    "text", ['agents = ["claud-code"]\nskills = []', 'skills = [{ source = "acme/pdf", agents = ["claud-code"] }]']
)
def test_an_agent_that_nobody_knows_is_refused_before_anything_happens(
    world: World, installer: prowess.Installer, text: str
) -> None:
    (world.project / "prowess.toml").write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(prowess.InstallError, match="did you mean claude-code") as caught:
        installer.sync()
    assert caught.value.code == "bad-manifest"


@pytest.mark.parametrize("entries", ['"acme/skills#v1@pdf", "acme/skills#v2@pdf,csv"', '"@acme/pdf@v1", "acme/pdf"'])
def test_both_sides_of_a_merge_that_declare_one_install_are_refused_and_named(
    world: World, installer: prowess.Installer, entries: str
) -> None:
    (world.project / "prowess.toml").write_text(f"skills = [{entries}]\n", encoding="utf-8")
    sources = entries.replace('"', "'").replace(", ", " and ")
    with pytest.raises(prowess.InstallError, match=f"acme/pdf is declared twice, by {sources}") as caught:
        installer.sync()
    assert caught.value.code == "bad-manifest"


@pytest.mark.parametrize("file", ["prowess.toml", "pyproject.toml"])
def test_a_manifest_that_is_a_link_is_refused_as_a_manifest_and_what_it_leads_to_stays(
    world: World, installer: prowess.Installer, file: str
) -> None:
    outside = world.base / "outside.toml"
    outside.write_text("[tool.prowess]\nskills = []\n", encoding="utf-8")
    (world.project / file).symlink_to(outside)
    for act in (installer.sync, lambda: installer.install(world.repository("pdf").address, project=True)):
        with pytest.raises(prowess.InstallError, match="leads through a link") as caught:
            act()
        assert caught.value.code == "bad-manifest"
    assert outside.read_text(encoding="utf-8") == "[tool.prowess]\nskills = []\n"


@pytest.mark.parametrize("wanted", [">=0.1,<99", "^0.1", " >= 0.1, < 99 "])
def test_a_manifest_may_require_versions_of_prowess(world: World, installer: prowess.Installer, wanted: str) -> None:
    address = world.repository("one").address
    text = f'requires-prowess = "{wanted}"\nskills = ["{address}"]\n'
    (world.project / MANIFEST_FILE).write_text(text, encoding="utf-8")
    assert [one.full_name for one in installer.sync()] == ["local/one"]
    installer.install(world.repository("two").address, project=True)
    assert f'requires-prowess = "{wanted}"' in (world.project / MANIFEST_FILE).read_text(encoding="utf-8")


def test_with_another_version_of_prowess_nothing_changes(world: World, installer: prowess.Installer) -> None:
    text = 'requires-prowess = ">=99"\nskills = ["a/b"]\nkey-of-a-later-version = 1\n'
    (world.project / MANIFEST_FILE).write_text(text, encoding="utf-8")
    for act in (installer.sync, installer.lock, installer.verify):
        with pytest.raises(
            prowess.InstallError, match=f"needs Prowess >=99, and this is {prowess.__version__}"
        ) as caught:
            act()
        assert caught.value.code == "wrong-prowess"
    assert not world.lock.exists()


@pytest.mark.parametrize("wanted", ['"latest"', '"1.2"', "1", '""', '[">=1"]'])
def test_what_is_required_is_a_range(world: World, installer: prowess.Installer, wanted: str) -> None:
    (world.project / MANIFEST_FILE).write_text(f"requires-prowess = {wanted}\n", encoding="utf-8")
    with pytest.raises(prowess.InstallError, match="range of versions") as caught:
        installer.sync()
    assert caught.value.code == "bad-manifest"
