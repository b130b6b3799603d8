"""The error tree: its shape, what each error says, and that it survives a process boundary."""

from __future__ import annotations

import ast
import copy
import errno
import pickle
import re
from pathlib import Path

import pytest

import prowess
from prowess import errors
from prowess.errors import Issue, SkillError
from prowess.hints import HINTS

SOURCE = Path(prowess.__file__).parent
TREE = {
    "SkillError": Exception,
    "SkillValidationError": errors.SkillError,
    "SkillLoadError": errors.SkillValidationError,
    "InvalidFrontmatterError": errors.SkillLoadError,
    "NoFrontmatterError": errors.InvalidFrontmatterError,
    "UnterminatedFrontmatterError": errors.InvalidFrontmatterError,
    "EmptySkillBodyError": errors.SkillValidationError,
    "UnknownSkillError": errors.SkillError,
    "DuplicateSkillError": errors.SkillError,
    "ResourceError": errors.SkillError,
    "PathTraversalError": errors.ResourceError,
    "ResourceNotFoundError": errors.ResourceError,
    "ResourceTooLargeError": errors.ResourceError,
    "BinaryResourceError": errors.ResourceError,
    "ResourceChangedError": errors.ResourceError,
    "MaxActiveError": errors.SkillError,
    "SkillFilteredError": errors.SkillError,
    "SkillNotActiveError": errors.SkillError,
    "NotTrustedError": errors.SkillError,
    "PolicyError": errors.SkillError,
    "SandboxError": errors.SkillError,
    "SourceError": errors.SkillError,
    "MissingPackageError": errors.SourceError,
    "FetchError": errors.SkillError,
    "ModelError": errors.SkillError,
    "InstallError": errors.SkillError,
    **dict.fromkeys(
        (
            *("BadReferenceError", "AlreadyInstalledError", "NotInstalledError", "NameTakenError", "LocalEditsError"),
            *("LockMismatchError", "BusyError", "GitError", "UnsafeTreeError"),
        ),
        errors.InstallError,
    ),
}
ALSO = {
    "UnknownSkillError": KeyError,
    "ResourceNotFoundError": FileNotFoundError,
    "SourceError": ValueError,
    "MissingPackageError": ImportError,
    "BadReferenceError": ValueError,
}
ISSUES = (
    Issue("bad-name", "name", "is bad", "/p/SKILL.md", 2),
    Issue("missing-description", "description", "is required", "/p/SKILL.md", 3),
)


def example_of(kind: type[SkillError]) -> SkillError:
    if issubclass(kind, errors.SkillLoadError):
        return kind(ISSUES, "/p/SKILL.md")
    if kind is errors.UnknownSkillError:
        return errors.UnknownSkillError("pfd", ["pdf", "doc"])
    return kind("something went wrong", "/p/file", "too-large" if kind is errors.ResourceError else "")


KINDS = [getattr(errors, name) for name in TREE]


def test_the_tree_holds_every_error_and_no_other() -> None:
    classes = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert classes == set(TREE)


def test_the_shape_of_the_tree() -> None:
    for name, base in TREE.items():
        kind = getattr(errors, name)
        assert kind.__bases__[0] is base, name
        assert issubclass(kind, ALSO.get(name, Exception)), name
        assert f"{name} " in f"{errors.__doc__} ".replace("\n", " "), f"the drawing leaves {name} out"


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_crosses_a_process_boundary_whole(kind: type[SkillError]) -> None:
    for about in ("", "acme/pdf"):
        check_copies_of_error(kind, about)


def check_copies_of_error(kind: type[SkillError], about: str) -> None:
    """Compare an error, which is about something where that is given, with its pickled and its plain copy."""
    error = example_of(kind)
    if about:
        before = error.message
        assert error.about(about, "; so much").message == f"acme/pdf: {before}; so much"
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 - our own bytes
        assert type(again) is kind
        assert str(again) == str(error)
        assert (again.code, again.path, again.message, again.hint) == (
            error.code,
            error.path,
            error.message,
            error.hint,
        )
        assert again.args == error.args
        for attribute in ("issues", "name", "available", "errno"):
            assert getattr(again, attribute, None) == getattr(error, attribute, None)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_says_what_where_and_what_to_do(kind: type[SkillError]) -> None:
    error = example_of(kind)
    text = str(error)
    assert error.code == error.code.lower()
    assert " " not in error.code
    assert error.message
    if kind is not errors.UnknownSkillError:
        assert "/p/" in text
    if isinstance(error, errors.SkillLoadError):
        for issue in ISSUES:
            assert all(part in text for part in (f"line {issue.line}", issue.field, issue.message, issue.hint))
    else:
        assert error.message in text
        assert (error.hint and error.hint in text) or error.code in {"skill-error", "bad-argument", "missing-package"}


