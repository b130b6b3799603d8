"""The public names: all there, all in order, none by accident."""

from __future__ import annotations

import subprocess
import sys
import types
from typing import get_args

import prowess

EXPECTED = {
    *("parse_frontmatter", "parse_skill", "parse_skill_file", "read_metadata", "parse_allowed_tools", "validate"),
    *("MAX_NAME_LENGTH", "MAX_DESCRIPTION_LENGTH", "MAX_COMPATIBILITY_LENGTH", "Limits", "Issue", "Frontmatter"),
    *("scan", "discover", "Catalog", "Skill", "SkillScope", "Resources", "LoadedSkill", "render_catalog"),
    *("SkillError", "SkillValidationError", "SkillLoadError", "InvalidFrontmatterError", "NoFrontmatterError"),
    *(
        "UnterminatedFrontmatterError",
        "EmptySkillBodyError",
        "UnknownSkillError",
        "ResourceError",
        "PathTraversalError",
    ),
    *("SkillRef", "is_local_path", "default_user_dir", "default_project_dir", "Installer", "InstalledSkill"),
    *("SourceSpec", "parse_source", "Plan", "Update", "Outdated", "InstallError", "AlreadyInstalledError"),
    *("ResourceNotFoundError", "ResourceTooLargeError", "BinaryResourceError", "SourceError"),
    "FetchError",
}


def by_kind(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, each by name."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def test_the_list_is_sorted_and_holds_no_name_twice() -> None:
    assert list(prowess.__all__) == sorted(set(prowess.__all__), key=by_kind)


def test_every_name_in_the_list_exists() -> None:
    assert [name for name in prowess.__all__ if getattr(prowess, name, None) is None] == []


def test_every_name_of_the_design_is_public() -> None:
    assert sorted(EXPECTED - set(prowess.__all__)) == []


def test_nothing_is_public_by_accident() -> None:
    for name in prowess.__all__:
        getattr(prowess, name)  # some are loaded when they are first asked for
    shown = {name for name, value in vars(prowess).items() if not name.startswith("_")}
    modules = {n for n, v in vars(prowess).items() if isinstance(v, types.ModuleType) and n not in prowess.__all__}
    assert shown - modules - {"Any", "TYPE_CHECKING", "annotations"} == set(prowess.__all__)


def test_everything_a_user_meets_is_explained() -> None:
    for name in prowess.__all__:
        value = getattr(prowess, name)
        if isinstance(value, type | types.FunctionType):
            assert (value.__doc__ or "").strip(), name


def test_the_lengths_of_the_specification() -> None:
    lengths = (prowess.MAX_NAME_LENGTH, prowess.MAX_DESCRIPTION_LENGTH, prowess.MAX_COMPATIBILITY_LENGTH)
    assert lengths == (64, 1024, 500)


def run_fresh(code: str) -> str:
    """What a program prints that has just imported Prowess."""
    command = [sys.executable, "-c", f"import prowess\n{code}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_dir_shows_every_public_name_before_any_was_asked_for() -> None:
    assert set(run_fresh("print(*dir(prowess))").split()) >= set(prowess.__all__)


def test_help_shows_every_public_name() -> None:
    shown = run_fresh("import pydoc; print(pydoc.plain(pydoc.render_doc(prowess)))")
    assert [name for name in prowess.__all__ if name not in shown] == []
    assert "class Toolset(" in shown


def test_the_names_of_dialects_are_those_of_the_table() -> None:
    assert set(get_args(prowess.DialectName)) == set(prowess.DIALECTS)
