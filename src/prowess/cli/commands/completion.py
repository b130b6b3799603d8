"""``prowess completion``: prints the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from prowess.cli.command_class import new_command
from prowess.cli.options import json_option
from prowess.cli.render import printer


@new_command(
    "completion",
    ('eval "$(prowess completion bash)"', "in ~/.bashrc"),
    ('eval "$(prowess completion zsh)"', "in ~/.zshrc"),
    ("prowess completion fish > ~/.config/fish/completions/prowess.fish", "once"),
)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@json_option
@click.pass_context
def command(ctx: click.Context, shell: str, *, as_data: bool) -> None:
    """Print the script with which a shell completes commands, options, and names of skills, agents and codes."""
    completion_class = get_completion_class(shell)
    assert completion_class is not None
    script = completion_class(ctx.find_root().command, {}, "prowess", "_PROWESS_COMPLETE").source()
    printer.print_answer(lambda: {"shell": shell, "script": script}, list, as_data=as_data)
    if not as_data:
        printer.print_own_text(script.rstrip("\n") + "\n")
