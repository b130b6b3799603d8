"""The page "Changes" and its plans, without a browser: plan, choice, confirmation, result, and refusals."""

from __future__ import annotations

import asyncio
import gc
import re
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.fetch.git.process import GitProgram
from prowess.files.tree import digest_tree
from prowess.limits import Limits
from prowess.lockfile.read import parse_lock
from prowess.lockfile.write import lock_text
from prowess.policy.rules import Rule
from prowess.web.app import ALL_ACTIONS, create_app
from prowess.web.change_feed import ChangeFeed, stream_events
from prowess.web.forms import PREPARATIONS, Fields, prepare_skill_grant
from prowess.web.library import Library, open_library
from prowess.web.pages.changes import make_changes_view
from prowess.web.plans import PLAN_KINDS, PlanBook, UnknownPlanError
from prowess.web.rendering import REMEDIES
from tests.web.browser import TOKEN, Browser
from tests.web.console import Console, write_skill

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tests.install.conftest import World
    from tests.repositories import Repository

    Open = Callable[..., Console]


def install(console: Console, repository: Repository) -> None:
    """Install a repository for the project, without the console."""
    console.installer.install(repository.address, project=True)


# -- installing --------------------------------------------------------------------------------------------------------


def test_an_install_is_planned_confirmed_and_can_be_read_later(world: World, console: Open) -> None:
    opened = console()
    plan = opened.plan(kind="install", source=world.repository("pdf").address, scope="project")
    assert plan.state == "ready"
    assert plan.steps[0].startswith("fetch ")
    assert "record it in prowess.lock" in plan.steps
    assert not world.lock.exists()
    done = plan.confirm()
    assert done.state == "done"
    assert done.result[0].startswith("Installed ")
    assert world.lock.exists()
    assert (world.agents / "pdf").is_symlink()
    later = opened.browser.get("/changes").page
    assert later.find("a", href=plan.address)
    assert "Installed " in later.text_of("section", id="plans")[0]


def test_a_source_with_several_skills_asks_which_and_installs_only_those(world: World, console: Open) -> None:
    repository = world.repository("tools", "one", "two", "three")
    repository.write("two/scripts/run.sh", "echo\n", executable=True)
    repository.commit()
    choice = console().plan(kind="install", source=repository.address, scope="project")
    assert choice.state == "choosing"
    boxes = {box.attributes["value"]: "checked" in box.attributes for box in choice.page.find("input", type="checkbox")}
    assert boxes == {"one": True, "two": True, "three": True}
    assert "could run: scripts/run.sh" in choice.text
    ready = choice.take_step("choose", skill="two")
    assert ready.state == "ready"
    assert ready.confirm().state == "done"
    assert sorted(path.name for path in world.agents.iterdir()) == ["two"]


def test_a_choice_of_nothing_is_asked_for_again(world: World, console: Open) -> None:
    choice = console().plan(kind="install", source=world.repository("tools", "one", "two").address, scope="user")
    again = choice.take_step("choose")
    assert again.state == "choosing"
    assert "no skill was chosen" in again.text


def test_a_plan_that_is_given_up_does_nothing(world: World, console: Open) -> None:
    plan = console().plan(kind="install", source=world.repository().address, scope="project")
    assert plan.take_step("discard").state == "discarded"
    assert not world.lock.exists()


def test_what_is_installed_is_what_the_offer_showed(world: World, console: Open) -> None:
    repository = world.repository("pdf")
    plan = console().plan(kind="install", source=repository.address, scope="project")
    repository.skill("", body="Something else.\n")
    repository.commit()
    assert plan.confirm().state == "done"
    assert "Do it." in (world.agents / "pdf" / "SKILL.md").read_text(encoding="utf-8")


def test_a_plan_older_than_the_lock_file_is_refused_and_can_be_made_again(world: World, console: Open) -> None:
    opened = console()
    plan = opened.plan(kind="install", source=world.repository("pdf").address, scope="project")
    install(opened, world.repository("csv"))
    before = world.lock.read_bytes()
    refused = plan.confirm()
    assert refused.state == "refused"
    assert "prowess.lock" in refused.text
    assert world.lock.read_bytes() == before
    again = refused.again()
    assert again.state == "ready"
    assert again.confirm().state == "done"


