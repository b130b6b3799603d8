#!/usr/bin/env python3
"""Profile a delimited text file: column types, gaps, ranges and likely faults.

The file is read once, as a stream. Memory is bounded by --max-distinct for
each column, and by a cap on the rows that are compared for duplicates.
"""

from __future__ import annotations

import argparse
import csv
import io
import itertools
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from typing import Any, TextIO

NULLS = {"", "na", "n/a", "null", "nan", "none"}
BOOLEANS = {"true", "false", "yes", "no"}
DELIMITERS = ",;\t|"
SAMPLE_LINES = 200
DUPLICATE_ROWS_CAP = 1_000_000
MAJORITY = 0.8

INTEGER = re.compile(r"[+-]?[0-9]+")
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
DATETIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{3}|\.[0-9]{6})?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?"
)

# Kinds that may share a column, and the type such a column gets.
COMBINATIONS = (
    (frozenset({"integer", "decimal"}), "decimal"),
    (frozenset({"integer", "code"}), "code"),
    (frozenset({"date", "datetime"}), "datetime"),
)


class ProfileError(Exception):
    """The file cannot be profiled; the message says why."""


def classify(value: str) -> tuple[str, Any]:
    """Return the kind of a stripped, non-missing value and its sort key."""
    if value.lower() in BOOLEANS:
        return "boolean", None
    if INTEGER.fullmatch(value):
        digits = value.lstrip("+-")
        if len(digits) > 15 or (len(digits) > 1 and digits[0] == "0"):
            return "code", None
        return "integer", int(value)
    if DECIMAL.fullmatch(value):
        number = float(value)
        return ("decimal", number) if math.isfinite(number) else ("text", None)
    kind = "date" if DATE.fullmatch(value) else "datetime" if DATETIME.fullmatch(value) else "text"
    if kind != "text":
        try:
            moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
            if moment.tzinfo is not None:
                moment = moment.astimezone(timezone.utc).replace(tzinfo=None)
            return kind, moment
        except (ValueError, OverflowError):  # the 30th of February, the year 0
            return "text", None
    return "text", None


class Column:
    """Running statistics of one column."""

    def __init__(self, name: str, max_distinct: int) -> None:
        self.name = name
        self.max_distinct = max_distinct
        self.filled = 0
        self.missing = 0
        self.padded = 0
        self.with_zone = 0
        self.without_zone = 0
        self.capped = False
        self.values: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.first: dict[str, tuple[int, str]] = {}
        self.low: dict[str, tuple[Any, str]] = {}
        self.high: dict[str, tuple[Any, str]] = {}
        self.lengths: tuple[int, int] | None = None
        self.numbers = 0
        self.mean = 0.0
        self._squares = 0.0

    def add(self, raw: str, line: int, nulls: set[str]) -> None:
        value = raw.strip()
        if value.lower() in nulls:
            self.missing += 1
            return
        self.filled += 1
        self.padded += value != raw
        if value in self.values or len(self.values) < self.max_distinct:
            self.values[value] += 1
        else:
            self.capped = True
        size = len(value)
        low, high = self.lengths or (size, size)
        self.lengths = (min(low, size), max(high, size))

        kind, key = classify(value)
        self.kinds[kind] += 1
        self.first.setdefault(kind, (line, value))
        if key is None:
            return
        if kind not in self.low or key < self.low[kind][0]:
            self.low[kind] = (key, value)
        if kind not in self.high or key > self.high[kind][0]:
            self.high[kind] = (key, value)
        if kind in ("integer", "decimal"):
            self.numbers += 1
            delta = key - self.mean
            self.mean += delta / self.numbers
            self._squares += delta * (key - self.mean)
        elif kind == "datetime":
            zoned = value.endswith("Z") or value[-6] in "+-"
            self.with_zone += zoned
            self.without_zone += not zoned

    def resolve(self) -> tuple[str, frozenset[str]]:
        """Return the column's type and the kinds of value that agree with it."""
        if not self.filled:
            return "empty", frozenset()
        best, members, covered = "text", frozenset({"text"}), 0
        options = [(frozenset({kind}), kind) for kind in self.kinds if kind != "text"]
        for group, name in (*options, *COMBINATIONS):
            # A combination must be complete, or "decimal" would win for integers.
            if not group <= self.kinds.keys():
                continue
            count = sum(self.kinds[kind] for kind in group)
            if count > covered:
                best, members, covered = name, group, count
        if covered >= MAJORITY * self.filled:
            return best, members
        return "text", frozenset(self.kinds)

    @property
    def stdev(self) -> float | None:
        if self.numbers < 2 or not math.isfinite(self._squares):
            return None
        return math.sqrt(self._squares / (self.numbers - 1))

    def is_key(self) -> bool:
        return not (self.missing or self.capped) and len(self.values) == self.filled > 1