def test_an_error_whose_message_says_what_to_pass_has_no_empty_advice() -> None:
    assert str(errors.SourceError("max_commands must be a whole number from 0, not -1")) == (
        "max_commands must be a whole number from 0, not -1"
    )


def test_a_path_that_stands_in_the_message_is_not_said_twice() -> None:
    assert str(SkillError("cannot read /p", "/p")).count("/p") == 1


def test_a_load_error_takes_code_and_path_from_its_first_error() -> None:
    warning = Issue("hidden-text", "", "w", severity="warning")
    error = errors.SkillLoadError([warning, *ISSUES])
    assert (error.code, error.path, error.offset) == ("bad-name", "/p/SKILL.md", 0)
    assert error.issues == (warning, *ISSUES)
    assert errors.SkillLoadError([]).code == "invalid-skill"


def test_a_missing_file_has_the_systems_number() -> None:
    error = errors.ResourceNotFoundError("no file 'x'", "x")
    assert error.errno == errno.ENOENT
    assert "no file 'x'" in str(error)


def test_an_unknown_name_is_answered_with_near_ones_first() -> None:
    names = [f"n{number:03}" for number in range(50)]
    error = errors.UnknownSkillError("pdf-form", [*names, "pdf-forms", "PDF"])
    assert error.available[0] == "pdf-forms"
    assert sorted(error.available) == sorted([*names, "pdf-forms", "PDF"])
    assert "and 32 more" in str(error)
    assert str(error).count(", ") == 19
    assert "no skills are available" in str(errors.UnknownSkillError("x"))


def test_thousands_of_names_are_all_known_and_few_are_shown() -> None:
    names = [f"skill-{number}" for number in range(5000)]
    error = errors.UnknownSkillError("skill-42x", names)
    assert sorted(error.available) == sorted(names)
    assert len(str(error)) < 1000


# -- issues ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("issue", "text"),
    [
        (ISSUES[0], "/p/SKILL.md:2: error bad-name: name: is bad"),
        (Issue("unreadable", "", "m", "/p"), "/p: error unreadable: m"),
        (Issue("unreadable", "", "m", severity="warning"), "warning unreadable: m"),
        (Issue("bad-name", "name", "m", severity="info"), "info bad-name: name: m"),
    ],
)
def test_an_issue_reads_like_a_compilers(issue: Issue, text: str) -> None:
    assert str(issue) == text


def test_issues_are_values() -> None:
    assert Issue("a", "b", "c") == Issue("a", "b", "c")
    assert len({Issue("a", "b", "c"), Issue("a", "b", "c")}) == 1
    assert pickle.loads(pickle.dumps(ISSUES)) == ISSUES  # noqa: S301 - our own bytes


# -- codes -------------------------------------------------------------------------------------------------------------

# Which argument of a call is a code.
PLACES = {
    **dict.fromkeys(("Issue", "YamlError", "YamlRefusedError", "UndefinedAliasError", "Repair"), 0),
    **dict.fromkeys(("note", "_issue", "_left_out"), 0),
    "_no_root": 1,
}
WITH_CODE_LAST = {name for name in TREE if not issubclass(getattr(errors, name), errors.SkillLoadError)}


def texts(node: ast.expr) -> set[str]:
    """The constant texts that an expression may stand for."""
    if isinstance(node, ast.Constant):
        return {node.value} if isinstance(node.value, str) else set()
    if isinstance(node, ast.IfExp):
        return texts(node.body) | texts(node.orelse)
    return set()


def codes_given(call: ast.Call) -> set[str]:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    found = {code for keyword in call.keywords if keyword.arg == "code" for code in texts(keyword.value)}
    if name in PLACES and len(call.args) > PLACES[name]:
        found |= texts(call.args[PLACES[name]])
    if name in WITH_CODE_LAST and len(call.args) > 2:
        found |= texts(call.args[2])
    return found