def test_a_confirmation_from_a_second_tab_does_not_repeat_the_change(world: World, console: Open) -> None:
    opened = console()
    plan = opened.plan(kind="install", source=world.repository("pdf").address, scope="project")
    token = opened.browser.get("/changes").page.find("input", name="form-token")[0].attributes["value"]
    first = plan.confirm()
    second = opened.open_plan(opened.browser.post(f"{plan.address}/confirm", {"form-token": token}))
    assert first.state == second.state == "done"
    assert first.result == second.result


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source": "", "scope": "project"}, "name a source"),
        ({"source": "./nowhere", "scope": "project"}, "nowhere"),
        ({"source": "./nowhere", "scope": "everyone"}, "the scope must be"),
    ],
)
def test_what_cannot_be_planned_says_why(console: Open, fields: dict[str, str], message: str) -> None:
    plan = console().plan(kind="install", **fields)
    assert plan.state == "failed"
    assert message in plan.text


def test_a_place_that_is_taken_is_refused_before_anything_is_fetched(world: World, console: Open) -> None:
    opened = console()
    repository = world.repository("pdf")
    install(opened, repository)
    plan = opened.plan(kind="install", source=repository.address, scope="project")
    assert plan.state == "failed"
    assert "already" in plan.text
    assert "tick “Replace an existing one” when you install it" in plan.text


def test_remedies_name_what_the_page_has_and_no_python(console: Open) -> None:
    page = console().browser.get("/changes").text
    for remedy in REMEDIES.values():
        assert "=True" not in remedy
        assert all(title in page for title in re.findall("“(.+?)”", remedy))


# -- updating ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def outdated(world: World, console: Open) -> tuple[Console, Repository]:
    """A console with one install whose source has a newer commit."""
    repository = world.repository("pdf")
    repository.skill("", body="One.\nTwo.\nThree.\n")
    repository.commit()
    opened = console()
    install(opened, repository)
    repository.skill("", body="One.\nNewer.\nThree.\n")
    repository.commit()
    return opened, repository


def test_an_update_shows_the_three_sides_before_it_is_made(world: World, outdated: tuple[Console, Repository]) -> None:
    opened, _ = outdated
    plan = opened.plan(kind="update")
    assert plan.state == "ready"
    assert plan.steps[0].startswith("update ")
    cells = plan.page.text_of("td")
    assert cells[cells.index("Two.") : cells.index("Two.") + 3] == ["Two.", "Two.", "Newer."]
    done = plan.confirm()
    assert done.state == "done"
    assert done.result[0].startswith("Updated ")
    assert "Newer." in (world.agents / "pdf" / "SKILL.md").read_text(encoding="utf-8")


def test_an_update_is_refused_when_the_source_moved_on(world: World, outdated: tuple[Console, Repository]) -> None:
    opened, repository = outdated
    plan = opened.plan(kind="update")
    repository.skill("", body="Nobody has seen this.\n")
    repository.commit()
    refused = plan.confirm()
    assert refused.state == "refused"
    assert "the source of " in refused.text
    assert "Two." in (world.agents / "pdf" / "SKILL.md").read_text(encoding="utf-8")


def test_an_update_is_refused_when_somebody_edited_the_files(
    world: World, outdated: tuple[Console, Repository]
) -> None:
    opened, _ = outdated
    plan = opened.plan(kind="update")
    path = world.agents / "pdf" / "SKILL.md"
    path.write_text(path.read_text(encoding="utf-8") + "Mine.\n", encoding="utf-8")
    assert plan.confirm().state == "refused"
    assert "Mine." in path.read_text(encoding="utf-8")


