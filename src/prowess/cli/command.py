"""A command with examples in its help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

Examples = tuple[tuple[str, str], ...]
"""A command line, and what it does."""


def _write_examples(examples: Examples, formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            for words, what in examples:
                formatter.write(
                    f"{' ' * formatter.current_indent}{words}\n{' ' * formatter.current_indent}    {what}\n"
                )


class Command(click.Command):
    """A command whose help ends with examples; its function gives the exit status, or nothing."""

    def __init__(self, *args: Any, examples: Examples = (), **options: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(*args, **options)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """The examples, one a line."""
        _write_examples(self.examples, formatter)


class Group(click.Group):
    """A command with commands of its own, and examples."""

    def __init__(self, *args: Any, examples: Examples = (), **options: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(*args, **options)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """The examples, one a line."""
        _write_examples(self.examples, formatter)


def command(name: str, *examples: tuple[str, str], **options: Any) -> Callable[..., Command]:  # noqa: ANN401
    """The decorator for a command."""
    return click.command(name, cls=Command, examples=examples, **options)
