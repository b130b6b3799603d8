"""One conversation with PromptKit (S1): activation, tools, filters, the index and its selectors."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import pytest

import prowess

Put = Callable[..., Path]


@pytest.fixture
def catalog(put: Put, tmp_path: Path) -> prowess.Catalog:
    """Three skills in folders, mounted as skills/…, with tools in common, and one inline."""
    put("src/billing/refund", fields="allowed-tools: [refund, lookup]\n", body="Refund it.\n")
    put("src/billing/deep/audit", fields="allowed-tools: [lookup, export]\n", body="Audit it.\n")
    put("src/support/reply", fields="allowed-tools: [send]\n", body="Reply.\n")
    return prowess.Catalog.from_sources(
        [
            prowess.Source.directory(tmp_path / "src", mount_as="skills"),
            prowess.Source.inline("greet", "Greets.", "Say hello."),
        ]
    )


def shown(session: prowess.Session, query: str = "", under: str = "") -> list[str]:
    """The names in the index."""
    return [line[2:].partition(":")[0] for line in session.index(query, under).splitlines()[1:]]


def usable(session: prowess.Session, name: str) -> bool:
    """Whether it can be activated."""
    try:
        session.activate(name)
    except prowess.SkillFilteredError:
        return False
    return True


def test_activating_gives_the_skill_its_instructions_and_tools(catalog: prowess.Catalog) -> None:
    """S1-31: the instructions of the file, and the tools that it asks for."""
    activation = prowess.Session(catalog, tools="any").activate("refund")
    assert (activation.skill.name, activation.instructions) == ("refund", "Refund it.")
    assert activation.added_tools == ("lookup", "refund")


def test_activating_an_unknown_skill_is_an_error_that_lists_the_known_ones(catalog: prowess.Catalog) -> None:
    """S1-31: nearest first, and nothing is active afterwards."""
    session = prowess.Session(catalog)
    with pytest.raises(prowess.UnknownSkillError, match="refund, audit, greet, reply"):
        session.activate("refnd")
    assert session.active_skills == ()


def test_activating_again_ignores_the_limit_and_heeds_the_filter(catalog: prowess.Catalog) -> None:
    """S1-32: an active skill that the filter of a call excludes is refused, and the call changes nothing."""
    session = prowess.Session(catalog, max_active=1)
    first = session.activate("refund")
    assert session.activate("refund").instructions == first.instructions
    with pytest.raises(prowess.SkillFilteredError):
        session.activate("refund", filter="skills/support/*")
    with prowess.skill_filter("none"), pytest.raises(prowess.SkillFilteredError):
        session.activate("refund")
    assert session.active_skills == ("refund",)


def test_activating_again_gives_what_was_loaded_first(put: Put, catalog: prowess.Catalog) -> None:
    """S1-33: the file is not read again; deactivating ends that."""
    session = prowess.Session(catalog)
    first = session.activate("refund")
    put("src/billing/refund", body="Changed.\n")
    again = session.activate("refund")
    assert (again.instructions, again.added_tools) == (first.instructions, first.added_tools)
    session.deactivate("refund")
    assert session.activate("refund").instructions == "Changed."


@pytest.mark.parametrize("limit", [0, -1])
def test_without_a_limit_any_number_may_be_active(limit: int, catalog: prowess.Catalog) -> None:
    """S1-34: nought and less are not limit, and none is the default."""
    session = prowess.Session(catalog, max_active=limit)
    for name in catalog.names:
        session.activate(name)
    assert session.active_skills == catalog.names


def test_at_the_limit_no_other_skill_can_be_activated(catalog: prowess.Catalog) -> None:
    """S1-34: one that is active already can, and deactivating makes room."""
    session = prowess.Session(catalog, max_active=2)
    session.activate("refund")
    session.activate("audit")
    with pytest.raises(prowess.MaxActiveError) as caught:
        session.activate("reply")
    assert caught.value.code == "max-active"
    session.activate("audit")
    session.deactivate("refund")
    session.activate("reply")
    assert session.active_skills == ("audit", "reply")


@pytest.mark.parametrize(
    ("ceiling", "granted"),
    [
        (None, ()),
        ("any", ("Bash(git:*)", "Read", "Write")),
        ([], ()),
        (["Read", "Grep"], ("Read",)),
        (["read"], ()),
        (["Bash", "Write"], ("Bash(git:*)", "Write")),
        (["Bash(git:*)"], ("Bash(git:*)",)),
        (["Bash(npm:*)"], ()),
        (["Write(docs/**)"], ("Write(docs/**)",)),
        (["*"], ()),
    ],
)
def test_tools_are_those_that_the_ceiling_leaves(
    ceiling: list[str] | Literal["any"] | None, granted: tuple[str, ...], put: Put, tmp_path: Path
) -> None:
    """S1-35: none is named, none is granted; patterns are narrowed; each once, sorted."""
    put("pdf", fields="allowed-tools: [Write, Read, Bash(git:*), Read]\n")
    session = prowess.Session(prowess.scan(tmp_path), tools=ceiling)
    assert session.activate("pdf").added_tools == granted
    assert session.active_tools == granted


def test_deactivating_returns_the_tools_that_nothing_else_needs(catalog: prowess.Catalog) -> None:
    """S1-36: sorted; what another active skill needs stays."""
    session = prowess.Session(catalog, tools="any")
    session.activate("refund")
    session.activate("audit")
    assert session.deactivate("refund") == ("refund",)
    assert session.active_tools == ("export", "lookup")
    assert session.deactivate("audit") == ("export", "lookup")


def test_only_an_active_skill_can_be_deactivated(catalog: prowess.Catalog) -> None:
    """S1-36: whether it is merely not active or not known at all."""
    session = prowess.Session(catalog, tools="any")
    for name in ("refund", "nope"):
        with pytest.raises(prowess.SkillNotActiveError) as caught:
            session.deactivate(name)
        assert caught.value.code == "not-active"


def test_active_skills_and_tools_are_sorted_and_each_once(catalog: prowess.Catalog) -> None:
    """S1-37: whatever the order of activation."""
    session = prowess.Session(catalog, tools="any")
    assert (session.active_skills, session.active_tools) == ((), ())
    for name in ("reply", "refund", "audit", "greet"):
        session.activate(name)
    assert session.active_skills == ("audit", "greet", "refund", "reply")
    assert session.active_tools == ("export", "lookup", "refund", "send")


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("", ["audit", "greet", "refund", "reply"]),
        ("none", []),
        ("NoNe", []),
        ("skills/billing/*", ["refund"]),
        ("skills/*/*", ["refund", "reply"]),
        ("skills/*", []),
        ("skills/billing/refun?", ["refund"]),
        ("skills/billing/ref", []),
        ("billing/*", []),
        ("skills/[a-b]illing/*", ["refund"]),
        ("skills/[^a-b]*/*", ["reply"]),
        ("skills/[!a-b]*/*", ["reply"]),
        ("skills/billing/re\\fund", ["refund"]),
        ("skills/billing/refund\\*", []),
        ("skills/[a-", []),
        ("skills/billing/*\\", []),
        ("skills/**", ["audit", "refund", "reply"]),
        ("**/audit", ["audit"]),
        ("skills/**/refund", ["refund"]),
    ],
)
def test_a_filter_is_a_pattern_over_virtual_paths(pattern: str, names: list[str], catalog: prowess.Catalog) -> None:
    """S1-38: one star stays in a folder, two cross; the whole path counts; a malformed pattern lets nothing through."""
    session = prowess.Session(catalog, filter=pattern)
    assert shown(session) == names
    assert [name for name in catalog.names if usable(session, name)] == names


def test_a_real_folder_is_taken_relative_to_the_base(put: Put, tmp_path: Path) -> None:
    """S1-38: outside of the base it is absolute; a relative mount is taken as it is."""
    put("project/skills/pdf")
    put("other/csv")
    catalog = prowess.scan(tmp_path / "project/skills", tmp_path / "other")
    session = prowess.Session(catalog, base_dir=tmp_path / "project")
    session.set_filter("skills/*")
    assert shown(session) == ["pdf"]
    session.set_filter(f"{tmp_path.as_posix()}/other/*")
    assert shown(session) == ["csv"]


def test_a_literal_folder_means_everything_under_it(catalog: prowess.Catalog) -> None:
    """S1-39: at any depth, whole segments compared; the skill's own folder is one too."""
    session = prowess.Session(catalog)
    for pattern, names in {
        "skills/billing": ["audit", "refund"],
        "skills/billing/": ["audit", "refund"],
        "skills/bill": [],
        "skills/billing/refund": ["refund"],
        "skills/billing/*": ["refund"],
    }.items():
        session.set_filter(pattern)
        assert (pattern, shown(session)) == (pattern, names)


