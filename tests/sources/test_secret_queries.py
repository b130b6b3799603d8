"""A query in a site's address is sent to that site and to nobody else, and is shown and kept nowhere."""

from __future__ import annotations

import hashlib
import json
import logging
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.web_sites import NEW, OLD, Reply, Site, sha256, skill_md

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.sources.conftest import Load
    from tests.web_sites import Asked

SECRET = "CANARY7f3a"  # noqa: S105 - it is looked for afterwards
QUERY = f"?token={SECRET}"
PDF = skill_md("pdf", "Reads PDF files.", "Read it.\n")
INDEX = f"{NEW}/index.json"


def demand(site: Site, *paths: str) -> None:
    """Have the site refuse whoever does not send the token."""
    for path in paths:
        given = site.replies.pop(path)
        site.replies[f"{path}{QUERY}"] = given
        site.put(path, b"who are you?", 403)


def seen_of(catalog: prowess.Catalog) -> str:
    """Everything that a program, a person or a model could see of a catalogue."""
    events: list[prowess.Event] = []
    session = prowess.Session(catalog, on_event=events.append)
    shown: list[object] = [catalog, catalog.issues, catalog.places, catalog.failures]
    shown += [prowess.render_catalog(catalog, style=style) for style in ("xml", "markdown", "text", "json")]
    for skill in catalog.skills:
        shown += [
            skill,
            skill.location,
            skill.to_dict(),
            skill.to_xml(),
            catalog.explain(skill.name),
            skill.virtual_path,
        ]
        try:
            shown += [session.activate(skill.name), skill.resources(), skill.load().skill.issues]
        except prowess.SkillError as error:
            shown += [error, repr(error), error.path, error.__cause__, error.__context__]
    toolset = prowess.Toolset(session)
    shown += [toolset.prompt(), toolset.tools(), events, [event.attributes() for event in events]]
    return "\n".join(f"{one} {one!r}" for one in shown)


def kept_in(cache: Path) -> str:
    """The names and the bytes of every file in the cache."""
    return "\n".join(f"{path} {path.read_bytes()!r}" for path in cache.rglob("*") if path.is_file())


