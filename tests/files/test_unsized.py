"""Files whose size is 0 although they have content: they are read to their end within the limit, or refused."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.files.identity import hash_with_identity, read_with_identity
from prowess.files.read import OpenFile
from prowess.files.tree import FileHash, hash_file, hash_tree, read_tree
from prowess.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such files everywhere")
SETTINGS = Path("/proc/sys/fs/inotify")
"""A folder of the system's with a few short files, each of which says that it is empty."""
LONG = b"".join(b"VARIABLE_%d=%s\0" % (number, b"x" * 90) for number in range(400))


@pytest.fixture
def process() -> Iterator[str]:
    """The folder of a process in /proc, whose file ``environ`` is long, does not change, and says that it is empty."""
    env = dict(pair.split("=") for pair in LONG.decode().split("\0") if pair)
    command = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()  # the file is empty for a moment after the process has begun
        yield f"/proc/{child.pid}"
        child.communicate(b"\n")


def contents() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(SETTINGS.iterdir())}


def test_a_file_without_a_size_is_read_to_its_end(process: str) -> None:
    with OpenFile(process, ("environ",)) as file:
        assert file.info.st_size == 0
        assert file.read_all(len(LONG)) == LONG
        assert file.read_all(len(LONG), 100) == LONG[100:]
        assert file.read(50) == LONG[:50]


def test_more_than_the_limit_is_refused_and_never_cut(process: str) -> None:
    with OpenFile(process, ("environ",)) as file, pytest.raises(prowess.ResourceTooLargeError) as caught:
        file.read_all(len(LONG) - 1)
    assert f"at most {len(LONG) - 1}" in caught.value.message
    for read in (hash_file, hash_with_identity, read_with_identity):
        with pytest.raises(prowess.ResourceTooLargeError):
            read(process, ("environ",), len(LONG) - 1)


def test_the_head_of_a_file_without_a_size_is_not_taken_for_the_whole(process: str) -> None:
    with OpenFile(process, ("environ",)) as file:
        assert file.read_head(100, 1000, lambda _: False) == (LONG[:100], False)
        assert file.read_head(100, 10 * len(LONG), lambda _: True) == (LONG, True)


def test_the_hash_of_a_file_without_a_size_covers_its_content(process: str) -> None:
    expected = FileHash(len(LONG), executable=False, sha256=hashlib.sha256(LONG).hexdigest())
    assert hash_file(process, ("environ",), len(LONG)) == expected
    marked = hash_with_identity(process, ("environ",), len(LONG))
    assert (marked.digest.hex(), marked.size) == (expected.sha256, len(LONG))
    assert not marked.settled  # nothing about the file will tell that it changed


def test_a_tree_of_such_files_is_hashed_and_read_whole() -> None:
    found = contents()
    hashes = {name: (len(data), False, hashlib.sha256(data).hexdigest()) for name, data in found.items()}
    assert all(found.values())
    assert hash_tree(str(SETTINGS), Limits()).files == hashes
    assert read_tree(str(SETTINGS), Limits()).files == [(name, data, False) for name, data in found.items()]
    assert hash_tree(str(SETTINGS), Limits(max_digest_bytes=2)).files == {}
    with pytest.raises(prowess.ResourceTooLargeError):
        read_tree(str(SETTINGS), Limits(max_install_bytes=2))


def test_a_skill_with_such_files_has_the_digest_of_their_content() -> None:
    skill = prowess.Skill(prowess.Frontmatter("inotify", "Settings."), SETTINGS / "SKILL.md")
    rows = b"".join(
        b"%s\0-\0%d\0%s\n" % (os.fsencode(name), len(data), hashlib.sha256(data).hexdigest().encode())
        for name, data in contents().items()
    )
    assert skill.digest() == hashlib.sha256(rows).hexdigest()
    name, data = next(iter(contents().items()))
    assert skill.read_bytes(name) == skill.read_resource(name).encode() == data
    with pytest.raises(prowess.ResourceTooLargeError):
        skill.read_bytes(name, 1)
