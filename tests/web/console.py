"""A console over a home folder and a project of its own, for tests that make changes as a person would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import prowess
from prowess.installed.scopes import standard_scopes
from prowess.web.app import ALL_ACTIONS, create_app
from prowess.web.library import Library
from prowess.web.plans import ResultFile
from tests.web.browser import TOKEN, Answer, Browser, Page

if TYPE_CHECKING:
    from pathlib import Path

    from tests.install.conftest import World

_MAX_LOOKS = 2_000


class Console:
    """The console of the skills in the standard places of a ``World``, and a browser that is signed in."""

    def __init__(
        self, world: World, actions: frozenset[str] = ALL_ACTIONS, installer: prowess.Installer | None = None
    ) -> None:
        self.world = world
        self.trust = prowess.Trust(world.base / "trust.json")
        self.installer = installer or prowess.Installer()
        self.library = Library(
            prowess.discover(),
            installer=self.installer,
            scopes=standard_scopes(str(world.project), str(world.home), {}),
            trust=self.trust,
        )
        self.results = world.base / "state" / "results.json"
        results = ResultFile(str(self.results), str(world.project), self.library.limits)
        app = create_app(self.library, token=TOKEN, actions=actions, results=results)
        self.browser = Browser(app)

    def plan(self, page: str = "/changes", **fields: str) -> PlanPage:
        """Ask for a change on a page, and return the page of its plan once the plan is ready."""
        return self.open_plan(self.browser.submit(page, "/plans", fields))

    def open_plan(self, answer: Answer) -> PlanPage:
        assert answer.status == 303, answer.text
        return PlanPage(self, answer.headers["location"])


class PlanPage:
    """The page of a plan, which is loaded again until the plan does not work any more."""

    def __init__(self, console: Console, address: str) -> None:
        self._console, self.address = console, address
        for _ in range(_MAX_LOOKS):
            answer = console.browser.get(address)
            assert answer.status == 200, answer.text
            self.page: Page = answer.page
            if not self.page.find("progress"):
                return
        raise AssertionError(f"{address} works for ever")

    @property
    def state(self) -> str:
        return self.page.text_of("small")[0]

    @property
    def steps(self) -> list[str]:
        return self._items("steps")

    @property
    def result(self) -> list[str]:
        return self._items("result")

    @property
    def text(self) -> str:
        return self.page.text_of("main")[0]

    def _items(self, list_class: str) -> list[str]:
        """The text of the items of the lists with a class."""
        inside = False
        items: list[str] = []
        for element in self.page.elements:
            if element.tag in {"ol", "ul"}:
                inside = element.attributes.get("class") == list_class
            elif element.tag == "li" and inside:
                items.append(element.text)
        return items

    def take_step(self, step: str, **fields: str) -> PlanPage:
        """Send one of the forms of the plan, and return its page afterwards."""
        answer = self._console.browser.submit(self.address, f"{self.address}/{step}", fields)
        return self._console.open_plan(answer)

    def confirm(self) -> PlanPage:
        return self.take_step("confirm")

    def again(self) -> PlanPage:
        """Send the form that asks for the same again, with the fields that it has."""
        fields = {
            element.attributes["name"]: element.attributes["value"]
            for element in self.page.find("input", type="hidden")
        }
        return self._console.open_plan(self._console.browser.post("/plans", fields))


def write_skill(folder: Path, name: str, body: str = "Do it.\n") -> Path:
    """Write a skill, and return the path of its SKILL.md."""
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nname: {name}\ndescription: Does {name}.\n---\n{body}", encoding="utf-8")
    return path
