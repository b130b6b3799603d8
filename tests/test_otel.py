"""Telemetry: spans of what happens in a conversation, as the SDK's own exporter receives them."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as conventions
from opentelemetry.trace import SpanKind, StatusCode

import prowess
from prowess import otel

Spans = Callable[[], dict[str, ReadableSpan]]


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Spans:
    return lambda: {span.name: span for span in exporter.get_finished_spans()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "skills" / "pdf"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: pdf\ndescription: Reads PDF files.\n---\nRead.\n", encoding="utf-8")
    (folder / "notes.md").write_text("Notes.\n", encoding="utf-8")
    return folder


@pytest.fixture
def toolset(folder: Path, provider: TracerProvider) -> prowess.Toolset:
    catalog = prowess.scan(folder.parent)
    return prowess.Toolset(prowess.Session(catalog, on_event=otel.trace_events(provider), id="talk-1"))


def test_an_event_is_a_span_of_its_duration(toolset: prowess.Toolset, folder: Path, spans: Spans) -> None:
    toolset.session.activate("pdf")
    span = spans()["skill activated"]
    assert dict(span.attributes or {}) == {
        "gen_ai.skill.name": "pdf",
        "gen_ai.skill.source.uri": str(folder / "SKILL.md"),
        "gen_ai.conversation.id": "talk-1",
        "prowess.event.kind": "activated",
        "prowess.decision": "allowed",
    }
    assert span.kind is SpanKind.INTERNAL
    assert span.status.status_code is StatusCode.UNSET
    assert span.start_time is not None
    assert span.end_time is not None
    assert 0 < span.end_time - span.start_time < 60_000_000_000


def test_a_refusal_is_a_span_with_an_error(toolset: prowess.Toolset, spans: Spans) -> None:
    with pytest.raises(prowess.UnknownSkillError):
        toolset.session.activate("gone")
    span = spans()["skill refused"]
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "unknown-skill"


@pytest.mark.parametrize(("status", "failed"), [(0, False), (3, True)])
def test_a_script_is_a_span_with_its_status(
    folder: Path, provider: TracerProvider, spans: Spans, tmp_path: Path, status: int, *, failed: bool
) -> None:
    (folder / "scripts").mkdir()
    (folder / "scripts/end.py").write_text("import sys\nsys.exit(int(sys.argv[1]))\n", encoding="utf-8")
    trust = prowess.Trust(tmp_path / "trust.json", policy="granted")
    session = prowess.Session(prowess.scan(folder.parent), trust=trust, on_event=otel.trace_events(provider))
    trust.grant(session.skill("pdf"))
    toolset = prowess.Toolset(session, scripts=prowess.Scripts("none"))
    toolset.call("run_skill_script", {"name": "pdf", "script": "scripts/end.py", "args": [str(status)]})
    span = spans()["skill ran"]
    attributes = span.attributes or {}
    names = ("prowess.script", "prowess.script.status", "prowess.script.sandbox")
    assert [attributes[name] for name in names] == ["scripts/end.py", str(status), "none"]
    assert (span.status.status_code is StatusCode.ERROR) == failed
    assert attributes.get("error.type") == ("script-failed" if failed else None)


def test_a_decision_of_a_person_is_a_span_that_says_how_long_it_counts(
    folder: Path, provider: TracerProvider, spans: Spans, tmp_path: Path
) -> None:
    trust = prowess.Trust(tmp_path / "trust.json", policy="defer")
    session = prowess.Session(prowess.scan(folder.parent), trust=trust, on_event=otel.trace_events(provider))
    for command, decide, kind, scope in (
        ("ls", session.approve, "approved", "once"),
        ("rm", session.refuse, "refused", "conversation"),
    ):
        decide(prowess.TrustRequest(session.skill("pdf"), "digest", (command,)))
        attributes = spans()[f"skill {kind}"].attributes or {}
        assert (attributes["prowess.decision"], attributes["prowess.scope"]) == (kind, scope)


def test_a_call_is_a_span_as_the_conventions_have_it(
    toolset: prowess.Toolset, provider: TracerProvider, folder: Path, spans: Spans
) -> None:
    result = otel.trace_call(toolset, "load_skill", {"name": "pdf"}, tracer_provider=provider)
    assert "Read." in result.content
    found = spans()
    call = found["execute_tool load_skill"]
    assert dict(call.attributes or {}) == {
        conventions.GEN_AI_OPERATION_NAME: conventions.GenAiOperationNameValues.EXECUTE_TOOL.value,
        conventions.GEN_AI_TOOL_NAME: "load_skill",
        conventions.GEN_AI_TOOL_TYPE: "function",
        conventions.GEN_AI_CONVERSATION_ID: "talk-1",
        "gen_ai.skill.name": "pdf",
        "gen_ai.skill.description": "Reads PDF files.",
        "gen_ai.skill.source.uri": str(folder / "SKILL.md"),
    }
    assert call.context is not None
    activated = found["skill activated"]
    assert activated.parent is not None
    assert activated.parent.span_id == call.context.span_id


def test_a_file_that_is_read_is_named(toolset: prowess.Toolset, provider: TracerProvider, spans: Spans) -> None:
    arguments = {"name": "pdf", "path": "notes.md"}
    result = asyncio.run(otel.atrace_call(toolset, "read_skill_file", arguments, tracer_provider=provider))
    assert result.content == "Notes.\n"
    found = spans()
    assert (found["skill read"].attributes or {})["gen_ai.skill.resource.name"] == "notes.md"
    attributes = found["execute_tool read_skill_file"].attributes or {}
    assert (attributes["gen_ai.skill.name"], attributes["gen_ai.skill.resource.name"]) == ("pdf", "notes.md")


def test_a_call_that_fails_is_an_error(toolset: prowess.Toolset, provider: TracerProvider, spans: Spans) -> None:
    assert otel.trace_call(toolset, "load_skill", {"name": "gone"}, tracer_provider=provider).is_error
    span = spans()["execute_tool load_skill"]
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "unknown-skill"


def test_no_span_holds_instructions_arguments_or_files(
    toolset: prowess.Toolset, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    arguments = {"name": "pdf", "path": "notes.md", "secret": "s3cr3t"}
    otel.trace_call(toolset, "load_skill", arguments, tracer_provider=provider)
    otel.trace_call(toolset, "read_skill_file", arguments, tracer_provider=provider)
    written = "".join(span.to_json() for span in exporter.get_finished_spans())
    assert "gen_ai.skill.name" in written
    assert [text for text in ("s3cr3t", "Read.", "Notes.") if text in written] == []


def test_what_a_model_sends_as_the_name_of_a_tool_is_bounded(
    toolset: prowess.Toolset, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    assert otel.trace_call(toolset, "x\n\x1b[2J" * 100_000, tracer_provider=provider).is_error
    for span in exporter.get_finished_spans():
        assert len(span.name) < 300
        assert span.name.isprintable()
        assert all(len(str(value)) < 300 and str(value).isprintable() for value in (span.attributes or {}).values())


def test_a_name_of_a_tool_that_is_not_text_is_an_error_in_its_span(
    toolset: prowess.Toolset, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    nothing: Any = None
    results = [
        otel.trace_call(toolset, nothing, tracer_provider=provider),
        asyncio.run(otel.atrace_call(toolset, nothing, tracer_provider=provider)),
    ]
    assert [result.data["reason"] for result in results] == ["unknown-tool"] * 2
    named = [span.name for span in exporter.get_finished_spans() if span.name.startswith("execute_tool")]
    assert named == ["execute_tool None"] * 2


def test_the_span_of_a_framework_is_given_the_skill(
    toolset: prowess.Toolset, provider: TracerProvider, folder: Path, spans: Spans
) -> None:
    """A framework that opens the span of a call itself gets the attributes, and a span of anything else does not."""
    tracer = provider.get_tracer("framework")
    with tracer.start_as_current_span("request"):
        with tracer.start_as_current_span("call", attributes={"gen_ai.operation.name": "execute_tool"}):
            toolset.call("load_skill", {"name": "pdf"})
        toolset.call("read_skill_file", {"name": "pdf", "path": "notes.md"})
    found = spans()
    assert (found["call"].attributes or {})["gen_ai.skill.source.uri"] == str(folder / "SKILL.md")
    assert "gen_ai.skill.name" not in (found["request"].attributes or {})


def test_importing_it_needs_nothing_of_the_extra(tmp_path: Path) -> None:
    """A name of the package can be looked at without it; using it says what to install."""
    (tmp_path / "opentelemetry").mkdir()
    (tmp_path / "opentelemetry" / "__init__.py").write_text("raise ImportError('not installed')\n", encoding="utf-8")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom prowess import otel, SourceError\n"
        "try:\n    otel.trace_events()\nexcept SourceError as error:\n    print(error.code, error.message)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("missing-extra OpenTelemetry is not installed: install Prowess with the extra 'otel'")
