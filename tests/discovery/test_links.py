"""Links: followed where that is how installers link, refused elsewhere, never below a skill."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prowess
from prowess import Catalog, scan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Put = Callable[..., Path]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, so that what counts as an install base is known."""
    folder = tmp_path / "home"
    folder.mkdir()
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def codes(catalog: Catalog) -> list[tuple[str, str]]:
    return [(issue.code, issue.path) for issue in catalog.issues]


# -- a SKILL.md --------------------------------------------------------------------------------------------------------


@pytest.mark.needs_links
@pytest.mark.needs_fifo
@pytest.mark.parametrize("target", ["real.md", "../other/SKILL.md", "/dev/zero", "/proc/self/environ"])
def test_a_skill_file_that_is_a_link_is_refused(put: Put, root: Path, target: str) -> None:
    folder = put("root/kit", file="real.md")
    put("root/other")
    (folder / "SKILL.md").symlink_to(target)
    catalog = scan(root)
    assert catalog.names == ("other",)
    assert codes(catalog) == [("link-refused", str(folder / "SKILL.md"))]


@pytest.mark.needs_links
def test_a_skill_file_that_is_a_link_is_refused_even_where_links_are_followed(put: Put, root: Path) -> None:
    folder = put("root/kit", file="real.md")
    (folder / "SKILL.md").symlink_to("real.md")
    assert scan(root, follow_links=True).names == ()


# -- a skill's folder --------------------------------------------------------------------------------------------------


@pytest.mark.needs_links
def test_links_that_are_never_followed_add_neither_skills_nor_issues(put: Put, root: Path, tmp_path: Path) -> None:
    put("root/real")
    put("elsewhere/outside")
    for name, target in (("inner", "real"), ("outside", "../../elsewhere/outside"), ("gone", "nowhere"), ("loop", ".")):
        (root / name).symlink_to(target)
    (tmp_path / ".git").mkdir()
    assert len(codes(scan(root))) > 0
    for catalog in (
        scan(root, follow_links="never"),
        prowess.Catalog.from_sources([prowess.Source.directory(root, follow_links="never")]),
    ):
        assert (catalog.names, codes(catalog)) == (("real",), [])


def test_a_word_for_links_that_is_unknown_is_refused(root: Path) -> None:
    with pytest.raises(prowess.SourceError, match="follow_links must be True, False or 'never', not 'no'"):
        scan(root, follow_links="no")  # type: ignore[arg-type]


@pytest.mark.needs_links
def test_a_link_into_the_same_root_adds_nothing(put: Put, root: Path) -> None:
    put("root/kit")
    (root / "alias").symlink_to("kit")
    catalog = scan(root, on_duplicate="error")
    assert [str(s.path) for s in catalog] == [str(root / "kit" / "SKILL.md")]
    assert catalog.issues == ()


@pytest.mark.needs_links
def test_a_link_to_a_folder_that_is_passed_over_in_the_same_root_is_followed(put: Put, root: Path) -> None:
    put("root/.store/kit-1.0", "name: kit\ndescription: d\n")
    (root / "kit").symlink_to(".store/kit-1.0")
    catalog = scan(root)
    assert catalog["kit"].path == root / "kit" / "SKILL.md"
    assert (catalog["kit"].folder_name, codes(catalog)) == ("kit", [("skipped-directory", str(root / ".store"))])


@pytest.mark.needs_links
@pytest.mark.parametrize("order", [("root", "store"), ("store", "root")])
def test_a_link_into_another_root_is_followed_and_reported_once(
    put: Put, root: Path, tmp_path: Path, order: tuple[str, str]
) -> None:
    put("store/kit")
    (root / "kit").symlink_to(tmp_path / "store" / "kit")
    catalog = scan(*(tmp_path / name for name in order), on_duplicate="error")
    assert [str(s.path) for s in catalog] == [str(tmp_path / order[0] / "kit" / "SKILL.md")]
    assert (catalog.issues, catalog.shadowed) == ((), ())


@pytest.mark.needs_links
@pytest.mark.parametrize("relative", [True, False])
def test_a_link_into_the_same_repository_is_followed(put: Put, root: Path, tmp_path: Path, relative: bool) -> None:
    (tmp_path / ".git").mkdir()
    put("vendor/kit", body="Vendored.\n")
    (root / "kit").symlink_to("../vendor/kit" if relative else tmp_path / "vendor" / "kit")
    catalog = scan(root)
    assert catalog["kit"].read_body() == "Vendored.\n"
    assert catalog["kit"].files() == ("SKILL.md",)
    assert catalog.issues == ()


