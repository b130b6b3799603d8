"""What the tests of publishing share: folders of skills, places to publish to, and an S3 server."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.install import conftest as install_fixtures
from tests.sandbox_support import NOT_TESTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    MakeSkill = Callable[..., Path]

world, installer = install_fixtures.world, install_fixtures.installer


@pytest.fixture(autouse=True)
def own_state(world: install_fixtures.World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known sites and the cache are those of the test."""
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(world.base / "cache"))


@pytest.fixture
def make_skill(tmp_path: Path) -> MakeSkill:
    """Write the folder of a skill with a version, and return it."""

    def make(name: str = "pdf", version: str = "1.0.0", body: str = "Do it.", folder: str = "") -> Path:
        path = tmp_path / "sources" / (folder or str(uuid.uuid4())) / name
        (path / "scripts").mkdir(parents=True, exist_ok=True)
        fields = f'metadata:\n  version: "{version}"\n' if version else ""
        text = (
            f"---\nname: {name}\ndescription: Reads {name} files. Use it for every {name} file.\n{fields}---\n{body}\n"
        )
        (path / "SKILL.md").write_text(text, encoding="utf-8")
        script = path / "scripts" / "run.py"
        script.write_text(f"#!/usr/bin/env python3\nprint({body!r})\n", encoding="utf-8")
        script.chmod(0o755)
        return path

    return make


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The address of an S3 server on loopback."""
    if not all(map(importlib.util.find_spec, ("obstore", "moto", "boto3"))):
        pytest.skip(f"{NOT_TESTED}object stores: obstore or moto is not installed; make test-registries installs them")
    command = [sys.executable, str(Path(__file__).parent / "s3_server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.kill()


@pytest.fixture
def bucket(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a new bucket, which the environment of the test leads to."""
    import boto3

    for name, value in {
        "AWS_ENDPOINT_URL": s3_endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    name = f"skills-{uuid.uuid4()}"
    boto3.client("s3", endpoint_url=s3_endpoint).create_bucket(Bucket=name)
    return f"s3://{name}/team"


@pytest.fixture(params=["folder", "s3"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place to publish to, of each kind; ``install`` reads ``site:`` and this."""
    return request.getfixturevalue("bucket") if request.param == "s3" else os.fspath(tmp_path / "site")


def to_source(target: str, tail: str = "") -> str:
    """Return what a person installs from a place."""
    return f"{target}{tail}" if target.startswith("s3:") else f"site:{target}{tail}"
