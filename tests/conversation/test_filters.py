"""Filters: which skills they let through, and that a session shows the others nowhere."""

from collections.abc import Callable
from pathlib import Path

import pytest

import prowess
from prowess import Session, skill_filter
from tests.skill_fixtures import preloaded

Put = Callable[..., Path]
Scanned = Callable[..., prowess.Catalog]


@pytest.fixture
def catalog(put: Put, scanned: Scanned) -> prowess.Catalog:
    """Three skills in two folders, each with a tool and a file."""
    for folder, tool in (("billing/pay", "Pay"), ("billing/refund", "Refund"), ("docs/pdf", "Read")):
        path = put(folder, tools=tool)
        (path.parent / "a.md").write_text(f"file of {path.parent.name}", encoding="utf-8")
    return scanned()


def available(session: Session) -> list[str]:
    return [skill.name for skill in session.candidates()]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("", ["pay", "pdf", "refund"]),
        ("none", []),
        ("NONE", []),
        ("skills/billing/*", ["pay", "refund"]),
        ("skills/billing", ["pay", "refund"]),
        ("skills/billing/", ["pay", "refund"]),
        ("skills/bill", []),
        ("skills/*", []),
        ("skills/**", ["pay", "pdf", "refund"]),
        ("**/p*", ["pay", "pdf"]),
        ("skills/billing/pay", ["pay"]),
        ("skills/[a-c]*/*", ["pay", "refund"]),
        ("skills/[", []),
    ],
)
def test_a_filter_decides_which_skills_are_available(pattern: str, names: list[str], catalog: prowess.Catalog) -> None:
    session = Session(catalog, filter=pattern)
    assert available(session) == names
    assert [name for name in catalog.names if session.moment().find(name) is not None] == names
    for name in catalog.names:
        if name in names:
            assert session.activate(name).skill.name == name
        else:
            with pytest.raises(prowess.SkillFilteredError):
                session.activate(name)
    assert session.active_skills == tuple(names)


def test_a_refusal_names_the_skill_and_the_filter(catalog: prowess.Catalog) -> None:
    with pytest.raises(prowess.SkillFilteredError) as caught:
        Session(catalog, filter="skills/docs/*").activate("pay")
    assert caught.value.code == "filtered"
    assert "'pay'" in caught.value.message
    assert "skills/docs/*" in caught.value.message


def test_a_hidden_skill_is_not_in_the_index_the_tools_the_answers_or_the_reads(catalog: prowess.Catalog) -> None:
    session = Session(catalog, tools="any")
    session.activate("pay")
    session.activate("pdf")
    with skill_filter("skills/docs/*"):
        assert session.index() == "Available skills:\n- pdf: Does it."
        assert list(session.active_skills) == ["pdf"]
        assert session.active_tools == ("Read",)
        assert session.allows("Pay") == "not-mentioned"
        assert session.allows("Read") == "allowed"
        assert session.read_resource("pdf", "a.md") == "file of pdf"
        for refused in (
            lambda: session.read_resource("pay", "a.md"),
            lambda: session.activate("pay"),
            lambda: session.skill("pay"),
            lambda: session.expand("/pay"),
        ):
            with pytest.raises(prowess.SkillFilteredError):
                refused()
    assert list(session.active_skills) == ["pay", "pdf"]
    assert session.allows("Pay") == "allowed"


# -- the session's own ----------------------------------------------------------------------------------------------


def test_setting_a_filter_ends_what_it_does_not_let_through(catalog: prowess.Catalog) -> None:
    session = Session(catalog, tools="any")
    for name in catalog.names:
        session.activate(name)
    assert session.set_filter("skills/docs/*") == ("pay", "refund")
    assert session.filter == "skills/docs/*"
    assert (session.active_skills, session.active_tools) == (("pdf",), ("Read",))
    assert session.set_filter("") == ()
    assert session.active_skills == ("pdf",)
    assert available(session) == ["pay", "pdf", "refund"]


def test_setting_a_filter_that_changes_nothing_ends_nothing(catalog: prowess.Catalog) -> None:
    session = Session(catalog)
    session.activate("pay")
    assert session.set_filter("skills/**") == ()
    assert session.set_filter("skills/billing/*") == ()
    assert session.active_skills == ("pay",)


def test_setting_a_filter_ends_preloaded_skills_too(catalog: prowess.Catalog, scanned: Scanned) -> None:
    session = Session(scanned("docs/pdf"))
    assert session.set_filter("skills/billing") == ("pdf",)
    assert (session.active_skills, preloaded(session)) == ((), {})
    assert len(catalog) == 3


def test_a_preloaded_skill_that_the_first_filter_hides_is_not_active(
    catalog: prowess.Catalog, scanned: Scanned
) -> None:
    session = Session(scanned("docs/pdf"), filter="skills/billing")
    assert (session.active_skills, session.active_tools, preloaded(session)) == ((), (), {})
    assert len(catalog) == 3