@pytest.mark.needs_links
@pytest.mark.parametrize("base", [".agents/skills", ".config/prowess/skills"])
def test_a_link_into_an_install_base_is_followed(put: Put, root: Path, home: Path, base: str) -> None:
    put(f"home/{base}/kit")
    (root / "kit").symlink_to(home / base / "kit")
    catalog = scan(root)
    assert (catalog.names, catalog.issues) == (("kit",), ())


@pytest.mark.needs_links
def test_a_link_out_of_every_known_place_is_refused(put: Put, root: Path, tmp_path: Path) -> None:
    put("outside/evil", body="SECRET")
    put("root/good")
    (root / "evil").symlink_to(tmp_path / "outside" / "evil")
    catalog = scan(root)
    assert catalog.names == ("good",)
    assert codes(catalog) == [("link-refused", str(root / "evil"))]
    assert catalog.issues[0].severity == "error"


@pytest.mark.needs_links
def test_a_repository_does_not_reach_beyond_itself(put: Put, root: Path, tmp_path: Path) -> None:
    (root / ".git").mkdir()
    put("outside/evil")
    (root / "evil").symlink_to(tmp_path / "outside" / "evil")
    assert codes(scan(root)) == [("link-refused", str(root / "evil"))]


@pytest.mark.needs_links
def test_a_folder_whose_name_begins_like_a_root_is_not_in_it(put: Put, root: Path, tmp_path: Path) -> None:
    put("root-evil/evil")
    (root / "evil").symlink_to(tmp_path / "root-evil" / "evil")
    assert codes(scan(root)) == [("link-refused", str(root / "evil"))]


@pytest.mark.needs_links
def test_a_chain_of_links_is_judged_by_its_end(put: Put, root: Path, tmp_path: Path) -> None:
    put("root/.store/kit", "name: kit\ndescription: d\n")
    put("outside/evil")
    (tmp_path / "hop").symlink_to(root / ".store" / "kit")
    (root / "kit").symlink_to(tmp_path / "hop")
    (root / ".store" / "out").symlink_to(tmp_path / "outside" / "evil")
    (root / "evil").symlink_to(".store/out")
    catalog = scan(root)
    assert catalog.names == ("kit",)
    assert codes(catalog) == [("skipped-directory", str(root / ".store")), ("link-refused", str(root / "evil"))]


@pytest.mark.needs_links
def test_developers_may_follow_every_link(put: Put, root: Path, tmp_path: Path) -> None:
    put("outside/kit", body="Elsewhere.\n")
    (root / "kit").symlink_to(tmp_path / "outside" / "kit")
    catalog = scan(root, follow_links=True)
    assert catalog["kit"].read_body() == "Elsewhere.\n"
    assert catalog["kit"].dir == root / "kit"


@pytest.mark.needs_links
def test_a_link_to_a_folder_of_skills_is_followed(put: Put, root: Path, tmp_path: Path) -> None:
    put("store/group/a")
    put("store/group/deep/b")
    (root / "linked").symlink_to(tmp_path / "store" / "group")
    (tmp_path / ".git").mkdir()
    assert scan(root).names == ("a", "b")
    assert scan(root, max_depth=1).names == ()
    assert scan(root, max_depth=2).names == ("a",)


@pytest.mark.needs_links
def test_two_links_to_one_skill_give_it_once(put: Put, root: Path, tmp_path: Path) -> None:
    put("store/kit")
    (tmp_path / ".git").mkdir()
    for name in ("a-link", "b-link"):
        (root / name).symlink_to(tmp_path / "store" / "kit")
    catalog = scan(root, on_duplicate="error")
    assert [s.dir for s in catalog] == [root / "a-link"]


@pytest.mark.needs_links
def test_hidden_links_are_passed_over(put: Put, root: Path, tmp_path: Path) -> None:
    put("outside/evil")
    for name in (".evil", "_evil"):
        (root / name).symlink_to(tmp_path / "outside" / "evil")
    catalog = scan(root)
    assert (catalog.names, codes(catalog)) == ((), [("no-skills", str(root))])