@pytest.mark.parametrize(
    ("pattern", "passes"), [("", True), ("*", True), ("**", True), ("skills/**", False), ("?", False)]
)
def test_an_inline_skill_has_no_path_to_match(pattern: str, passes: bool, catalog: prowess.Catalog) -> None:
    """S1-39: only what matches nothing at all lets it through."""
    assert usable(prowess.Session(catalog, filter=pattern), "greet") is passes


def test_a_filtered_skill_is_an_error_of_its_own(catalog: prowess.Catalog) -> None:
    """S1-40: which says the filter and is not that of an unknown skill."""
    session = prowess.Session(catalog, filter="skills/support/*")
    with pytest.raises(prowess.SkillFilteredError, match="skills/support") as caught:
        session.activate("refund")
    assert caught.value.code == "filtered"
    with pytest.raises(prowess.SkillFilteredError):
        session.read_resource("refund", "SKILL.md")


def test_setting_a_filter_deactivates_what_it_excludes(catalog: prowess.Catalog) -> None:
    """S1-41: the names are returned, sorted; their tools go unless another skill needs them."""
    session = prowess.Session(catalog, tools="any")
    for name in ("reply", "refund", "audit"):
        session.activate(name)
    assert session.set_filter("skills/billing/*") == ("audit", "reply")
    assert (session.active_skills, session.active_tools) == (("refund",), ("lookup", "refund"))
    assert session.set_filter("") == ()
    assert session.active_skills == ("refund",)