def test_a_skill_that_a_filter_deactivated_stays_inactive(catalog: prowess.Catalog) -> None:
    session = Session(catalog)
    session.activate("pay")
    session.set_filter("none")
    session.set_filter("")
    assert session.active_skills == ()
    with pytest.raises(prowess.SkillNotActiveError):
        session.deactivate("pay")


# -- for one call ---------------------------------------------------------------------------------------------------


def test_an_explicit_filter_replaces_the_sessions(catalog: prowess.Catalog) -> None:
    session = Session(catalog, filter="skills/docs/*")
    assert session.activate("pay", filter="").instructions == "Do it."
    assert session.activate("refund", filter="skills/billing/*").instructions == "Do it."
    with pytest.raises(prowess.SkillFilteredError):
        session.activate("pdf", filter="skills/billing/*")
    with pytest.raises(prowess.SkillFilteredError):
        session.activate("pdf", filter="NoNe")
    assert session.filter == "skills/docs/*"


def test_an_explicit_filter_holds_for_that_call_only(catalog: prowess.Catalog) -> None:
    session = Session(catalog, filter="skills/docs/*")
    session.activate("pay", filter="")
    with pytest.raises(prowess.SkillFilteredError):
        session.activate("pay")
    with pytest.raises(prowess.SkillFilteredError):
        session.activate("refund")
    assert "pay" not in session.index()
    assert session.active_tools == ()


def test_an_active_skill_is_refused_again_by_an_explicit_filter(catalog: prowess.Catalog) -> None:
    session = Session(catalog)
    session.activate("pay")
    with pytest.raises(prowess.SkillFilteredError):
        session.activate("pay", filter="skills/docs/*")
    assert session.active_skills == ("pay",)


def test_an_empty_explicit_filter_is_not_the_same_as_none(catalog: prowess.Catalog) -> None:
    session = Session(catalog, filter="none")
    with pytest.raises(prowess.SkillFilteredError):
        session.activate("pay", filter=None)
    assert session.activate("pay", filter="").skill.name == "pay"


# -- paths ----------------------------------------------------------------------------------------------------------


def test_without_a_mount_paths_are_relative_to_the_base_folder(put: Put, tmp_path: Path) -> None:
    put("billing/pay")
    catalog = prowess.scan(tmp_path / "skills")
    assert available(Session(catalog, filter="skills/billing/*", base_dir=tmp_path)) == ["pay"]
    assert available(Session(catalog, filter="billing/*", base_dir=tmp_path / "skills")) == ["pay"]
    assert available(Session(catalog, filter="skills/billing/*", base_dir=tmp_path / "skills")) == []


