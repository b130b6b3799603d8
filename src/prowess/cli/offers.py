"""The skills that a source offers: for people, as data, and as a list to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.cli.issues import issue_to_dict
from prowess.cli.picker import Choice, pick_names
from prowess.cli.render.blocks import Block, Line, Style, Title, line, span_text
from prowess.cli.terminal import open_terminal
from prowess.install.offer_text import summarize_offer
from prowess.text.quantities import format_count, join_first

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import prowess

_MAX_SHOWN = 5
_MAX_FINDINGS = 10
_COST_NOTE = "to list: a line with its path (prowess prompt --style xml); 'prowess prompt' has what your dialect costs"


def offer_to_blocks(offer: prowess.Offer) -> Iterator[Block]:
    """Return an offer for people: the source, then each skill, those of a plugin together, then plugins elsewhere."""
    yield Title(str(offer.spec), summarize_offer(offer))
    grouped = {plugin.name for plugin in offer.plugins}
    for skill in offer.skills:
        if skill.plugin not in grouped:
            yield from skill_to_blocks(skill)
    for plugin in offer.plugins:
        if not plugin.skills:
            continue
        yield Title(f"plugin {plugin.name}", f"prowess install {offer.spec}@{plugin.name}")
        yield line((" ".join(plugin.description.split()), "dim"), indent=2, cut=True)
        shown = [skill for skill in offer.skills if skill.plugin == plugin.name]
        for skill in shown:
            yield from skill_to_blocks(skill)
        others = [name for name in plugin.skills if name not in {skill.name for skill in shown}]
        if others:
            note = f"its own {', '.join(others)}: unless you choose this plugin, others with these names count"
            yield line((note, "dim"), indent=2)
    if offer.skills:
        yield line((_COST_NOTE, "dim"))
    elsewhere = [plugin for plugin in offer.plugins if plugin.source or plugin.problem]
    if elsewhere:
        yield Title("plugins elsewhere", f"{len(elsewhere)}: 'prowess install {offer.spec}@PLUGIN --list' shows one")
        for plugin in elsewhere:
            style: Style = "dim" if plugin.source else "warn"
            yield line((plugin.name, "name"), (f"  {plugin.source or plugin.problem}", style), indent=2)
            yield line(" ".join(plugin.description.split()), indent=4, cut=True)


def skill_to_blocks(skill: prowess.OfferedSkill) -> Iterator[Block]:
    """Return one offered skill for people: its description, its cost, what would run, and what is wrong with it."""
    internal = (("  only when it is named", "dim"),) if skill.is_internal else ()
    yield line((skill.name, "name"), (f"  {_describe_cost(skill)}", "dim"), *internal, indent=2)
    yield line(" ".join(skill.description.split()), indent=4, cut=True)
    for what, texts in (
        ("would run", skill.commands),
        ("could run", skill.scripts),
        ("asks for", skill.powers),
        ("allowed tools", skill.allowed_tools),
    ):
        if texts:
            yield line(
                (f"{what}: ", "warn"), join_first([" ".join(text.split()) for text in texts], _MAX_SHOWN), indent=4
            )
    findings = [issue for issue in skill.issues if issue.severity != "info"]
    for issue in findings[:_MAX_FINDINGS]:
        yield line((f"{issue.severity}: ", "warn"), f"[{issue.code}] {issue.field} {issue.message}", indent=4)
    if len(findings) > _MAX_FINDINGS:  # one skill full of findings must not push the others off the screen
        more = format_count(len(findings) - _MAX_FINDINGS, "more finding")
        yield line((f"and {more}; --list --json has all of them", "warn"), indent=4)


def _describe_cost(skill: prowess.OfferedSkill) -> str:
    return f"{skill.listing_tokens:,} tokens to list, {skill.body_tokens:,} in its instructions"


def pick_skills(offer: prowess.Offer, preset: Sequence[str]) -> list[str] | None:
    """Return the names of the skills that a person chooses on the terminal, or ``None`` without a terminal."""
    with open_terminal() as terminal:
        if terminal is None:
            return None
        heading = f"{summarize_offer(offer)}: {offer.spec}"
        return pick_names([_to_choice(skill) for skill in offer.skills], preset, heading, terminal)


def _to_choice(skill: prowess.OfferedSkill) -> Choice:
    findings = [issue for issue in skill.issues if issue.severity != "info"]
    marks = (
        f"plugin {skill.plugin}" if skill.plugin else "",
        "runs code" if skill.acts else "",
        format_count(len(findings), "finding") if findings else "",
        "only when it is named" if skill.is_internal else "",
    )
    short = ", ".join((f"{skill.body_tokens:,} tokens", *filter(None, marks)))
    # The first two lines are the name and the description, which the list shows by itself.
    _, _, *details = skill_to_blocks(skill)
    return Choice(
        skill.name, " ".join(skill.description.split()), short, (_describe_cost(skill), *map(_block_to_text, details))
    )


def _block_to_text(block: Block) -> str:
    return "".join(span_text(span) for span in block.spans) if isinstance(block, Line) else ""


def offer_to_dict(offer: prowess.Offer) -> dict[str, object]:
    """Return an offer as data."""
    return {
        "source": str(offer.spec),
        "commit": offer.commit,
        "date": offer.date.isoformat() if offer.date else None,
        "bytes": offer.bytes,
        "complete": offer.is_complete,
        "skills": [
            {
                "name": skill.name,
                "description": skill.description,
                "folder": skill.folder,
                "listing_tokens": skill.listing_tokens,
                "body_tokens": skill.body_tokens,
                "files": list(skill.files),
                "bytes": skill.bytes,
                "complete": skill.is_complete,
                "commands": list(skill.commands),
                "scripts": list(skill.scripts),
                "powers": list(skill.powers),
                "allowed_tools": list(skill.allowed_tools),
                "internal": skill.is_internal,
                "plugin": skill.plugin,
                "issues": [issue_to_dict(issue) for issue in skill.issues],
            }
            for skill in offer.skills
        ],
        "plugins": [
            {
                "name": plugin.name,
                "description": plugin.description,
                "skills": list(plugin.skills),
                "source": str(plugin.source) if plugin.source else None,
                "problem": plugin.problem,
            }
            for plugin in offer.plugins
        ],
        "issues": [issue_to_dict(issue) for issue in offer.issues],
    }
