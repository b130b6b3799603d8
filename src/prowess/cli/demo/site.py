"""A web site on loopback that publishes one skill, for the demonstration."""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

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
