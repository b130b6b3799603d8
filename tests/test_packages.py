"""The packages that are published: which files they hold, what their metadata says, and which extras they offer."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import grimp
import pytest
import yaml
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement

import prowess
from hatch_build import project_urls, rewrite_links
from prowess.cli.entry_point import COMMANDS
from prowess.cli.health import EXTRAS
from prowess.literals import DialectName
from scripts.wheel_contents import check_wheel
from tests.retriever.model_copies import need_model

if TYPE_CHECKING:
    from grimp import ImportGraph

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RETRIEVER = ROOT / "packages" / "prowess-retriever"
README = (ROOT / "README.md").read_text(encoding="utf-8")
RELATIVE_LINK = re.compile(r"\]\((?!https?:|#)")
DEMO_SKILL = re.compile(r"prowess/cli/demo/(skills|acting)/.+")
CONSOLE_FILE = re.compile(r"prowess/web/(templates/[a-z_]+\.html|static/[a-z.]+\.(css|js|svg|LICENSE))")
MODULE = re.compile(r"prowess(/[a-z_][a-z0-9_]*)+\.py")


@pytest.fixture(scope="module")
def imports() -> ImportGraph:
    return grimp.build_graph("prowess", include_external_packages=True, cache_dir=None)


# -- Files -------------------------------------------------------------------------------------------------------------


def test_the_wheel_holds_modules_the_marker_for_types_the_demonstration_and_the_console() -> None:
    files = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    others = {name for name in files if not MODULE.fullmatch(name) and not DEMO_SKILL.fullmatch(name)}
    assert {name for name in others if not CONSOLE_FILE.fullmatch(name)} == {"prowess/py.typed"}
    assert {
        "prowess/web/templates/base.html",
        "prowess/web/static/htmx.min.js",
        "prowess/web/static/htmx.LICENSE",
    } <= files
    assert {"prowess/cli/demo/skills/csv-report/SKILL.md", "prowess/cli/demo/acting/folder-report/SKILL.md"} <= files


def test_every_module_of_the_wheel_is_used_by_another_one(imports: ImportGraph) -> None:
    """What nobody imports is a tool of those who build the project, and belongs into scripts/."""
    # The supervisor is a program: it is started by the path of its file.
    programs = {"prowess.__main__", "prowess.conversation.acting.supervisor"}
    dialects = (f"prowess.tools.dialects.{name.replace('__', '_')}" for name in get_args(DialectName))
    adapters = {name for name in imports.modules if name.startswith("prowess.adapters.")}  # users import them
    starts = {*programs, *dialects, *adapters, *(f"prowess.cli.commands.{command.module}" for command in COMMANDS)}
    modules = {name for name in imports.modules if name.startswith("prowess.") and not imports.find_children(name)}
    unused = {name for name in modules - starts if not imports.find_modules_that_directly_import(name)}
    assert unused == set()


def test_the_sdist_holds_what_builds_the_wheel_and_no_tests() -> None:
    files = {file.distribution_path for file in SdistBuilder(str(ROOT)).recurse_included_files()}
    tops = {name.split("/")[0] for name in files}
    assert tops == {"src", "examples", "hatch_build.py", "README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE"}


# -- The package of the encoder ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def retriever() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((RETRIEVER / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


@pytest.mark.parametrize("builder", [WheelBuilder, SdistBuilder])
def test_both_packages_of_the_encoder_hold_its_modules_and_its_model(
    builder: type[WheelBuilder | SdistBuilder],
) -> None:
    files = {Path(file.distribution_path) for file in builder(str(RETRIEVER)).recurse_included_files()}
    names = {path.name for path in files if path.parent.name == "prowess_retriever"}
    assert names == {"__init__.py", "encoder.py", "model_files.py", "py.typed", "wordpiece.py"}
    need_model()
    model = {path.name for path in files if path.parent.name == "model"}
    assert model == {"embeddings.npz", "layers.onnx", "model.json", "vocabulary.txt"}


def test_the_package_of_the_encoder_brings_the_licences_of_its_code_and_of_its_weights(
    retriever: dict[str, Any],
) -> None:
    assert retriever["license"] == "MIT AND Apache-2.0"
    assert retriever["license-files"] == ["LICENSE", "LICENSE-APACHE", "NOTICE"]
    assert (RETRIEVER / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert "Version 2.0, January 2004" in (RETRIEVER / "LICENSE-APACHE").read_text(encoding="utf-8")
    assert "all-MiniLM-L6-v2" in (RETRIEVER / "NOTICE").read_text(encoding="utf-8")


def test_the_package_of_the_encoder_needs_neither_prowess_nor_a_client_for_downloads(retriever: dict[str, Any]) -> None:
    assert {Requirement(row).name for row in retriever["dependencies"]} == {"numpy", "onnxruntime"}


def test_the_extra_takes_the_encoder_of_this_checkout(retriever: dict[str, Any]) -> None:
    (row,) = PROJECT["optional-dependencies"]["semantic"]
    version = WheelBuilder(str(RETRIEVER)).metadata.version
    assert Requirement(row).name == retriever["name"]
    assert Requirement(row).specifier.contains(version)


def test_both_packages_claim_the_same_versions_of_python_and_the_same_systems(retriever: dict[str, Any]) -> None:
    assert retriever["requires-python"] == PROJECT["requires-python"]
    claims = [
        {row for row in project["classifiers"] if row.startswith(("Programming", "Operating"))}
        for project in (retriever, PROJECT)
    ]
    assert claims[0] == claims[1]


def test_the_readme_of_the_encoder_has_no_links_that_a_package_index_cannot_follow() -> None:
    assert not RELATIVE_LINK.search((RETRIEVER / "README.md").read_text(encoding="utf-8"))


def test_a_wheel_of_the_encoder_without_its_model_or_its_licences_is_not_published(tmp_path: Path) -> None:
    path = tmp_path / "prowess_retriever-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("prowess_retriever/model/layers.onnx", b"")
        wheel.writestr("prowess_retriever-1.dist-info/licenses/LICENSE", b"")
    problems = check_wheel(path)
    assert len(problems) == 5
    assert f"{path.name} lacks prowess_retriever/model/embeddings.npz" in problems
    assert f"{path.name} lacks /licenses/LICENSE-APACHE" in problems


def test_a_wheel_of_the_encoder_of_more_than_25_mb_is_not_published(tmp_path: Path) -> None:
    path = tmp_path / "prowess_retriever-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("prowess_retriever/model/layers.onnx", bytes(25_000_001))
    assert f"{path.name} has 25,000,1" in check_wheel(path)[-1]


# -- Extras ------------------------------------------------------------------------------------------------------------


def test_every_extra_is_used_by_a_module_and_known_to_doctor(imports: ImportGraph) -> None:
    assert set(PROJECT["optional-dependencies"]) == set(EXTRAS)
    for module, _purpose in EXTRAS.values():
        assert imports.find_modules_that_directly_import(module), module


USE_EACH_EXTRA = """
import sys
for module in ("mcp", "mcp_types", "watchfiles", "opentelemetry", "prowess_retriever", "nh3", "obstore"):
    sys.modules[module] = None  # as if it were not installed
