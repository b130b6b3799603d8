"""The classes of our click commands: their help ends with choices and examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
    ``instead``: options that people try, and what to write instead.
    """

    def __init__(
        self,
        *args: Any,
        examples: Examples = (),
        choices: Choices | None = None,
        forms: Examples = (),
        instead: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.examples = examples
        self.choices = choices
        self.forms = forms
        self.instead = instead or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. Some errors of click do not know their command: it is added here, for the hint."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            # Some errors of click do not know their command, and the hint names its help.
            error.ctx = error.ctx or ctx
            if isinstance(error, click.NoSuchOption) and error.option_name in self.instead:
                written = error.option_name
                raise click.UsageError(f"No such option {written!r}: write {self.instead[written]!r}.", ctx) from None
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
    """A command with commands of its own, and examples in its help.

    ``usual`` is the command that people mean who write only its argument, such as ``trust NAME``.
    """

    def __init__(self, *args: Any, examples: Examples = (), usual: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self.examples = examples
        self.usual = usual

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, or fail with the names of similar ones, of the usual one, or of all."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            from prowess.text.spelling import did_you_mean

            usual = f"did you mean '{ctx.command_path} {self.usual} {args[0]}'?" if self.usual else ""
            meant = did_you_mean(args[0], self.commands) or usual or f"there are {', '.join(self.commands)}"
            ctx.fail(f"{ctx.command_path} has no command {args[0]!r}; {meant}")
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        _write_examples(self.examples, formatter)


def new_command(name: str, *examples: tuple[str, str], **options: Any) -> Callable[..., CliCommand]:
    """Return the decorator that makes a function the command ``name``."""
    return click.command(name, cls=CliCommand, examples=examples, **options)
