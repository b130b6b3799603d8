"""Publishing to folders and object stores, and installing from there, through the life of a site."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.publishing.site import open_target, parse_target
from tests.publishing.conftest import to_source
from tests.web_sites import Site

if TYPE_CHECKING:
    from pathlib import Path

    from tests.install.conftest import World
    from tests.publishing.conftest import MakeSkill

MIB = 1 << 20


def test_a_skill_has_one_digest_from_the_folder_to_the_lock_file(
    target: str, make_skill: MakeSkill, world: World
) -> None:
    folder = make_skill()
    report = prowess.publish([folder], target)
    assert [(one.name, one.version, one.status) for one in report.skills] == [("pdf", "1.0.0", "published")]
    prowess.Installer().install(to_source(target), project=True)
    digest = prowess.read_metadata(folder).digest()
    assert report.skills[0].digest == digest
    assert prowess.read_metadata(world.agents / "pdf").digest() == digest
    assert digest in world.lock.read_text(encoding="utf-8")
    assert prowess.Installer().verify() == ()
    catalog = prowess.Source.site(to_source(target)).load()
    assert catalog["pdf"].digest() == digest
    assert "Do it." in catalog.load("pdf").instructions


def test_the_same_content_again_changes_nothing_and_other_content_is_refused(
    target: str, make_skill: MakeSkill
) -> None:
    first = prowess.publish([make_skill(folder="a")], target)
    again = prowess.publish([make_skill(folder="b")], target)
    assert [one.status for one in again.skills] == ["unchanged"]
    assert again.serial == first.serial
    assert again.uploads == ()
    with pytest.raises(prowess.SourceError, match="published with other content") as caught:
        prowess.publish([make_skill(body="Do something else.")], target)
    assert caught.value.code == "version-exists"


def test_an_alias_moves_forward_and_back(target: str, make_skill: MakeSkill, world: World) -> None:
    installer = prowess.Installer()
    prowess.publish([make_skill(), make_skill("csv", "2.0")], target, aliases=["production"])
    prowess.publish([make_skill(version="1.1.0", body="New.")], target)
    installer.install(to_source(target, "#production@pdf"), project=True)
    assert installer.outdated() == ()
    report = prowess.publish(["pdf@1.1.0"], target, aliases=["production"])
    assert report.aliases == (("production", "pdf", "1.1.0"),)
    assert report.uploads
    assert not any(path.endswith(".tar.gz") for path in report.uploads)
    assert [one.ref for one in installer.outdated()] == ["production"]
    assert [update.status for update in installer.update()] == ["updated"]
    assert "New." in (world.agents / "pdf" / "SKILL.md").read_text(encoding="utf-8")
    prowess.publish(["pdf@1.0.0"], target, aliases=["production"])
    assert [update.status for update in installer.update()] == ["updated"]
    assert "Do it." in (world.agents / "pdf" / "SKILL.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("tail", "version"),
    [
        ("", "2.0.0"),
        ("#1.0.0", "1.0.0"),
        ("#^1.0", "1.1.0"),
        ("#~1.0", "1.0.0"),
        ("#<2", "1.1.0"),
        ("#staging", "1.0.0"),
    ],
)
def test_versions_ranges_and_aliases(tmp_path: Path, make_skill: MakeSkill, tail: str, version: str) -> None:
    target = str(tmp_path / "site")
    for number in ("1.0.0", "1.1.0", "2.0.0"):
        prowess.publish([make_skill(version=number, body=number)], target, aliases=["staging"] * (number == "1.0.0"))
    catalog = prowess.Source.site(f"site:{target}{tail}", missing="error").load()
    assert version in catalog["pdf"].location


def test_a_locked_state_comes_back_on_another_machine_and_offline(
    target: str, make_skill: MakeSkill, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    prowess.publish([make_skill()], target)
    prowess.Installer().install(to_source(target), project=True)
    prowess.publish([make_skill(version="2.0.0", body="Newer.")], target)
    _lose_installs(world)
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(world.base / "other-cache"))  # another machine
    prowess.Installer().sync(locked=True)
    assert "Do it." in (world.agents / "pdf" / "SKILL.md").read_text(encoding="utf-8")
    if target.startswith("s3:"):
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        _lose_installs(world)
        prowess.Installer().sync(locked=True)
        assert "Do it." in (world.agents / "pdf" / "SKILL.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("ref", "outdated"),
    [
        ("1.0.0", ("1.0.0", "", "2.0.0")),
        ("^1.0", ("^1.0", "1.1.0", "2.0.0")),
        ("~1.0", ("~1.0", "1.0.0", "2.0.0")),
        (">=1.0", (">=1.0", "2.0.0", "")),
    ],
)
def test_outdated_names_the_versions_that_there_are(
    tmp_path: Path, make_skill: MakeSkill, ref: str, outdated: tuple[str, str, str], world: World
) -> None:
    prowess.publish([make_skill()], tmp_path / "site")
    prowess.Installer().install(f"site:{tmp_path}/site#{ref}", project=True)
    assert prowess.Installer().outdated() == ()
    for number in ("1.1.0", "2.0.0", "2.1.0"):
        prowess.publish([make_skill(version=number, body=number)], tmp_path / "site")
    prowess.unpublish(["pdf@2.1.0"], tmp_path / "site", reason="broken")
    (found,) = prowess.Installer().outdated()
    assert (found.ref, found.wanted, found.newer) == outdated
    assert world.lock.exists()


def _lose_installs(world: World) -> None:
    for folder in (world.skills, world.agents):
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_symlink() or path.is_file():
                path.unlink()
            else:
                path.rmdir()


def test_a_withdrawn_version_is_not_offered_and_a_locked_one_still_works(
    target: str, make_skill: MakeSkill, world: World
) -> None:
    prowess.publish([make_skill()], target)
    prowess.publish([make_skill(version="1.1.0", body="Broken.")], target)
    prowess.Installer().install(to_source(target), project=True)
    prowess.unpublish(["pdf@1.1.0"], target, reason="wrong totals")
    assert "1.0.0" in prowess.Source.site(to_source(target)).load()["pdf"].location
    _lose_installs(world)
    installer = prowess.Installer()
    installer.sync(locked=True)
    assert [(issue.code, "wrong totals" in issue.message) for issue in installer.issues] == [("yanked", True)]
    assert "Broken." in (world.agents / "pdf" / "SKILL.md").read_text(encoding="utf-8")
    catalog = prowess.Source.site(to_source(target, "#1.1.0")).load()
    assert [(issue.code, issue.severity) for issue in catalog.issues] == [("yanked", "warning")]
    assert "wrong totals" in catalog.issues[0].message


def test_a_purged_version_is_gone_and_its_content_never_comes_back(
    target: str, make_skill: MakeSkill, world: World
) -> None:
    leak = make_skill(version="", body="password: x")
    prowess.publish([leak], target, version="1.0.0")
    prowess.publish([make_skill(version="1.0.1")], target)
    prowess.Installer().install(to_source(target, "#1.0.0"), project=True)
    store = open_target(parse_target(target))
    before = {path for path in store.list_files(1000) if path.endswith(".tar.gz")}
    prowess.unpublish(["pdf@1.0.0"], target, reason="a password", purge=True)
    after = {path for path in store.list_files(1000) if path.endswith(".tar.gz")}
    assert len(before - after) == 1
    _lose_installs(world)
    with pytest.raises(prowess.SkillError, match="was purged by its site: a password") as locked:
        prowess.Installer().sync(locked=True)
    assert locked.value.code == "revoked"
    for version, code in (("1.0.0", "version-exists"), ("3.0.0", "revoked")):
        with pytest.raises(prowess.SourceError) as caught:
            prowess.publish([leak], target, version=version)
        assert caught.value.code == code


def test_a_purge_that_was_killed_is_finished_by_the_next_one(target: str, make_skill: MakeSkill) -> None:
    """The root says first that the version is purged; the bytes are deleted last."""
    prowess.publish([make_skill(body="password: x")], target)
    store = open_target(parse_target(target))
    kept = {path: store.read(path, MIB) for path in store.list_files(1000) if path.endswith(".tar.gz")}
    prowess.unpublish(["pdf@1.0.0"], target, reason="a password", purge=True)
    for path, file in kept.items():
        assert file is not None
        store.write(path, file.data)  # as if the first run had died before it deleted them
    again = prowess.unpublish(["pdf@1.0.0"], target, reason="a password", purge=True)
    assert again.skills[0].status == "purged"
    assert not any(path.endswith(".tar.gz") for path in store.list_files(1000))


def test_what_an_alias_means_is_not_withdrawn(target: str, make_skill: MakeSkill) -> None:
    prowess.publish([make_skill()], target, aliases=["production"])
    with pytest.raises(prowess.SourceError, match="the alias production means"):
        prowess.unpublish(["pdf@1.0.0"], target, reason="old")


def test_a_dry_run_writes_nothing(target: str, make_skill: MakeSkill) -> None:
    report = prowess.publish([make_skill()], target, aliases=["a"], dry_run=True)
    assert report.skills[0].status == "published"
    assert report.aliases == (("a", "pdf", "1.0.0"),)
    assert open_target(parse_target(target)).list_files(10) == {}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"version": "a b"}, "bad-version"),
        ({"version": "../x"}, "bad-version"),
        ({"aliases": ["a/b"]}, "bad-version"),
        ({"aliases": ["x" * 64]}, ""),
        ({"aliases": [65 * "x"]}, "bad-version"),
        ({"aliases": ["abcdef01" * 8]}, "bad-version"),
    ],
)
def test_versions_and_aliases_are_parts_of_paths(
    tmp_path: Path, make_skill: MakeSkill, options: dict[str, object], code: str
) -> None:
    def run() -> object:
        return prowess.publish([make_skill()], tmp_path / "site", **options)  # type: ignore[arg-type]

    if not code:
        assert run()
        return
    with pytest.raises(prowess.SourceError) as caught:
        run()
    assert caught.value.code == code


def test_a_skill_with_errors_or_without_a_version_is_refused(tmp_path: Path, make_skill: MakeSkill) -> None:
    with pytest.raises(prowess.SourceError) as caught:
        prowess.publish([make_skill(version="")], tmp_path / "site")
    assert caught.value.code == "missing-version"
    broken = make_skill()
    (broken / "SKILL.md").write_text("---\nname: other\n---\n", encoding="utf-8")
    with pytest.raises(prowess.SkillLoadError):
        prowess.publish([broken], tmp_path / "site")
    with pytest.raises(prowess.SourceError) as caught:
        prowess.publish(["pdf@9.9"], tmp_path / "site")
    assert caught.value.code == "not-published"
    with pytest.raises(prowess.SourceError) as caught:
        prowess.publish([make_skill(), make_skill()], tmp_path / "site")
    assert caught.value.code == "duplicate-name"
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("target", ["https://skills.example/x", "owner/repo", "./x.zip", "site:./x#dev", "mcp"])
def test_a_place_that_can_only_be_read_is_refused(make_skill: MakeSkill, target: str) -> None:
    with pytest.raises(prowess.SkillError) as caught:
        prowess.publish([make_skill()], target)
    assert caught.value.code in {"bad-target", "bad-reference"}


def test_other_programs_find_the_index_and_the_marketplace(tmp_path: Path, make_skill: MakeSkill) -> None:
    prowess.publish([make_skill(), make_skill("csv")], tmp_path / "site", url="https://skills.example/team")
    index = json.loads((tmp_path / "site/.well-known/agent-skills/index.json").read_text(encoding="utf-8"))
    assert [(row["name"], row["type"]) for row in index["skills"]] == [("csv", "archive"), ("pdf", "archive")]
    marketplace = json.loads((tmp_path / "site/marketplace.json").read_text(encoding="utf-8"))
    source = marketplace["plugins"][0]["source"]
    assert source["url"].startswith("https://skills.example/team/blobs/sha256/")
    assert (tmp_path / "site" / source["url"].removeprefix("https://skills.example/team/")).is_file()


def _serve(folder: Path, site: Site) -> str:
    for path in folder.rglob("*"):
        if path.is_file():
            site.put(f"/team/{path.relative_to(folder).as_posix()}", path.read_bytes())
    return f"{site.url}/team"


def test_a_folder_behind_a_web_server_is_read_with_its_versions(
    tmp_path: Path, make_skill: MakeSkill, world: World
) -> None:
    prowess.publish([make_skill()], tmp_path / "site", aliases=["production"])
    prowess.publish([make_skill(version="2.0.0", body="Two.")], tmp_path / "site")
    options = {"schemes": ("http", "https"), "allow_private": True}
    with Site() as site:
        address = _serve(tmp_path / "site", site)
        prowess.Installer(**options).install(f"site:{address}#production", project=True)  # type: ignore[arg-type]
        assert "Do it." in (world.agents / "pdf" / "SKILL.md").read_text(encoding="utf-8")
        # A plain address of a site, as other clients know it, has the newest and is checked by the root just so.
        catalog = prowess.Source.url(address, allow_http=True, allow_private=True).load()
        assert "2.0.0" in catalog["pdf"].location
        prowess.publish([make_skill(version="3.0.0", body="Three.")], tmp_path / "site")
        _serve(tmp_path / "site", site)
        _lose_installs(world)
        prowess.Installer(**options).sync(locked=True)  # type: ignore[arg-type]
        assert "Do it." in (world.agents / "pdf" / "SKILL.md").read_text(encoding="utf-8")


def test_a_bucket_with_plain_folders_of_skills_is_read_whole(bucket: str, make_skill: MakeSkill, world: World) -> None:
    store = open_target(parse_target(bucket))
    for name in ("pdf", "csv"):
        folder = make_skill(name)
        for path in folder.rglob("*"):
            if path.is_file():
                store.write(f"skills/{name}/{path.relative_to(folder).as_posix()}", path.read_bytes())
    catalog = prowess.Source.site(bucket, missing="error").load()
    assert sorted(catalog.names) == ["csv", "pdf"]
    assert "Do it." in catalog.load("pdf").instructions
    prowess.Installer().install(f"{bucket}@csv", project=True)
    assert prowess.read_metadata(world.agents / "csv").digest() == prowess.read_metadata(make_skill("csv")).digest()
    assert prowess.Installer().outdated() == ()
    store.write("skills/csv/SKILL.md", (make_skill("csv", body="New.") / "SKILL.md").read_bytes())
    assert len(prowess.Installer().outdated()) == 1
    assert len(prowess.Source.site(bucket).load()) == 2
    with pytest.raises(prowess.FetchError) as caught:
        prowess.Source.site(f"{bucket}#1.0", missing="error").load()
    assert caught.value.code == "not-published"


def test_a_list_of_sources_takes_sites(target: str, make_skill: MakeSkill, tmp_path: Path) -> None:
    prowess.publish([make_skill()], target, aliases=["production"])
    (tmp_path / "sources.yaml").write_text(f"- dir: {to_source(target, '#production')}\n", encoding="utf-8")
    (source,) = prowess.load_sources(tmp_path / "sources.yaml")
    assert source.load().names == ("pdf",)


@pytest.mark.parametrize(
    ("version", "aliases"), [("latest", []), ("1.0.0", ["1.0.0"]), ("2.0", ["1.0"]), ("production1", [])]
)
def test_a_word_is_a_version_or_an_alias(
    tmp_path: Path, make_skill: MakeSkill, version: str, aliases: list[str]
) -> None:
    prowess.publish([make_skill(version="1.0")], tmp_path / "site", aliases=["production1"])
    with pytest.raises(prowess.SourceError) as caught:
        prowess.publish([make_skill(version="")], tmp_path / "site", version=version, aliases=aliases)
    assert caught.value.code == "bad-version"


def test_a_skill_that_is_still_a_template_is_noted(tmp_path: Path) -> None:
    prowess.create_skill("draft", tmp_path)
    report = prowess.publish([tmp_path / "draft"], tmp_path / "site", version="1.0")
    assert {issue.code for issue in report.skills[0].issues} == {"placeholder-text"}


def test_what_is_not_there_is_said(tmp_path: Path, make_skill: MakeSkill) -> None:
    with pytest.raises(prowess.SourceError, match="nothing is published there yet"):
        prowess.publish(["pdf@1.0.0"], tmp_path / "sitee", aliases=["a"])
    prowess.publish([make_skill()], tmp_path / "site")
    with pytest.raises(prowess.SourceError, match="did you mean pdf"):
        prowess.publish(["pddf@1.0.0"], tmp_path / "site", aliases=["a"])
