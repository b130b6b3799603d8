"""Publishing and withdrawing versions of skills, as changes that a person confirms."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from prowess.changes.change import Change
from prowess.publishing.site import publish, unpublish
from prowess.text.quantities import format_count, format_size
from prowess.text.redaction import show_address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from prowess.publishing.site import PublishedSkill, PublishReport

_STATUS_WORDS = {
    "published": "publish",
    "unchanged": "keep",
    "yanked": "withdraw",
    "purged": "delete the bytes of",
}


def prepare_publish(skills: Sequence[str], to: str, **options: Any) -> Change[PublishReport]:
    """Return the change that publishes skills, with the keywords of ``publish``.

    Raises ``SkillError`` for what cannot be published.
    """
    return _prepare(partial(publish, skills, to, **options))


def prepare_unpublish(references: Sequence[str], to: str, **options: Any) -> Change[PublishReport]:
    """Return the change that withdraws versions, with the keywords of ``unpublish``.

    Raises ``SkillError`` for versions that cannot be withdrawn.
    """
    return _prepare(partial(unpublish, references, to, **options))


def report_to_dict(report: PublishReport, *, done: bool) -> Mapping[str, object]:
    """Return what a publication did, or would do, as data."""
    return {
        "address": report.address,
        "done": done,
        "serial": report.serial,
        "signer": report.signer,
        "skills": [
            {"name": one.name, "version": one.version, "digest": one.digest, "status": one.status, "bytes": one.size}
            for one in report.skills
        ],
        "aliases": [{"alias": alias, "name": name, "version": version} for alias, name, version in report.aliases],
        "uploads": [*report.uploads],
    }


def _prepare(run: Callable[..., PublishReport]) -> Change[PublishReport]:
    planned = run(dry_run=True)
    changed = [one for one in planned.skills if one.status != "unchanged"]
    return Change(
        steps=[*_list_steps(planned)],
        apply=lambda: run(dry_run=False),
        issues=lambda: [issue for one in changed for issue in one.issues],
        describe=lambda done: [
            f"{show_address(done.address)} is now at state {done.serial}." if done.serial else "Published."
        ],
        details=planned,
        idle_text=f"{planned.address} has it all already.",
    )


def _list_steps(planned: PublishReport) -> list[str]:
    steps = [_describe_skill(one) for one in planned.skills if one.status != "unchanged"]
    steps += [f"let {alias} mean {name}@{version}" for alias, name, version in planned.aliases]
    sent = [one for one in planned.skills if one.status == "published"]
    if sent:
        size = format_size(sum(one.size for one in sent))
        steps.append(f"send {format_count(len(sent), 'archive')}, {size}, to {show_address(planned.address)}")
    if steps and planned.signer:
        steps.append(f"sign it with the key {planned.signer}")
    return steps


def _describe_skill(one: PublishedSkill) -> str:
    return f"{_STATUS_WORDS[one.status]} {one.name}@{one.version}, digest {one.digest[:12]}"
