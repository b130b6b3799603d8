"""The classes of our click commands: their help ends with choices and examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

Examples = tuple[tuple[str, str], ...]
"""Pairs of a command line and what it does."""
Choices = tuple[str, Callable[[], Iterable[str]]]
"""A title, and a function that returns the words: help alone needs them, and pays for loading them."""


def _write_examples(examples: Examples, formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            for words, what in examples:
                formatter.write(
                    f"{' ' * formatter.current_indent}{words}\n{' ' * formatter.current_indent}    {what}\n"
                )


def _write_word_list(title: str, words: Iterable[str], formatter: click.HelpFormatter) -> None:
    """Write words with commas between them."""
    from textwrap import fill

    with formatter.section(title):
        indent = " " * formatter.current_indent
        text = fill(
            ", ".join(words),
            formatter.width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,  # an id such as claude-code is one word
        )
        formatter.write(f"{text}\n")


class CliCommand(click.Command):
    """A command whose function returns the exit status, or nothing, and whose help ends with examples.

    ``choices`` is a list of words that help shows under a title. ``forms`` are the forms that SOURCE may have.
    """

    def __init__(
        self,
        *args: Any,
        examples: Examples = (),
        choices: Choices | None = None,
        forms: Examples = (),
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.examples = examples
        self.choices = choices
        self.forms = forms

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Some errors of click do not know their command: it is added here, for the hint."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            # Some errors of click do not know their command, and the hint names its help.
            error.ctx = error.ctx or ctx
            raise

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the forms of the argument, the words to choose from, and the examples."""
        if self.forms:
            with formatter.section("What SOURCE may be"):
                formatter.write_dl(self.forms)
        if self.choices is not None:
            _write_word_list(self.choices[0], self.choices[1](), formatter)
        _write_examples(self.examples, formatter)


class CliGroup(click.Group):
    """A command with commands of its own, and examples in its help."""

    def __init__(self, *args: Any, examples: Examples = (), **options: Any) -> None:
        super().__init__(*args, **options)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        _write_examples(self.examples, formatter)


def new_command(name: str, *examples: tuple[str, str], **options: Any) -> Callable[..., CliCommand]:
    """Return the decorator that makes a function the command ``name``."""
    return click.command(name, cls=CliCommand, examples=examples, **options)