def test_an_edited_install_is_kept_until_somebody_overwrites_it(
    world: World, outdated: tuple[Console, Repository]
) -> None:
    opened, _ = outdated
    path = world.agents / "pdf" / "SKILL.md"
    path.write_text(path.read_text(encoding="utf-8").replace("Two.", "Mine."), encoding="utf-8")
    kept = opened.plan(kind="update")
    assert kept.state == "done"
    assert kept.steps == []
    assert kept.result[0].startswith("Nothing is updated. local/pdf is kept as it is, since it was")
    cells = kept.page.text_of("td")
    assert cells[cells.index("Mine.") : cells.index("Mine.") + 3] == ["Mine.", "Two.", "Newer."]
    assert len(kept.page.find("tr", class_="conflict")) == 1
    forced = kept.again()
    assert forced.state == "ready"
    assert "a backup of them is kept" in forced.steps[0]
    assert forced.confirm().state == "done"
    assert "Newer." in path.read_text(encoding="utf-8")
    assert opened.installer.backups()


def test_a_form_means_the_installs_that_the_command_line_would_mean(
    world: World, outdated: tuple[Console, Repository]
) -> None:
    opened, repository = outdated
    own = opened.installer.install(f"{repository.address}#v1")
    opened.installer.update("@local/pdf@main", location="user", save=False)
    (own / "SKILL.md").write_text("mine", encoding="utf-8")
    form = opened.browser.get("/changes").page
    chosen = [box.attributes["value"] for box in form.find("input", name="scope") if "checked" in box.attributes]
    assert chosen == ["project"] * 4, "the forms for an install, an update, a sync and a verification"
    assert "all as the lock files say" in opened.plan(kind="verify").text
    assert "SKILL.md" in opened.plan(kind="verify", scope="user").text
    assert opened.plan(kind="update", scope="user").steps == []
    plan = opened.plan(kind="update")
    assert len(plan.steps) == 1
    assert plan.confirm().state == "done"
    assert "Newer." in (world.agents / "pdf" / "SKILL.md").read_text(encoding="utf-8")
    assert (own / "SKILL.md").read_text(encoding="utf-8") == "mine"


def test_nothing_newer_is_nothing_to_do(world: World, console: Open) -> None:
    opened = console()
    install(opened, world.repository())
    plan = opened.plan(kind="update")
    assert (plan.state, plan.steps) == ("done", [])
    assert "nothing to update" in plan.text


# -- syncing and verifying ---------------------------------------------------------------------------------------------


def test_a_sync_puts_back_what_is_missing(world: World, console: Open) -> None:
    opened = console()
    install(opened, world.repository("pdf"))
    (world.agents / "pdf").unlink()
    plan = opened.plan(kind="sync", scope="project")
    assert plan.state == "ready"
    assert plan.confirm().state == "done"
    assert (world.agents / "pdf").is_symlink()
    assert opened.plan(kind="sync", scope="project").state == "done"


def test_a_sync_is_refused_when_an_install_was_edited_since_the_plan(world: World, console: Open) -> None:
    opened = console()
    install(opened, world.repository("pdf"))
    path = world.agents / "pdf" / "SKILL.md"
    path.write_text("edited", encoding="utf-8")
    plan = opened.plan(kind="sync", scope="project")
    assert "replaces files that somebody changed by hand, and keeps a backup" in plan.text
    path.write_text("edited again", encoding="utf-8")
    assert plan.confirm().state == "refused"
    assert path.read_text(encoding="utf-8") == "edited again"


def test_a_verification_names_every_file_that_differs_and_needs_no_confirmation(world: World, console: Open) -> None:
    opened = console()
    install(opened, world.repository("pdf"))
    assert "all as the lock files say" in opened.plan(kind="verify").text
    (world.agents / "pdf" / "SKILL.md").write_text("edited", encoding="utf-8")
    plan = opened.plan(kind="verify")
    assert plan.state == "done"
    assert not plan.page.find("button", class_="primary")
    assert "SKILL.md" in plan.page.text_of("ul", class_="findings")[0]


# -- trust -------------------------------------------------------------------------------------------------------------