def test_a_filter_given_with_a_call_replaces_the_sessions(catalog: prowess.Catalog) -> None:
    """S1-42: for that call only, also by an empty one."""
    session = prowess.Session(catalog, filter="skills/support/*")
    assert session.activate("refund", filter="skills/billing/*").instructions == "Refund it."
    assert session.activate("audit", filter="").instructions == "Audit it."
    with pytest.raises(prowess.SkillFilteredError):
        session.activate("reply", filter="skills/billing/*")
    assert shown(session) == ["reply"]
    session.set_filter("skills/**")
    assert shown(session) == ["audit", "refund", "reply"]


def test_an_ambient_filter_narrows_every_other(catalog: prowess.Catalog) -> None:
    """S1-42: nothing around is the empty filter; inside a block both have to let a skill through, also nested ones."""
    session = prowess.Session(catalog, filter="skills/**")
    assert prowess.current_skill_filter() == ""
    with prowess.skill_filter("skills/billing"):
        assert prowess.current_skill_filter() == "skills/billing"
        assert shown(session) == ["audit", "refund"]
        with pytest.raises(prowess.SkillFilteredError):
            session.activate("reply", filter="")
        with prowess.skill_filter("**/audit"):
            assert shown(session) == ["audit"]
    assert prowess.current_skill_filter() == ""
    assert shown(session) == ["audit", "refund", "reply"]


