"""Plugins and marketplaces: which skills a repository groups, and plugins that are in other repositories."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.install.find_skills import find_skills
from tests.cli_processes import run_command
from tests.git_servers import http
from tests.repositories import Repository, skill_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from prowess.install.find_skills import FoundSkills
    from tests.git_servers import HttpServer
    from tests.install.conftest import World

SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
MARKETPLACE = ".claude-plugin/marketplace.json"


def manifest(name: str = "desk", **fields: object) -> str:
    """The text of a manifest of Agent Plugins."""
    return json.dumps({"$schema": SCHEMA, "name": name, **fields})


def groups(files: dict[str, str], limits: prowess.Limits | None = None) -> dict[str, tuple[str, ...]]:
    """The names of the skills of each plugin in a tree."""
    return {plugin.name: plugin.skills for plugin in find(files, limits).plugins}


def find(files: dict[str, str], limits: prowess.Limits | None = None) -> FoundSkills:
    data = {path: text.encode() for path, text in files.items()}
    return find_skills(data, data.__getitem__, name="top", limits=limits or prowess.Limits())


def skills(*folders: str) -> dict[str, str]:
    return {f"{folder}/SKILL.md": skill_text(folder.rpartition("/")[2]) for folder in folders}


# -- manifests ---------------------------------------------------------------------------------------------------------


def test_all_skills_of_a_repository_with_several_plugins_are_found() -> None:
    files = skills("skills/a", "plugins/desk/skills/b", "plugins/lab/skills/c", "plugins/other/skills/d")
    files |= {"plugin.json": manifest("top"), "plugins/desk/plugin.json": manifest("desk")}
    files["plugins/lab/.claude-plugin/plugin.json"] = json.dumps({"name": "lab"})
    found = find(files)
    assert {skill.name: skill.plugin for skill in found.skills} == {"a": "top", "b": "desk", "c": "lab"}
    assert groups(files) == {"top": ("a",), "desk": ("b",), "lab": ("c",)}


def test_a_marketplace_groups_the_skills_that_its_entries_list() -> None:
    files = skills("skills/a", "skills/b", "skills/c", "skills/d")
    plugins = [
        {"name": "one", "source": "./", "skills": ["./skills/a", "./skills/b"], "strict": False},
        {"name": "two", "source": "./", "skills": "./skills/c"},
    ]
    files[MARKETPLACE] = json.dumps({"name": "m", "plugins": plugins})
    assert groups(files) == {"one": ("a", "b"), "two": ("c",)}
    assert {skill.name for skill in find(files).skills} == {"a", "b", "c", "d"}


@pytest.mark.parametrize(
    "text",
    [
        manifest("Desk"),
        manifest("a--b"),
        manifest("x" * 65),
        manifest("desk", version=1),
        manifest("desk", author={"name": "a", "phone": "1"}),
        manifest("desk", keywords=[1]),
        json.dumps({"$schema": SCHEMA}),
        json.dumps({"$schema": SCHEMA.replace("1.0.0", "2.0.0"), "name": "desk"}),
    ],
)
def test_a_manifest_against_the_rules_of_agent_plugins_is_ignored(text: str) -> None:
    found = find(skills("skills/a", "plugins/desk/skills/b") | {"plugins/desk/plugin.json": text})
    assert [skill.name for skill in found.skills] == ["a"]
    assert [(issue.code, issue.path) for issue in found.issues] == [("bad-plugin", "plugins/desk/plugin.json")]


def test_unknown_fields_of_a_manifest_are_reported_and_ignored() -> None:
    found = find(skills("skills/a") | {"plugin.json": manifest(hooks={}, extensions=1)})
    assert found.plugins[0].skills == ("a",)
    assert [(issue.code, issue.severity) for issue in found.issues] == [("unknown-field", "info")]
    assert "'hooks'" in found.issues[0].message


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": "desk"}', '{"$schema": 1, "name": "desk"}', "[" * 100_000])
def test_a_plugin_json_of_another_format_means_nothing(text: str) -> None:
    found = find(skills("skills/a") | {"plugin.json": text})
    assert (found.plugins, found.issues, found.skills[0].plugin) == ((), [], "")


def test_the_number_of_plugins_is_bounded() -> None:
    entries = [{"name": f"p{number}", "source": f"./plugins/p{number}"} for number in range(3)]
    files = skills("skills/a") | {MARKETPLACE: json.dumps({"plugins": entries})}
    found = find(files, prowess.Limits(max_plugins=2))
    assert [plugin.name for plugin in found.plugins] == ["p0", "p1"]
    assert [issue.code for issue in found.issues] == ["too-many-plugins"]


@pytest.mark.parametrize("folder", ["tests/fixtures/a", "test/a", "x/__tests__/a", "testdata/x/y/z/a"])
def test_skills_for_tests_are_not_offered(folder: str) -> None:
    assert find(skills(folder)).skills == []


@pytest.mark.parametrize("folder", ["test", "skills/tests/a", "skills/test", ".claude/skills/fixtures/a"])
def test_a_folder_of_skills_about_tests_is_not_a_fixture(folder: str) -> None:
    assert [skill.folder for skill in find(skills(folder)).skills] == [folder]


# -- sources -----------------------------------------------------------------------------------------------------------


class Market:
    """A marketplace on a server: two plugins of its own, and entries for plugins in other repositories."""

    def __init__(self, root: Path, server: HttpServer) -> None:
        self.root, self.server = root, server
        self.repo = Repository(root / "acme" / "market.git")
        self.address = f"{server.address}/acme/market.git"
        self.tools = Repository(root / "vendor" / "tools.git")
        self.tools.skill("plugins/pdf/skills/pdf-read")
        self.tools.skill("plugins/pdf/skills/pdf-write")
        self.tools.skill("skills/other")
        self.pinned = self.tools.commit(tag="v1")
        self.tools.skill("plugins/pdf/skills/pdf-read", body="Later.\n")
        self.tools.commit()
        self.repo.skill("plugins/desk/skills/mail")
        self.repo.skill("plugins/desk/skills/plan")
        self.repo.skill("plugins/lab/skills/mail", body="Mail from the lab.\n")
        self.offer({"name": "pdf", "description": "Read\x1b[31m PDF.", "source": self.mapping(sha=self.pinned)})

    def mapping(self, **fields: object) -> dict[str, object]:
        """The source of a plugin in the other repository."""
        tools = f"{self.server.address}/vendor/tools.git"
        return {"source": "git-subdir", "url": tools, "path": "plugins/pdf", "ref": "main", **fields}

    def offer(self, *entries: dict[str, object]) -> None:
        """Publish a marketplace with these entries besides its own plugins."""
        own = [{"name": name, "source": f"./plugins/{name}"} for name in ("desk", "lab")]
        self.repo.write(MARKETPLACE, json.dumps({"name": "m", "plugins": [*own, *entries]}))
        self.repo.commit()


@pytest.fixture
def market(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Market]:
    """The marketplace, and a cache of this test's own."""
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(world.base / "copies"))
    root = world.base / "served"
    root.mkdir()
    with http(root) as server:
        yield Market(root, server)


