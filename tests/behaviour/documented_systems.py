"""The cases of all five systems, and the table that counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.behaviour import (
    documented_docker_agent,
    documented_drover_skills,
    documented_go_skill,
    documented_llm_agents_from_scratch,
    documented_promptkit,
)

if TYPE_CHECKING:
    from tests.behaviour.documented import Case


class System(NamedTuple):
    """A system: its name and heading in ``coming-from.md``, its number in the manifest, and its cases."""

    title: str
    heading: str
    number: str
    cases: tuple[Case, ...]
    rest: tuple[str, ...]
    """Sentences of the documentation that have no case."""
    newer: tuple[Case, ...] = ()
    """Cases of what newer versions document by name alone; what it does is in the manifest."""


SYSTEMS = (
    System("Go `skill`", "Go skill", "S0", documented_go_skill.CASES, documented_go_skill.REST),
    System("PromptKit", "PromptKit", "S1", documented_promptkit.CASES, documented_promptkit.REST),
    System("docker-agent", "docker-agent", "S2", documented_docker_agent.CASES, documented_docker_agent.REST),
    System("@drover/skills", "@drover/skills", "S3", documented_drover_skills.CASES, documented_drover_skills.REST),
    System(
        "llm_agents_from_scratch",
        "llm_agents_from_scratch",
        "S4",
        documented_llm_agents_from_scratch.CASES,
        documented_llm_agents_from_scratch.REST,
        documented_llm_agents_from_scratch.NEWER,
    ),
)
"""In the order of the documents that the cases quote."""


def write_counts() -> str:
    """Return the table of cases, as Markdown."""
    rows = ["| system | cases | the same | another, documented | another, undocumented |", "|---|--:|--:|--:|--:|"]
    for system in SYSTEMS:
        for title, cases in ((system.title, system.cases), (f"{system.title}, newer versions", system.newer)):
            if cases:
                other = sum(bool(case.differs) for case in cases)
                rows.append(f"| {title} | {len(cases)} | {len(cases) - other} | {other} | 0 |")
    return "\n".join(rows) + "\n"