def test_an_ambient_filter_is_that_of_its_thread_and_its_task(catalog: prowess.Catalog) -> None:
    """S1-42: nobody else's calls are narrowed."""
    session = prowess.Session(catalog)
    elsewhere: list[list[str]] = []

    async def narrowed(pattern: str, ready: asyncio.Barrier) -> list[str]:
        with prowess.skill_filter(pattern):
            await ready.wait()
            return shown(session)

    async def both() -> list[list[str]]:
        ready = asyncio.Barrier(2)
        return list(await asyncio.gather(narrowed("skills/billing/*", ready), narrowed("skills/support/*", ready)))

    with prowess.skill_filter("none"):
        thread = threading.Thread(target=lambda: elsewhere.append(shown(session)))
        thread.start()
        thread.join()
    assert elsewhere == [["audit", "greet", "refund", "reply"]]
    assert asyncio.run(both()) == [["refund"], ["reply"]]


def test_what_is_filtered_is_out_of_everything(catalog: prowess.Catalog) -> None:
    """S1-42: active skills, their tools and what they allow, listings and reads, for as long as the block lasts."""
    session = prowess.Session(catalog, tools="any")
    session.activate("refund")
    with prowess.skill_filter("skills/support"):
        assert (session.active_skills, session.active_tools) == ((), ())
        assert session.allows("refund") == "not-mentioned"
        with pytest.raises(prowess.SkillFilteredError):
            session.read_resource("refund", "SKILL.md")
    assert (session.active_skills, session.allows("refund")) == (("refund",), "allowed")


def test_a_call_of_a_tool_heeds_both_filters(catalog: prowess.Catalog) -> None:
    """S1-43: the session's own and the ambient one, in every dialect."""
    session = prowess.Session(catalog, filter="skills/billing")
    for dialect in prowess.DIALECTS:
        toolset = prowess.Toolset(session, dialect)
        tool = toolset.tools()[0]
        key = tool.parameters["required"][0]
        assert not toolset.call(tool.name, {key: "refund"}).is_error, dialect
        assert toolset.call(tool.name, {key: "reply"}).is_error, dialect
        with prowess.skill_filter("**/audit"):
            assert not toolset.call(tool.name, {key: "audit"}).is_error, dialect
            assert toolset.call(tool.name, {key: "refund"}).is_error, dialect


def test_the_index_is_a_heading_and_a_line_for_each_skill(put: Put, tmp_path: Path) -> None:
    """S1-44: by name; a sentence when there is none."""
    put("pdf", description="Fills forms.")
    put("csv", description="Profiles tables.")
    session = prowess.Session(prowess.scan(tmp_path))
    assert session.index() == "Available skills:\n- csv: Profiles tables.\n- pdf: Fills forms."
    assert prowess.Session(prowess.Catalog()).index() == "No skills available."


def test_the_index_can_be_of_one_folder(catalog: prowess.Catalog) -> None:
    """S1-44: by virtual path."""
    session = prowess.Session(catalog)
    assert shown(session, under="skills/billing") == ["audit", "refund"]
    assert session.index(under="skills/none") == "No skills available."


def test_an_entry_of_the_index_is_one_line(put: Put, tmp_path: Path) -> None:
    """S1-44: a line break in a description cannot add an entry."""
    put("pdf", description='"a\\n- other: b"')
    assert prowess.Session(prowess.scan(tmp_path)).index() == "Available skills:\n- pdf: a - other: b"


def test_the_index_has_what_the_filter_lets_through_active_or_not(catalog: prowess.Catalog) -> None:
    """S1-45: a skill that cannot be activated is not offered; one that is active already still is."""
    session = prowess.Session(catalog, filter="skills/billing")
    session.activate("refund")
    assert shown(session) == ["audit", "refund"]