@pytest.fixture
def web(market: Market) -> prowess.Installer:  # noqa: ARG001 - it must be there first
    """An installer that may ask servers on this machine."""
    return prowess.Installer(schemes=("http",))


def locked(world: World) -> str:
    return world.lock.read_text(encoding="utf-8")


def test_an_offer_groups_skills_and_fetches_no_plugin_elsewhere(web: prowess.Installer, market: Market) -> None:
    offer = web.offers(market.address)
    assert {skill.name: skill.plugin for skill in offer.skills} == {"mail": "desk", "plan": "desk"}
    plugins = {plugin.name: plugin for plugin in offer.plugins}
    assert isinstance(plugins["pdf"], prowess.OfferedPlugin)
    assert {name: plugin.skills for name, plugin in plugins.items()} == {
        "desk": ("mail", "plan"),
        "lab": ("mail",),
        "pdf": (),
    }
    assert str(plugins["pdf"].source) == f"{market.server.address}/vendor/tools.git#{market.pinned}:plugins/pdf"
    assert not [path for path, _ in market.server.seen if "vendor" in path]


def test_a_plugin_of_the_source_is_chosen_by_its_name(web: prowess.Installer, market: Market, world: World) -> None:
    web.install(f"{market.address}@desk", project=True)
    assert sorted(path.name for path in (world.skills / "acme").iterdir()) == ["mail", "plan"]
    assert "Do it." in (world.skills / "acme/mail/SKILL.md").read_text(encoding="utf-8")


def test_a_plugin_gives_its_own_skill_though_another_wins_by_name(
    web: prowess.Installer, market: Market, world: World
) -> None:
    web.install(f"{market.address}@lab", project=True)
    assert "Mail from the lab." in (world.skills / "acme/mail/SKILL.md").read_text(encoding="utf-8")
    market.repo.skill("plugins/lab/skills/mail", body="News from the lab.\n")
    market.repo.commit()
    assert [update.status for update in web.update()] == ["updated"]
    assert "News from the lab." in (world.skills / "acme/mail/SKILL.md").read_text(encoding="utf-8")