@pytest.mark.needs_links
def test_a_link_to_a_file_is_not_a_skill_and_not_an_issue(root: Path, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("", encoding="utf-8")
    (root / "README.md").symlink_to("../README.md")
    catalog = scan(root)
    assert (catalog.names, codes(catalog)) == ((), [("no-skills", str(root))])


@pytest.mark.needs_links
def test_a_link_that_leads_nowhere_is_reported(put: Put, root: Path) -> None:
    put("root/good")
    (root / "gone").symlink_to("nowhere")
    catalog = scan(root)
    assert catalog.names == ("good",)
    assert codes(catalog) == [("link-refused", str(root / "gone"))]


# -- loops -------------------------------------------------------------------------------------------------------------


@pytest.mark.needs_links
@pytest.mark.parametrize("target", [".", "..", "../..", "../../root"])
def test_a_link_to_a_folder_around_it_ends_there(put: Put, root: Path, target: str) -> None:
    put("root/group/kit")
    (root / "group" / "loop").symlink_to(target)
    catalog = scan(root, max_depth=None)
    assert catalog.names == ("kit",)
    assert [code for code, _ in codes(catalog)] in (["link-loop"], ["link-refused"])


@pytest.mark.needs_links
def test_links_that_lead_to_each_other_end(put: Put, root: Path) -> None:
    put("root/a/one")
    put("root/b/two")
    (root / "a" / "to-b").symlink_to("../b")
    (root / "b" / "to-a").symlink_to("../a")
    catalog = scan(root, max_depth=None, on_duplicate="error")
    assert catalog.names == ("one", "two")


@pytest.mark.needs_links
def test_a_link_to_itself_ends(put: Put, root: Path) -> None:
    put("root/kit")
    (root / "self").symlink_to("self")
    assert scan(root).names == ("kit",)


# -- below a skill -----------------------------------------------------------------------------------------------------


@pytest.mark.needs_links
@pytest.mark.parametrize("nested", [False, True])
def test_a_link_below_a_skill_is_never_followed_or_listed(put: Put, root: Path, tmp_path: Path, nested: bool) -> None:
    (tmp_path / ".git").mkdir()
    folder = put("root/kit")
    put("vendor/hidden")
    (folder / "references").mkdir()
    (folder / "linked").symlink_to(tmp_path / "vendor")
    (folder / "references" / "linked").symlink_to(tmp_path / "vendor" / "hidden")
    catalog = scan(root, nested=nested)
    assert catalog.names == ("kit",)
    assert catalog["kit"].files() == ("SKILL.md",)
    assert not catalog["kit"].resources()


@pytest.mark.needs_links
def test_a_link_that_is_turned_elsewhere_after_the_scan_leads_to_no_other_file(
    put: Put, root: Path, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    put("store/kit", body="Right.\n")
    put("outside/kit", body="SECRET")
    (root / "kit").symlink_to(tmp_path / "store" / "kit")
    skill = scan(root)["kit"]
    (root / "kit").unlink()
    (root / "kit").symlink_to(tmp_path / "outside" / "kit")
    assert skill.read_body() == "Right.\n"
    assert skill.load().instructions == "Right."


# -- a project without git ---------------------------------------------------------------------------------------------


@pytest.fixture
def project(put: Put, root: Path) -> Path:
    """A project with an installed skill, and the folder of an agent that links to it."""
    put("root/.prowess/skills/local/kit")
    (root / ".agents/skills").mkdir(parents=True)
    (root / ".agents/skills/kit").symlink_to("../../.prowess/skills/local/kit")
    return root


@pytest.mark.needs_links
def test_a_link_to_an_installed_skill_of_the_project_is_followed(project: Path, put: Put) -> None:
    catalog = scan(project / ".agents/skills")
    assert (catalog.names, catalog.issues) == (("kit",), ())
    # What is beside the install base is not an install.
    put("root/elsewhere/evil")
    (project / ".agents/skills/evil").symlink_to("../../elsewhere/evil")
    catalog = scan(project / ".agents/skills")
    assert (catalog.names, codes(catalog)) == (
        ("kit",),
        [("link-refused", str(project / ".agents/skills/evil"))],
    )


@pytest.mark.needs_links
def test_an_install_base_that_leads_out_of_the_project_is_not_followed(root: Path, put: Put) -> None:
    put("other/skills/local/kit")
    (root / ".prowess").symlink_to("../other")
    (root / ".agents/skills").mkdir(parents=True)
    (root / ".agents/skills/kit").symlink_to("../../.prowess/skills/local/kit")
    catalog = scan(root / ".agents/skills")
    assert (catalog.names, codes(catalog)) == ((), [("link-refused", str(root / ".agents/skills/kit"))])
