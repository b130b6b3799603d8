"""Settings: later wins, each value says where it came from, and a project cannot loosen what protects its user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import prowess
from prowess.settings import DIALECT_NAMES, SETTINGS
from prowess.tools.dialects import DIALECTS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A home folder, and a project in it with a folder inside."""
    home = tmp_path / "home"
    inner = home / "project" / "inner"
    inner.mkdir(parents=True)
    (home / "project" / ".git").mkdir()
    (home / ".config" / "prowess").mkdir(parents=True)
    return home, inner


def load(folders: tuple[Path, Path], **options: Any) -> prowess.Settings:
    home, inner = folders
    return prowess.load_settings(inner, home, **options)


def test_without_anything_every_setting_is_its_default(folders: tuple[Path, Path]) -> None:
    settings = load(folders)
    assert [(found.name, found.value, found.origin) for found in settings] == [
        (known.name, known.default, "default") for known in SETTINGS
    ]
    assert len(settings) == len(SETTINGS)
    assert repr(settings) == "Settings()"


def test_later_wins_and_says_where_it_came_from(folders: tuple[Path, Path]) -> None:
    home, inner = folders
    own, theirs = home / ".config/prowess/config.toml", inner.parent / "prowess.toml"
    own.write_text("[settings]\nbudget = 1\nstrict = true\ndialect = 'load_skill'\nstyle = 'xml'\n", encoding="utf-8")
    theirs.write_text("[settings]\nbudget = 2\nstrict = false\nagents = ['codex', 'amp']\n", encoding="utf-8")
    env = {"PROWESS_BUDGET": "3", "PROWESS_STYLE": "json", "PROWESS_AGENTS": " windsurf, "}
    settings = load(folders, env=env, flags={"budget": 4, "agents": ()})
    assert (settings["budget"], settings.origin("budget")) == (4, "flag")
    assert (settings["strict"], settings.origin("strict")) == (False, str(theirs))
    assert (settings["dialect"], settings.origin("dialect")) == ("load_skill", str(own))
    assert (settings["style"], settings.origin("style")) == ("json", "PROWESS_STYLE")
    assert settings["agents"] == ("windsurf",)
    assert load(folders)["agents"] == ("codex", "amp")


def test_the_nearest_file_of_the_project_counts_and_none_above_it(folders: tuple[Path, Path]) -> None:
    home, inner = folders
    (home / "prowess.toml").write_text("[settings]\nbudget = 1\n", encoding="utf-8")
    assert load(folders)["budget"] is None
    (inner.parent / "prowess.toml").write_text("[settings]\nbudget = 2\n", encoding="utf-8")
    (inner / "prowess.toml").write_text("[settings]\ntop = 3\n", encoding="utf-8")
    assert (load(folders)["budget"], load(folders)["top"]) == (None, 3)


def test_folders_in_a_file_are_relative_to_it(folders: tuple[Path, Path]) -> None:
    home, inner = folders
    (inner / "prowess.toml").write_text("[settings]\nfolders = ['skills', '../more']\n", encoding="utf-8")
    assert load(folders).names("folders") == (str(inner / "skills"), str(inner.parent / "more"))
    (home / ".config/prowess/config.toml").write_text("[settings]\nfolders = ['../../any']\n", encoding="utf-8")
    (inner / "prowess.toml").unlink()
    assert load(folders).names("folders") == (str(home / "any"),)


@pytest.mark.needs_links
@pytest.mark.parametrize("away", ["../private", "~/private", "{home}/private", "linked", "inner/../linked/work", ".."])
def test_a_project_names_no_folder_outside_of_its_repository(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, away: str
) -> None:
    home, inner = folders
    monkeypatch.setenv("HOME", str(home))
    (home / "private" / "work").mkdir(parents=True)
    (inner.parent / "linked").symlink_to("../private")
    written = f"[settings]\nfolders = ['skills', '{away.format(home=home)}']\n"
    (inner.parent / "prowess.toml").write_text(written, encoding="utf-8")
    settings = load(folders)
    assert settings.names("folders") == (str(inner.parent / "skills"),)
    (issue,) = settings.issues
    assert (issue.code, issue.field) == ("user-setting", "folders")
    assert "own file" in issue.hint
    named = load(folders, env={"PROWESS_FOLDERS": str(home / "private")})
    assert named.names("folders") == (str(home / "private"),), "the user may name any place"


