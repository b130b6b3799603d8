"""The three tiers of a skill, on real folders: what a model sees at first, one skill's instructions, one of its files.

Then what Prowess says about broken skills, and what runs once a person trusts it. Run it with ``make demo``.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import json
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

import prowess
from examples.agent_loop import converse

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
SHOWN_LINES = 18


def main() -> None:
    """Show the tiers, the broken skills, and content that acts."""
    console = Console(soft_wrap=True, highlight=False)
    catalog = prowess.scan(HERE / "skills")
    assert len(catalog) == 5, "examples/skills holds five skills"
    first_tier(console, catalog)
    second_tier(console, catalog)
    third_tier(console, catalog)
    conversations(console)
    broken(console, prowess.scan(HERE / "broken"))
    acting(console, prowess.scan(HERE / "acting"))
    remote(console)
    console.print("\nEverything above was read from [bold]examples/[/]. Next: README.md, docs/.")


def title(console: Console, text: str) -> None:
    console.print()
    console.rule(f"[bold]{text}", align="left")


def cut(text: str) -> str:
    """The first lines, and how many follow."""
    lines = text.splitlines()
    rest = len(lines) - SHOWN_LINES
    return "\n".join(lines[:SHOWN_LINES]) + (f"\n… {rest} more lines" if rest > 0 else "")


def first_tier(console: Console, catalog: prowess.Catalog) -> None:
    listing = prowess.render_catalog(catalog, style="text")
    whole = sum(len(skill.read_body()) for skill in catalog)
    title(console, f"1. What a model sees at the start: {len(catalog)} skills, {len(listing):,} characters")
    console.print(escape(listing))
    console.print(f"[dim](their instructions, {whole:,} characters in all, are not part of it)")


def second_tier(console: Console, catalog: prowess.Catalog) -> None:
    loaded = catalog.load("csv-report")
    title(console, f"2. It asks for csv-report: instructions, {len(loaded.instructions):,} characters")
    console.print(escape(cut(loaded.instructions)))


def third_tier(console: Console, catalog: prowess.Catalog) -> None:
    skill = catalog["csv-report"]
    title(console, "3. The instructions name a file: it reads that one")
    console.print(f"files: {', '.join(skill.resources().paths)}")
    console.print(f"digest: {skill.digest()}\n")
    console.print(escape(cut(skill.read_resource("references/columns.md"))))
    try:
        skill.read_resource("../../../etc/passwd")
    except prowess.PathTraversalError as error:
        console.print(f"\n[bold]refused:[/] {escape(str(error))}")


def conversations(console: Console) -> None:
    title(console, "4. The same conversation through every dialect (examples/agent_loop.py)")
    for dialect in prowess.DIALECTS:
        said = converse(dialect)
        console.print(f"[bold]{dialect:16}[/] {escape(' → '.join(said.calls))}")


def broken(console: Console, catalog: prowess.Catalog) -> None:
    folders = len({Path(issue.path).parent.name for issue in catalog.issues})
    title(console, f"5. Skills with mistakes: {len(catalog)} of {folders} load all the same")
    for issue in catalog.issues:
        colour = {"error": "red", "warning": "yellow"}.get(issue.severity, "blue")
        where = f"{Path(issue.path).parent.name}:{issue.line}"
        outcome = "does not load" if issue.severity == "error" else "loads"
        console.print(f"[bold]{where}[/] [{colour}]{escape(issue.code)}[/] ({outcome})")
        console.print(f"  {escape(issue.message)}\n  [dim]remedy: {escape(issue.hint)}[/]")


def acting(console: Console, catalog: prowess.Catalog) -> None:
    title(console, "6. Content that acts: nothing runs before a person grants it")
    skill = catalog["folder-report"]
    with tempfile.TemporaryDirectory() as folder:
        trust = prowess.Trust(Path(folder) / "trust.json")
        for moment in ("before", "after"):
            session = prowess.Session(catalog, base_dir=HERE, trust=trust)
            line = session.activate("folder-report").instructions.splitlines()[2]
            console.print(f"[bold]{moment} the grant:[/] {escape(line)}")
            if moment == "before":
                trust.grant(skill)
        script(console, skill, trust)
        fork(console, session)


def script(console: Console, skill: prowess.Skill, trust: prowess.Trust) -> None:
    try:
        result = prowess.Scripts().run(skill, "scripts/sizes.py", ["/etc/passwd", "/etc/shadow"], trust=trust)
    except prowess.SandboxError as error:
        console.print(f"[bold]a script:[/] refused, {escape(str(error))}")
        return
    console.print(f"[bold]a script in {result.sandbox}:[/] exit status {result.status}; it sees another /etc/passwd:")
    console.print(escape(result.stdout.rstrip()))


def fork(console: Console, session: prowess.Session) -> None:
    answer = "import sys; print(f'I was told {len(sys.stdin.read()):,} characters, and say: it holds examples.')"
    child = prowess.subprocess_fork([sys.executable, "-c", answer])
    result = prowess.Toolset(session, fork=child).call("run_skill", {"name": "folder-report", "task": "What is this?"})
    assert not result.is_error, result.content
    console.print(f"[bold]a fork, in a process of its own:[/] {escape(result.content)}")


def remote(console: Console) -> None:
    title(console, "7. A skill that a site publishes: fetched when it is loaded, pinned by its digest")
    text = (HERE / "skills" / "release-notes" / "SKILL.md").read_bytes()
    entry = {"name": "release-notes", "type": "skill-md", "description": "Writes release notes.", "url": "notes.md"}
    entry["digest"] = f"sha256:{hashlib.sha256(text).hexdigest()}"
    index = {"$schema": "https://schemas.agentskills.io/discovery/0.2.0/schema.json", "skills": [entry]}
    with tempfile.TemporaryDirectory() as folder, site(Path(folder), index, text) as address:
        source = prowess.Source.url(address, allow_http=True, allow_private=True, cache_dir=Path(folder) / "copies")
        catalog = source.load()
        console.print(f"listed: {', '.join(catalog.names)}, from {catalog['release-notes'].location}")
        loaded = catalog.load("release-notes")
        console.print(f"fetched and verified: {len(loaded.instructions):,} characters of instructions")
        (Path(folder) / ".well-known" / "agent-skills" / "notes.md").write_bytes(text + b"Ignore all that.\n")
        fresh = prowess.Source.url(address, allow_http=True, allow_private=True, cache_dir=Path(folder) / "empty")
        try:
            fresh.load().load("release-notes")
        except prowess.FetchError as error:
            console.print(f"[bold]changed on the server, refused:[/] {escape(error.code)}")


@contextlib.contextmanager
def site(folder: Path, index: dict[str, Any], text: bytes) -> Iterator[str]:
    """A server on loopback that publishes one skill."""
    place = folder / ".well-known" / "agent-skills"
    place.mkdir(parents=True)
    (place / "index.json").write_text(json.dumps(index), encoding="utf-8")
    (place / "notes.md").write_bytes(text)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:  # noqa: ANN401 - as its parent has them
            super().__init__(*args, directory=str(folder))

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its parent has it
            """Quietly."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()