def detect_delimiter(sample: list[str], truncated: bool) -> str:
    """Pick the delimiter that splits the sample into the steadiest columns."""
    best, best_score = ",", (0.0, 0)
    for candidate in DELIMITERS:
        try:
            rows = [row for row in csv.reader(sample, delimiter=candidate) if row]
        except csv.Error:
            continue
        if truncated:
            rows = rows[:-1]  # the last record may continue beyond the sample
        widths = Counter(len(row) for row in rows)
        if not widths:
            continue
        width, count = widths.most_common(1)[0]
        score = (count / len(rows), width)
        if width > 1 and score > best_score:
            best, best_score = candidate, score
    return best


def numbered(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield each record with the number of the line on which it begins."""
    while True:
        line = reader.line_num + 1
        try:
            yield line, next(reader)
        except StopIteration:
            return


def profile(
    stream: Iterable[str],
    *,
    delimiter: str | None = None,
    skip: int = 0,
    limit: int | None = None,
    nulls: Iterable[str] = (),
    top: int = 3,
    max_distinct: int = 10_000,
    show_values: bool = True,
) -> dict[str, Any]:
    """Read the stream and return its profile as plain, JSON-ready data."""
    null_set = NULLS | {token.strip().lower() for token in nulls}
    lines = itertools.islice(iter(stream), skip, None)
    sample = list(itertools.islice(lines, SAMPLE_LINES))
    if not sample:
        raise ProfileError("the file is empty")
    delimiter = delimiter or detect_delimiter(sample, len(sample) == SAMPLE_LINES)
    reader = csv.reader(itertools.chain(sample, lines), delimiter=delimiter)
    records = numbered(reader)

    header = next((row for _, row in records if row), None)
    if header is None:
        raise ProfileError("the file has no header: every line is blank")
    names = [name.strip() for name in header]
    columns = [Column(name or f"(column {i})", max_distinct) for i, name in enumerate(names, 1)]

    rows = blank = duplicates = 0
    ragged: Counter[int] = Counter()
    first_ragged = first_duplicate = 0
    partial = False
    seen: set[int] = set()
    for offset, row in records:
        line = offset + skip
        if not row:
            blank += 1
            continue
        if limit is not None and rows >= limit:
            partial = True
            break
        rows += 1
        if len(row) != len(columns):
            ragged[len(row)] += 1
            first_ragged = first_ragged or line
        if rows <= DUPLICATE_ROWS_CAP:
            digest = hash(tuple(row))
            if digest in seen:
                duplicates += 1
                first_duplicate = first_duplicate or line
            seen.add(digest)
        for column, value in zip(columns, itertools.chain(row, itertools.repeat(""))):
            column.add(value, line, null_set)

    findings: list[dict[str, Any]] = []

    def report(level: str, message: str, column: str | None = None, line: int = 0) -> None:
        findings.append(
            {"level": level, "column": column, "line": line or None, "message": message}
        )

    def quote(value: str) -> str:
        return f" ({shorten(value)!r})" if show_values else ""

    if not rows:
        report("warning", "the file has a header but no rows")
    for name, count in Counter(names).items():
        if not name:
            report("warning", f"{plural(count, 'header')} without a name")
        elif count > 1:
            report("warning", f"the header occurs {count} times", name)
    if any(classify(name)[0] != "text" for name in names):
        report("note", "a header looks like a value; does the file have a header line?")
    if ragged:
        widths = ", ".join(f"{n:,} with {plural(w, 'field')}" for w, n in sorted(ragged.items()))
        message = f"{plural(sum(ragged.values()), 'ragged row')}, expected {len(columns)} fields"
        report("warning", f"{message}: {widths}", line=first_ragged)
    if duplicates:
        message = f"{plural(duplicates, 'row')} identical to an earlier row"
        report("warning", message, line=first_duplicate)
    if rows > DUPLICATE_ROWS_CAP:
        report("note", f"only the first {DUPLICATE_ROWS_CAP:,} rows were checked for duplicates")
    if blank:
        report("note", f"{plural(blank, 'blank line')} ignored")

    for column in columns:
        inspect(column, rows, report, quote, show_values)

    return {
        "rows": rows,
        "partial": partial,
        "delimiter": delimiter,
        "columns": [describe(column, top, show_values) for column in columns],
        "findings": sorted(findings, key=lambda finding: finding["level"] != "warning"),
    }


def inspect(
    column: Column,
    rows: int,
    report: Callable[..., None],
    quote: Callable[[str], str],
    show_values: bool,
) -> None:
    """Report what is odd about one column."""
    kind, members = column.resolve()
    if not column.filled:
        if rows:
            report("warning", "no value at all", column.name)
        return
    strays = {other: n for other, n in column.kinds.items() if other not in members}
    if strays:
        line, value = min(column.first[other] for other in strays)
        message = f"mixed: {sum(strays.values()):,} of {column.filled:,} values are not {kind}"
        report("warning", message + quote(value), column.name, line)
    if column.with_zone and column.without_zone:
        message = f"{column.with_zone:,} values carry a time zone, {column.without_zone:,} do not"
        report("warning", message, column.name)
    if column.padded:
        values = plural(column.padded, "value")
        report("warning", f"{values} with leading or trailing blanks", column.name)
    if column.missing > rows / 2:
        report("warning", f"{column.missing / rows:.0%} missing", column.name)
    if kind == "text":
        spellings: dict[str, list[str]] = {}
        for value in column.values:
            spellings.setdefault(" ".join(value.casefold().split()), []).append(value)
        groups = [group for group in spellings.values() if len(group) > 1]
        if groups:
            example = f", such as {groups[0][0]!r} and {groups[0][1]!r}" if show_values else ""
            message = f"{plural(len(groups), 'value')} with several spellings{example}"
            report("warning", message, column.name)
    if kind == "code":
        report("note", "digits that are not a quantity; load as text", column.name)
    if len(column.values) == 1 and column.filled > 1 and not column.capped:
        report("note", "constant" + quote(next(iter(column.values))), column.name)
    if column.is_key():
        report("note", "candidate key: complete and unique", column.name)


def describe(column: Column, top: int, show_values: bool) -> dict[str, Any]:
    """Return the figures of one column."""
    kind, members = column.resolve()
    result: dict[str, Any] = {
        "name": column.name,
        "type": kind,
        "filled": column.filled,
        "missing": column.missing,
        "distinct": len(column.values),
        "distinct_capped": column.capped,
        "length": list(column.lengths) if column.lengths else None,
    }
    if show_values:
        lows = [column.low[member] for member in members if member in column.low]
        highs = [column.high[member] for member in members if member in column.high]
        if kind in ("integer", "decimal", "date", "datetime"):
            result["min"] = min(lows, key=lambda pair: pair[0])[1]
            result["max"] = max(highs, key=lambda pair: pair[0])[1]
        if kind in ("integer", "decimal"):
            result["mean"] = column.mean if math.isfinite(column.mean) else None
            result["stdev"] = column.stdev
        result["top"] = column.values.most_common(top)
    return result


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def shorten(text: str, width: int = 32) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


def cell(text: str) -> str:
    return shorten(text).replace("\\", "\\\\").replace("|", "\\|")


def to_markdown(result: dict[str, Any], title: str) -> str:
    """Lay the profile out as Markdown."""
    delimiter = "tab" if result["delimiter"] == "\t" else f"`{result['delimiter']}`"
    shape = f"{plural(result['rows'], 'row')}, {plural(len(result['columns']), 'column')}"
    if result["partial"]:
        shape = f"first {shape} (the file goes on)"
    out = [f"# Profile of {title}", "", f"{shape}, delimiter {delimiter}.", ""]
    out += ["## Findings", ""]
    for finding in result["findings"]:
        column = f" `{finding['column']}`:" if finding["column"] else ""
        line = f", first at line {finding['line']:,}" if finding["line"] else ""
        out.append(f"- **{finding['level']}**{column} {finding['message']}{line}")
    if not result["findings"]:
        out.append("None.")
    out += ["", "## Columns", ""]
    out.append("| Column | Type | Filled | Distinct | Range | Most common |")
    out.append("| --- | --- | ---: | ---: | --- | --- |")
    for column in result["columns"]:
        total = column["filled"] + column["missing"]
        filled = f"{math.floor(100 * column['filled'] / total)} %" if total else "-"
        distinct = f"{column['distinct']:,}" + ("+" if column["distinct_capped"] else "")
        if "min" in column:
            extent = f"{cell(column['min'])} to {cell(column['max'])}"
            if column.get("mean") is not None:
                extent += f", mean {column['mean']:.6g}"
        elif column["length"]:
            low, high = column["length"]
            extent = plural(low, "character") if low == high else f"{low} to {high} characters"
        else:
            extent = "-"
        common = ", ".join(f"{cell(value)} ({n:,})" for value, n in column.get("top", []))
        name = cell(column["name"])
        out.append(
            f"| {name} | {column['type']} | {filled} | {distinct} | {extent} | {common or '-'} |"
        )
    return "\n".join(out) + "\n"


def open_text(path: str, encoding: str) -> TextIO:
    if path == "-":
        return io.TextIOWrapper(sys.stdin.buffer, encoding=encoding, newline="")
    return open(path, encoding=encoding, newline="")


def delimiter_option(text: str) -> str:
    value = {"tab": "\t", "\\t": "\t"}.get(text.lower(), text)
    if len(value) != 1 or value in '"\r\n':
        raise argparse.ArgumentTypeError("give one character, or the word tab")
    return value


def count_option(minimum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = minimum - 1
        if value < minimum:
            raise argparse.ArgumentTypeError(f"give a whole number of at least {minimum}")
        return value

    return parse


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Profile a delimited text file: types, gaps, ranges and likely faults.",
        epilog="Exit codes: 0 profiled; 1 warnings, with --fail-on-warnings; 2 not readable.",
    )
    add = parser.add_argument
    add("file", help="path of the file, or - for standard input")
    add("--format", choices=("markdown", "json"), default="markdown", help="default: markdown")
    add("--delimiter", type=delimiter_option, help="one character or 'tab' (default: detected)")
    add("--encoding", default="utf-8-sig", help="default: UTF-8, with or without a BOM")
    add("--null", action="append", default=[], metavar="TOKEN", help="also a gap; repeatable")
    add("--skip", type=count_option(0), default=0, metavar="N", help="lines above the header")
    add("--limit", type=count_option(1), metavar="N", help="profile only the first N rows")
    add("--top", type=count_option(0), default=3, metavar="N", help="common values (default: 3)")
    add("--max-distinct", type=count_option(1), default=10_000, metavar="N",
        help="distinct values kept for each column (default: 10000)")  # fmt: skip
    add("--no-values", action="store_true", help="print no value of the file, only counts")
    add("--fail-on-warnings", action="store_true", help="exit with 1 if there is a warning")
    return parser


def main(argv: list[str] | None = None) -> int:
    options = build_parser().parse_args(argv)
    csv.field_size_limit(16 * 1024 * 1024)
    try:
        with open_text(options.file, options.encoding) as stream:
            result = profile(
                stream,
                delimiter=options.delimiter,
                skip=options.skip,
                limit=options.limit,
                nulls=options.null,
                top=options.top,
                max_distinct=options.max_distinct,
                show_values=not options.no_values,
            )
    except UnicodeError as error:
        print(f"error: not {options.encoding} text ({error}); try --encoding", file=sys.stderr)
        return 2
    except (OSError, LookupError, csv.Error, ProfileError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    title = "standard input" if options.file == "-" else re.split(r"[/\\]", options.file)[-1]
    if options.format == "json":
        text = json.dumps({"file": title, **result}, indent=2, ensure_ascii=False) + "\n"
    else:
        text = to_markdown(result, title)
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    warned = any(finding["level"] == "warning" for finding in result["findings"])
    return 1 if warned and options.fail_on_warnings else 0


if __name__ == "__main__":
    sys.exit(main())
