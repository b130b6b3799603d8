"""What Prowess creates is for its owner to write, whatever the umask of the process says."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.fetch.packing import FILES, zipped
from tests.repositories import Repository, skill_text

if TYPE_CHECKING:
    from pathlib import Path

    from tests.web_sites import Site

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")

WORK = """
import os, sys
os.umask(0)
import prowess
folder, repository, archive, site = sys.argv[1:]
installer = prowess.Installer()
installer.install_local(folder, project=True)
installer.install(repository, project=True, agents=["claude-code"])
installer.install(repository)
installer.install_local_into(folder, "vendored/deep")
prowess.unpack_into(archive, "unpacked/deep")
made = prowess.create_skill("made", "new/deep", parts=["scripts", "references"])
prowess.write_packed(prowess.pack(folder), "packed/deep/notes.skill")
source = prowess.Source.url(site, allow_http=True, allow_private=True, cache_dir="cache/deep")
source.load().load("pdf")
prowess.Trust().grant(prowess.read_metadata(folder))
prowess.Scripts(sandbox="none").run(
    prowess.read_metadata(folder), "run.sh", trust=prowess.Trust()
)
"""


def test_nothing_is_writable_for_others_even_without_a_umask(tmp_path: Path, site: Site) -> None:
    home, project, notes = tmp_path / "home", tmp_path / "home" / "project", tmp_path / "notes"
    for folder in (project / ".git", notes):
        folder.mkdir(parents=True)
    (notes / "SKILL.md").write_text(skill_text("notes"), encoding="utf-8")
    (notes / "run.sh").write_text("exit 0\n", encoding="utf-8")
    repository = Repository(tmp_path / "repository")
    repository.skill("skills/a")
    repository.commit()
    (tmp_path / "pdf.skill").write_bytes(zipped(FILES))
    site.index(site.entry("pdf", zipped(FILES), "archive"))
    before = set(tmp_path.rglob("*"))
    env = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    subprocess.run(
        [sys.executable, "-c", WORK, str(notes), repository.address, str(tmp_path / "pdf.skill"), site.url],
        cwd=project,
        env={**env, "HOME": str(home)},
        check=True,
    )
    made = [path for path in tmp_path.rglob("*") if path not in before and not path.is_symlink()]
    assert {path.name for path in made} >= {
        "prowess.lock",
        "trust.json",
        "vendored",
        "unpacked",
        "new",
        "cache",
    }
    open_to_others = {str(path.relative_to(tmp_path)) for path in made if stat.S_IMODE(path.stat().st_mode) & 0o022}
    assert open_to_others == set()


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o666])
def test_a_file_that_is_mended_keeps_the_permissions_that_its_owner_gave_it(tmp_path: Path, mode: int) -> None:
    import prowess

    file = tmp_path / "notes" / "SKILL.md"
    file.parent.mkdir()
    file.write_text(skill_text("notes", description="Use it: always."), encoding="utf-8")
    file.chmod(mode)
    fixed = prowess.fix(file)
    assert fixed
    prowess.apply_fix(fixed)
    assert stat.S_IMODE(file.stat().st_mode) == mode