def test_trust_shows_what_would_run_and_holds_for_exactly_that(world: World, console: Open) -> None:
    write_skill(world.agents, "one", "Run !`date` first.\n")
    opened = console()
    plan = opened.plan(kind="trust", skill="one")
    assert plan.state == "ready"
    assert plan.page.text_of("pre", class_="runs") == ["date"]
    assert plan.confirm().state == "done"
    assert opened.trust.is_trusted(prowess.discover()["one"])


def test_trust_shows_what_a_person_would_not_see(world: World, console: Open) -> None:
    write_skill(world.agents, "one", "Run !`echo \u00ad\u3164\ufe0f` first.\n")
    plan = console().plan(kind="trust", skill="one")
    assert plan.page.text_of("pre", class_="runs") == ["echo \\xad\\u3164\\ufe0f"]


def test_a_skill_that_changed_since_it_was_shown_is_not_trusted(world: World, console: Open) -> None:
    path = write_skill(world.agents, "one", "Run !`date` first.\n")
    opened = console()
    plan = opened.plan(kind="trust", skill="one")
    path.write_text(path.read_text(encoding="utf-8").replace("date", "rm -rf ~"), encoding="utf-8")
    assert plan.confirm().state == "refused"
    assert opened.trust.grants() == ()


FLIP = """
import os, sys
path, *texts = sys.argv[1:]
print("ready", flush=True)
while True:
    for text in texts:
        with open(path + ".new", "w") as file:
            file.write(text)
        os.rename(path + ".new", path)
"""


