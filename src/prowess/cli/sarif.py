"""Findings as SARIF 2.1.0, which GitHub, GitLab and editors read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import quote

from prowess.errors import HINTS
from prowess.text.escapes import escape_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.authoring.findings import Finding

_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_sarif(findings: Iterable[Finding], version: str) -> dict[str, object]:
    """Return findings as a SARIF log of one run; paths below the working folder are relative to it."""
    findings = [*findings]
    codes = sorted({finding.code for finding in findings})
    rules = [
        {"id": code, "shortDescription": {"text": code.replace("-", " ")}, "help": {"text": HINTS.get(code) or code}}
        for code in codes
    ]
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "prowess", "version": version, "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "results": [_to_result(finding, codes.index(finding.code)) for finding in findings],
            }
        ],
    }


def _to_result(finding: Finding, rule: int) -> dict[str, object]:
    subject = f"{finding.field}: " if finding.field else ""
    place = {
        "artifactLocation": {"uri": _to_uri(finding.path)},
        "region": {
            "startLine": max(finding.line, 1),
            "startColumn": max(finding.column, 1),
            "endColumn": max(finding.column, 1) + max(finding.length, 1),
        },
    }
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": escape_line(f"{subject}{finding.message}")},
        "locations": [{"physicalLocation": place}],
    }


def _to_uri(path: str) -> str:
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        relative = path
    is_below = not os.path.isabs(relative) and relative.split(os.sep)[0] != os.pardir
    shown = (relative if is_below else os.path.abspath(path)).replace(os.sep, "/")
    if is_below:
        return quote(shown, safe="/")
    return f"file://{'' if shown.startswith('/') else '/'}{quote(shown, safe='/:')}"