def test_a_plugin_elsewhere_is_installed_at_the_commit_of_the_marketplace(
    web: prowess.Installer, market: Market, world: World
) -> None:
    web.install(market.address, select="pdf", project=True)
    assert sorted(path.name for path in (world.skills / "vendor/tools").glob("*/*")) == ["pdf-read", "pdf-write"]
    assert "Later" not in (world.skills / "vendor/tools/skills/pdf-read/SKILL.md").read_text(encoding="utf-8")
    for text in (f"{market.server.address}/vendor/tools.git", market.pinned, "plugins/pdf"):
        assert text in locked(world)
    assert "market" not in locked(world)
    assert web.outdated() == ()


def test_a_clone_restores_a_plugin_elsewhere_without_the_marketplace(
    web: prowess.Installer, market: Market, world: World
) -> None:
    (world.project / "prowess.toml").write_text("", encoding="utf-8")
    web.install(f"{market.address}@pdf", project=True)
    before = locked(world)
    shutil.rmtree(world.project / ".prowess")
    shutil.rmtree(world.base / "copies")
    shutil.rmtree(market.repo.path)
    web.sync(locked=True)
    assert (world.skills / "vendor/tools/skills/pdf-read/SKILL.md").exists()
    assert (locked(world), web.difference(), web.verify()) == (before, (), ())


def test_the_next_commit_of_a_marketplace_replaces_the_pinned_one(
    web: prowess.Installer, market: Market, world: World
) -> None:
    (world.project / "prowess.toml").write_text("", encoding="utf-8")
    web.install(f"{market.address}@pdf", project=True)
    market.offer({"name": "pdf", "source": market.mapping(sha=market.tools.git("rev-parse", "HEAD"))})
    web.install(f"{market.address}@pdf", project=True, replace=True)
    assert "Later." in (world.skills / "vendor/tools/skills/pdf-read/SKILL.md").read_text(encoding="utf-8")
    assert market.pinned not in locked(world) + (world.project / "prowess.toml").read_text(encoding="utf-8")
    assert web.difference() == ()


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ({"source": "url"}, {"other", "pdf-read", "pdf-write"}),
        ({"source": "url", "path": "plugins/pdf"}, {"pdf-read", "pdf-write"}),
        ({"source": "git-subdir", "path": "./plugins/pdf/", "ref": "v1"}, {"pdf-read", "pdf-write"}),
    ],
)
def test_each_kind_of_git_source_is_mapped(
    web: prowess.Installer, market: Market, source: dict[str, object], names: set[str]
) -> None:
    market.tools.write("plugins/pdf/plugin.json", manifest("pdf"))
    market.tools.commit()
    market.tools.git("tag", "--force", "v1")
    market.offer({"name": "far", "source": {"url": f"{market.server.address}/vendor/tools.git", **source}})
    offer = web.offers(f"{market.address}@far")
    assert {skill.name for skill in offer.skills} == names
    assert "mapped-plugin" in {issue.code for issue in offer.issues}


def test_the_kind_github_is_a_repository_on_github(web: prowess.Installer, market: Market) -> None:
    market.offer({"name": "far", "source": {"source": "github", "repo": "vendor/tools", "ref": "v2"}})
    assert str(web.offers(market.address).plugins[-1].source) == "https://github.com/vendor/tools#v2"


def test_the_skills_that_an_entry_lists_are_all_that_a_plugin_has(web: prowess.Installer, market: Market) -> None:
    mapping = market.mapping(path="plugins/pdf")
    market.offer({"name": "far", "source": mapping, "skills": ["./skills/pdf-write"], "strict": False})
    assert web.offers(f"{market.address}@far").spec.skills == ("pdf-write",)
    market.offer({"name": "far", "source": mapping, "skills": ["./gone"]})
    with pytest.raises(prowess.InstallError) as caught:
        web.offers(f"{market.address}@far")
    assert caught.value.code == "missing-skill-md"


@pytest.mark.parametrize(
    "source",
    [
        {"source": "url", "url": "file:///etc"},
        {"source": "url", "url": "/etc"},
        {"source": "url", "url": "./x"},
        {"source": "url", "url": "../x.git"},
        {"source": "url", "url": "ext::sh -c id"},
        {"source": "url", "url": "https://me:secret@host/x.git"},
        {"source": "url", "url": "https://-oProxyCommand=id/x.git"},
        {"source": "url", "url": "https://host/x.zip"},
        {"source": "url", "url": 1},
        {"source": "url"},
        {"source": "github", "repo": "../../x"},
        {"source": "github", "repo": "--upload-pack=x/y"},
        {"source": "npm", "package": "x"},
        {"source": "command", "command": "id"},
        {"source": "url", "url": "https://host/x.git", "sha": "main"},
        {"source": "url", "url": "https://host/x.git", "ref": "--upload-pack=id"},
        {"source": "git-subdir", "url": "https://host/x.git", "path": "../../etc"},
        {},
    ],
)
def test_a_mapped_address_is_checked_like_a_typed_one(
    web: prowess.Installer, market: Market, source: dict[str, object]
) -> None:
    market.offer({"name": "far", "source": source})
    plugin = web.offers(market.address).plugins[-1]
    assert (plugin.name, plugin.source) == ("far", None)
    assert plugin.problem
    assert "secret" not in plugin.problem.replace("secret-in", "")
    with pytest.raises(prowess.InstallError) as caught:
        web.install(f"{market.address}@far")
    assert caught.value.code == "bad-plugin"


