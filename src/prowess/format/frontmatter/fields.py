"""The fields of a frontmatter, built from YAML values; values of a wrong shape become findings, nothing is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from prowess.arguments import check_text, check_texts, raise_bad_argument
from prowess.errors import Issue, as_load_error
from prowess.format.rules import field_issues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from prowess.format.frontmatter.json_types import Json
    from prowess.format.frontmatter.yaml_events import Value

    AddFinding = Callable[[str, str, str], None]


TEXT_FIELDS = ("name", "description", "license", "compatibility", "version", "model", "context")
"""The keys whose values are one string and an attribute of ``Frontmatter``."""
_REQUIRED_FIELDS = frozenset(("name", "description"))
SPEC_FIELDS = frozenset(("name", "description", "license", "compatibility", "metadata", "allowed-tools"))
"""The keys of the specification."""


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """The fields in the head of a SKILL.md. Every scalar is the text that was written: ``1.10`` stays ``"1.10"``.

    An absent optional field is ``None``, an absent required one ``""``. ``extra`` holds every key that the
    specification does not have, as it was written, even those that are fields here (``tags``, ``version``, ``model``,
    ``context``). Nested values are plain str, list and dict.

    A program may give the tools as a list or as one string (``"Read, Bash(git:*)"``), the tags likewise
    (``"git, pdf"``), and ``None`` for no tools, tags, metadata or extra. Raises ``SourceError`` for any other kind of
    value.
    """

    name: str = ""
    description: str = ""
    license: str | None = None
    compatibility: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    allowed_tools: tuple[str, ...] = ()
    allowed_tools_raw: str | None = None
    tags: tuple[str, ...] = ()
    version: str | None = None
    model: str | None = None
    context: str | None = None
    extra: Mapping[str, Value] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)
    """The line of the file that each key is on."""
    findings: tuple[Issue, ...] = field(default=(), repr=False, compare=False)
    """The issues of values whose shape the field does not allow."""
    raw: bytes = field(default=b"", repr=False, compare=False)
    """The bytes between the dashes; empty for fields that were not read from a file."""
    written_name: str = field(default="", repr=False, compare=False)
    """The name in the file, where the skill goes by another name."""

    def __post_init__(self) -> None:
        for key in TEXT_FIELDS:
            if (value := getattr(self, key)) is not None or key in _REQUIRED_FIELDS:
                check_text(value, key)
        # A program names tools and tags in a list, or in one string as in a file.
        tools: Iterable[str] | str | None = self.allowed_tools
        tags: Iterable[str] | str | None = self.tags
        if isinstance(tools, str) and self.allowed_tools_raw is None:
            object.__setattr__(self, "allowed_tools_raw", tools or None)
        if tools is not None and not isinstance(tools, str):
            tools = " ".join(check_texts(tools, "allowed_tools"))
        if tags is not None and not isinstance(tags, str):
            tags = list(check_texts(tags, "tags"))
        object.__setattr__(self, "allowed_tools", parse_allowed_tools(tools))
        object.__setattr__(self, "tags", split_names(tags or "") or ())
        object.__setattr__(self, "metadata", _check_metadata(self.metadata))
        if not isinstance(self.extra, dict):
            object.__setattr__(self, "extra", _check_mapping(self.extra, "extra"))

    def typed(self) -> dict[str, Json]:
        """Return every key with the type that YAML gives its value: ``1.10`` is a number, ``true`` a boolean.

        Quoted values are text. A number that JSON cannot hold stays text, and so does every value of a head that had to
        be repaired, and of fields that were not read from a file.
        """
        from prowess.format.frontmatter.json_types import to_typed_fields  # it parses heads, so it imports this module

        return to_typed_fields(self)

    def validate(self) -> None:
        """Raise ``SkillLoadError`` with every violation of the specification; the folder's name is not checked.

        The error is an ``InvalidFrontmatterError`` where the name or the description is missing.
        """
        issues = [i for i in field_issues(self, mode="strict") if i.severity == "error"]
        if issues:
            raise as_load_error(issues)

    def renamed(self, name: str) -> Frontmatter:
        """Return a copy of the fields under another name; ``written_name`` is the name in the file."""
        return replace(self, name=name, written_name=self.written_name or self.name)


# -- what a program gives ----------------------------------------------------------------------------------------------


def _check_metadata(given: Mapping[str, str] | None) -> dict[str, str]:
    metadata = _check_mapping(given, "metadata")
    for key, value in metadata.items():
        check_text(key, "a key of metadata")
        check_text(value, f"metadata[{key!r}]")
    return metadata


def _check_mapping(given: Mapping[str, Any] | None, argument: str) -> dict[str, Any]:
    """Return a copy, so that nobody changes the fields of a skill afterwards."""
    if given is None:
        return {}
    try:
        return dict(given)
    except (TypeError, ValueError):
        raise_bad_argument(argument, "must be a mapping", given)


# -- what a file says --------------------------------------------------------------------------------------------------


def build_frontmatter(
    values: Mapping[str, Value], lines: Mapping[str, int] | None = None, raw: bytes = b""
) -> Frontmatter:
    """Return the ``Frontmatter`` of YAML ``values`` that were read from ``raw``.

    Values of a wrong shape are in its ``findings``.
    """
    findings: list[Issue] = []
    lines = lines or {}

    def add_finding(code: str, key: str, message: str) -> None:
        findings.append(Issue(code, key, message, line=lines.get(key, lines.get(key.partition(".")[0], 0))))

    strings = {key: _read_text(values[key], key, add_finding) for key in TEXT_FIELDS if key in values}
    extra = {key: value for key, value in values.items() if key not in SPEC_FIELDS}
    tools = _read_tools(values.get("allowed-tools", values.get("allowed_tools")), add_finding)
    metadata = _read_metadata(values.get("metadata", {}), add_finding)
    if metadata is None:  # kept as it was written, so that no program loses what its author said
        extra["metadata"] = values["metadata"]
    return Frontmatter(
        name=strings.get("name") or "",
        description=strings.get("description") or "",
        license=strings.get("license"),
        compatibility=strings.get("compatibility"),
        metadata=metadata or {},
        allowed_tools=parse_allowed_tools(tools),
        allowed_tools_raw=tools,
        tags=_read_tags(values.get("tags", ""), add_finding),
        version=strings.get("version"),
        model=strings.get("model"),
        context=strings.get("context"),
        extra=extra,
        lines=lines,
        findings=tuple(findings),
        raw=raw,
    )


def _describe_type(value: Value) -> str:
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else "text"


def _read_text(value: Value, key: str, add_finding: AddFinding) -> str | None:
    if isinstance(value, str):
        return value
    add_finding("wrong-type", key, f"must be text, not {_describe_type(value)}")
    return None


def _read_metadata(value: Value, add_finding: AddFinding) -> dict[str, str] | None:
    if value == "":
        return {}
    if not isinstance(value, dict):
        add_finding("wrong-type", "metadata", f"must be a mapping of text to text, not {_describe_type(value)}")
        return None
    return {key: _read_metadata_value(key, item, add_finding) for key, item in value.items()}


def _read_metadata_value(key: str, item: Value, add_finding: AddFinding) -> str:
    if isinstance(item, str):
        return item
    add_finding("metadata-not-text", f"metadata.{key}", f"must be text, not {_describe_type(item)}; kept as JSON")
    return json.dumps(item, ensure_ascii=False)


def _read_tools(value: Value | None, add_finding: AddFinding) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, dict):
        add_finding("wrong-type", "allowed-tools", "must be a string or a list of strings, not a mapping")
        return None
    strings = [item for item in value if isinstance(item, str) and item.strip()]
    if len(strings) < len(value):
        add_finding("wrong-type", "allowed-tools", "every entry of the list must be a string that is not blank")
    return " ".join(strings) or None  # one string, so that ``parse_allowed_tools`` is the only place that splits tools


def _read_tags(value: Value, add_finding: AddFinding) -> tuple[str, ...]:
    tags = split_names(value)
    if tags is None:
        add_finding("wrong-type", "tags", "must be a list of strings")
    return tags or ()


def split_names(value: object) -> tuple[str, ...] | None:
    """Return the names in a string with commas, or in a list of strings, without empty ones; ``None`` otherwise."""
    if isinstance(value, str):
        return tuple(name for part in value.split(",") if (name := part.strip()))
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(name for item in value if (name := item.strip()))
    return None


_SEPARATORS = frozenset(" ,\t\r\n")


@lru_cache(maxsize=1024)  # the skills of one library ask for few different sets of tools
def parse_allowed_tools(raw: str | None) -> tuple[str, ...]:
    """Return the tools that ``raw`` names, in order, as written: ``"Bash(git:*) Read, Edit"`` names three.

    A parenthesis that never closes takes the rest of the text. A closing parenthesis too many is an ordinary character.
    """
    if not raw:
        return ()
    if "(" not in raw:
        return tuple(raw.replace(",", " ").split())
    return tuple(_split_tools(raw))


def _split_tools(raw: str) -> Iterable[str]:
    """Yield the tools of a string whose parentheses may be nested, or do not match."""
    depth = 0
    begin = -1
    for index, char in enumerate(raw):
        if depth == 0 and char in _SEPARATORS:
            if begin >= 0:
                yield raw[begin:index]
            begin = -1
            continue
        if begin < 0:
            begin = index
        depth = max(0, depth + (char == "(") - (char == ")"))
    if begin >= 0:
        yield raw[begin:].rstrip()


_FALSE = frozenset(("false", "no", "off", "0", "n", "f"))
_TRUE = frozenset(("true", "yes", "on", "1", "y", "t"))
_USER_KEYS = (
    "user-invocable",
    "user-invokable",
    "user_invocable",
    "user-invokeable",
    "user_invokable",
    "userInvocable",
)
_MODEL_KEYS = ("disable-model-invocation", "disable_model_invocation", "disableModelInvocation")


def is_user_invocable(front: Frontmatter) -> bool:
    """Return whether people may call the skill by its name: they may unless ``user-invocable`` says no."""
    return not any(_has_value_in(front, key, _FALSE) for key in _USER_KEYS)


def is_model_invocable(front: Frontmatter) -> bool:
    """Return whether models see the skill: they do unless ``disable-model-invocation`` says yes."""
    return not any(_has_value_in(front, key, _TRUE) for key in _MODEL_KEYS)


def is_true(text: str) -> bool:
    """Return whether a value says yes in one of the usual ways, in any case: ``true``, ``yes``, ``on``, ``1``."""
    return text.strip().lower() in _TRUE


def _has_value_in(front: Frontmatter, key: str, words: frozenset[str]) -> bool:
    # Only words that clearly say yes or no count: an unclear value must not hide a skill from anybody.
    value = front.extra.get(key)
    return isinstance(value, str) and value.strip().lower() in words
