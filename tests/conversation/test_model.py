"""A session against a model of its rules: any sequence of calls, over real files that come, change and go."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import prowess
from prowess import Session
from tests.skill_fixtures import preloaded

FOLDERS = {"one": "a", "two": "a", "three": "b", "four": "b", "five": "a/deep", "kept": "b", "held": "a"}
PRELOADED = ("kept", "held")
NAMES = st.sampled_from(sorted(FOLDERS))
MAX_ACTIVE = 2

FILTERS: dict[str, Callable[[str], bool]] = {
    "": lambda _: True,
    "none": lambda _: False,
    "NONE": lambda _: False,
    "skills/a/*": lambda folder: folder == "a",
    "skills/a": lambda folder: folder.startswith("a"),
    "skills/b/": lambda folder: folder == "b",
    "skills/**": lambda _: True,
    "**/deep/*": lambda folder: folder == "a/deep",
    "skills/[": lambda _: False,
}
PATTERNS = st.sampled_from(sorted(FILTERS))

CEILING = ("Read", "Bash(git:*)", "Bash(npm:*)")
# What the ceiling above leaves of each tool that a skill may want.
GRANTS = {
    "Read": {"Read"},
    "Edit": set(),
    "Bash": {"Bash(git:*)", "Bash(npm:*)"},
    "Bash(git:*)": {"Bash(git:*)"},
    "Bash(rm:*)": set(),
}
TOOLS = st.frozensets(st.sampled_from(sorted(GRANTS)), max_size=3)


@dataclass(frozen=True)
class Text:
    """One version of a skill's file; no two are equal."""

    version: int
    tools: frozenset[str]

    @property
    def instructions(self) -> str:
        return "v" * self.version  # of another length in each version, however coarse the clock of the file system

    @property
    def granted(self) -> set[str]:
        return {granted for tool in self.tools for granted in GRANTS[tool]}


@dataclass
class Active:
    text: Text
    preloaded: bool = False
    stale: bool = False
    gone: bool = False


@dataclass
class Model:
    disk: dict[str, Text] = field(default_factory=dict)
    catalog: dict[str, Text] = field(default_factory=dict)
    active: dict[str, Active] = field(default_factory=dict)
    pattern: str = ""

    def passes(self, name: str, *more: str) -> bool:
        return all(FILTERS[pattern](FOLDERS[name]) for pattern in (self.pattern, *more))

    def tools(self) -> set[str]:
        return {tool for entry in self.active.values() for tool in entry.text.granted}