import prowess, prowess.mcp, prowess.web
uses = {
    "mcp": lambda: prowess.mcp.Server,
    "mcp of others": lambda: prowess.Source.mcp("other", command=["none"]).load(),
    "watch": lambda: next(iter(prowess.watch(".", notice="watchfiles"))),
    "otel": lambda: prowess.otel.trace_events(),
    "semantic": lambda: prowess.scan(".").search("words", semantic=True),
    "web": prowess.web.check_extra,
    "store": prowess.Source.site("s3://bucket", missing="error").load,
}
for name, use in uses.items():
    try:
        use()
    except prowess.SourceError as error:
        print(name, error.code, error.message, sep="|")
"""


def test_what_needs_a_missing_extra_says_which_one_and_how_to_add_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", USE_EACH_EXTRA], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    rows = [row.split("|") for row in done.stdout.splitlines()]
    names = ["mcp", "mcp of others", "watch", "otel", "semantic", "web", "store"]
    assert [name for name, _code, _message in rows] == names
    for name, code, message in rows:
        extra = name.split()[0]
        assert code == "missing-extra"
        beside = "./packages/prowess-retriever " if extra == "semantic" else ""
        remedy = f"install Prowess with the extra '{extra}' (in a checkout: pip install {beside}'.[{extra}]')"
        assert message.endswith(remedy)


# -- Metadata ----------------------------------------------------------------------------------------------------------


def test_a_readme_on_a_package_index_leads_to_the_files_of_its_release() -> None:
    page = rewrite_links(README, "https://git.example/team/prowess", "v1.2.3")
    assert not RELATIVE_LINK.search(page)
    assert "](https://git.example/team/prowess/blob/v1.2.3/SECURITY.md)" in page
    assert "](https://git.example/team/prowess/raw/v1.2.3/docs/selection.svg)" in page


def test_while_no_address_is_known_a_readme_has_labels_in_place_of_links() -> None:
    page = rewrite_links("See [the page](docs/a.md), ![a picture](docs/a.svg)[there](https://git.example).", "", "v1")
    assert page == "See the page, [there](https://git.example)."


def test_the_packages_take_their_urls_from_the_one_address_in_the_project_file() -> None:
    metadata = WheelBuilder(str(ROOT)).metadata
    hook = metadata.hatch.metadata.hook_config["custom"]
    assert metadata.core.urls == project_urls(hook["repository"], f"v{metadata.version}")
    assert not RELATIVE_LINK.search(metadata.core.readme)


INSTALL_BY_NAME = re.compile(
    r"\b(?:pip3? install|pipx (?:install|run)|uvx|uv (?:add|pip install|tool install|tool run))\b[^\n`]*?"
    r"(?<![\w./'-])['\"]?prowess(?:-retriever)?(?![\w/.-])"
)


@pytest.mark.parametrize(
    ("line", "is_by_name"),
    [
        ("pip install prowess", True),
        ("pip install -U 'prowess[agent]'", True),
        ("uvx prowess list", True),
        ("pip install '.[mcp]'", False),
        ("pip install ./packages/prowess-retriever '.[semantic]'", False),
        ("pip install /path/to/prowess # a checkout", False),
    ],
)
def test_an_install_by_name_is_recognized(line: str, is_by_name: bool) -> None:
    assert (INSTALL_BY_NAME.search(line) is not None) is is_by_name


def test_while_nothing_is_published_no_page_and_no_hint_installs_by_name() -> None:
    """Somebody else could have the name on an index, and what a reader installed would be theirs."""
    if WheelBuilder(str(ROOT)).metadata.hatch.metadata.hook_config["custom"]["repository"]:
        return
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    pages += [*(ROOT / "examples").rglob("*.py"), *(ROOT / "packages").rglob("*.md")]
    named = {page.name: INSTALL_BY_NAME.findall(page.read_text(encoding="utf-8")) for page in pages}
    assert {name for name, found in named.items() if found} == set()


def test_the_urls_of_a_release_have_the_labels_that_package_indexes_know() -> None:
    urls = project_urls("https://git.example/team/prowess", "v1.2.3")
    assert set(urls) == {"Homepage", "Documentation", "Source", "Changelog", "Issues"}
    assert all(url.startswith("https://git.example/team/prowess") for url in urls.values())
    assert project_urls("", "v1.2.3") == {}


# -- Platforms ---------------------------------------------------------------------------------------------------------


def read_workflow(name: str) -> dict[str, Any]:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    jobs: dict[str, Any] = workflow["jobs"]
    return jobs


@pytest.fixture(scope="module")
def jobs() -> dict[str, Any]:
    return read_workflow("ci.yml")


def claimed_versions() -> list[str]:
    prefix = "Programming Language :: Python :: 3."
    minors = sorted(int(row.removeprefix(prefix)) for row in PROJECT["classifiers"] if row.startswith(prefix))
    return [f"3.{minor}" for minor in minors]


def test_the_workflow_gates_on_every_python_that_the_package_claims(jobs: dict[str, Any]) -> None:
    versions = claimed_versions()
    assert PROJECT["requires-python"] == f">={versions[0]}"
    gate = jobs["linux"]
    assert gate["strategy"]["matrix"]["python"] == versions
    assert "continue-on-error" not in gate
    assert any("make test" in step.get("run", "") for step in gate["steps"])


def test_the_package_claims_no_system_on_which_the_workflow_may_fail(jobs: dict[str, Any]) -> None:
    systems = [row for row in PROJECT["classifiers"] if row.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]
    whole = next(step for step in jobs["platforms"]["steps"] if step.get("run") == "python -m pytest")
    assert whole["continue-on-error"] is True


def test_the_workflow_gates_on_the_smoke_test_on_windows_and_macos(jobs: dict[str, Any]) -> None:
    job = jobs["platforms"]
    assert job["strategy"]["matrix"]["system"] == ["macos-latest", "windows-latest"]
    (smoke,) = [step for step in job["steps"] if step.get("run") == "python -m pytest tests/platforms"]
    assert "continue-on-error" not in {*job, *smoke}
    assert "WINDOWS_TESTS := tests/platforms " in (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize("workflow", ["ci.yml", "release.yml"])
def test_every_action_of_a_workflow_is_pinned_to_a_commit(workflow: str) -> None:
    actions = [step["uses"] for job in read_workflow(workflow).values() for step in job["steps"] if "uses" in step]
    assert actions
    for action in actions:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action


def test_a_release_publishes_only_what_was_tested_under_the_tag_of_its_version() -> None:
    jobs = read_workflow("release.yml")
    tag, *commands = [step["run"] for step in jobs["build"]["steps"] if "run" in step]
    assert commands == ["make test PYTHON=python", "make package PYTHON=python"]
    assert jobs["publish"]["needs"] == "build"
    for name, status in ((f"v{prowess.__version__}", 0), ("v999.0.0", 1)):
        environment = {**os.environ, "GITHUB_REF_NAME": name}
        assert subprocess.run(["bash", "-c", tag], env=environment, cwd=ROOT, check=False).returncode == status


def test_only_the_job_that_publishes_gets_an_identity() -> None:
    jobs = read_workflow("release.yml")
    assert {name: job.get("permissions") for name, job in jobs.items()} == {
        "build": None,
        "publish": {"id-token": "write"},
    }