class Picks:
    """A selector that answers what it was made with, and remembers what it was asked."""

    def __init__(self, answer: Iterable[str] | Exception, *, strict: bool = False) -> None:
        self.answer = answer
        self.strict = strict
        self.asked: list[tuple[str, list[tuple[str, str]]]] = []

    def select(self, query: str, candidates: Sequence[prowess.Skill]) -> Iterable[str]:
        self.asked.append((query, [(skill.name, skill.description) for skill in candidates]))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class AwaitedPicks(Picks):
    """The same, to be awaited."""

    def select(self, query: str, candidates: Sequence[prowess.Skill]) -> Awaitable[Iterable[str]]:  # type: ignore[override]
        async def answer() -> Iterable[str]:
            await asyncio.sleep(0)
            return Picks.select(self, query, candidates)

        return answer()


@pytest.mark.parametrize("kind", [Picks, AwaitedPicks])
def test_a_selector_is_asked_when_there_is_a_query(kind: type[Picks], catalog: prowess.Catalog) -> None:
    """S1-46: with the query and what the filter lets through, names and descriptions."""
    selector = kind(["reply", "audit"])
    session = prowess.Session(catalog, selector=selector, filter="skills/billing")
    assert shown(session) == ["audit", "refund"]
    assert selector.asked == []
    assert shown(session, "check the books") == ["audit"]
    assert selector.asked == [("check the books", [("audit", "Does one thing."), ("refund", "Does one thing.")])]


def test_a_selector_gets_the_query_that_this_system_documents(put: Put, tmp_path: Path) -> None:
    """S1-46: its text and its kind, as plain strings. For every other selector it is the text itself."""

    class Picker:
        strict = False

        def select(self, query: prowess.SkillQuery, candidates: Sequence[prowess.Skill]) -> list[str]:
            asked.append((type(query.text), query.text, query.kind, query == "a form", query.upper()))
            return [candidate.name for candidate in candidates if "form" in candidate.description]

    put("pdf", description="Fills a form.")
    put("csv")
    asked: list[tuple[type, str, str, bool, str]] = []
    catalog = prowess.scan(tmp_path)
    for selector in (
        Picker(),
        prowess.SelectorChain(prowess.ModelDrivenSelector(), Picker()),
        prowess.RerankSelector(Picker(), lambda _query, skills: [skill.name for skill in skills]),
        prowess.AutoSelector(budget=10, base=Picker()),
    ):
        session = prowess.Session(catalog, selector=selector)
        assert [skill.name for skill in session.candidates("a form")] == ["pdf"]
    assert asked == [(str, "a form", "skill", True, "A FORM")] * 4


@pytest.mark.parametrize("kind", [Picks, AwaitedPicks])
@pytest.mark.parametrize("answer", [[], ["nope"], RuntimeError("down")])
def test_a_selector_that_finds_nothing_or_fails_shows_everything(
    kind: type[Picks], answer: list[str] | Exception, catalog: prowess.Catalog
) -> None:
    """S1-46: a conversation never ends because selection failed."""
    session = prowess.Session(catalog, selector=kind(answer))
    assert shown(session, "query") == list(catalog.names)


def test_the_index_is_by_name_whatever_a_selector_prefers(catalog: prowess.Catalog) -> None:
    """S1-46: unknown names among its answer are ignored."""
    session = prowess.Session(catalog, selector=Picks(["reply", "nope", "audit", "reply"]))
    assert shown(session, "query") == ["audit", "reply"]


@pytest.mark.parametrize("answer", [[], ["nope"], RuntimeError("down")])
def test_a_strict_selector_needs_no_query_and_may_leave_nothing(
    answer: list[str] | Exception, catalog: prowess.Catalog
) -> None:
    """S1-46: it is a filter, so whatever it does not name is not shown."""
    assert shown(prowess.Session(catalog, selector=Picks(["reply"], strict=True))) == ["reply"]
    assert prowess.Session(catalog, selector=Picks(answer, strict=True)).index() == "No skills available."


