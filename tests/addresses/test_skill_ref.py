"""References: their grammar, and that nothing gets through that could be more than a name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess import BadReferenceError, SkillRef, is_local_path
from prowess.addresses.skill_ref import check_version, is_commit
from prowess.names import is_safe_part, link_name


@pytest.mark.parametrize(
    ("text", "org", "name", "version"),
    [
        ("@acme/pdf", "acme", "pdf", ""),
        ("@acme/pdf@v1.0.0", "acme", "pdf", "v1.0.0"),
        ("@acme/pdf@feature/x", "acme", "pdf", "feature/x"),
        ("@Acme-Inc/pdf_tools.v2@1.2.3+b4", "Acme-Inc", "pdf_tools.v2", "1.2.3+b4"),
    ],
)
def test_a_reference_is_read_and_written_alike(text: str, org: str, name: str, version: str) -> None:
    ref = SkillRef.parse(text)
    assert (ref.org, ref.name, ref.version) == (org, name, version)
    assert str(ref) == text
    assert ref.full_name == f"{org}/{name}"
    assert ref.git_url == f"https://github.com/{org}/{name}"


@pytest.mark.parametrize(
    "text",
    [
        *("", "acme/pdf", "@", "@acme", "@/pdf", "@acme/", "@acme/pdf@", "@acme/a/b", "@@acme/pdf", "@acme/pdf@@"),
        *("@../x", "@acme/..", "@./x", "@acme/.git", "@-x/y", "@x/-y", "@acme/pdf ", "@ac me/pdf", "@acme/p\0f"),
        *(
            "@acme/con",
            "@nul/x",
            "@acme/a.",
            "@acme/\uff50\uff44\uff46",
            "@acme/p\u0430ypal",
            "@acme/a\\b",
            "@acme/C:",
            "@acme/a\n",
        ),
        *("@acme/pdf@../x", "@acme/pdf@-b", "@acme/pdf@x;y", "@acme/pdf@HEAD^{/x}", "@acme/pdf@a b", "@acme/a@b@c d"),
        "@acme/" + "x" * 101,
    ],
)
def test_what_is_not_a_reference_is_refused(text: str) -> None:
    with pytest.raises(BadReferenceError) as caught:
        SkillRef.parse(text)
    assert caught.value.code in {"bad-reference", "bad-version"}
    assert isinstance(caught.value, ValueError)
    assert str(caught.value).isprintable()


@given(st.text(max_size=60))
def test_whatever_parses_is_one_safe_folder_in_another(text: str) -> None:
    try:
        ref = SkillRef.parse(f"@{text}")
    except BadReferenceError:
        return
    assert is_safe_part(ref.org)
    assert is_safe_part(ref.name)
    assert "/" not in ref.org + ref.name
    assert ref.org not in {".", ".."}
    assert ref.name not in {".", ".."}
    assert SkillRef.parse(str(ref)) == ref


@pytest.mark.parametrize("text", ["./x", "../x", "/x"])
def test_a_text_that_begins_like_a_path_is_a_path_of_this_machine(text: str) -> None:
    assert is_local_path(text)


@pytest.mark.parametrize("text", [".", "..", "~/x", "rel/path", "", "@acme/pdf", ".\\x", "C:\\x"])
def test_any_other_string_is_not_a_path_of_this_machine(text: str) -> None:
    assert not is_local_path(text)


@pytest.mark.parametrize("text", ["v1", "main", "feature/x", "1.2.3", "release-1.x", "a@b", "x" * 40, "0" * 40])
def test_tags_branches_and_commits_are_versions(text: str) -> None:
    assert check_version(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("--foo", "-b", "x;y", "HEAD^{/x}", "@{-1}", "refs/../../x", "a\nb", "", " ", "a b", "x" * 201, "a..b", "/x"),
        *("x/", "a//b", ".x", "a/.x", "x.lock", "a.lock/b", "x.", "+x", "a:b", "a~1", "a?b", "a*b", "a[b", "a\\b", "é"),
    ],
)
def test_what_git_could_take_for_something_else_is_not_a_version(text: str) -> None:
    with pytest.raises(BadReferenceError) as caught:
        check_version(text)
    assert caught.value.code == "bad-version"


def test_a_commit_is_a_whole_id() -> None:
    assert is_commit("0123456789" * 4)
    assert is_commit("ab" * 32)
    assert not is_commit("0123456")
    assert not is_commit("g" * 40)


@pytest.mark.parametrize(
    ("skill", "name"),
    [
        ("pdf", "pdf"),
        ("My Skill", "my-skill"),
        ("a_b.c", "a_b.c"),
        ("...", ""),
        ("con", ""),
        ("n" * 100, "n" * 100),
        ("N" * 101, "n" * 91 + "-c0cb7a59"),
        ("p\u0430ypal", ""),
        ("\uff50\uff44\uff46", ""),
    ],
)
def test_agents_find_a_skill_under_its_name_in_characters_that_all_accept(skill: str, name: str) -> None:
    assert link_name(skill) == name