def test_the_base_folder_is_the_working_folder_unless_another_is_given(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("billing/pay")
    monkeypatch.chdir(tmp_path)
    assert available(Session(prowess.scan("skills"), filter="skills/billing/*")) == ["pay"]
    assert available(Session(prowess.scan("skills"), filter="skills/billing/*", base_dir="skills")) == []


def test_outside_of_the_base_folder_a_path_is_absolute(put: Put, tmp_path: Path) -> None:
    put("pay")
    catalog = prowess.scan(tmp_path / "skills")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert available(Session(catalog, filter=f"{tmp_path}/skills/*", base_dir=elsewhere)) == ["pay"]
    assert available(Session(catalog, filter="../skills/*", base_dir=elsewhere)) == []
    assert available(Session(catalog, filter="skills/*", base_dir=elsewhere)) == []


def test_an_absolute_mount_is_matched_as_it_is(put: Put, tmp_path: Path) -> None:
    put("pay")
    base = tmp_path / "srv"
    base.mkdir()
    catalog = prowess.Catalog.from_sources([prowess.Source.directory(tmp_path / "skills", mount_as=f"{base}/skills")])
    assert available(Session(catalog, filter=f"{base}/skills/*", base_dir=tmp_path)) == ["pay"]
    assert available(Session(catalog, filter="skills/*", base_dir=base)) == ["pay"]
    assert available(Session(catalog, filter="skills/*", base_dir=tmp_path)) == []


def test_the_mount_and_not_the_real_folder_is_what_a_filter_sees(catalog: prowess.Catalog, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    assert available(Session(catalog, filter=f"{tmp_path}/**", base_dir="/")) == []
    assert available(Session(catalog, filter="skills/**", base_dir=tmp_path / "elsewhere")) == ["pay", "pdf", "refund"]


@pytest.mark.parametrize(
    ("pattern", "passes"),
    [("", True), ("*", True), ("**", True), ("none", False), ("greet", False), ("skills/*", False), ("?", False)],
)
def test_an_inline_skill_passes_only_what_matches_an_empty_path(pattern: str, passes: bool) -> None:
    catalog = prowess.Catalog.from_sources([prowess.Source.inline("greet", "Greets.", "Say hello.")])
    session = Session(catalog, filter=pattern)
    assert (session.moment().find("greet") is not None) is passes
    assert available(session) == (["greet"] if passes else [])


@pytest.mark.parametrize("base", ["/", "skills/docs", "skills", ".", "elsewhere"])
@pytest.mark.parametrize("mount", ["", "skills", "/srv/skills", "skills/"])
def test_the_virtual_path_of_a_skill_matches_as_a_filter_wherever_the_host_works(
    base: str, mount: str, put: Put, tmp_path: Path
) -> None:
    for folder in ("docs/pdf", "docs/csv", "odd [1]*"):
        put(folder, name=folder.rsplit("/", maxsplit=1)[-1] if "[" not in folder else "odd")
    catalog = prowess.Catalog.from_sources([prowess.Source.directory(tmp_path / "skills", mount_as=mount)])
    assert len(catalog) == 3
    (tmp_path / "elsewhere").mkdir()
    for skill in catalog:
        session = Session(catalog, filter=skill.virtual_path, base_dir=tmp_path / base)
        assert available(session) == [skill.name]
        with skill_filter(skill.virtual_path):
            assert available(Session(catalog, base_dir=tmp_path / base)) == [skill.name]
        unfiltered = Session(catalog, filter="none", base_dir=tmp_path / base)
        assert unfiltered.activate(skill.name, filter=skill.virtual_path).skill == skill
    folder = catalog["pdf"].virtual_path.rsplit("/", maxsplit=1)[0]
    assert available(Session(catalog, filter=f"{folder}/*", base_dir=tmp_path / base)) == ["csv", "pdf"]
    assert available(Session(catalog, filter="**/pdf", base_dir=tmp_path / base)) == ["pdf"]


def test_the_virtual_path_of_a_skill_matches_in_a_process_that_works_in_its_folder(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("billing/pay")
    catalog = prowess.scan(tmp_path / "skills")
    pattern = catalog["pay"].virtual_path
    for folder in (tmp_path, tmp_path / "skills", tmp_path / "skills" / "billing" / "pay", Path("/")):
        monkeypatch.chdir(folder)
        assert available(Session(catalog, filter=pattern)) == ["pay"]
        assert available(Session(catalog, filter=f"{tmp_path}/**")) == ["pay"]


# -- listing below a folder -----------------------------------------------------------------------------------------


def test_an_index_may_be_of_one_folder(catalog: prowess.Catalog) -> None:
    session = Session(catalog)
    assert session.index(under="skills/billing") == "Available skills:\n- pay: Does it.\n- refund: Does it."
    assert session.index(under="skills/bill") == "No skills available."
    session.set_filter("skills/docs/*")
    assert session.index(under="skills/billing") == "No skills available."


def test_an_index_of_nothing_says_so() -> None:
    assert Session(prowess.Catalog()).index() == "No skills available."


def test_an_index_is_of_every_skill_whether_active_or_not(catalog: prowess.Catalog) -> None:
    session = Session(catalog)
    before = session.index()
    session.activate("pay")
    assert session.index() == before


def test_an_index_leaves_out_what_models_may_not_call(put: Put, scanned: Scanned) -> None:
    put("seen")
    put("hidden", extra="disable-model-invocation: true")
    session = Session(scanned())
    assert session.index() == "Available skills:\n- seen: Does it."
    assert session.activate("hidden").instructions == "Do it."


def test_an_index_has_one_short_line_a_skill(put: Put, scanned: Scanned) -> None:
    put("long", description="word " * 1000)
    put("odd", description='"a\\nb\\u202ec - **good**: fake"')
    rows = Session(scanned()).index().split("\n")
    assert [row.split(":")[0] for row in rows] == ["Available skills", "- long", "- odd"]
    assert len(rows[1]) <= len("- long: ") + prowess.MAX_DESCRIPTION_LENGTH
    assert rows[2] == "- odd: a bc - **good**: fake"


# -- reading --------------------------------------------------------------------------------------------------------


def test_a_read_gives_no_more_than_the_session_or_the_call_allows(catalog: prowess.Catalog) -> None:
    session = Session(catalog, limits=prowess.Limits(max_resource_bytes=5))
    assert session.limits.max_resource_bytes == 5
    assert session.read_resource("pdf", "a.md", max_bytes=100) == "file of pdf"
    with pytest.raises(prowess.ResourceTooLargeError):
        session.read_resource("pdf", "a.md")
    with pytest.raises(prowess.ResourceTooLargeError):
        Session(catalog).read_resource("pdf", "a.md", max_bytes=5)
