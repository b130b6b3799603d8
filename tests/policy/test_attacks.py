"""What an attacker tried on policies: from a clone, from a sandboxed program, and by the ways around a rule."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.policy import files as policy_files
from prowess.policy.rules import is_source_match
from tests.cli.conftest import Command
from tests.fetch.packing import zipped
from tests.git_servers import Handler, http
from tests.policy.test_governance import deploy
from tests.sandbox_support import require_sandbox
from tests.web_sites import SCHEMA, skill_md

if TYPE_CHECKING:
    from tests.install.conftest import World
    from tests.policy.conftest import Write
    from tests.web_sites import Site


def test_a_clone_cannot_move_what_is_the_users_own(world: World, write: Write) -> None:
    source = world.folder("mine")
    by_hand = world.home / ".claude" / "skills" / "mine"
    shutil.copytree(source, by_hand)
    in_project = world.project / ".claude" / "skills" / "mine"
    shutil.copytree(source, in_project)
    digest = prowess.read_metadata(source).digest()
    write(f'[[skill]]\ndigest = "{digest}"\n[[skill]]\nsource = "**"\n', "revoked.toml", project=True)
    assert Command()("audit", "--fix").status == 0
    assert (by_hand / "SKILL.md").exists()
    assert not in_project.exists()


def test_what_is_refused_and_not_removed_stays_on_the_disk(world: World) -> None:
    by_hand = world.home / ".claude" / "skills" / "mine"
    shutil.copytree(world.folder("mine"), by_hand)
    digest = prowess.read_metadata(by_hand).digest()
    deploy(world.home, "revoked.toml", f'[[skill]]\ndigest = "{digest}"\naction = "refuse"\n')
    assert Command()("audit").status == 1
    Command()("audit", "--fix")
    assert (by_hand / "SKILL.md").exists()
    with pytest.raises(prowess.PolicyError):
        prowess.read_metadata(by_hand).load()


@pytest.mark.parametrize("kind", ["bwrap", "landlock"])
def test_a_sandboxed_program_cannot_change_the_policy_of_its_folder(world: World, write: Write, kind: str) -> None:
    if kind not in {one.name for one in prowess.sandbox.available() if one.usable}:
        pytest.skip(f"NOT TESTED: {kind} does not work here")
    require_sandbox()
    path = Path(write('[run]\nscripts = "ask"\n', project=True))
    scripts = prowess.Scripts(sandbox=kind, folder=world.project)
    scripts.run_command("rm -f prowess-policy.toml; echo > prowess-policy.toml; mv prowess-policy.toml gone")
    assert path.read_text(encoding="utf-8") == '[run]\nscripts = "ask"\n'


def test_a_project_in_a_project_stays_under_the_policy_around_it(
    world: World, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write('[run]\nscripts = "never"\n', project=True)
    inner = world.project / "pkg"
    inner.mkdir()
    (inner / "prowess.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(inner)
    assert prowess.current_policy().word("run.scripts") == "never"


def test_a_locked_sync_puts_nothing_back_that_a_rule_refuses(
    world: World, installer: prowess.Installer, write: Write
) -> None:
    pdf = world.repository("pdf")
    installer.install(f"{pdf.path}#v1", project=True)
    for name, text in (
        ("revoked.toml", f'[[skill]]\nsource = "file://{pdf.path}"\nrange = "<2"\n'),
        ("policy.toml", '[versions]\nrefs = "commits"\n'),
    ):
        path = Path(write(text, name))
        shutil.rmtree(world.skills, ignore_errors=True)
        with pytest.raises(prowess.PolicyError):
            installer.sync(locked=True)
        path.unlink()
    installer.sync(locked=True)
    assert "pdf" in prowess.discover()


@pytest.mark.parametrize("path", ["..%2fevil", "..%5Cevil", "..\\evil", "..;/evil", "%252e%252e/evil", "x%2F..%2Fevil"])
def test_no_spelling_of_a_path_leads_out_of_a_listed_folder(path: str) -> None:
    assert not is_source_match("https://git.acme.example/acme/**", f"https://git.acme.example/acme/{path}")


def test_a_policy_folder_that_cannot_be_looked_into_stops_everything(
    world: World, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("[run]\n")
    folder = world.base / "machine"
    monkeypatch.setattr(policy_files, "machine_folder", lambda: str(folder))
    monkeypatch.setattr(policy_files, "_places", {})
    prowess.current_policy()
    for case in ("a link that leads nowhere", "a file", "a folder that others may write to"):
        if case == "a file":
            folder.write_text("", encoding="utf-8")
        elif case == "a link that leads nowhere":
            folder.symlink_to(world.base / "nowhere")
        else:
            folder.mkdir()
            folder.chmod(0o777)
        with pytest.raises(prowess.PolicyError):
            prowess.current_policy()
        if folder.is_dir() and not folder.is_symlink():
            folder.rmdir()
        else:
            folder.unlink()


def test_an_approval_file_of_a_project_is_not_even_parsed(write: Write) -> None:
    write("this is not TOML", "approved.toml", project=True)
    prowess.current_policy()


# -- ways around a list of sources -----------------------------------------------------------------------------------


def test_a_redirect_within_a_host_leads_to_no_source_that_is_not_listed(site: Site, write: Write) -> None:
    site.put("/evil/pdf.zip", zipped({"SKILL.md": skill_md("pdf")}))
    address = site.put("/team/pdf.zip", b"", 302, Location="/evil/pdf.zip")
    moved = site.put("/team/old.zip", b"", 302, Location="/team/pdf2.zip")
    site.put("/team/pdf2.zip", zipped({"SKILL.md": skill_md("pdf")}))
    path = write(f'[sources]\nallow = ["{site.url}/team/**"]\n')
    installer = prowess.Installer(schemes=("https", "http"), allow_private=True)
    with pytest.raises(prowess.PolicyError, match=r"/evil/pdf\.zip") as caught:
        installer.install(address, project=True)
    assert (caught.value.path, "/evil/pdf.zip" in site.paths) == (path, False)
    installer.install(moved, project=True)
    write("[sources]\n")
    installer.install(address, project=True, replace=True)
    write(f'[[skill]]\nsource = "{site.url}/evil"\n', "revoked.toml")
    with pytest.raises(prowess.PolicyError) as caught:
        installer.install(address, project=True, replace=True)
    assert caught.value.code == "revoked"


def test_an_index_names_no_skill_elsewhere_on_its_host(site: Site, write: Write) -> None:
    """Nor does a copy in the cache that was fetched before there was a policy."""
    body = skill_md("greet")
    near, far = site.entry("greet", body), site.entry("far", skill_md("far"))
    near["url"], far["url"] = site.put("/team/SKILL.md", body), site.put("/evil/SKILL.md", skill_md("far"))
    index = {"$schema": SCHEMA, "skills": [near, far]}
    site.put("/team/.well-known/agent-skills/index.json", b"", 302, Location="/old/index.json")
    site.put("/old/index.json", json.dumps(index).encode(), Cache_Control="max-age=3600")
    team = prowess.Source.url(f"{site.url}/team", allow_http=True, allow_private=True)
    assert team.load().names == ("far", "greet")
    write(f'[sources]\nallow = ["{site.url}/team", "{site.url}/old"]\n')
    catalog = team.load()
    assert catalog.names == ("greet",)
    assert "policy" in {issue.code for issue in catalog.issues}
    write(f'[sources]\nallow = ["{site.url}/team"]\n')
    with pytest.raises(prowess.PolicyError, match="old/index"):
        team.load()
    assert "/evil/SKILL.md" not in site.paths


def test_git_follows_no_redirect_where_a_policy_lists_sources(
    world: World, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(world.base / "cache"))
    served = world.base / "served"
    served.mkdir()
    (served / "pdf.git").symlink_to(world.repository("pdf").path / ".git")

    def redirect(handler: Handler) -> bool:
        if not handler.path.startswith("/team/"):
            return False
        handler.send_response(301)
        handler.send_header("Location", handler.path.replace("/team/", "/"))
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    installer = prowess.Installer(schemes=("http",))
    with http(served, redirect) as server:
        address = f"{server.address}/team/pdf.git"
        path = write(f'[sources]\nallow = ["{server.address}/team/**"]\n')
        with pytest.raises(prowess.GitError) as caught:
            installer.install(address, project=True)
        assert caught.value.code == "git-redirected"
        Path(path).unlink()
        installer.install(address, project=True)


def test_a_run_in_another_folder_obeys_the_policies_of_both(world: World, write: Write) -> None:
    other = world.base / "other"
    (other / ".git").mkdir(parents=True)
    (world.base / "turns.yaml").write_text("turns: [{text: Done.}]\n")
    run = ("run", "x", "--model", f"scripted:{world.base}/turns.yaml", "--trust", "never")
    assert Command()(*run, "--folder", str(other)).status == 0
    (other / "prowess-policy.toml").write_text("[run]\nscript = 'never'\n")
    assert Command()(*run).status == 0
    refused = Command()(*run, "--folder", str(other))
    assert refused.status != 0
    assert f"{other}/prowess-policy.toml" in refused.err
    (other / "prowess-policy.toml").write_text("[run]\nsandbox = []\n")
    write("[run]\nscript = 'never'\n", project=True)
    assert "does not know" in Command()(*run, "--folder", str(other)).err


def test_a_policy_of_the_host_counts_in_the_thread_of_a_live_catalogue(world: World) -> None:
    skill = world.folder("notes")
    with prowess.use_policy(prowess.Policy()), prowess.live(skill.parent, every=0.05, notice="stat") as live:
        deploy(world.home, "revoked.toml", f'[[skill]]\ndigest = "{live["notes"].digest()}"\n')
        (world.folder("more") / "SKILL.md").touch()
        fresh = live.wait_for_change(live.catalog, timeout=30) if "more" not in live else live.catalog
        assert set(fresh.names) == {"more", "notes"}
