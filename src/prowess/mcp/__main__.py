"""``python -m prowess.mcp [ROOT…]``: serve skills to an MCP client."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from prowess.errors import SkillError
from prowess.mcp.binding import token_in
from prowess.mcp.serve import check, serve
from prowess.spec.hidden import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

TOKEN = "PROWESS_MCP_TOKEN"  # noqa: S105 - the name of a variable
_PARTS = ("extension", "tools", "instructions", "prompts")


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    if options.check:
        return _check(options.roots)
    try:
        serve(
            *options.roots,
            http=options.http,
            token=os.environ.get(TOKEN) or token_in(options.token_file),
            hosts=options.allow_host,
            origins=options.allow_origin,
            ready=lambda url: _say(f"Serving skills at {url}"),
            budget=options.budget,
            notice=None if options.no_watch else "auto",
            **{part: part not in options.without for part in _PARTS},
        )
    except SkillError as error:
        _say(str(error))
        return 2
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m prowess.mcp", description="Serve skills to MCP clients.")
    parser.add_argument("roots", nargs="*", metavar="ROOT", help="folders with skills (default: the standard places)")
    parser.add_argument("--http", nargs="?", const="127.0.0.1:8848", metavar="HOST:PORT", help="serve on HTTP")
    parser.add_argument("--token-file", metavar="FILE", help=f"holds the token that clients need (or ${TOKEN})")
    parser.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="a name of this server")
    parser.add_argument("--allow-origin", action="append", default=[], metavar="URL", help="pages that may ask")
    parser.add_argument("--without", action="append", default=[], choices=_PARTS, help="switch a part off")
    parser.add_argument("--budget", type=int, default=2_000, metavar="TOKENS", help="for the listing (%(default)s)")
    parser.add_argument("--no-watch", action="store_true", help="do not look for changes")
    parser.add_argument("--check", action="store_true", help="say which skills would not be served, and why")
    return parser.parse_args(arguments)


def _check(roots: Sequence[str]) -> int:
    found = check(*roots)
    for refused in found:
        for issue in refused.issues:
            said = f"{issue.field}: {issue.message}" if issue.field else issue.message
            sys.stdout.write(f"{one_line(refused.location)}: {issue.code}: {one_line(said)} ({issue.hint})\n")
    return 1 if found else 0


def _say(what: str) -> None:
    sys.stderr.write(f"{one_line(what)}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
