"""The page of one skill and the pages of its files, without a browser."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.errors import UnknownSkillError
from prowess.installed.scopes import project_scope
from prowess.web.app import create_app
from prowess.web.library import Library
from prowess.web.pages.library import make_library_view
from prowess.web.pages.skill import make_file_view, make_skill_view
from prowess.web.skill_rows import make_skill_id
from tests.mcp_peers import Plan, skill_md
from tests.web.browser import TOKEN, Browser

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Put = Callable[..., Path]
    Make = Callable[[], Library]
    Browse = Callable[[], Browser]

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


# -- its text ----------------------------------------------------------------------------------------------------------


def test_the_page_shows_the_description_and_the_instructions_as_html(put: Put, browse: Browse) -> None:
    put("skills/pdf", "name: pdf\ndescription: Reads forms.\n", body="# Forms\n\nRead **every** form.\n\n- one\n")
    page = browse().get("/skills/pdf").page
    assert page.text_of("p", class_="lead") == ["Reads forms."]
    assert page.text_of("strong") == ["every"]
    assert "Forms" in page.text_of("h3")  # the page has the first two levels for itself
    assert "one" in page.text_of("li")


def test_the_page_says_what_the_skill_needs_and_shows_no_value(
    put: Put, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAS_KEY", "s3cret-value")
    fields = "requires:\n  tools: [web_search]\n  env: [HAS_KEY, LACKS_KEY]\n"
    put("skills/pdf", f"name: pdf\ndescription: Reads forms.\n{fields}")
    answer = browse().get("/skills/pdf")
    shown = [text for text in answer.page.text_of("li") if "KEY" in text or "web_search" in text]
    assert shown == ["tool web_search", "variable HAS_KEY (set here)", "variable LACKS_KEY (not set here)"]
    assert "s3cret-value" not in answer.text


def test_the_raw_text_has_its_findings_at_their_lines(put: Put, browse: Browse, library: Make) -> None:
    put("skills/pdf", "name: pdf\ndescription: Reads forms.\ncolour: green\n", body="See [more](references/none.md).\n")
    view = make_skill_view(library(), {"id": "pdf"})
    marked = {line.number: {finding.code for finding in line.findings} for line in view.raw if line.findings}
    assert "unknown-field" in marked[4]
    assert "missing-reference" in marked[6]
    page = browse().get("/skills/pdf").page
    assert "missing-reference" in page.text_of("tr", id="L6")[0]
    assert page.find("a", href="#L6")


def test_a_file_that_does_not_load_has_a_page_with_its_text_and_the_reason(put: Put, browse: Browse) -> None:
    folder = put("skills/bad", "name: [\n", body="# Bad\n")
    answer = browse().get(f"/skills/{make_skill_id('bad', str(folder / 'SKILL.md'))}")
    assert answer.status == 200
    assert "This does not load" in answer.page.text_of("p", class_="problem")[0]
    assert "name: [" in answer.page.text_of("tr", id="L2")[0]


def test_a_text_that_is_too_long_is_cut_and_the_page_says_so(put: Put, tmp_path: Path) -> None:
    put("skills/long", body="word\n" * 100)
    library = Library(prowess.scan(tmp_path / "skills"), limits=prowess.Limits(max_page_chars=50))
    view = make_skill_view(library, {"id": "long"})
    assert view.is_cut
    assert len(view.body) == 50
    assert len(view.raw) < 20


def test_a_skill_that_changes_while_it_is_shown_is_shown_as_it_is_now(put: Put, browse: Browse) -> None:
    put("skills/pdf", body="Before.\n")
    browser = browse()
    assert "Before." in browser.get("/skills/pdf").text
    put("skills/pdf", body="After.\n")
    assert "After." in browser.get("/skills/pdf").text


def test_a_skill_that_is_gone_is_a_problem_on_its_page_and_no_error(put: Put, browse: Browse) -> None:
    folder = put("skills/pdf")
    browser = browse()
    (folder / "SKILL.md").unlink()
    answer = browser.get("/skills/pdf")
    assert answer.status == 200
    assert answer.page.find("p", class_="problem")


def test_an_id_that_no_skill_has_names_the_skills_there_are(put: Put, library: Make) -> None:
    put("skills/pdf")
    with pytest.raises(UnknownSkillError, match="pdf"):
        make_skill_view(library(), {"id": "pdg"})


# -- what would run ----------------------------------------------------------------------------------------------------


def test_exactly_what_would_run_is_highlighted(put: Put, browse: Browse) -> None:
    folder = put("skills/act", body="Today is !`date +%F`, and `ls` is only text.\n\n```!\nuname -a\n```\n")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "go.py").write_text("print(1)\n", encoding="utf-8")
    page = browse().get("/skills/act").page
    assert page.text_of("pre", class_="runs") == ["date +%F", "uname -a"]
    assert page.text_of("mark", class_="runs") == ["!`date +%F`", "```!", "uname -a", "```"]
    assert page.text_of("a", class_="runs") == ["scripts/go.py"]
    assert "not trusted" in page.text_of("span", class_="mark-not")


def test_a_skill_that_forks_says_that_a_sub_agent_would_run(put: Put, browse: Browse) -> None:
    put("skills/apart", "name: apart\ndescription: Works apart.\ncontext: fork\nmodel: small\n")
    text = browse().get("/skills/apart").text
    assert "A sub-agent with its instructions" in text
    assert "the model <bdi>small</bdi>" in text
    assert "Nothing: it has no commands" not in text


def test_a_grant_and_a_later_change_are_shown(put: Put, tmp_path: Path, library: Make) -> None:
    put("skills/act", body="It is !`date`.\n")
    prowess.Trust(tmp_path / "trust.json").grant(prowess.scan(tmp_path / "skills")["act"])
    opened = library()
    assert make_skill_view(opened, {"id": "act"}).trust == "trusted"
    put("skills/act", body="It is !`rm -r x`.\n")
    assert make_skill_view(library(), {"id": "act"}).trust == "changed since trusted"
    assert make_skill_view(opened, {"id": "act"}).trust == "changed since trusted"  # also where nothing is watched


# -- where it comes from -----------------------------------------------------------------------------------------------


@pytest.fixture
def installed(put: Put, tmp_path: Path) -> Callable[[], Library]:
    """A library with one skill that is installed for a project, and linked for Claude Code."""
    put("source/notes", "name: notes\ndescription: Writes notes.\n")
    project = tmp_path / "project"
    installer = prowess.Installer(tmp_path / "user", project / ".prowess" / "skills")
    installer.install_local(str(tmp_path / "source" / "notes"), project=True, agents=["claude-code"])

    def make() -> Library:
        return Library(
            prowess.scan(project / ".agents" / "skills", follow_links=True),
            installer=installer,
            scopes=(project_scope(project / ".prowess" / "skills"),),
        )

    return make


def test_an_installed_skill_shows_its_lock_entry_its_digest_and_its_links(installed: Make, tmp_path: Path) -> None:
    view = make_skill_view(installed(), {"id": "notes"})
    assert view.install is not None
    assert view.install.state == "verified"
    assert sorted(view.install.links) == [".agents/skills/notes", ".claude/skills/notes"]
    assert view.digest
    assert dict(view.agents)["claude-code"] == "linked"
    page = Browser(create_app(installed(), token=TOKEN)).get("/skills/notes").page
    assert str(tmp_path / "source" / "notes") in " ".join(page.text_of("dd"))


def test_an_edited_install_shows_which_files_differ(installed: Make, tmp_path: Path) -> None:
    (tmp_path / "project" / ".agents" / "skills" / "notes" / "SKILL.md").write_text(
        "---\nname: notes\ndescription: Edited.\n---\nx\n", encoding="utf-8"
    )
    view = make_skill_view(installed(), {"id": "notes"})
    assert view.install is not None
    assert view.install.state == "changed since installed"
    assert [str(difference) for difference in view.install.differences] == ["SKILL.md is not what the lock file says"]


def test_the_library_shows_what_is_installed_edited_outdated_and_where(installed: Make, tmp_path: Path) -> None:
    library = installed()
    assert [row.marks for row in make_library_view(library, {"agent": "claude-code"}).rows] == [("verified",)]
    assert make_library_view(library, {"source": str(tmp_path / "source" / "notes")}).total == 1
    assert make_library_view(library, {"source": "elsewhere"}).total == 0
    assert make_library_view(library, {"show": "outdated"}).total == 0
    with (tmp_path / "source" / "notes" / "SKILL.md").open("a", encoding="utf-8") as file:
        file.write("More.\n")
    browser = Browser(create_app(library, token=TOKEN))
    assert "were not asked yet" in browser.get("/?show=outdated").text
    browser.submit("/?show=outdated", "/outdated")
    assert make_library_view(library, {"show": "outdated"}).rows[0].marks == ("verified", "outdated")
    (tmp_path / "project" / ".agents" / "skills" / "notes" / "more.md").write_text("x", encoding="utf-8")
    assert make_library_view(installed(), {"show": "changed"}).total == 1


def test_a_lock_file_in_conflict_is_a_problem_on_the_page_and_hides_no_skill(installed: Make, tmp_path: Path) -> None:
    lock = tmp_path / "project" / "prowess.lock"
    lock.write_text(f"<<<<<<< HEAD\n{lock.read_text(encoding='utf-8')}=======\n>>>>>>> theirs\n", encoding="utf-8")
    browser = Browser(create_app(installed(), token=TOKEN))
    page = browser.get("/").page
    assert "lock-conflict" in page.text_of("p", class_="problem")[0]
    assert "notes" in page.text_of("tr")[1]
    assert browser.get("/skills/notes").status == 200
    assert browser.get("/?agent=claude-code").status == 200


def test_a_skill_names_what_it_shadows_and_a_copy_names_the_winner(put: Put, browse: Browse, library: Make) -> None:
    put("skills/a/pdf", "name: pdf\ndescription: The first.\n")
    put("skills/b/pdf", "name: pdf\ndescription: The second.\n")
    ((lost_id, lost),) = make_skill_view(library(), {"id": "pdf"}).shadowed
    page = browse().get(f"/skills/{lost_id}").page
    assert lost.location.endswith("b/pdf/SKILL.md")
    assert page.text_of("p", class_="lead") == ["The second."]
    assert page.find("a", href="/skills/pdf")


def test_the_frontmatter_is_shown_with_fields_that_nobody_knows(put: Put, library: Make) -> None:
    put("skills/pdf", "name: pdf\ndescription: Reads.\nlicense: MIT\nmetadata:\n  team: docs\ncolour: green\n")
    fields = dict(make_skill_view(library(), {"id": "pdf"}).fields)
    assert fields["license"] == "MIT"
    assert fields["metadata.team"] == "docs"
    assert fields["colour"] == "green"


# -- what resembles it -------------------------------------------------------------------------------------------------


def test_the_nearest_neighbours_say_what_tells_them_apart(put: Put, library: Make) -> None:
    put("skills/pdf-forms", "name: pdf-forms\ndescription: Fills in forms of PDF files.\n")
    put("skills/pdf-merge", "name: pdf-merge\ndescription: Merges several PDF files.\n")
    put("skills/weather", "name: weather\ndescription: Tells tomorrow's temperature.\n")
    (neighbour,) = make_skill_view(library(), {"id": "pdf-forms"}).neighbours
    assert neighbour.name == "pdf-merge"
    assert "pdf" in neighbour.why
    assert "forms" in neighbour.only_here
    assert "merges" in neighbour.only_there


def test_the_authors_own_queries_are_judged(put: Put, library: Make) -> None:
    folder = put("skills/pdf", "name: pdf\ndescription: Fills in forms of PDF files.\n")
    put("skills/csv", "name: csv\ndescription: Sums the columns of a table.\n")
    (folder / "evals").mkdir()
    cases = [{"query": "fill in this pdf form"}, {"query": "sum the columns"}]
    (folder / "evals" / "triggers.json").write_text(json.dumps(cases), encoding="utf-8")
    report = make_skill_view(library(), {"id": "pdf"}).evals
    assert report is not None
    assert [result.outcome for result in report.results] == ["hit", "miss"]
    assert report.results[1].ahead[0].name == "csv"


# -- its files ---------------------------------------------------------------------------------------------------------


def test_a_text_file_is_shown_and_a_script_says_that_it_only_is_shown(put: Put, browse: Browse) -> None:
    folder = put("skills/act")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "go.sh").write_text("echo <b>\n", encoding="utf-8")
    browser = browse()
    link = next(e for e in browser.get("/skills/act").page.find("a") if e.text == "scripts/go.sh")
    page = browser.get(link.attributes["href"]).page
    assert page.text_of("pre") == ["echo <b>"]
    assert "only shown" in page.text_of("p", class_="note")[0]


def test_an_image_is_shown_by_what_it_is_and_not_by_its_name(put: Put, browse: Browse) -> None:
    folder = put("skills/pic", body="![A picture](assets/a.png)\n")
    (folder / "assets").mkdir()
    (folder / "assets" / "a.png").write_bytes(PNG)
    (folder / "assets" / "b.png").write_bytes(b"<svg onload=alert(1)>")
    browser = browse()
    (image,) = browser.get("/skills/pic").page.find("img")
    answer = browser.get(image.attributes["src"])
    assert (answer.headers["content-type"], answer.body) == ("image/png", PNG)
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert browser.get("/skills/pic/image?path=assets/b.png").status == 422
    assert browser.get("/skills/pic/files?path=assets/b.png").page.text_of("pre") == ["<svg onload=alert(1)>"]


@pytest.mark.parametrize("path", ["../other/SKILL.md", "/etc/passwd", "..%2f..%2fetc/passwd", "", "a%00b", "link"])
def test_no_file_outside_of_the_skill_is_shown(put: Put, tmp_path: Path, browse: Browse, path: str) -> None:
    folder = put("skills/pdf")
    put("skills/other", body="Secret.\n")
    (folder / "link").symlink_to(tmp_path / "skills" / "other" / "SKILL.md")
    browser = browse()
    for page in ("files", "image"):
        answer = browser.get(f"/skills/pdf/{page}?path={path}")
        assert answer.status in {404, 422}
        assert "Secret" not in answer.text


def test_bytes_that_are_not_text_are_not_shown(put: Put, library: Make) -> None:
    folder = put("skills/pdf")
    (folder / "data.bin").write_bytes(b"\x00\xff")
    view = make_file_view(library(), {"id": "pdf", "path": "data.bin"})
    assert (view.text, view.is_image, view.size) == (None, False, 2)


# -- of a server -------------------------------------------------------------------------------------------------------


def test_looking_at_a_skill_of_a_server_reads_nothing_from_it_and_approves_nothing(tmp_path: Path) -> None:
    plan = Plan(tmp_path)
    files = {"SKILL.md": skill_md("notes", body="Run !`date`.\n"), "scripts/go.py": b"print(1)\n"}
    plan.add("notes", files, **{"allowed-tools": "Bash"})
    approvals = prowess.Approvals(tmp_path / "approvals.json")
    with prowess.Source.mcp("docs", command=plan.command(), approvals=approvals) as source:
        library = Library(source.load())
        browser = Browser(create_app(library, token=TOKEN))
        asked = plan.asked()
        (row,) = library.state.rows
        page = browser.get(f"/skills/{row.id}").page
        assert browser.get("/?q=notes&counts=1").status == 200
        assert browser.get(f"/skills/{row.id}/files?path=scripts/go.py").status == 404
        assert plan.asked() == asked
    assert "It fetches nothing, loads nothing and approves nothing." in page.text_of("p", class_="note")[0]
    assert "scripts/go.py" in " ".join(page.text_of("li"))
    assert not (tmp_path / "approvals.json").exists()