class Conversation(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="prowess-model-"))
        self.model = Model()
        self.versions = 0

    def teardown(self) -> None:
        rmtree(self.folder)

    # -- files ------------------------------------------------------------------------------------------------------

    def path(self, name: str) -> Path:
        return self.folder / FOLDERS[name] / name / "SKILL.md"

    def write(self, name: str, tools: frozenset[str]) -> None:
        self.versions += 1
        text = Text(self.versions, tools)
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        wanted = f"allowed-tools: {' '.join(sorted(tools))}\n" if tools else ""
        path.write_text(
            f"---\nname: {name}\ndescription: Does it.\n{wanted}---\n{text.instructions}\n", encoding="utf-8"
        )
        self.model.disk[name] = text

    def scanned(self) -> prowess.Catalog:
        every = prowess.Source.directory(self.folder, mount_as="skills")
        kept = [prowess.Source.directory(self.path(name).parent, preload=True) for name in PRELOADED]
        return prowess.Catalog.from_sources([every, *kept])

    @initialize(tools=st.fixed_dictionaries(dict.fromkeys(sorted(FOLDERS), TOOLS)), pattern=PATTERNS)
    def begin(self, tools: dict[str, frozenset[str]], pattern: str) -> None:
        for name in sorted(FOLDERS):
            self.write(name, tools[name])
        model = self.model
        model.catalog = dict(model.disk)
        self.session = Session(self.scanned(), tools=CEILING, max_active=MAX_ACTIVE)
        model.active = {name: Active(model.disk[name], preloaded=True) for name in PRELOADED}
        self.set_filter(pattern)

    @rule(name=NAMES, tools=TOOLS)
    def edit_or_add(self, name: str, tools: frozenset[str]) -> None:
        self.write(name, tools)

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        if self.model.disk.pop(name, None):
            rmtree(self.path(name).parent)

    # -- calls ------------------------------------------------------------------------------------------------------

    @rule(name=NAMES, ambient=PATTERNS)
    def activate(self, name: str, ambient: str) -> None:
        expected = self.expected_error(name, ambient)
        with prowess.skill_filter(ambient):
            if expected is not None:
                with pytest.raises(expected):
                    self.session.activate(name)
                return
            activation = self.session.activate(name)
        model = self.model
        entry = model.active.get(name)
        if entry is None or entry.stale:
            preloaded = entry is not None and entry.preloaded
            entry = model.active[name] = Active(model.disk[name], preloaded=preloaded)
        else:
            assert ("no longer exists" in activation.note) is entry.gone
        assert activation.instructions == entry.text.instructions
        assert set(activation.added_tools) == entry.text.granted

    def expected_error(self, name: str, ambient: str) -> type[prowess.SkillError] | None:
        model = self.model
        entry = model.active.get(name)
        if name not in model.catalog and entry is None:
            return prowess.UnknownSkillError
        if not model.passes(name, ambient):
            return prowess.SkillFilteredError
        if entry is not None and not entry.stale:
            return None
        counted = sum(not other.preloaded for other in model.active.values())
        if entry is None and counted >= MAX_ACTIVE:
            return prowess.MaxActiveError
        return None if name in model.disk else prowess.SkillValidationError

    @rule(name=NAMES)
    def deactivate(self, name: str) -> None:
        entry = self.model.active.pop(name, None)
        if entry is None:
            with pytest.raises(prowess.SkillNotActiveError):
                self.session.deactivate(name)
            return
        assert self.session.deactivate(name) == tuple(sorted(entry.text.granted - self.model.tools()))

    @rule(pattern=PATTERNS)
    def set_filter(self, pattern: str) -> None:
        model = self.model
        model.pattern = pattern
        ended = sorted(name for name in model.active if not model.passes(name))
        assert self.session.set_filter(pattern) == tuple(ended)
        for name in ended:
            del model.active[name]

    @rule()
    def refresh(self) -> None:
        model = self.model
        before, after = model.catalog, dict(model.disk)
        changed = {name for name in before.keys() & after.keys() if before[name] != after[name]}
        for name, entry in model.active.items():
            if name in after and not entry.gone and entry.text != after[name]:
                changed.add(name)
        report = self.session.refresh(self.scanned())
        assert report.added == tuple(sorted(after.keys() - before.keys()))
        assert report.removed == tuple(sorted(before.keys() - after.keys()))
        assert report.changed == tuple(sorted(changed))
        assert report.vanished == tuple(sorted(model.active.keys() - after.keys()))
        for name, entry in model.active.items():
            returned = entry.gone and name in after
            entry.gone = name not in after
            entry.stale = not entry.gone and (entry.stale or returned or name in changed)
        model.catalog = after

    @rule(ambient=PATTERNS, under=st.sampled_from(["", "skills/a", "skills/b"]))
    def index(self, ambient: str, under: str) -> None:
        with prowess.skill_filter(ambient):
            rows = self.session.index(under=under).split("\n")
        below = {name for name in self.model.catalog if not under or f"skills/{FOLDERS[name]}/".startswith(under + "/")}
        names = sorted(name for name in below if self.model.passes(name, ambient))
        assert rows == (["Available skills:", *(f"- {name}: Does it." for name in names)] if names else [NOTHING])

    @rule(ambient=PATTERNS)
    def look_from_inside_a_block(self, ambient: str) -> None:
        visible = {name: entry for name, entry in self.model.active.items() if self.model.passes(name, ambient)}
        with prowess.skill_filter(ambient):
            assert self.session.active_skills == tuple(sorted(visible))
            tools = {tool for entry in visible.values() for tool in entry.text.granted}
            assert self.session.active_tools == tuple(sorted(tools))

    @precondition(lambda self: all(name in self.model.disk for name in self.model.active))
    @rule()
    def save_and_restore(self) -> None:
        restored, issues = Session.restore(
            self.session.catalog, self.session.save(), tools=CEILING, max_active=MAX_ACTIVE
        )
        assert restored.filter == self.session.filter
        known = {
            name for name in self.model.active if not self.model.active[name].preloaded and name in self.model.catalog
        }
        assert known <= set(restored.active_skills)
        assert {issue.field for issue in issues if issue.code == "missing-since-saved"} <= set(
            self.model.active
        ) - known

    # -- always -----------------------------------------------------------------------------------------------------

    @invariant()
    def the_session_is_what_the_model_says(self) -> None:
        if not hasattr(self, "session"):
            return
        model = self.model
        assert self.session.active_skills == tuple(sorted(model.active))
        assert self.session.active_tools == tuple(sorted(model.tools()))
        assert self.session.filter == model.pattern
        assert set(preloaded(self.session)) == {name for name, entry in model.active.items() if entry.preloaded}

    @invariant()
    def no_more_is_active_than_the_limit_and_the_preloaded(self) -> None:
        if not hasattr(self, "session"):
            return
        active = self.session.active_skills
        assert len(active) <= MAX_ACTIVE + len(PRELOADED)
        assert all(self.model.passes(name) for name in active)
        assert all(name in self.model.catalog or self.model.active[name].gone for name in active)

    @invariant()
    def what_is_pre_approved_is_what_the_active_skills_bring(self) -> None:
        if not hasattr(self, "session"):
            return
        tools = self.model.tools()
        assert self.session.allows("Read") == ("allowed" if "Read" in tools else "not-mentioned")
        assert self.session.allows("Edit") == "refused"
        mentioned = {"Bash(git:*)", "Bash(npm:*)"} & tools
        git = "allowed" if "Bash(git:*)" in tools else "refused" if mentioned else "not-mentioned"
        assert self.session.allows("Bash", "git status") == git
        assert self.session.allows("Bash", "git status; ls") == "refused"


NOTHING = "No skills available."


def test_a_session_follows_its_rules(full: bool) -> None:
    examples, steps = (500, 60) if full else (60, 40)
    run_state_machine_as_test(
        Conversation, settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    )
