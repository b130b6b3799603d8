"""Real OCI registries on loopback: the program ``docker-registry`` of Debian, each with a folder of its own."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from prowess import Limits
from prowess.fetch.oci.push import PushedSkill, make_artifact, push_artifact
from prowess.fetch.oci.registry import Registry
from prowess.fetch.url_policy import UrlPolicy
from tests.sandbox_support import NOT_TESTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.files.write import NewFile

PROGRAM = shutil.which("docker-registry")
needs_registry = pytest.mark.skipif(
    PROGRAM is None, reason=f"{NOT_TESTED}docker-registry is not installed; make test-registries installs it"
)
USER, PASSWORD = "ann", "correct horse"
# What "htpasswd -Bbn" prints for them, since the registry takes bcrypt only.
_HTPASSWD = "ann:$2y$05$lq5Ao5q2lMzmvzsx.qKqveloqt50E5ST6rbBbVrpi6CmTfk0NPi/K\n"
_START_SECONDS = 30.0


@contextmanager
def running_registry(folder: Path, *, login: bool = False) -> Iterator[str]:
    """Run a registry with its files in ``folder``; yields ``host:port``."""
    assert PROGRAM is not None
    folder.mkdir(parents=True, exist_ok=True)
    data, passwords, log = folder / "data", folder / "htpasswd", folder / "log"
    config = {
        "version": "0.1",
        "storage": {"filesystem": {"rootdirectory": str(data)}, "delete": {"enabled": True}},
        "http": {"addr": "127.0.0.1:0", "secret": "not so secret"},
    }
    if login:
        passwords.write_text(_HTPASSWD)
        config["auth"] = {"htpasswd": {"realm": "test", "path": str(passwords)}}
    (folder / "config.yml").write_text(json.dumps(config))  # JSON is YAML
    with log.open("wb") as written:
        process = subprocess.Popen(
            [PROGRAM, "serve", str(folder / "config.yml")], stdout=written, stderr=written, stdin=subprocess.DEVNULL
        )
    try:
        yield f"127.0.0.1:{_wait_for_port(process, log)}"
    finally:
        process.kill()
        process.wait()


def _wait_for_port(process: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        found = re.search(r"listening on [^\s\"]*:([0-9]+)", log.read_text())
        if found:
            return found[1]
        time.sleep(0.02)
    raise AssertionError(f"the registry does not start: {log.read_text()[-2000:]}")


def write_docker_config(folder: Path, host: str, **fields: object) -> Path:
    """Write a ``config.json`` with the login of the registry, and other fields; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    (folder / "config.json").write_text(json.dumps({"auths": {host: {"auth": auth}}, **fields}))
    return folder


def push_skill(
    address: str, files: Sequence[NewFile], *, name: str, version: str, aliases: Sequence[str] = (), **limits: int
) -> PushedSkill:
    """Push a skill to a registry on loopback."""
    registry = Registry(address, UrlPolicy(private=True, http=True), Limits(**limits), push=True)
    return push_artifact(registry, make_artifact(files, name=name, version=version), version=version, aliases=aliases)


ORAS = Path(".registries/bin/python").absolute()
needs_oras = pytest.mark.skipif(
    not ORAS.exists(), reason=f"{NOT_TESTED}oras is not installed; make test-registries installs it"
)


def run_oras(*calls: str, folder: Path | None = None) -> None:
    """Run calls of the library oras, in which ``client`` is a client of registries without TLS."""
    program = "\n".join(("import oras.client", "client = oras.client.OrasClient(insecure=True)", *calls))
    done = subprocess.run([ORAS, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