@pytest.fixture(scope="module")
def nodes() -> list[ast.AST]:
    """Every node of every module of the package."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py"))
    return [node for tree in trees for node in ast.walk(tree)]


def all_codes(nodes: list[ast.AST]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Call):
            found |= codes_given(node)
    return {code for code in found if " " not in code}  # a sentence is what a command notes, and no code


def test_every_code_given_anywhere_has_a_remedy(nodes: list[ast.AST]) -> None:
    found = all_codes(nodes)
    assert len(found) > 30, "the search has lost its way"
    assert found - set(HINTS) == set()


@pytest.mark.parametrize("kind", KINDS[1:])
def test_every_error_has_a_remedy_of_its_own(kind: type[SkillError]) -> None:
    if not issubclass(kind, errors.SkillLoadError) or kind.__subclasses__() == []:
        assert kind.code in HINTS


def test_every_remedy_belongs_to_a_code_that_is_given_somewhere(nodes: list[ast.AST]) -> None:
    assigned = [node for node in nodes if isinstance(node, ast.AnnAssign)]
    tables = [node.value for node in assigned if isinstance(node.target, ast.Name) and node.target.id == "HINTS"]
    skipped = {id(key) for table in tables if isinstance(table, ast.Dict) for key in table.keys}
    constants = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in skipped]
    said = {node.value for node in constants if isinstance(node.value, str)}
    assert skipped
    assert set(HINTS) - said == set()


def test_remedies_are_short_and_kebab_case_codes_lead_to_them() -> None:
    for code, hint in HINTS.items():
        assert code.replace("-", "").isalnum()
        assert code == code.lower()
        assert 0 < len(hint) <= 100 or code in {"bad-argument", "missing-package"}


# -- one line each -----------------------------------------------------------------------------------------------------

ODD = [
    "a\nb",
    "a\r\nb",
    "\x1b[2J",
    "\x1b]8;;x\x07",
    "\0",
    "\x0b",
    "\x85",
    "\u2028",
    "\u202e",
    "\u2066",
    "\u200b",
    "\udcff",
]


def is_one_harmless_line(text: str) -> bool:
    return len(text.splitlines()) == 1 and text.isprintable()


@pytest.mark.parametrize("odd", ODD)
def test_an_issue_is_one_line_whatever_it_is_about(odd: str) -> None:
    issue = Issue("bad-name", f"na{odd}me", f"is {odd} bad", f"/p{odd}/SKILL.md", 2)
    assert is_one_harmless_line(str(issue))
    assert issue.path == f"/p{odd}/SKILL.md"
    assert issue.message == f"is {odd} bad"


def odd_example_of(kind: type[SkillError], odd: str) -> SkillError:
    if issubclass(kind, errors.SkillLoadError):
        return kind([Issue("bad-name", f"na{odd}me", f"is {odd} bad", f"/p{odd}/SKILL.md", 2)])
    if kind is errors.UnknownSkillError:
        return errors.UnknownSkillError(f"p{odd}", [f"q{odd}"])
    return kind(f"cannot read {odd}", f"/p{odd}/file").about(f"in {odd}")


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_is_one_line_whatever_it_is_about(kind: type[SkillError]) -> None:
    for odd in ODD:
        error = odd_example_of(kind, odd)
        assert is_one_harmless_line(str(error)), repr(str(error))
        assert odd in error.message + error.path


def test_a_folder_cannot_forge_a_line_of_what_is_wrong_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "a\nerror bad-name: forged \x1b[2J\u202e"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: x\n---\n", encoding="utf-8")
    issues = prowess.scan(tmp_path).issues
    assert issues
    assert all(is_one_harmless_line(str(issue)) for issue in issues)
    assert all(issue.path == str(folder / "SKILL.md") for issue in issues)
    with pytest.raises(SkillError) as refused:
        prowess.parse_skill_file(folder / "SKILL.md")
    assert is_one_harmless_line(str(refused.value))


def test_an_explanation_has_a_line_for_each_thing_that_it_says() -> None:
    for odd in ODD:
        shadowed = (prowess.Shadowed(f"n{odd}", f"/q{odd}", f"/p{odd}", f"older{odd}"),)
        places = (prowess.Place(f"/r{odd}"),)
        explanation = prowess.Explanation(f"n{odd}", f"/p{odd}", True, (f"why {odd}",), shadowed, ISSUES, places)  # noqa: FBT003
        assert [is_one_harmless_line(row) for row in str(explanation).split("\n")] == [True] * (4 + len(ISSUES))


# -- nothing is lost by following advice -------------------------------------------------------------------------------

_LOCK = r"(?:(?:the|your|a|this|that)\s+)?(?:whole\s+)?(?:lock\s*file|`?prowess\.lock)"
DELETING = re.compile(
    rf"\b(?:delete|remove|discard|rm(?:\s+-\w+)*|throw\s+away)\s+{_LOCK}|{_LOCK}[^.;|]{{0,60}}\b(?:delete|remove|discard)\s+it\b",
    re.IGNORECASE,
)
"""Advice to delete a lock file, which says what a whole team has."""


def test_the_search_for_advice_to_delete_a_lock_file_would_find_it() -> None:
    for text in (
        "restore the lock file from version control, or delete it and sync",
        "delete prowess.lock and run 'prowess sync'",
        "`rm -f prowess.lock`",
    ):
        assert DELETING.search(text), text
    assert not DELETING.search("remove its links and its entry in prowess.lock")


def test_no_hint_message_or_page_says_to_delete_a_lock_file() -> None:
    root = SOURCE.parents[1]
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *SOURCE.rglob("*.py")]
    assert len(pages) > 100, "the search has lost its way"
    advice = {page.name: match[0] for page in pages if (match := DELETING.search(page.read_text(encoding="utf-8")))}
    assert advice == {}
