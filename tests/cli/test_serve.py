"""``prowess serve`` as a client starts it: a process that speaks the protocol and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import prowess

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def test_a_client_gets_the_protocol_on_standard_output_and_the_server_ends_with_it(tmp_path: Path) -> None:
    prowess.create_skill("notes", tmp_path, description="Writes notes.")
    words = [sys.executable, "-m", "prowess", "serve", str(tmp_path), "--no-watch"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(HELLO).encode() + b"\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        rest, said = server.communicate(timeout=60)
    assert (answer["id"], "tools" in answer["result"]["capabilities"]) == (1, True)
    assert "notes" in answer["result"]["instructions"]
    assert (server.returncode, rest, said) == (0, b"", b"")


def test_what_would_not_be_served_is_named(command: Command, tmp_path: Path) -> None:
    folder = prowess.create_skill("notes", tmp_path, description="Writes notes.")
    assert command("serve", "--check", str(tmp_path)).status == 0
    folder.rename(tmp_path / "other")
    found = command("serve", "--check", "--json", str(tmp_path))
    assert found.status == 1
    assert [issue["code"] for one in found.data["refused"] for issue in one["issues"]] == ["name-mismatch"]


def test_another_machine_needs_a_token(command: Command, tmp_path: Path) -> None:
    refused = command("serve", str(tmp_path), "--http", "0.0.0.0:0")
    assert (refused.status, "token-needed" in refused.err) == (3, True)
    missing = command("serve", str(tmp_path), "--http", "0.0.0.0:0", "--token-file", str(tmp_path / "none"))
    assert (missing.status, "token-needed" in missing.err) == (3, True)
