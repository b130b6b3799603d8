"""A command with examples in its help."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

Examples = tuple[tuple[str, str], ...]
"""A command line, and what it does."""
Choices = tuple[str, Callable[[], Iterable[str]]]


def _write_examples(examples: Examples, formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            for words, what in examples:
                formatter.write(
                    f"{' ' * formatter.current_indent}{words}\n{' ' * formatter.current_indent}    {what}\n"
                )


def _write_word_list(title: str, words: Iterable[str], formatter: click.HelpFormatter) -> None:
    """Words with commas between them, none broken at a hyphen."""
    from textwrap import fill  # noqa: PLC0415 - only for help

    with formatter.section(title):
        indent = " " * formatter.current_indent
        text = fill(
            ", ".join(words),
            formatter.width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
        formatter.write(f"{text}\n")


class CliCommand(click.Command):
    """A command whose help ends with words to choose from and examples; its function gives the exit status, or nothing.

    ``choices``: a title, and what gives the words when help is asked for. ``forms``: what its argument may be.
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - click's own
        examples: Examples = (),
        choices: Choices | None = None,
        forms: Examples = (),
        **options: Any,  # noqa: ANN401 - click's own
    ) -> None:
        super().__init__(*args, **options)
        self.examples = examples
        self.choices = choices
        self.forms = forms

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments, parsed; an error knows the command that it is about, which click leaves out of some."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """The forms of the argument, the words, then the examples, one a line."""
        if self.forms:
            with formatter.section("What SOURCE may be"):
                formatter.write_dl(self.forms)
        if self.choices is not None:
            _write_word_list(self.choices[0], self.choices[1](), formatter)
        _write_examples(self.examples, formatter)


class CliGroup(click.Group):
    """A command with commands of its own, and examples."""

    def __init__(self, *args: Any, examples: Examples = (), **options: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(*args, **options)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """The examples, one a line."""
        _write_examples(self.examples, formatter)


def new_command(name: str, *examples: tuple[str, str], **options: Any) -> Callable[..., CliCommand]:  # noqa: ANN401
    """The decorator for a command."""
    return click.command(name, cls=CliCommand, examples=examples, **options)