@pytest.fixture(autouse=True)
def everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Have every logger tell whatever it would."""
    caplog.set_level(logging.DEBUG)


def test_a_site_is_read_with_the_query_of_its_address(
    site: Site, load: Load, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site.index(site.entry("pdf", PDF))
    demand(site, INDEX, f"{NEW}/pdf/SKILL.md")
    catalog = load(f"{site.url}/{QUERY}")
    assert catalog.load("pdf").instructions == "Read it."
    assert site.paths == [f"{INDEX}{QUERY}", f"{NEW}/pdf/SKILL.md{QUERY}"]
    assert catalog["pdf"].location == f"{site.url}{NEW}/pdf/SKILL.md"
    source = prowess.Source.url(f"{site.url}/{QUERY}")
    assert SECRET not in f"{source!r} {seen_of(catalog)} {kept_in(cache)} {caplog.text}"


def test_listed_files_are_read_with_the_query_too(site: Site, load: Load, cache: Path) -> None:
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF, "references/a.md": b"text"}))
    demand(site, f"{OLD}/index.json", f"{OLD}/pdf/SKILL.md", f"{OLD}/pdf/references/a.md")
    catalog = load(f"{site.url}{QUERY}")
    assert catalog["pdf"].read_resource("references/a.md") == "text"
    assert SECRET not in seen_of(catalog) + kept_in(cache)


def test_no_name_in_the_cache_lets_a_guess_of_the_query_be_confirmed(site: Site, load: Load, cache: Path) -> None:
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF}))
    demand(site, f"{OLD}/index.json", f"{OLD}/pdf/SKILL.md")
    load(f"{site.url}{QUERY}").load("pdf")
    guesses = (f"{site.url}{QUERY}", f"{site.url}{OLD}/index.json{QUERY}", f"token={SECRET}", SECRET, QUERY)
    hashes = [hashlib.new(name, guess.encode()).hexdigest() for name in ("sha256", "sha1", "md5") for guess in guesses]
    assert not any(digest[2:16] in kept_in(cache) for digest in hashes)


def test_what_one_query_gave_is_not_given_for_another(site: Site, load: Load) -> None:
    for team in ("red", "blue"):
        site.index(site.entry(team, skill_md(team)), Cache_Control="max-age=600")
        site.replies[f"{INDEX}?team={team}"] = site.replies.pop(INDEX)
    assert load(f"{site.url}?team=red").names == ("red",)
    assert load(f"{site.url}?team=blue").names == ("blue",)
    assert load().names == ()


def _wrong_bytes(site: Site) -> None:
    site.put(f"{NEW}/pdf/SKILL.md", b"evil")
    site.put(f"{NEW}/pdf/SKILL.md{QUERY}", b"evil")


def _no_json(site: Site) -> None:
    site.put(f"{INDEX}{QUERY}", b"{")


def _no_index(site: Site) -> None:
    site.replies.clear()


def _busy(site: Site) -> None:
    site.put(f"{INDEX}{QUERY}", b"", 503)


def _not_allowed(site: Site) -> None:
    site.put(f"{INDEX}{QUERY}", b"", 403)


def _leads_away(site: Site) -> None:
    site.put(f"{INDEX}{QUERY}", b"", 302, Location=f"https://evil.example/{QUERY}")


def _leads_to_a_password(site: Site) -> None:
    site.put(f"{INDEX}{QUERY}", b"", 302, Location=f"http://me:{SECRET}@127.0.0.1/x")


def _leads_round(site: Site) -> None:
    site.put(f"{INDEX}{QUERY}", b"", 302, Location=f"{INDEX}{QUERY}")


def _odd_entry(site: Site) -> None:
    entry = site.entry("odd", skill_md("odd"))
    rows = [entry | {"url": f"https://evil.example/x{QUERY}"}, entry | {"url": f"//me:{SECRET}@127.0.0.1/x"}]
    rows += [
        entry | {"name": "Bad Name!", "url": f"x.md{QUERY}"},
        entry | {"description": "d" * 2000, "url": f"y{QUERY}"},
    ]
    body = json.dumps({"$schema": "https://schemas.agentskills.io/discovery/0.2.0/schema.json", "skills": rows})
    site.put(f"{INDEX}{QUERY}", body.encode())


def _stopped(site: Site) -> None:
    site.stop()


@pytest.mark.parametrize(
    "spoil",
    [_wrong_bytes, _no_json, _no_index, _busy, _not_allowed, _leads_away, _leads_to_a_password, _leads_round,
     _odd_entry, _stopped],
)  # fmt: skip
def test_no_failure_shows_the_query(
    site: Site, load: Load, cache: Path, spoil: Callable[[Site], None], caplog: pytest.LogCaptureFixture
) -> None:
    site.index(site.entry("pdf", PDF))
    demand(site, INDEX, f"{NEW}/pdf/SKILL.md")
    address = f"{site.url}/{QUERY}"
    load(address)
    spoil(site)
    catalog = load(address)
    said = seen_of(catalog)
    try:
        said += seen_of(load(address, missing="error", prefetch=True))
    except prowess.FetchError as error:
        said += f"{error} {error!r} {error.path} {error.__cause__} {error.__context__}"
    assert catalog.issues or spoil is _wrong_bytes
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith("httpcore2")]
    assert SECRET not in f"{said} {kept_in(cache)} {ours}"  # the HTTP client's own log repeats a server's headers


@pytest.mark.parametrize(
    "address", [f"https://me:{SECRET}@h.example", f"https://h.example/#{SECRET}", f"me:{SECRET}@h"]
)
def test_an_address_that_is_refused_is_not_repeated(load: Load, address: str) -> None:
    with pytest.raises(prowess.SourceError) as caught:
        load(address)
    assert SECRET not in f"{caught.value} {caught.value!r} {prowess.Source.url(address)!r}"


def test_the_signature_of_an_entry_is_used_and_neither_shown_nor_kept(site: Site, load: Load, cache: Path) -> None:
    entries = []
    for name in ("pdf", "csv"):
        content = skill_md(name)
        site.put(f"/get?skill={name}&sig={SECRET}", content)
        url = f"/get?skill={name}&sig={SECRET}"
        entries.append({"name": name, "type": "skill-md", "description": "d", "url": url, "digest": sha256(content)})
    site.index(*entries)
    catalog = load()
    assert [catalog.load(name).skill.name for name in ("pdf", "csv")] == ["pdf", "csv"]
    assert catalog["pdf"].location == f"{site.url}/get"
    names = [str(path) for path in cache.rglob("*")]
    assert (
        SECRET not in f"{seen_of(catalog)} {names} {kept_in(cache / 'urls')}"
    )  # the index itself says it, and is kept


def test_the_query_goes_to_the_site_itself_only(site: Site, load: Load) -> None:
    with Site() as other:
        other.put("/pdf.md", PDF)
        site.index(site.entry("pdf", PDF) | {"url": f"{other.url}/pdf.md"})
        catalog = load(f"{site.url}{QUERY}", allow_redirects_to=[f"127.0.0.1:{other.port}"])
        assert not catalog
        demand(site, INDEX)
        catalog = load(f"{site.url}{QUERY}", allow_redirects_to=[f"127.0.0.1:{other.port}"])
        assert catalog.load("pdf").instructions
        assert other.paths == ["/pdf.md"]


def test_where_a_redirect_of_the_index_led_is_kept_without_its_signature(site: Site, load: Load, cache: Path) -> None:
    site.index(site.entry("pdf", PDF))
    signed = site.replies.pop(INDEX)

    def lead(asked: Asked) -> Reply:
        assert asked.path == INDEX
        return Reply(status=302, headers={"Location": f"{INDEX}?sig={SECRET}"})

    site.replies |= {INDEX: lead, f"{INDEX}?sig={SECRET}": signed}
    for _ in range(2):
        catalog = load()
        assert catalog.load("pdf").instructions == "Read it."
    site.put(INDEX, b"", 503)
    catalog = load()
    assert "stale-index" in [issue.code for issue in catalog.issues]
    assert SECRET not in seen_of(catalog) + kept_in(cache)


@pytest.mark.parametrize("value", [f"{SECRET}\n", f"{SECRET}\r\nX: y", f"{SECRET}\0", f"{SECRET}\N{EURO SIGN}"])
def test_a_header_that_cannot_be_sent_is_refused_without_its_value(site: Site, load: Load, value: str) -> None:
    headers = {"Authorization": f"Bearer {value}"}
    for ask in (lambda: load(headers=headers), lambda: prowess.Source.mcp("team", url="https://h", headers=headers)):
        with pytest.raises(prowess.SourceError) as caught:
            ask()
        assert "'Authorization'" in str(caught.value)
        assert SECRET not in f"{caught.value} {caught.value!r} {caught.value.__cause__} {caught.value.__context__}"
    assert site.asked == []
