"""What people type: which source it is, and what is refused before anything is asked for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess import BadReferenceError, SourceSpec, parse_source

GITHUB = "https://github.com"


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("@acme/pdf@v1", SourceSpec("git", f"{GITHUB}/acme/pdf", "acme", "pdf", "v1")),
        ("acme/skills", SourceSpec("git", f"{GITHUB}/acme/skills", "acme", "skills")),
        ("acme/skills@pdf", SourceSpec("git", f"{GITHUB}/acme/skills", "acme", "skills", skills=("pdf",))),
        ("acme/skills#v2@pdf", SourceSpec("git", f"{GITHUB}/acme/skills", "acme", "skills", "v2", skills=("pdf",))),
        ("acme/skills/a/b#dev/x", SourceSpec("git", f"{GITHUB}/acme/skills", "acme", "skills", "dev/x", "a/b")),
        ("github:acme/skills", SourceSpec("git", f"{GITHUB}/acme/skills", "acme", "skills")),
        ("gitlab:acme/skills", SourceSpec("git", "https://gitlab.com/acme/skills", "acme", "skills")),
        (f"{GITHUB}/acme/skills", SourceSpec("git", f"{GITHUB}/acme/skills", "acme", "skills")),
        (f"{GITHUB}/acme/skills.git", SourceSpec("git", f"{GITHUB}/acme/skills", "acme", "skills")),
        (f"{GITHUB}/acme/s/tree/main", SourceSpec("git", f"{GITHUB}/acme/s", "acme", "s", "main")),
        (f"{GITHUB}/acme/s/tree/v1/a/b", SourceSpec("git", f"{GITHUB}/acme/s", "acme", "s", "v1", "a/b")),
        (f"{GITHUB}/acme/s/blob/v1/a/SKILL.md", SourceSpec("git", f"{GITHUB}/acme/s", "acme", "s", "v1", "a")),
        ("https://gitlab.com/g/s/r", SourceSpec("git", "https://gitlab.com/g/s/r", "s", "r")),
        ("https://h.example/g/s/r/-/tree/v1/a", SourceSpec("git", "https://h.example/g/s/r", "s", "r", "v1", "a")),
        ("https://h.example/g/r.git#v1", SourceSpec("git", "https://h.example/g/r.git", "g", "r", "v1")),
        ("https://h.example/r.git", SourceSpec("git", "https://h.example/r.git", "h.example", "r")),
        ("ssh://git@h.example:2222/g/r.git", SourceSpec("git", "ssh://git@h.example:2222/g/r.git", "g", "r")),
        ("git@h.example:g/r.git", SourceSpec("git", "git@h.example:g/r.git", "g", "r")),
        ("git://h.example/g/r", SourceSpec("git", "git://h.example/g/r", "g", "r")),
        (
            "https://dev.azure.com/o/p/_git/r?path=/a/b&version=GBmain",
            SourceSpec("git", "https://dev.azure.com/o/p/_git/r", "p", "r", "main", "a/b"),
        ),
        ("https://skills.example/team", SourceSpec("index", "https://skills.example/team", "skills.example", "team")),
        ("https://skills.example", SourceSpec("index", "https://skills.example", "skills.example", "skills.example")),
        ("https://h.example/x/pdf.zip", SourceSpec("archive", "https://h.example/x/pdf.zip", "h.example", "pdf")),
        (
            f"{GITHUB}/o/r/releases/download/v1/pdf.tar.gz",
            SourceSpec("archive", f"{GITHUB}/o/r/releases/download/v1/pdf.tar.gz", "github.com", "pdf"),
        ),
        ("s3://skills/team", SourceSpec("site", "s3://skills/team", "skills", "team")),
        ("gs://skills", SourceSpec("site", "gs://skills", "skills", "skills")),
        ("az://box/a/#production", SourceSpec("site", "az://box/a", "box", "a", "production")),
        ("s3://skills/team#^1.2@pdf", SourceSpec("site", "s3://skills/team", "skills", "team", "^1.2", "", ("pdf",))),
        ("site:https://s.example/t#1.0", SourceSpec("site", "https://s.example/t", "s.example", "t", "1.0")),
        ("site:https://s.example/t@pdf", SourceSpec("site", "https://s.example/t", "s.example", "t", skills=("pdf",))),
        ("site:./out#dev", SourceSpec("site", "./out", "local", "out", "dev", local=True)),
        ("oci://r.example/team/pdf", SourceSpec("oci", "oci://r.example/team/pdf", "team", "pdf")),
        ("oci://r.example:5000/pdf:1.0", SourceSpec("oci", "oci://r.example:5000/pdf", "r.example", "pdf", "1.0")),
        (
            f"oci://r.example/pdf:1@sha256:{'a' * 64}",
            SourceSpec("oci", "oci://r.example/pdf", "r.example", "pdf", "a" * 64),
        ),
        ("oci://r.example/a/b#~1.2@x", SourceSpec("oci", "oci://r.example/a/b", "a", "b", "~1.2", "", ("x",))),
        ("oci://r.example/a/b:1#:c/d", SourceSpec("oci", "oci://r.example/a/b", "a", "b", "1", "c/d")),
        ("./pdf", SourceSpec("folder", "./pdf", "local", "pdf", local=True)),
        ("../a/pdf/", SourceSpec("folder", "../a/pdf/", "local", "pdf", local=True)),
        ("/a/pdf", SourceSpec("folder", "/a/pdf", "local", "pdf", local=True)),
        ("~/pdf", SourceSpec("folder", "~/pdf", "local", "pdf", local=True)),
        (".", SourceSpec("folder", ".", "local", "", local=True)),
        ("C:\\a\\pdf", SourceSpec("folder", "C:\\a\\pdf", "local", "pdf", local=True)),
        ("./pdf.skill", SourceSpec("archive", "./pdf.skill", "local", "pdf", local=True)),
        ("./repo#v1", SourceSpec("git", "./repo", "local", "repo", "v1", local=True)),
        ("/a/repo.git", SourceSpec("git", "/a/repo.git", "local", "repo", local=True)),
        ("file:///a/repo#v1@pdf", SourceSpec("git", "/a/repo", "local", "repo", "v1", skills=("pdf",), local=True)),
    ],
)
def test_each_form_of_a_source_is_recognized(text: str, spec: SourceSpec) -> None:
    assert parse_source(text) == spec


HOSTED = "https://ghe.example:8443"


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        (f"{HOSTED}/acme/skills", SourceSpec("git", f"{HOSTED}/acme/skills", "acme", "skills")),
        (f"{HOSTED}/acme/s/tree/v1/a/b", SourceSpec("git", f"{HOSTED}/acme/s", "acme", "s", "v1", "a/b")),
        (f"{HOSTED}/acme/s.git#v1@pdf", SourceSpec("git", f"{HOSTED}/acme/s", "acme", "s", "v1", skills=("pdf",))),
        (f"{HOSTED}/acme/s/archive/v1.zip", parse_source(f"{HOSTED}/acme/s/archive/v1.zip")),
        ("acme/skills", parse_source("acme/skills")),
        ("@acme/pdf@v1", parse_source("@acme/pdf@v1")),
        ("https://other.example/acme/skills", parse_source("https://other.example/acme/skills")),
        ("http://ghe.example:8443/acme/skills", parse_source("http://ghe.example:8443/acme/skills")),
    ],
)
def test_addresses_of_an_enterprise_server_are_read_like_those_of_github(text: str, spec: SourceSpec) -> None:
    """And nothing else changes: a shorthand means the same on every machine."""
    assert parse_source(text, github="GHE.example:8443") == spec


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "pdf", "-x/y", "--upload-pack=x", "-u./x", "-oProxyCommand=x", "a/b/../c", "a/../b", "x//y"),
        *(
            "ssh://-oProxyCommand=x/y",
            "ssh://host/-x",
            "host:-x",
            "git@host:-x",
            "git@-host:x",
            "ext::sh -c x",
            "fd::17",
        ),
        *("javascript:x", "data:text/html,x", "ftp://h/x.git", "svn://h/x", "git+ssh://h/x", "file://host/x", "a\nb/c"),
        *(
            "a/b\x1b[2J",
            "https://",
            "https:///x",
            "https://h:port/x.git",
            "https://h /x.git",
            "https://ex\u00e4mple/x.git",
        ),
        *("acme/skills@a/b", "acme/skills@..", "acme/skills#-x", "acme/skills#a;b", "./x#-b"),
        *("file://]/x", "file://[/x", "file:///a%00b", "file:///a.git#%00"),
        *("https://h/x.zip#v1", "https://h/con.git", "https://h/..git", "x" * 3000),
    ],
)
def test_a_text_that_names_nothing_or_could_do_harm_is_refused(text: str) -> None:
    with pytest.raises(BadReferenceError) as caught:
        parse_source(text)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


def test_a_folder_with_control_characters_in_its_name_has_an_address() -> None:
    """Its control characters are encoded, as ``Path.as_uri`` has it."""
    assert parse_source("file:///ho%1B%5B2Jme/a.git").address == "/ho\x1b[2Jme/a.git"


SECRETS = (
    "https://u:hunter2@h/x.git",
    "https://hunter2@h/x.git",
    "https://u:hun@ter2@h/x.git",
    "https://u:hunter2/x@h/y.git",
)


@pytest.mark.parametrize("text", [*SECRETS, "ssh://git:hunter2@h/x.git", "http://u:hunter2@h/x"])
def test_an_address_with_a_secret_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(BadReferenceError) as caught:
        parse_source(text)
    for word in ("hunter2", "hun@", "ter2"):
        assert word not in f"{caught.value} {caught.value!r} {caught.value.path}"


PIECES = st.sampled_from(
    [
        *(
            "https://",
            "http://",
            "ssh://",
            "git://",
            "file://",
            "FILE://",
            "github:",
            "gitlab:",
            "git@h:",
            "@",
            "./",
            "~/",
        ),
        *(
            "h.example",
            "[::1]",
            "[",
            "]",
            ":",
            ":22",
            ":x",
            "/",
            "//",
            "/-/tree/",
            "/_git/",
            "/tree/",
            "/blob/",
            ".git",
        ),
        *(".zip", "SKILL.md", "#", "?", "&", "=", "path=", "version=GB", "%00", "%0a", "%2e%2e", "%", "%ff", "..", "-"),
        *(
            "a",
            "b",
            "acme",
            "con",
            "\u00e9",
            "\udc80",
            "\u202e",
            "\uff0f",
            "\\",
            "C:\\",
            " ",
            "u:p@",
            ";",
            "^",
            "\u2100",
        ),
    ]
)
TYPED = st.text(max_size=80) | st.lists(PIECES, max_size=9).map("".join)


@given(TYPED)
def test_whatever_is_typed_gives_a_source_or_a_typed_refusal(text: str) -> None:
    try:
        spec = parse_source(text)
    except BadReferenceError as error:
        assert str(error).isprintable()  # noqa: PT017 - either way is right
    else:
        assert not spec.address.startswith("-")
        assert "\0" not in f"{spec.address}{spec.name}{spec.ref}{spec.subpath}"
        assert ".." not in spec.subpath.split("/")
