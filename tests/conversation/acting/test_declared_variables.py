"""Scripts see the variables that their skill declares, once a person who was shown the names has agreed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess import Scripts, Trust, TrustRequest
from prowess.changes.trust import prepare_grant

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("DECLARED_KEY", "DECLARED_UNIT", "OTHER_KEY", "PATH")
SECRET = "s3cret-value"  # noqa: S105 - not a password
SCRIPT = "scripts/env.py"


@pytest.fixture
def skill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> prowess.Skill:
    for name in NAMES[:3]:
        monkeypatch.setenv(name, SECRET)
    folder = tmp_path / "weather"
    (folder / "scripts").mkdir(parents=True)
    needs = "requires:\n  env: [DECLARED_KEY, UNSET_KEY, PATH, {name: DECLARED_UNIT, required: false}]"
    (folder / "SKILL.md").write_text(f"---\nname: weather\ndescription: Says it.\n{needs}\n---\nRun it.\n")
    (folder / SCRIPT).write_text(
        f"import json, os\nprint(json.dumps({{name: os.environ.get(name) for name in {NAMES}}}))\n"
    )
    return prowess.scan(tmp_path)["weather"]


@pytest.fixture
def scripts() -> Scripts:
    return Scripts("none", env="declared")


def test_a_script_sees_exactly_what_its_skill_declares(skill: prowess.Skill, scripts: Scripts, tmp_path: Path) -> None:
    asked: list[TrustRequest] = []

    def ask(request: TrustRequest) -> bool:
        asked.append(request)
        return True

    trust = Trust(tmp_path / "trust.json", ask=ask)
    seen = json.loads(scripts.run(skill, SCRIPT, trust=trust).stdout)
    assert (seen["DECLARED_KEY"], seen["DECLARED_UNIT"], seen["OTHER_KEY"]) == (SECRET, SECRET, None)
    plain = json.loads(Scripts("none").run(skill, SCRIPT, trust=trust).stdout)
    assert [plain[name] for name in NAMES[:3]] == [None, None, None]
    assert seen["PATH"] == plain["PATH"]  # a skill that declares PATH gets no other one
    assert asked[0].variables == ("DECLARED_KEY", "PATH", "DECLARED_UNIT")
    assert "with the variables: DECLARED_KEY, PATH, DECLARED_UNIT" in str(asked[0])
    assert SECRET not in str(asked[0]) + json.dumps(asked[0].to_dict())
    assert (asked[1].variables, asked[0].id == asked[1].id) == ((), False)


def test_a_grant_that_names_no_variables_does_not_count_for_them(
    skill: prowess.Skill, scripts: Scripts, tmp_path: Path
) -> None:
    trust = Trust(tmp_path / "trust.json")
    trust.grant(skill)
    assert Scripts("none").run(skill, SCRIPT, trust=trust).ok
    with pytest.raises(prowess.NotTrustedError, match="see the variables that it declares: DECLARED_KEY"):
        scripts.run(skill, SCRIPT, trust=trust)
    change = prepare_grant(trust, [skill])
    assert "see the variables DECLARED_KEY, UNSET_KEY, PATH, DECLARED_UNIT" in change.steps[0]
    change.apply()
    assert scripts.run(skill, SCRIPT, trust=trust).ok
    trust.grant(skill)  # a grant without names takes none away
    assert scripts.run(skill, SCRIPT, trust=Trust(tmp_path / "trust.json")).ok
    assert SECRET not in (tmp_path / "trust.json").read_text()


def test_an_always_is_recorded_with_the_names_that_were_shown(
    skill: prowess.Skill, scripts: Scripts, tmp_path: Path
) -> None:
    trust = Trust(tmp_path / "trust.json", ask=lambda _: "always")
    scripts.run(skill, SCRIPT, trust=trust)
    (grant,) = trust.grants()
    assert grant.variables == ("DECLARED_KEY", "DECLARED_UNIT", "PATH")
    assert scripts.run(skill, SCRIPT, trust=Trust(tmp_path / "trust.json")).ok


def test_a_variable_that_is_set_later_is_a_new_question(
    skill: prowess.Skill, scripts: Scripts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = prowess.Session(prowess.Catalog([skill]), trust=Trust(tmp_path / "trust.json", policy="defer"))
    toolset = prowess.Toolset(session, scripts=scripts)
    call = ("run_skill_script", {"name": "weather", "script": SCRIPT})
    request = toolset.call(*call).pending
    assert request is not None
    again = TrustRequest.from_dict(json.loads(json.dumps(request.to_dict())), session.catalog)
    assert again == request
    monkeypatch.setenv("UNSET_KEY", SECRET)
    session.approve(again)
    assert toolset.call(*call).pending is not None
    monkeypatch.delenv("UNSET_KEY")
    assert SECRET in toolset.call(*call).content


def test_other_words_for_env_are_refused() -> None:
    with pytest.raises(prowess.SourceError, match='must be a mapping of strings, or "declared"'):
        Scripts(env="all")  # type: ignore[arg-type]
