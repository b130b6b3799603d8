"""One grammar for every kind of source: ``SOURCE[#REF][:SUBFOLDER][@SKILL,…]``."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess import BadReferenceError, SkillRef, SourceSpec, parse_source
from prowess.addresses.source_grammar import write_file_address
from prowess.addresses.source_spec import with_parts

if TYPE_CHECKING:
    from collections.abc import Callable

HUB = "https://github.com/acme/skills"
TAIL = ("v1", "tools/pdf", ("pdf", "csv"))


def git(address: str, org: str, name: str, *, local: bool = False) -> SourceSpec:
    return SourceSpec("git", address, org, name, *TAIL, local=local)


@pytest.mark.parametrize(
    ("source", "spec"),
    [
        ("acme/skills", git(HUB, "acme", "skills")),
        ("github:acme/skills", git(HUB, "acme", "skills")),
        ("gitlab:acme/skills", git("https://gitlab.com/acme/skills", "acme", "skills")),
        (HUB, git(HUB, "acme", "skills")),
        (f"{HUB}.git", git(HUB, "acme", "skills")),
        ("https://gitlab.com/g/s/r", git("https://gitlab.com/g/s/r", "s", "r")),
        ("https://h.example/g/r.git", git("https://h.example/g/r.git", "g", "r")),
        ("https://h.example:8443/g/r.git", git("https://h.example:8443/g/r.git", "g", "r")),
        ("https://[2001:db8::1]:8443/g/r.git", git("https://[2001:db8::1]:8443/g/r.git", "g", "r")),
        ("https://dev.azure.com/o/p/_git/r", git("https://dev.azure.com/o/p/_git/r", "p", "r")),
        ("https://h.example/g/r", git("https://h.example/g/r", "g", "r")),  # only a repository has versions
        ("ssh://git@h.example:2222/g/r", git("ssh://git@h.example:2222/g/r", "g", "r")),
        ("ssh://git@[::1]:2222/g/r.git", git("ssh://git@[::1]:2222/g/r.git", "g", "r")),
        ("git@h.example:g/r.git", git("git@h.example:g/r.git", "g", "r")),
        ("git@h.example:g/r", git("git@h.example:g/r", "g", "r")),
        ("file:///srv/repo", git("/srv/repo", "local", "repo", local=True)),
        ("file:///C:/srv/repo", git("C:/srv/repo", "local", "repo", local=True)),
        ("file:///C%3A/srv/repo", git("C:/srv/repo", "local", "repo", local=True)),
        ("./repo", git("./repo", "local", "repo", local=True)),
        ("~/repo", git("~/repo", "local", "repo", local=True)),
        ("C:\\srv\\repo", git("C:\\srv\\repo", "local", "repo", local=True)),
        ("C:/srv/repo", git("C:/srv/repo", "local", "repo", local=True)),
    ],
)
def test_every_kind_of_source_takes_a_version_a_folder_and_skills(source: str, spec: SourceSpec) -> None:
    assert parse_source(f"{source}#v1:tools/pdf@pdf,csv") == spec


@pytest.mark.parametrize(
    ("text", "kind", "address"),
    [
        ("acme/skills", "git", HUB),
        (HUB, "git", HUB),
        ("https://gitlab.com/g/s/r", "git", "https://gitlab.com/g/s/r"),
        ("https://h.example/g/r.git", "git", "https://h.example/g/r.git"),
        ("https://dev.azure.com/o/p/_git/r", "git", "https://dev.azure.com/o/p/_git/r"),
        ("ssh://git@h.example:2222/g/r", "git", "ssh://git@h.example:2222/g/r"),
        ("git@h.example:g/r", "git", "git@h.example:g/r"),
        ("https://h.example/x.zip", "archive", "https://h.example/x.zip"),
        ("file:///srv/repo", "git", "/srv/repo"),
        ("./skills", "folder", "./skills"),
        ("C:\\skills", "folder", "C:\\skills"),
        ("./x.tar.gz", "archive", "./x.tar.gz"),
        (".", "folder", "."),
    ],
)
def test_the_version_may_be_left_out(text: str, kind: str, address: str) -> None:
    spec = parse_source(f"{text}:tools/pdf@pdf,csv")
    assert (spec.kind, spec.address, spec.ref, spec.subpath, spec.skills) == (kind, address, "", *TAIL[1:])
    only_skill = parse_source(f"{text}@pdf")
    assert (only_skill.kind, only_skill.address, only_skill.subpath, only_skill.skills) == (kind, address, "", ("pdf",))


@pytest.mark.parametrize(
    ("text", "ref", "subpath", "skills"),
    [
        ("acme/skills#pkg%401.0.0", "pkg@1.0.0", "", ()),
        ("acme/skills#pkg%401.0.0@pdf", "pkg@1.0.0", "", ("pdf",)),
        ("acme/skills:packages/%40scope/x", "", "packages/@scope/x", ()),
        ("acme/skills@a%2Cb,c", "", "", ("a,b", "c")),
        ("acme/skills@pdf,pdf", "", "", ("pdf",)),
        ("acme/skills/tools/pdf:tools/pdf", "", "tools/pdf", ()),
        (f"{HUB}/tree/v1/tools#v1:tools@pdf", "v1", "tools", ("pdf",)),
        (f"{HUB}/tree/pkg@1.0.0", "pkg@1.0.0", "", ()),
        (f"{HUB}/tree/v1/packages/a@b", "v1", "packages/a@b", ()),
    ],
)
def test_marks_are_decoded_after_the_split_and_a_repeated_part_is_not_a_contradiction(
    text: str, ref: str, subpath: str, skills: tuple[str, ...]
) -> None:
    spec = parse_source(text)
    assert (spec.address, spec.ref, spec.subpath, spec.skills) == (HUB, ref, subpath, skills)


@pytest.mark.parametrize(
    ("text", "kind", "address"),
    [
        ("https://h.example/@team", "index", "https://h.example/@team"),
        ("https://h.example/x/pkg@1.0.0.tgz", "archive", "https://h.example/x/pkg@1.0.0.tgz"),
        (
            f"{HUB}/releases/download/pkg@1.0.0/pdf.zip",
            "archive",
            f"{HUB}/releases/download/pkg@1.0.0/pdf.zip",
        ),
        ("./a@b/c", "folder", "./a@b/c"),
        ("ssh://git@h.example/a@2/b", "git", "ssh://git@h.example/a@2/b"),
    ],
)
def test_a_mark_that_cannot_begin_a_part_belongs_to_the_source(text: str, kind: str, address: str) -> None:
    assert parse_source(text) == SourceSpec(
        kind,  # type: ignore[arg-type]
        address,
        parse_source(text).org,
        parse_source(text).name,
        local=address[0] == ".",
    )


@pytest.mark.parametrize(
    "text",
    [
        *("acme/skills#v1:", "acme/skills:", "acme/skills@", "acme/skills@a,,b", "acme/skills#v1@"),
        *("acme/skills:../x", "acme/skills:/x", "acme/skills:a%2F..%2F..", "acme/skills#v1:a:b", "acme/skills@a@b"),
        *("acme/skills#%2D-upload-pack=x", "acme/skills#v1#v2", "https://h.example/x.zip#v1", "acme/skills:a%3Ab"),
    ],
)
def test_parts_that_are_empty_or_lead_elsewhere_are_refused(text: str) -> None:
    with pytest.raises(BadReferenceError):
        parse_source(text)


@pytest.mark.parametrize(
    "text",
    [
        f"{HUB}/tree/v1#v2",
        f"{HUB}/tree/v1/a#v1:b",
        "acme/skills/a:b",
        "https://dev.azure.com/o/p/_git/r?path=/a&version=GBmain#dev",
    ],
)
def test_an_address_that_contradicts_itself_is_refused(text: str) -> None:
    with pytest.raises(BadReferenceError) as caught:
        parse_source(text)
    assert caught.value.code == "contradicting-source"


@pytest.mark.parametrize(
    "text",
    [
        "https://u:hunter2@h/g/r.git#v1:a@pdf",
        "https://u:hunter2@h/g/r.git:a@pdf",
        "ssh://git:hunter2@h/g/r.git:a@pdf",
        "me:hunter2@h:r.git:a@pdf",
        "a/b:hunter2@h:x.git",
        "gitlab:hunter2/x@h:y.git",
        "ghp_0123456789abcdefhunter2@h:g/r.git:a",
        "https://h/g/r.git#token=hunter2",
        "acme/skills#token=hunter2",
    ],
)
def test_a_secret_among_the_parts_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(BadReferenceError) as caught:
        parse_source(text)
    assert caught.value.code == "secret-in-address"
    assert "hunter2" not in f"{caught.value} {caught.value!r} {caught.value.path}"


@pytest.mark.parametrize(
    ("text", "there", "address", "parts"),
    [
        ("./my@folder", "./my@folder", "./my@folder", ("", "", ())),
        ("./my@folder", "./my", "./my", ("", "", ("folder",))),
        ("./c#-skills", "./c#-skills", "./c#-skills", ("", "", ())),
        ("./c#-skills:a@b", "./c#-skills", "./c#-skills", ("", "a", ("b",))),
        ("./a:b:c@d", "./a:b", "./a:b", ("", "c", ("d",))),
        ("./a@b/repo#v1@pdf", "./a@b/repo", "./a@b/repo", ("v1", "", ("pdf",))),
        ("./v#2/repo#v1", "./v#2/repo", "./v#2/repo", ("v1", "", ())),
        ("C:\\my@folder", "C:\\my@folder", "C:\\my@folder", ("", "", ())),
        ("file:///C:/my@folder", "C:/my@folder", "C:/my@folder", ("", "", ())),
        ("file:///srv/a@b.git", "/srv/a@b.git", "/srv/a@b.git", ("", "", ())),
        ("file:///srv/a%40b.git@pdf", "/srv/a@b.git", "/srv/a@b.git", ("", "", ("pdf",))),
    ],
)
def test_a_path_that_exists_is_meant_whatever_marks_its_name_holds(
    text: str, there: str, address: str, parts: tuple[str, str, tuple[str, ...]]
) -> None:
    spec = parse_source(text, is_there={there}.__contains__)
    assert (spec.address, (spec.ref, spec.subpath, spec.skills)) == (address, parts)


@pytest.mark.parametrize(
    ("path", "address", "meant"),
    [
        ("/srv/a b#1", "file:///srv/a%20b%231", "/srv/a b#1"),
        ("C:\\srv\\a b@c", "file:///C:/srv/a%20b%40c", "C:/srv/a b@c"),
        ("C:/srv", "file:///C:/srv", "C:/srv"),
        ("\\\\host\\share\\x", "file:////host/share/x", "//host/share/x"),
    ],
)
def test_the_address_of_a_path_names_that_path(path: str, address: str, meant: str) -> None:
    assert write_file_address(path) == address
    assert parse_source(address).address == meant


# -- given beside the address ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["acme/skills", f"{HUB}", "git@h.example:g/r.git", "ssh://git@h.example/g/r", "./repo", "https://h.example/g/r"],
)
def test_a_part_beside_the_address_means_what_it_means_in_the_address(text: str) -> None:
    spec = with_parts(parse_source(text), ref="v1", subpath="tools/pdf", skills=("pdf", "csv"))
    assert spec == parse_source(f"{text}#v1:tools/pdf@pdf,csv")
    assert with_parts(spec, ref="v1", subpath="tools/pdf/", skills=("csv", "pdf")) == spec


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("acme/skills#v1", lambda spec: with_parts(spec, ref="v2")),
        ("@acme/skills@v1", lambda spec: with_parts(spec, ref="v2")),
        ("acme/skills/a", lambda spec: with_parts(spec, subpath="b")),
        ("acme/skills@pdf", lambda spec: with_parts(spec, skills=("csv",))),
        ("acme/skills@pdf,csv", lambda spec: with_parts(spec, skills=("csv",))),
    ],
)
def test_a_part_given_beside_the_address_must_not_contradict_it(
    text: str, change: Callable[[SourceSpec], SourceSpec]
) -> None:
    with pytest.raises(BadReferenceError) as caught:
        change(parse_source(text))
    assert caught.value.code == "contradicting-source"


def test_an_archive_has_no_versions() -> None:
    with pytest.raises(BadReferenceError):
        with_parts(parse_source("./x.zip"), ref="v1")


# -- there and back ----------------------------------------------------------------------------------------------------

_WORD = st.from_regex(r"[a-z][a-z0-9_-]{0,6}", fullmatch=True).filter(
    lambda word: word not in {"con", "nul", "prn", "aux"}
)
_ODD = st.text(st.sampled_from("ab0 @,#%=&?é+-"), min_size=1, max_size=6).map(lambda text: f"x{text}x")
_SOURCES = st.one_of(
    st.tuples(_WORD, _WORD).map("/".join),
    st.builds(
        "{}{}{}/{}/{}{}".format,
        st.sampled_from(["https://", "ssh://git@", "ssh://", "git://"]),
        st.sampled_from(["h.example", "[2001:db8::1]", "github.com", "gitlab.com", "127.0.0.1"]),
        st.sampled_from(["", ":8443"]),
        _WORD,
        _WORD,
        st.sampled_from(["", ".git", ".zip", "@x", "/-/tree/v9/b", "/tree/a@2/b"]),
    ),
    st.builds("git@h.example:{}/{}{}".format, _WORD, _WORD, st.sampled_from(["", ".git"])),
    st.builds(
        "{}{}{}".format, st.sampled_from(["./", "/", "~/", "../", "C:\\"]), _ODD, st.sampled_from(["", ".git", ".zip"])
    ),
)
_REFS = st.sampled_from(["", "", "v1", "dev/x", "pkg@1.0.0", "a+b"])
_FOLDERS = st.one_of(st.just(""), st.lists(_ODD, min_size=1, max_size=2).map("/".join))
_NAMES = st.lists(_ODD.filter(lambda name: "%" not in name), max_size=2, unique=True)


@given(_SOURCES, _REFS, _FOLDERS, _NAMES)
def test_a_source_that_is_written_out_is_read_as_the_same_source(
    source: str, ref: str, folder: str, skills: list[str]
) -> None:
    spec = parse_source(source, is_there=source.__eq__)
    with suppress(BadReferenceError):  # an archive at a version; a page that shows another one
        spec = with_parts(spec, ref=ref, subpath=folder, skills=skills)
    assert parse_source(str(spec), is_there=spec.address.__eq__) == spec


def test_what_a_refused_reference_advises_is_a_reference() -> None:
    """``owner/repo`` names a source to install; as the name of an installed skill it is refused."""
    with pytest.raises(BadReferenceError) as caught:
        SkillRef.parse("acme/pdf")
    advice, _, for_sources = str(caught.value.hint).partition(";")
    assert "owner/repo" not in advice
    assert "to install" in for_sources
    assert "owner/repo" in for_sources
