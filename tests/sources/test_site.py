"""Skills that a site publishes: found by its index, fetched when they are needed, used like any other."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.dialect_calls import load_call
from tests.fetch.packing import FILES, tarred, zipped
from tests.web_sites import NEW, OLD, Site, skill_md

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.sources.conftest import Load

PDF = skill_md("pdf", "Reads PDF files.", "Read it.\n")


def codes(catalog: prowess.Catalog) -> list[str]:
    return [issue.code for issue in catalog.issues]


# -- finding -----------------------------------------------------------------------------------------------------------


def test_at_first_only_the_index_is_read(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", PDF), site.entry("packed", zipped(FILES), "archive"))
    catalog = load()
    assert catalog.names == ("packed", "pdf")
    assert catalog.issues == ()
    assert prowess.render_catalog(catalog).count("<skill>") == 2
    assert site.paths == [f"{NEW}/index.json"]


def test_a_skill_is_fetched_when_its_instructions_are_asked_for_and_then_kept(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", PDF))
    catalog = load()
    assert catalog.load("pdf").instructions == "Read it."
    assert catalog.load_body("pdf") == "Read it.\n"
    assert catalog["pdf"].read_text().encode() == PDF
    assert site.paths == [f"{NEW}/index.json", f"{NEW}/pdf/SKILL.md"]


def test_a_remote_skill_says_where_it_is_and_has_no_folder(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", PDF))
    skill = load()["pdf"]
    assert skill.location == f"{site.url}{NEW}/pdf/SKILL.md"
    assert (skill.origin, skill.path, skill.dir, skill.folder) == ("url", None, None, "")
    assert skill.virtual_path == "127.0.0.1/pdf"
    assert not skill.is_inline
    assert skill.to_dict()["path"] == "127.0.0.1/pdf"
    assert skill.location in skill.to_xml()
    assert "found on a site" in str(load().explain("pdf"))


@pytest.mark.parametrize("wrapper", ["", "pdf/"])
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_an_archive_gives_its_files(
    site: Site, load: Load, pack: Callable[[dict[str, bytes]], bytes], wrapper: str
) -> None:
    files = {f"{wrapper}{name}": content for name, content in FILES.items()}
    site.index(site.entry("pdf", pack(files), "archive"))
    skill = load()["pdf"]
    assert skill.load().instructions == "Do it."
    assert skill.files() == tuple(sorted(FILES))
    assert skill.resources().scripts == ("run.py",)
    assert skill.read_resource("references/a.md") == FILES["references/a.md"].decode()
    assert skill.read_bytes("./scripts/run.py") == FILES["scripts/run.py"]
    assert site.paths == [f"{NEW}/index.json", f"{NEW}/pdf.archive"]


def test_the_older_index_lists_files_that_are_fetched_one_by_one(site: Site, load: Load) -> None:
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF, "references/a b.md": b"text"}))
    skill = load()["pdf"]
    assert site.paths == [f"{NEW}/index.json", f"{OLD}/index.json"]
    assert skill.files() == ("SKILL.md", "references/a b.md")
    assert len(site.paths) == 2
    site.put(f"{OLD}/pdf/references/a%20b.md", b"text")
    assert skill.read_resource("references/a b.md") == "text"
    assert skill.load().instructions == "Read it."
    assert site.paths[2:] == [f"{OLD}/pdf/references/a%20b.md", f"{OLD}/pdf/SKILL.md"]
    assert skill.location == f"{site.url}{OLD}/pdf/SKILL.md"


def test_the_newer_index_wins_over_the_older_one(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", PDF))
    site.old_index(site.old_entry("old", {"SKILL.md": skill_md("old")}))
    assert load().names == ("pdf",)
    assert site.paths == [f"{NEW}/index.json"]


@pytest.mark.parametrize("base", ["/team", "/team/", "/team//"])
def test_a_path_in_the_address_is_kept(site: Site, load: Load, base: str) -> None:
    entry = site.entry("pdf", PDF)
    site.index(entry)
    site.replies[f"/team{NEW}/index.json"] = site.replies.pop(f"{NEW}/index.json")
    catalog = load(site.url + base)
    assert catalog["pdf"].virtual_path == "127.0.0.1/team/pdf"
    assert site.paths == [f"/team{NEW}/index.json"]


def test_the_urls_of_entries_are_relative_to_the_index(site: Site, load: Load) -> None:
    site.put(f"{NEW}/deep/pdf.md", PDF)
    site.index(site.entry("pdf", PDF) | {"url": "deep/pdf.md"})
    assert load().load("pdf").instructions == "Read it."
    assert site.paths[-1] == f"{NEW}/deep/pdf.md"


@pytest.mark.parametrize("status", [404, 410])
def test_a_site_without_the_newer_index_is_asked_for_the_older_one(site: Site, load: Load, status: int) -> None:
    site.put(f"{NEW}/index.json", b"no", status)
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF}))
    assert load().names == ("pdf",)


def test_a_site_that_answers_everything_with_a_page_is_asked_for_the_older_index(site: Site, load: Load) -> None:
    site.put(f"{NEW}/index.json", b"<!doctype html>", Content_Type="text/html; charset=utf-8")
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF}), Content_Type="application/json")
    assert load().names == ("pdf",)


def test_an_index_of_an_unknown_version_is_not_read_and_the_older_one_is(site: Site, load: Load) -> None:
    site.put(f"{NEW}/index.json", json.dumps({"$schema": "https://x/9", "skills": [{"name": "evil"}]}).encode())
    assert codes(load()) == ["unknown-schema"]
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF}))
    catalog = load()
    assert catalog.names == ("pdf",)
    assert codes(catalog) == ["unknown-schema"]


def test_an_index_that_names_no_version_is_of_the_older_kind_wherever_it_lies(site: Site, load: Load) -> None:
    site.put(
        f"{NEW}/index.json",
        json.dumps({"skills": [{"name": "pdf", "description": "d", "files": ["SKILL.md"]}]}).encode(),
    )
    site.put(f"{NEW}/pdf/SKILL.md", PDF)
    assert load().load("pdf").instructions == "Read it."


# -- what cannot be had ------------------------------------------------------------------------------------------------


def test_a_site_that_publishes_nothing_is_an_issue_and_hides_no_other_source(
    site: Site, cache: Path, put: Callable[..., Path], tmp_path: Path
) -> None:
    put("skills/local")
    source = prowess.Source.url(site.url, allow_http=True, allow_private=True, cache_dir=cache)
    catalog = prowess.Catalog.from_sources([source, prowess.Source.directory(tmp_path / "skills")])
    assert catalog.names == ("local",)
    assert codes(catalog) == ["no-index"]
    assert site.url in str(catalog.issues[0])


def test_a_site_that_cannot_be_read_is_an_error_with_missing_error(site: Site, load: Load) -> None:
    with pytest.raises(prowess.FetchError) as caught:
        load(missing="error")
    assert caught.value.code == "no-index"
    site.stop()
    with pytest.raises(prowess.FetchError) as caught:
        load(missing="error")
    assert caught.value.code == "fetch-failed"


@pytest.mark.parametrize(
    "address",
    ["", "skills.example", "ftp://skills.example", "https://", "file:///etc", "https://u:secret@h", "https://h:x/",
     "https://h/?q=secret#f", "https://h/#f", "https://h\\@evil/", "https://h /", "https://ä.example", "http://[::1"],
)  # fmt: skip
def test_a_string_that_is_not_a_web_address_is_a_source_error(address: str) -> None:
    with pytest.raises(prowess.SourceError) as caught:
        prowess.Source.url(address).load()
    assert caught.value.code == "bad-address"
    assert "secret" not in f"{caught.value} {prowess.Source.url(address)!r}"


def test_options_that_make_no_sense_are_source_errors(load: Load) -> None:
    with pytest.raises(prowess.SourceError):
        load(missing="later")
    with pytest.raises(prowess.SourceError):
        load(allow_redirects_to="one.example")


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "http-status"), (401, "login-needed"), (403, "http-status"), (500, "server-busy"), (503, "server-busy")],
)
def test_the_issue_of_a_refused_request_names_its_status(site: Site, load: Load, status: int, code: str) -> None:
    site.put(f"{NEW}/index.json", b"x", status)
    (issue,) = load().issues
    assert issue.code == code
    assert str(status) in issue.message


def test_a_bad_entry_never_hides_a_good_one(site: Site, load: Load) -> None:
    good = site.entry("good", PDF)
    bad: dict[str, list[object]] = {
        "bad-entry": [
            "x",
            7,
            {},
            good | {"name": 5},
            good | {"url": None},
            good | {"description": " "},
            good | {"size": "1"},
        ],
        "bad-name": [good | {"name": "a/b"}, good | {"name": "con"}, good | {"name": "x" * 257}],
        "bad-digest": [good | {"digest": "md5:" + "0" * 32}, good | {"digest": "sha256:" + "A" * 64}],
        "unknown-type": [good | {"type": "container"}],
        "other-origin": [good | {"url": "https://other.example/x"}],
        "bad-address": [good | {"url": "file:///etc/passwd"}, good | {"url": "https://u:p@127.0.0.1/"}],
    }
    site.index(*(entry for entries in bad.values() for entry in entries), good)
    catalog = load()
    assert catalog.names == ("good",)
    assert sorted(codes(catalog)) == sorted(code for code, entries in bad.items() for _ in entries)
    assert catalog.load("good").instructions == "Read it."


def test_a_bad_entry_of_the_older_kind_never_hides_a_good_one(site: Site, load: Load) -> None:
    good = site.old_entry("good", {"SKILL.md": PDF})
    bad = {
        "bad-entry": [good | {"files": []}, good | {"files": "SKILL.md"}],
        "missing-skill-md": [good | {"files": ["a.md"]}, good | {"files": ["skill.md"]}],
        "path-escape": [good | {"files": ["SKILL.md", path]} for path in ("../x", "/x", "a\\b", "https://other/x", "")],
        "bad-path": [good | {"files": ["SKILL.md", path]} for path in ("..%2fx", "a?b", "a#b", "skill.MD", 5)],
        "too-many-files": [good | {"files": ["SKILL.md", *(f"{n}.md" for n in range(2000))]}],
    }
    site.old_index(*(entry for entries in bad.values() for entry in entries), good)
    catalog = load()
    assert catalog.names == ("good",)
    assert sorted(codes(catalog)) == sorted(code for code, entries in bad.items() for _ in entries)


def test_fields_that_are_not_known_are_ignored(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", PDF) | {"icon": "x", "size": len(PDF)})
    assert load().load("pdf").instructions == "Read it."


def test_of_two_entries_with_one_name_the_first_wins_or_the_last(site: Site, load: Load) -> None:
    first, second = site.entry("pdf", PDF), site.entry("pdf", skill_md("pdf", body="Second.\n"))
    site.put(f"{NEW}/first", PDF)
    site.index(first | {"url": f"{NEW}/first"}, second)
    assert load().load("pdf").instructions == "Read it."
    assert [lost.name for lost in load().shadowed] == ["pdf"]
    assert load(on_duplicate="last").load("pdf").instructions == "Second."


def test_a_skill_is_refused_when_its_bytes_are_not_the_announced_ones(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", PDF))
    site.put(f"{NEW}/pdf/SKILL.md", PDF + b"!")
    with pytest.raises(prowess.FetchError) as caught:
        load().load("pdf")
    assert caught.value.code == "digest-mismatch"
    site.index(site.entry("pdf", PDF) | {"size": 3})
    with pytest.raises(prowess.FetchError) as caught:
        load().load("pdf")
    assert caught.value.code == "digest-mismatch"


def test_a_skill_that_is_announced_and_not_there_is_an_error_when_it_is_needed(site: Site, load: Load) -> None:
    entry = site.entry("pdf", PDF)
    del site.replies[f"{NEW}/pdf/SKILL.md"]
    site.index(entry)
    catalog = load()
    assert catalog.names == ("pdf",)
    with pytest.raises(prowess.FetchError) as caught:
        catalog.load("pdf")
    assert caught.value.code == "http-status"
    assert catalog.preloaded() == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b" \n",
        b"<!DOCTYPE html>\n<html><body>Not found</body></html>",
        b"\n<html>\n",
        b"---\nname: pdf\n---\n",
        b"---\nname: pdf\ndescription: \xff\n---\n",
        b"---\nname: pdf\ndescription: d\n",
    ],
)
def test_a_file_that_makes_no_skill_is_refused_when_it_is_loaded(site: Site, load: Load, content: bytes) -> None:
    site.index(site.entry("pdf", content))
    catalog = load()
    with pytest.raises(prowess.SkillValidationError):
        catalog.load("pdf")
    with pytest.raises(prowess.SkillValidationError):
        catalog.load_body("pdf")


def test_the_error_of_a_refused_archive_names_its_address(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", zipped({"a.md": b"x"}), "archive"))
    with pytest.raises(prowess.SkillValidationError) as caught:
        load().load("pdf")
    assert caught.value.code == "missing-skill-md"
    assert caught.value.path == f"{site.url}{NEW}/pdf.archive"


# -- what the file says ------------------------------------------------------------------------------------------------


def test_the_frontmatter_counts_once_the_skill_is_loaded(site: Site, load: Load) -> None:
    fields = "context: fork\nmodel: big\nallowed-tools: Read, Bash(git:*)\n"
    site.index(site.entry("pdf", skill_md("pdf", fields=fields)))
    catalog = load()
    assert not catalog["pdf"].is_fork
    loaded = catalog.load("pdf").skill
    assert (loaded.is_fork, loaded.model, loaded.allowed_tools) == (True, "big", ("Read", "Bash(git:*)"))


def test_a_listing_uses_the_frontmatter_of_a_copy_in_the_cache(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", skill_md("pdf", fields="context: fork\n")))
    load().load("pdf")
    asked = len(site.paths)
    assert load()["pdf"].is_fork
    assert site.paths[asked:] == [f"{NEW}/index.json"]


def test_the_announced_name_stays_and_what_differs_is_an_issue(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", skill_md("other", "Says something else.")))
    loaded = load().load("pdf").skill
    assert (loaded.name, loaded.description) == ("pdf", "Says something else.")
    assert [(issue.code, issue.field) for issue in loaded.issues] == [
        ("differs-from-index", "name"),
        ("differs-from-index", "description"),
    ]
    assert codes(load()) == ["differs-from-index"] * 2, "the copy that is here tells"


def test_what_lenient_loading_repairs_is_an_issue_of_the_loaded_skill(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", b"---\nname: pdf\ndescription: Use when: asked\n---\nBody.\n"))
    loaded = load().load("pdf").skill
    assert loaded.description == "Use when: asked"
    assert "repaired-colon" in [issue.code for issue in loaded.issues]


def test_a_name_outside_the_specification_is_listed_with_a_warning(site: Site, load: Load) -> None:
    site.old_index(site.old_entry("Odd Name", {"SKILL.md": skill_md("Odd Name")}))
    site.put(f"{OLD}/Odd%20Name/SKILL.md", skill_md("Odd Name"))
    catalog = load()
    assert codes(catalog) == ["bad-name"]
    assert catalog.load("Odd Name").instructions == "Do it."


# -- files -------------------------------------------------------------------------------------------------------------


def test_the_rules_for_paths_and_sizes_are_those_of_a_folder(site: Site, load: Load) -> None:
    big = b"\xc3\xa4" * 40_000
    files = FILES | {"references/big.md": big, "assets/a.bin": b"\0\1", ".hidden": b"x"}
    site.index(site.entry("pdf", zipped(files), "archive"))
    skill = load()["pdf"]
    for path in ("../x", "/x", "a\\b", "C:x", "", "NUL"):
        with pytest.raises(prowess.PathTraversalError):
            skill.read_resource(path)
    with pytest.raises(prowess.ResourceNotFoundError):
        skill.read_resource("references")
    with pytest.raises(prowess.ResourceTooLargeError):
        skill.read_resource("references/big.md")
    with pytest.raises(prowess.ResourceTooLargeError):
        skill.read_bytes("references/big.md", 10)
    with pytest.raises(prowess.BinaryResourceError):
        skill.read_resource("assets/a.bin")
    assert skill.read_resource("references/big.md", 11, truncate=True).startswith("äääää\n[")
    assert skill.read_bytes("references/big.md") == big
    assert ".hidden" in skill.files()
    assert ".hidden" not in skill.resources().paths


def test_a_file_that_the_older_index_does_not_list_is_not_asked_for(site: Site, load: Load) -> None:
    site.old_index(site.old_entry("pdf", {"SKILL.md": PDF}))
    site.put(f"{OLD}/pdf/secret.md", b"x")
    skill = load()["pdf"]
    with pytest.raises(prowess.ResourceNotFoundError):
        skill.read_resource("secret.md")
    assert f"{OLD}/pdf/secret.md" not in site.paths


def test_the_digest_is_that_of_a_folder_with_the_same_files(site: Site, load: Load, tmp_path: Path) -> None:
    for name, content in FILES.items():
        path = tmp_path / "pdf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    local = prowess.scan(tmp_path)["pdf"].digest()
    site.index(site.entry("zip", zipped(FILES), "archive"), site.entry("tar", tarred(FILES), "archive"))
    catalog = load()
    assert [catalog[name].digest() for name in ("zip", "tar")] == [local, local]
    del site.replies[f"{NEW}/index.json"]
    site.old_index(site.old_entry("listed", FILES))
    assert load()["listed"].digest() == local


def test_limits_hold_for_digests_and_listings(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", zipped(FILES), "archive"))
    skill = load(limits=prowess.Limits(max_files_per_skill=2))["pdf"]
    assert len(skill.files()) == 2
    assert not skill.files().complete
    with pytest.raises(prowess.SkillValidationError):
        skill.digest()
    with pytest.raises(prowess.SkillValidationError):
        load(limits=prowess.Limits(max_digest_bytes=20))["pdf"].digest()


def test_prefetching_brings_everything_at_once_and_tells_what_it_could_not(site: Site, load: Load) -> None:
    missing = site.entry("missing", skill_md("missing", body="x"))
    del site.replies[f"{NEW}/missing/SKILL.md"]
    packed = zipped({**FILES, "SKILL.md": skill_md("packed", fields="context: fork\n")})
    site.index(site.entry("pdf", PDF), site.entry("packed", packed, "archive"), missing)
    catalog = load(prefetch=True)
    asked = len(site.paths)
    assert catalog.names == ("missing", "packed", "pdf")
    assert [(issue.code, issue.severity) for issue in catalog.issues if "missing" in issue.path] == [
        ("http-status", "warning")
    ]
    assert catalog["packed"].is_fork
    assert catalog["packed"].read_bytes("scripts/run.py") == FILES["scripts/run.py"]
    assert catalog.load("pdf").instructions == "Read it."
    assert len(site.paths) == asked


def test_the_site_may_be_asked_with_headers(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", PDF))
    load(headers={"Authorization": "Bearer t"}).load("pdf")
    assert [asked.headers["authorization"] for asked in site.asked] == ["Bearer t"] * 2
    assert "Bearer" not in repr(prowess.Source.url(site.url, headers={"Authorization": "Bearer t"}))


# -- in a conversation -------------------------------------------------------------------------------------------------


@pytest.fixture
def session(site: Site, load: Load) -> prowess.Session:
    site.index(site.entry("pdf", zipped(FILES), "archive"), site.entry("plain", skill_md("plain")))
    return prowess.Session(load())


@pytest.mark.parametrize("dialect", sorted(prowess.DIALECTS))
def test_prompts_and_tools_fetch_nothing_in_any_dialect(
    site: Site, session: prowess.Session, dialect: prowess.DialectName
) -> None:
    toolset = prowess.Toolset(session, dialect)
    assert "pdf" in toolset.prompt() + str(toolset.tools())
    assert site.paths == [f"{NEW}/index.json"]


def test_a_model_loads_a_remote_skill_and_reads_its_files(session: prowess.Session) -> None:
    toolset = prowess.Toolset(session)
    assert "read_skill_file" in [tool.name for tool in toolset.tools()], "an archive may have files"
    loaded = toolset.call("load_skill", {"name": "pdf"})
    assert "Do it." in loaded.content
    assert "Skill directory" not in loaded.content
    read = toolset.call("read_skill_file", {"name": "pdf", "path": "scripts/run.py"})
    assert read.content == "print(1)\n"
    missing = toolset.call("read_skill_file", {"name": "pdf", "path": "scripts/run.sh"})
    assert missing.is_error
    assert "scripts/run.py" in missing.content


def test_the_file_tool_is_offered_only_if_a_skill_may_have_files(site: Site, load: Load) -> None:
    site.index(site.entry("plain", skill_md("plain")))
    tools = prowess.Toolset(prowess.Session(load())).tools()
    assert "read_skill_file" not in [tool.name for tool in tools]


def test_every_dialect_loads_a_remote_skill(session: prowess.Session) -> None:
    for dialect in prowess.DIALECTS:
        result = prowess.Toolset(session, dialect).call(*load_call(dialect, "pdf"))
        assert not result.is_error, result
        assert "Do it." in result.content


def test_filters_know_remote_skills_by_their_host(session: prowess.Session) -> None:
    session.set_filter("127.0.0.1/p*")
    assert [skill.name for skill in session.moment().eligible()] == ["pdf", "plain"]
    session.set_filter("other.example/*")
    assert session.moment().eligible() == ()


def test_commands_and_folders_in_remote_instructions_stay_text(site: Site, load: Load) -> None:
    body = "!`touch pwned` in ${CLAUDE_SKILL_DIR}\n"
    site.index(site.entry("pdf", skill_md("pdf", body=body)))
    session = prowess.Session(load())
    assert session.activate("pdf").instructions.startswith(body.strip())
    assert "!`touch pwned`" in session.expand("/pdf now")


def test_a_session_is_saved_with_the_digest_and_restored(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", PDF))
    session = prowess.Session(load())
    session.activate("pdf")
    saved = session.save()
    assert load().load("pdf").skill.digest() in saved
    again, issues = prowess.Session.restore(load(), saved)
    assert again.active_skills == ("pdf",)
    assert issues == ()
    site.index(site.entry("pdf", PDF + b"More.\n"))
    _, issues = prowess.Session.restore(load(), saved)
    assert [issue.code for issue in issues] == ["changed-since-saved"]


def test_a_refresh_sees_that_the_site_announces_other_content(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", PDF))
    session = prowess.Session(load())
    session.activate("pdf")
    assert session.refresh(load()).changed == ()
    site.index(site.entry("pdf", skill_md("pdf", body="New.\n")))
    asked = len(site.paths)
    assert session.refresh(load()).changed == ("pdf",)
    assert site.paths[asked:] == [f"{NEW}/index.json"]
    assert session.activate("pdf").instructions == "New."


def test_a_remote_skill_that_becomes_inline_has_changed(site: Site, load: Load) -> None:
    site.index(site.entry("pdf", PDF))
    session = prowess.Session(load())
    inline = prowess.Catalog.from_sources([prowess.Source.inline("pdf", "Reads PDF files.", "Read it.")])
    asked = len(site.paths)
    assert session.refresh(inline).changed == ("pdf",)
    assert len(site.paths) == asked


# -- what it costs -----------------------------------------------------------------------------------------------------


def test_naming_a_site_loads_no_http_client() -> None:
    code = (
        "import sys, prowess\nprowess.Source.url('https://skills.example')\n"
        "print([name for name in ('httpx2', 'ssl', 'tarfile', 'zipfile', 'platformdirs') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