def test_a_mapped_address_needs_the_scheme_to_be_allowed(market: Market, world: World) -> None:
    market.offer({"name": "far", "source": market.mapping()})
    clone = world.base / "market"
    market.repo.git("clone", "--quiet", ".", str(clone))
    with pytest.raises(prowess.BadReferenceError) as caught:
        prowess.Installer().install(f"{clone}#@far", project=True)
    assert caught.value.code == "bad-scheme"
    assert not [path for path, _ in market.server.seen if "vendor" in path]


def test_a_plugin_elsewhere_is_chosen_alone(web: prowess.Installer, market: Market) -> None:
    with pytest.raises(prowess.InstallError) as caught:
        web.offers(market.address, ("pdf", "mail"))
    assert caught.value.code == "is-plugin"
    assert web.offers(market.address, ("lab", "plan")).spec.skills == ("mail", "plan")


def test_a_manifest_that_declares_a_plugin_names_what_to_declare(
    web: prowess.Installer, market: Market, world: World
) -> None:
    text = f'skills = ["{market.address}@pdf"]\n'
    (world.project / "prowess.toml").write_text(text, encoding="utf-8")
    with pytest.raises(prowess.InstallError) as caught:
        web.sync()
    assert caught.value.code == "is-plugin"
    assert f"{market.server.address}/vendor/tools.git#{market.pinned}:plugins/pdf" in caught.value.message


def test_a_marketplace_without_skills_says_which_plugins_it_has(
    web: prowess.Installer, market: Market, world: World
) -> None:
    shutil.rmtree(market.repo.path / "plugins")
    market.offer({"name": "pdf", "source": market.mapping()})
    assert [plugin.name for plugin in web.offers(market.address).plugins] == ["pdf"]
    with pytest.raises(prowess.InstallError) as caught:
        web.install(market.address, project=True)
    assert (caught.value.code, "pdf" in caught.value.message) == ("only-plugins", True)
    web.install(f"{market.address}@pdf", project=True)
    assert (world.skills / "vendor/tools/skills/pdf-read/SKILL.md").exists()


def test_a_source_with_skills_for_tests_alone_names_them(installer: prowess.Installer, world: World) -> None:
    made = world.repository("checked", "tests/fixtures/a")
    with pytest.raises(prowess.InstallError) as caught:
        installer.offers(made.address)
    assert caught.value.code == "missing-skill-md"
    assert "tests/fixtures/a/SKILL.md" in caught.value.message
    assert [skill.name for skill in installer.offers(f"{made.address}#:tests/fixtures").skills] == ["a"]


# -- the command line --------------------------------------------------------------------------------------------------


def test_the_command_line_lists_by_plugin_and_installs_one(market: Market, world: World) -> None:
    listed = run_command(["install", market.address, "--list", "--allow-http"]).stdout.decode()
    assert "plugin desk" in listed
    assert f"pdf  {market.server.address}/vendor/tools.git#{market.pinned}:plugins/pdf" in listed
    assert "\x1b" not in listed
    data = json.loads(run_command(["install", market.address, "--list", "--allow-http", "--json"]).stdout)
    assert [skill["plugin"] for skill in data["skills"]] == ["desk", "desk"]
    assert data["plugins"][2]["source"] == f"{market.server.address}/vendor/tools.git#{market.pinned}:plugins/pdf"
    done = run_command(["install", f"{market.address}@pdf", "--project", "--allow-http", "--yes"])
    assert (done.returncode, b"mapped-plugin" in done.stderr) == (0, True)
    assert f"fetch {market.server.address}/vendor/tools.git" in (done.stdout + done.stderr).decode()
    assert (world.skills / "vendor/tools/skills/pdf-read/SKILL.md").exists()


def test_a_plugin_elsewhere_is_copied_into_a_folder(market: Market, world: World) -> None:
    done = run_command(["install", f"{market.address}@pdf", "--into", "here", "--allow-http", "--yes"])
    assert done.returncode == 0, done.stderr
    assert (world.project / "here/tools/skills/pdf-read/SKILL.md").exists()