def test_the_selector_of_a_session_is_consulted_and_can_be_replaced(catalog: prowess.Catalog) -> None:
    """S1-47: at its making, later by another, and by none."""
    session = prowess.Session(catalog, selector=Picks(["reply"]))
    assert shown(session, "query") == ["reply"]
    session.set_selector(Picks(["greet"]))
    assert shown(session, "query") == ["greet"]
    session.set_selector(None)
    assert shown(session, "query") == list(catalog.names)


def test_the_model_driven_selector_names_everything_in_order(catalog: prowess.Catalog) -> None:
    """S1-48: whatever the query; nothing for nothing."""
    selector = prowess.ModelDrivenSelector()
    assert selector.select("query", catalog.skills[::-1]) == list(catalog.names[::-1])
    assert selector.select("query", ()) == []


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (["pdf"], ["both", "list", "meta"]),
        ([" pdf ", " pdf", ""], ["both", "list", "meta"]),
        (["forms", "csv"], ["both", "csv", "meta"]),
        (["PDF"], []),
        (["none"], []),
        ([], []),
        (["", " "], []),
    ],
)
def test_the_tag_selector_shows_the_skills_that_share_a_tag(
    wanted: list[str], names: list[str], put: Put, tmp_path: Path
) -> None:
    """S1-48: from metadata and from tags, case counts, a skill without tags is left out; it needs no query."""
    put("meta", fields='metadata:\n  tags: "pdf , forms,"\n')
    put("list", fields="tags: [pdf, print]\n")
    put("both", fields="tags: [forms]\nmetadata:\n  tags: pdf\n")
    put("csv", fields="metadata:\n  tags: csv\n")
    put("bare")
    catalog = prowess.scan(tmp_path)
    assert prowess.TagSelector(wanted).select("", catalog.skills) == names
    session = prowess.Session(catalog, selector=prowess.TagSelector(wanted))
    assert shown(session) == names
    assert shown(session, "any query") == names


def test_selectors_can_follow_each_other(put: Put, tmp_path: Path) -> None:
    """S1-48: tags first, then words among what has them."""
    put("invoice-pdf", fields="tags: [billing]\n", description="Prints invoices.")
    put("invoice-csv", fields="tags: [billing]\n", description="Exports tables.")
    put("printer", description="Prints invoices on paper.")
    chain = prowess.SelectorChain(prowess.TagSelector(["billing"]), prowess.LexicalSelector(limit=1))
    session = prowess.Session(prowess.scan(tmp_path), selector=chain)
    assert shown(session, "prints invoices") == ["invoice-pdf"]
    assert shown(session) == ["invoice-csv", "invoice-pdf"]


def test_preloaded_skills_are_active_from_the_start_and_do_not_count(put: Put, tmp_path: Path) -> None:
    """S1-49: neither against the limit when they are loaded nor later; their tools are granted under the ceiling."""
    put("pre/a", fields="allowed-tools: Read Write\n")
    put("pre/b")
    put("more/c")
    put("more/d")
    catalog = prowess.Catalog.from_sources(
        [prowess.Source.directory(tmp_path / "pre", preload=True), prowess.Source.directory(tmp_path / "more")]
    )
    session = prowess.Session(catalog, tools=["Read"], max_active=1)
    assert (session.active_skills, session.active_tools) == (("a", "b"), ("Read",))
    session.activate("c")
    with pytest.raises(prowess.MaxActiveError):
        session.activate("d")


def test_a_mount_in_a_list_of_sources_is_kept(put: Put, tmp_path: Path) -> None:
    """S1-49: so that the filters of a session see it."""
    put("src/billing/refund")
    file = tmp_path / "sources.yaml"
    file.write_text("- path: src\n  mount_as: skills\n", encoding="utf-8")
    catalog = prowess.Catalog.from_sources(prowess.load_sources(file))
    assert shown(prowess.Session(catalog, filter="skills/billing/*")) == ["refund"]