def test_a_plan_shows_what_the_digest_is_of_while_files_flip(world: World, console: Open) -> None:
    commands: dict[str, str] = {}
    texts: list[str] = []
    for command in ("date", "rm -rf ~"):
        path = write_skill(world.agents, "one", f"Run !`{command}` first.\n")
        texts.append(path.read_text(encoding="utf-8"))
        commands[prowess.discover()["one"].digest()] = command
    library = console().library
    aside = world.base / "one.md"  # beside the skill: the digest is of everything in its folder
    flip = FLIP.replace('path + ".new"', repr(str(aside)))
    with subprocess.Popen([sys.executable, "-c", flip, str(path), *texts], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            shown = set()
            for _ in range(300):
                with suppress(prowess.SkillError):
                    shown |= set(prepare_skill_grant(library, Fields({"skill": ["one"]})).details)
        finally:
            process.kill()
    assert {one.digest for one in shown} == set(commands)
    assert [one for one in shown if one.contents.commands != (commands[one.digest],)] == []


def test_a_grant_is_revoked_by_its_skill_or_by_its_digest(world: World, console: Open) -> None:
    write_skill(world.agents, "one", "Run !`date` first.\n")
    opened = console()
    for fields in ({"skill": "one"}, {"digest": prowess.discover()["one"].digest()}):
        opened.trust.grant(prowess.discover()["one"])
        assert "Revoke" in opened.browser.get("/changes").page.text_of("table")[0]
        plan = opened.plan(kind="revoke", **fields)
        assert plan.confirm().result == ["Revoked 1 grant"]
        assert opened.trust.grants() == ()
    assert "there is no such grant" in opened.plan(kind="revoke", skill="one").text


def test_a_revocation_is_refused_when_the_grants_changed_since_the_plan(world: World, console: Open) -> None:
    for name in ("one", "two"):
        write_skill(world.agents, name, "Run !`date` first.\n")
    opened = console()
    opened.trust.grant(prowess.discover()["one"])
    plan = opened.plan(kind="revoke", skill="one")
    opened.trust.grant(prowess.discover()["two"])
    refused = plan.confirm()
    assert refused.state == "refused"
    assert "trust.json" in refused.text
    assert len(opened.trust.grants()) == 2


def test_a_name_that_no_skill_has_is_not_trusted(console: Open) -> None:
    plan = console().plan(kind="trust", skill="nobody")
    assert plan.state == "failed"
    assert "nobody" in plan.text


# -- a lock file in conflict -------------------------------------------------------------------------------------------


def _update_all(lock: str, digit: str) -> str:
    """The lock file after an update of each install to another commit, with other files."""
    updated = {}
    for name, entry in parse_lock(lock).items():
        files = {path: file._replace(sha256=digit * 64) for path, file in entry.files.items()}
        updated[name] = replace(entry, commit=digit * 40, files=files, digest=digest_tree(files))
    return lock_text(updated) or ""


@pytest.fixture
def conflict(world: World, console: Open) -> Console:
    """A console of a project whose lock file is in conflict about two installs."""
    opened = console()
    for name in ("pdf", "csv"):
        install(opened, world.repository(name))
    base = world.lock.read_text(encoding="utf-8")
    mine, theirs = (_update_all(base, digit) for digit in "12")
    world.lock.write_text(prowess.merge_locks(base, mine, theirs).text, encoding="utf-8")
    return opened


def test_a_lock_file_in_conflict_is_merged_entry_by_entry(world: World, conflict: Console) -> None:
    text = world.lock.read_text(encoding="utf-8")
    assert "is in conflict" in conflict.browser.get("/changes").text
    choice = conflict.plan(kind="lock", scope="project")
    assert choice.state == "choosing"
    fields = [box.attributes["name"] for box in choice.page.find("input", type="radio", value="mine")]
    assert len(fields) == 2
    undecided = choice.take_step("choose", **{fields[0]: "mine"})
    assert undecided.state == "choosing"
    assert "choose a side for" in undecided.text
    ready = undecided.take_step("choose", **{fields[0]: "mine", fields[1]: "theirs"})
    assert [step.split()[1] for step in ready.steps[:2]] == ["my", "their"]
    assert world.lock.read_text(encoding="utf-8") == text
    assert ready.confirm().state == "done"
    merged = world.lock.read_text(encoding="utf-8")
    assert "<<<<<<<" not in merged
    assert re.findall('commit = "(.)', merged) == ["1", "2"]


def test_a_merge_is_refused_when_the_lock_file_changed_since_its_sides_were_read(
    world: World, conflict: Console
) -> None:
    choice = conflict.plan(kind="lock", scope="project")
    fields = {box.attributes["name"]: "mine" for box in choice.page.find("input", type="radio", value="mine")}
    world.lock.write_text(world.lock.read_text(encoding="utf-8") + "\n# somebody\n", encoding="utf-8")
    ready = choice.take_step("choose", **fields)
    assert ready.confirm().state == "refused"
    assert "# somebody" in world.lock.read_text(encoding="utf-8")


def test_a_lock_file_without_a_conflict_is_left_alone(console: Open) -> None:
    assert "is in no conflict" in console().plan(kind="lock", scope="project").text


# -- who may ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(PLAN_KINDS))
def test_a_console_plans_only_what_it_allows(world: World, console: Open, kind: str) -> None:
    write_skill(world.agents, "one")
    opened = console(actions=ALL_ACTIONS - {PLAN_KINDS[kind].action})
    token = opened.browser.get("/changes").page.find("input", name="form-token")[0].attributes["value"]
    answer = opened.browser.post("/plans", {"form-token": token, "kind": kind})
    assert answer.status == 403
    assert "does not allow" in answer.text


def test_a_console_that_only_shows_has_no_forms(world: World, console: Open) -> None:
    write_skill(world.agents, "one")
    opened = console(actions=frozenset())
    opened.trust.grant(opened.library.catalog["one"])
    assert "What is trusted" in opened.browser.get("/changes").text
    for page in ("/changes", "/agents", "/skills/one"):
        assert not opened.browser.get(page).page.find("form", method="post")
    assert opened.browser.post("/plans", {"kind": "verify"}).status == 405


def test_a_form_without_a_token_makes_no_plan(console: Open) -> None:
    opened = console()
    assert opened.browser.post("/plans", {"kind": "verify"}).status == 403
    assert "None yet" in opened.browser.get("/changes").text


def test_a_form_that_names_no_change_and_a_plan_that_is_unknown_say_so(console: Open) -> None:
    opened = console()
    answer = opened.browser.submit("/changes", "/plans", {"kind": "destroy"})
    assert answer.status == 422
    unknown = opened.browser.get("/plans/nothing")
    assert unknown.status == 404
    assert "no such plan" in unknown.text


def test_a_library_without_an_installer_offers_no_installs(
    put: Callable[..., Path], library: Callable[[], Library]
) -> None:
    put("skills/one")
    browser = Browser(create_app(library(), token=TOKEN))
    page = browser.get("/changes").page
    assert not page.find("form")
    book = PlanBook(library())
    plan = book.wait(book.make_plan("verify", Fields({})).id, 10)
    assert plan.state == "failed"
    assert plan.error is not None
    assert "no installs" in plan.error.message


def test_every_kind_of_plan_can_be_prepared() -> None:
    assert PREPARATIONS.keys() == PLAN_KINDS.keys()
    assert {kind.action for kind in PLAN_KINDS.values()} == ALL_ACTIONS - {"outdated"}


# -- the book of plans ---------------------------------------------------------------------------------------------


def test_the_oldest_plans_are_forgotten(put: Callable[..., Path], tmp_path: Path) -> None:
    put("skills/one")
    limits = Limits(max_console_plans=2)
    book = PlanBook(Library(prowess.scan(tmp_path / "skills"), limits=limits))
    plans = []
    for _ in range(4):
        plans.append(book.make_plan("verify", Fields({})))
        book.wait(plans[-1].id, 10)
    assert [plan.id for plan in book.list_plans()] == [plan.id for plan in reversed(plans[-2:])]
    with pytest.raises(UnknownPlanError):
        book.get(plans[0].id)


def test_plans_that_nobody_confirms_are_bounded(world: World, console: Open) -> None:
    opened = console()
    opened.library.limits = Limits(max_open_console_plans=2)
    book = PlanBook(opened.library)
    fields = Fields({"source": [str(world.folder())], "scope": ["project"]})
    plans = [book.wait(book.make_plan("install", fields).id, 10) for _ in range(3)]
    assert [plan.state for plan in plans] == ["ready"] * 3
    assert [book.get(plan.id).state for plan in plans] == ["discarded", "ready", "ready"]
    discarded = book.get(plans[0].id).change
    assert discarded is not None
    assert discarded.apply() == ()  # it does not hold on to its files


def test_plans_that_wait_for_others_are_bounded_and_the_next_is_refused(world: World, console: Open) -> None:
    opened = console()
    install(opened, world.repository("csv"))
    begun, go_on = threading.Event(), threading.Event()
    program = GitProgram(Limits())

    def wait_and_run(args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        begun.set()
        assert go_on.wait(60)
        return program(args, cwd, env)

    opened = Console(world, installer=prowess.Installer(git=wait_and_run))
    most = Limits().max_open_console_plans
    token = opened.browser.get("/changes").page.find("input", name="form-token")[0].attributes["value"]
    form = {"form-token": token, "kind": "update"}
    answers = [opened.browser.post("/plans", form) for _ in range(most + 2)]
    assert begun.wait(60)
    assert [answer.status for answer in answers] == [303] * most + [503] * 2
    assert "nothing was done" in answers[-1].text
    go_on.set()
    assert opened.open_plan(answers[0]).state == "done"
    assert opened.browser.post("/plans", form).status == 303


def test_the_policy_of_the_host_counts_in_the_thread_of_the_plans(world: World, console: Open) -> None:
    book = PlanBook(console().library)
    fields = Fields({"source": [str(world.folder())], "scope": ["project"]})
    with prowess.use_policy(prowess.Policy((Rule("sources.allow", ("https://git.example/**",), "the host"),))):
        plan = book.make_plan("install", fields)
    plan = book.wait(plan.id, 10)
    assert plan.error is not None
    assert (plan.state, plan.error.code) == ("failed", "policy")
    assert book.wait(book.make_plan("install", fields).id, 10).state == "ready"


def test_a_plan_that_takes_long_shows_its_progress_and_loads_again_without_scripts(world: World, console: Open) -> None:
    opened = console()
    repositories = [world.repository(name) for name in ("csv", "pdf")]
    for repository in repositories:
        install(opened, repository)
    begun, go_on = threading.Event(), threading.Event()
    program = GitProgram(Limits())

    def wait_and_run(args: Sequence[str], cwd: str, env: Mapping[str, str]) -> bytes:
        begun.set()
        assert go_on.wait(60)
        return program(args, cwd, env)

    opened = Console(world, installer=prowess.Installer(git=wait_and_run))
    token = opened.browser.get("/changes").page.find("input", name="form-token")[0].attributes["value"]
    answer = opened.browser.post("/plans", {"form-token": token, "kind": "update"})
    assert begun.wait(60)
    address = answer.headers["location"]
    page = opened.browser.get(address).page
    assert page.find("meta", http_equiv="refresh")
    assert page.find("progress", max="2", value="0")
    assert "local/csv (0 of 2)" in page.text_of("div", role="status")[0]
    # Whoever confirms a plan too early changes nothing.
    assert opened.browser.post(f"{address}/confirm", {"form-token": token}).status == 303
    go_on.set()
    done = opened.open_plan(answer)
    assert done.state == "done"
    assert not done.page.find("meta", http_equiv="refresh")


def test_a_plan_that_is_at_its_end_holds_on_to_no_files(world: World, console: Open) -> None:
    opened = console()
    book = PlanBook(opened.library)
    fields = Fields({"source": [str(world.folder())], "scope": ["project"]})
    plan = book.wait(book.make_plan("install", fields).id, 10)
    assert plan.state == "ready"
    book.confirm(plan.id)
    done = book.wait(plan.id, 10)
    assert (done.state, done.change and done.change.steps) == ("done", plan.change and plan.change.steps)
    kept = weakref.ref(plan.change.apply) if plan.change else None
    del plan, fields
    gc.collect()
    assert kept is not None
    assert kept() is None


# -- what changes on the disk --------------------------------------------------------------------------------------


def test_the_page_names_what_was_added_changed_and_removed(put: Callable[..., Path], tmp_path: Path) -> None:
    put("skills/one")
    put("skills/two")
    with prowess.live(tmp_path / "skills", every=0.01, notice="stat") as live:
        browser = Browser(create_app(Library(live), token=TOKEN))
        assert "No skill has changed" in browser.get("/changes").text
        seen = live.catalog
        put("skills/three")
        put("skills/one", body="Do it better, and for longer.\n")
        (tmp_path / "skills/two/SKILL.md").unlink()
        while "three" not in seen or "two" in seen:
            seen = live.wait_for_change(seen, 10)
        feed = browser.get("/changes").page.text_of("section", id="feed")[0]
        assert "added: three" in feed
        assert "changed: one" in feed
        assert "removed: two" in feed


def test_the_page_says_that_a_file_beside_a_skill_changed_once_for_many_of_them(
    put: Callable[..., Path], tmp_path: Path
) -> None:
    put("skills/one")
    with prowess.live(tmp_path / "skills", every=0.01) as live:
        library = Library(live)
        feed = ChangeFeed(library)
        for number in range(2):
            seen = live.catalog
            (tmp_path / "skills/one" / f"{number}.txt").write_text("new\n", encoding="utf-8")
            while live.catalog is seen:
                live.wait_for_change(seen, 10)
            feed.refresh()
        (line,) = make_changes_view(library, {}, plans=PlanBook(library), feed=feed).feed
        assert line.what == "a file beside a SKILL.md changed"


def test_files_are_watched_from_the_second_page_on_and_no_change_in_between_is_missed(
    put: Callable[..., Path], tmp_path: Path
) -> None:
    put("skills/one")
    with open_library((str(tmp_path / "skills"),)) as library:
        browser = Browser(create_app(library, token=TOKEN))
        browser.get("/")
        assert not library.state.marks.is_followed  # the first page did not wait for the watcher
        put("skills/two")
        assert "two" in browser.get("/").text
        assert "added: two" in browser.get("/changes").page.text_of("section", id="feed")[0]
        put("skills/three")
        for _ in range(1_000):  # at most ten seconds
            if "three" in library.catalog:
                break
            time.sleep(0.01)
        assert "three" in browser.get("/").text


def test_the_start_of_watching_is_not_a_change(put: Callable[..., Path], tmp_path: Path) -> None:
    put("skills/one")
    with open_library((str(tmp_path / "skills"),)) as library:
        feed = ChangeFeed(library)
        assert library.is_live
        assert feed.refresh() == []
        assert library.state.marks.is_followed
    with open_library((str(tmp_path / "skills"),), watch=False) as library:
        ChangeFeed(library).refresh()
        assert not library.is_live


def test_a_folder_that_is_gone_when_watching_begins_is_tried_again(
    put: Callable[..., Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put("skills/one")
    with open_library((str(tmp_path / "skills"),)) as library:
        (tmp_path / "skills").rename(tmp_path / "elsewhere")
        library.follow_changes()
        library.follow_changes()
        assert (library.catalog.names, library.state.marks.is_followed) == (("one",), False)
        assert caplog.text.count("changes of the skills are not followed yet") == 1
        (tmp_path / "elsewhere").rename(tmp_path / "skills")
        library.follow_changes()
        assert library.state.marks.is_followed


def test_an_answer_of_a_source_is_not_a_change_on_the_disk(put: Callable[..., Path], tmp_path: Path) -> None:
    put("skills/one")
    library = Library(prowess.scan(tmp_path / "skills"))
    feed = ChangeFeed(library)
    library.check_for_updates()
    assert feed.refresh() == []
    assert feed.revision == 1  # pages that show what is outdated are loaded again


def test_browsers_hear_of_a_change_of_the_library_and_of_a_plan(put: Callable[..., Path], tmp_path: Path) -> None:
    put("skills/one")
    trust = prowess.Trust(tmp_path / "trust.json")
    library = Library(prowess.scan(tmp_path / "skills"), trust=trust)
    feed, book = ChangeFeed(library), PlanBook(library)

    async def listen() -> list[str]:
        stream = stream_events(feed, book, every=0.001)
        heard = [await anext(stream)]
        trust.grant(library.catalog["one"])
        heard.append(await anext(stream))
        book.wait(book.make_plan("verify", Fields({})).id, 10)
        heard.append(await anext(stream))
        await stream.aclose()  # type: ignore[attr-defined]  # an asynchronous generator
        return heard

    first, second, third = asyncio.run(listen())
    assert first.startswith("retry:")
    assert second.startswith("event: library\n")
    assert third.startswith("event: plans\n")


def test_the_stream_of_events_is_for_those_who_may_look(console: Open) -> None:
    opened = console()
    assert Browser(create_app(opened.library, token=TOKEN), signed_in=False).get("/changes/events").status == 403
    foreign = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}
    assert opened.browser.get("/changes/events", foreign).status == 403


# -- from other pages --------------------------------------------------------------------------------------------------


def test_the_page_of_a_skill_leads_to_the_plan_of_its_trust_and_of_its_update(world: World, console: Open) -> None:
    repository = world.repository("pdf")
    repository.skill("", body="Run !`date`.\n")
    repository.commit()
    prowess.Installer().install(repository.address, project=True)
    opened = console()
    skill = opened.library.catalog["pdf"]
    buttons = opened.browser.get("/skills/pdf").page.text_of("button")
    assert buttons == ["Trust it as it is now", "Compare with its source"]
    opened.trust.grant(skill)
    assert "Revoke" in opened.browser.get("/skills/pdf").page.text_of("button")
    assert opened.plan("/skills/pdf", kind="revoke", skill="pdf").confirm().state == "done"
    assert not opened.trust.is_trusted(skill)


def test_sources_are_asked_for_something_newer_from_the_page(outdated: tuple[Console, Repository]) -> None:
    opened, _ = outdated
    assert "not asked yet" in opened.browser.get("/changes").text
    answer = opened.browser.submit("/changes", "/outdated", {"from": "changes"})
    assert (answer.status, answer.headers["location"]) == (303, "/changes")
    page = opened.browser.get("/changes").page
    assert "pdf" in page.text_of("tr")[1]
    assert opened.plan(kind="update").confirm().state == "done"
    assert "no source had anything newer" in opened.browser.get("/changes").text
