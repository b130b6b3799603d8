"""What the demonstration looks at: a library of 500 skills, and a site on loopback that publishes one."""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple

import prowess

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Document(NamedTuple):
    """A kind of document: what one is called, what several are called, and what is in them."""

    one: str
    many: str
    contents: str


class _Work(NamedTuple):
    """A kind of work: the end of a skill's name, what the skill does, and when it is used."""

    suffix: str
    does: str
    when: str


_DOCUMENTS = (
    _Document("an invoice", "invoices", "amounts, tax numbers and due dates"),
    _Document("a contract", "contracts", "parties, clauses and notice periods"),
    _Document("a resume", "resumes", "jobs, degrees and skills"),
    _Document("a support ticket", "support tickets", "symptoms, versions and replies"),
    _Document("a meeting note", "meeting notes", "topics, decisions and owners"),
    _Document("a lab result", "lab results", "samples, readings and ranges"),
    _Document("a purchase order", "purchase orders", "items, quantities and prices"),
    _Document("a timesheet", "timesheets", "hours, projects and rates"),
    _Document("an expense claim", "expense claims", "receipts, trips and categories"),
    _Document("a survey answer", "survey answers", "questions, scores and comments"),
    _Document("a blog post", "blog posts", "headlines, paragraphs and links"),
    _Document("a press release", "press releases", "claims, quotes and contacts"),
    _Document("a podcast transcript", "podcast transcripts", "speakers, times and topics"),
    _Document("a sales report", "sales reports", "regions, products and quarters"),
    _Document("a tax form", "tax forms", "boxes, allowances and signatures"),
    _Document("a server log", "server logs", "hosts, requests and errors"),
    _Document("a database schema", "database schemas", "tables, keys and indexes"),
    _Document("an interface specification", "interface specifications", "paths, parameters and responses"),
    _Document("a test plan", "test plans", "steps, environments and expected results"),
    _Document("a user story", "user stories", "roles, wishes and acceptance criteria"),
    _Document("a travel itinerary", "travel itineraries", "flights, hotels and transfers"),
    _Document("a newsletter", "newsletters", "sections, images and subscribers"),
    _Document("a recipe", "recipes", "ingredients, steps and portions"),
    _Document("a lesson plan", "lesson plans", "goals, exercises and materials"),
    _Document("a floor plan", "floor plans", "rooms, doors and areas"),
)
_WORKS = (
    _Work("summary", "Summarises {many} in five lines, with {contents}", "somebody asks for the gist of {one}"),
    _Work("check", "Checks {many} for what is missing or wrong in {contents}", "{one} must be right before it is sent"),
    _Work("draft", "Writes {many} from loose notes, with {contents} in their place", "{one} has still to be written"),
    _Work("translate", "Translates {many} and leaves {contents} untouched", "{one} is in a foreign language"),
    _Work("compare", "Shows how two {many} differ, side by side, by {contents}", "there are two versions of {one}"),
    _Work("convert", "Converts {many} to PDF, Word or HTML and keeps {contents}", "{one} has the wrong file format"),
    _Work("extract", "Extracts {contents} from {many} into a table", "the data in {one} belongs in a spreadsheet"),
    _Work("redact", "Blacks out names and other personal data in {many}", "{one} is shown to people outside"),
    _Work("archive", "Names, dates and files {many} so that they are found again", "a folder of {many} is in disorder"),
    _Work("chart", "Draws charts of {contents} over all {many} of a period", "a trend over many {many} is asked for"),
    _Work("template", "Makes a template out of {many}, with blanks for {contents}", "{one} is often written anew"),
    _Work("shorten", "Cuts {many} to a given length without loss of {contents}", "{one} is too long"),
    _Work("tone", "Rewrites {many} in a friendlier, plainer or more formal voice", "{one} sounds wrong to its readers"),
    _Work("scan", "Recognises the text of scanned {many}, with {contents}", "{one} exists on paper or as a picture"),
    _Work("merge", "Merges several {many} into one and settles what they say twice", "{one} is wanted out of several"),
    _Work("approve", "Collects approvals for {many} and reminds whoever is late", "{one} needs a signature"),
    _Work("schedule", "Reads deadlines out of {many} and puts them on a calendar", "{one} names a date to keep"),
    _Work("questions", "Answers questions about {many} and quotes {contents}", "somebody asks what {one} says"),
    _Work("anonymise", "Replaces {contents} in {many} by invented ones", "{one} serves as an example or as test data"),
    _Work("history", "Follows {many} through their versions: who changed {contents}", "{one} is not what it was"),
)


def make_library() -> prowess.Catalog:
    """Return the 500 skills. They are strings in this program, so no file is read or written."""
    return prowess.Catalog.from_sources([_make_source(document, work) for document in _DOCUMENTS for work in _WORKS])


def _make_source(document: _Document, work: _Work) -> prowess.SkillSource:
    words = document._asdict()
    noun = document.one.partition(" ")[2]
    return prowess.Source.inline(
        f"{noun.replace(' ', '-')}-{work.suffix}",
        f"{work.does.format(**words)}. Use when {work.when.format(**words)}.",
        f"Ask which {document.many} are meant. Go through {document.contents}. Then report what you did.\n",
    )


_SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
_WELL_KNOWN_PATH = "/.well-known/agent-skills"


class DemoSite:
    """A site: the files that it publishes by path, and the paths that were requested."""

    def __init__(self, name: str, description: str, text: bytes) -> None:
        digest = hashlib.sha256(text).hexdigest()
        entry = {"name": name, "type": "skill-md", "description": description, "url": f"{name}.md"}
        index = {"$schema": _SCHEMA, "skills": [{**entry, "digest": f"sha256:{digest}"}]}
        self.skill_path = f"{_WELL_KNOWN_PATH}/{name}.md"
        self.files = {f"{_WELL_KNOWN_PATH}/index.json": json.dumps(index).encode(), self.skill_path: text}
        self.requested_paths: list[str] = []

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Serve the site while the block runs, and yield its address."""
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.requested_paths.append(self.path)
                body = site.files.get(self.path, b"")
                self.send_response(200 if body else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Log nothing: the output of the demonstration is its own."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:  # port 0: the system picks a free one
            # A short poll: the demonstration must not wait half a second for the server to end.
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
            try:
                yield f"http://127.0.0.1:{server.server_port}"
            finally:
                server.shutdown()