def test_what_may_run_is_not_for_a_project_to_decide(folders: tuple[Path, Path]) -> None:
    home, inner = folders
    (inner / "prowess.toml").write_text("[settings]\nsandbox = 'none'\n", encoding="utf-8")
    settings = load(folders)
    assert settings["sandbox"] == "auto"
    assert [(issue.code, issue.field) for issue in settings.issues] == [("user-setting", "sandbox")]
    (home / ".config/prowess/config.toml").write_text("[settings]\nsandbox = 'none'\n", encoding="utf-8")
    assert load(folders)["sandbox"] == "none"


def test_a_key_that_does_not_exist_is_told_with_the_nearest_that_does(folders: tuple[Path, Path]) -> None:
    (folders[1] / "prowess.toml").write_text('agents = []\nmode = "copy"\n[settings]\nbugdet = 5\n', encoding="utf-8")
    (issue,) = load(folders).issues
    assert (issue.code, issue.field) == ("unknown-setting", "bugdet")
    assert "'budget'" in issue.message


def test_a_key_of_the_manifest_that_is_misspelled_is_told_with_the_right_one(folders: tuple[Path, Path]) -> None:
    (folders[1] / "prowess.toml").write_text("skils = []\n", encoding="utf-8")
    (issue,) = load(folders).issues
    assert issue.message == "means nothing here; did you mean skills?"


def test_what_stands_in_the_wrong_place_of_a_file_is_told(folders: tuple[Path, Path]) -> None:
    (folders[1] / "prowess.toml").write_text("budget = 5\nskills = []\n[setings]\nx = 1\n", encoding="utf-8")
    own = folders[0] / ".config/prowess/config.toml"
    own.write_text("skills = []\n", encoding="utf-8")
    found = {(issue.field, issue.code): issue.message for issue in load(folders).issues}
    assert found.keys() == {(name, "unknown-setting") for name in ("budget", "setings", "skills")}
    assert "belongs below [settings]" in found["budget", "unknown-setting"]


def test_every_dialect_is_a_choice() -> None:
    assert set(DIALECT_NAMES) == set(DIALECTS)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "dialect = 'zz'",
            "budget = 'x'",
            "budget = -1",
            "budget = true",
            "strict = 1",
            "agents = 'codex'",
            "agents = [1]",
        ),
        *("min = 2", "min = 'x'", "style = 'pdf'", "selector = 'os:system'", "dialect = 5", "folders = 'x'"),
    ],
)
def test_a_value_that_makes_no_sense_is_an_error_that_names_the_file(folders: tuple[Path, Path], text: str) -> None:
    file = folders[1] / "prowess.toml"
    file.write_text(f"[settings]\n{text}\n", encoding="utf-8")
    with pytest.raises(prowess.SourceError) as caught:
        load(folders)
    assert (caught.value.code, caught.value.path) == ("bad-setting", str(file))


@pytest.mark.parametrize(
    ("name", "written"), [("BUDGET", "x"), ("STRICT", "maybe"), ("MIN", "many"), ("SANDBOX", "cage"), ("TOP", "-1")]
)
def test_a_variable_that_makes_no_sense_is_an_error_that_names_it(
    folders: tuple[Path, Path], name: str, written: str
) -> None:
    with pytest.raises(prowess.SourceError, match=f"PROWESS_{name}"):
        load(folders, env={f"PROWESS_{name}": written})


@pytest.mark.parametrize("text", ["nonsense", "settings = 1", "[settings", "a = " + "[" * 3000])
def test_a_file_that_is_not_settings_is_an_error(folders: tuple[Path, Path], text: str) -> None:
    (folders[1] / "prowess.toml").write_text(text, encoding="utf-8")
    with pytest.raises(prowess.SourceError) as caught:
        load(folders)
    assert caught.value.code == "bad-setting"


@pytest.mark.needs_links
def test_a_file_that_is_a_link_or_too_large_is_not_read(folders: tuple[Path, Path], tmp_path: Path) -> None:
    secret = tmp_path / "secret.toml"
    secret.write_text("[settings]\nbudget = 1\n", encoding="utf-8")
    file = folders[1] / "prowess.toml"
    file.symlink_to(secret)
    with pytest.raises(prowess.SourceError, match="link"):
        load(folders)
    file.unlink()
    file.write_text("#" * 100_000, encoding="utf-8")
    with pytest.raises(prowess.SourceError, match="at most"):
        load(folders)


@pytest.mark.parametrize(("written", "value"), [("1", True), ("TRUE", True), ("off", False), ("no", False)])
def test_yes_and_no_are_written_in_many_ways(folders: tuple[Path, Path], written: str, value: bool) -> None:
    assert load(folders, env={"PROWESS_STRICT": written})["strict"] is value
