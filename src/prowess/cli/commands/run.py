"""``prowess run``: carries out a task with a model, the skills that are here, and a working folder."""

from __future__ import annotations

import os

import click

from prowess.cli.agent_options import (
    AgentFlags,
    agent_options,
    find_earlier_places,
    load_model,
    raise_failure,
    run_agent,
)
from prowess.cli.command_class import new_command
from prowess.cli.lock_states import warn_edited_skills
from prowess.cli.options import CatalogFlags, catalog_options, json_option
from prowess.cli.skill_lookup import load_cli_settings, load_offered_catalog


@new_command(
    "run",
    ('prowess run "What is in orders.csv?" --model anthropic:claude-sonnet-5-5', "with the skills that are here"),
    ('prowess run "Review my last commit" skills/ --tools "Read Bash(git:*)"', "with those below skills/, and less"),
    ('prowess run "Sort my notes" --base-url http://localhost:11434/v1 --model qwen3', "with a model on this machine"),
    ('prowess run "Sort my notes" --transcript notes.jsonl', "kept in a file"),
    ("prowess run --resume notes.jsonl", "goes on after Ctrl-C, a limit or an error"),
    ('prowess run "What is in orders.csv?" --model scripted:turns.yaml', "plays a script, without a key"),
)
@click.argument("task", required=False, metavar="TASK")
@click.argument("roots", nargs=-1, metavar="[ROOT]...", type=click.Path(file_okay=False))
@agent_options
@click.option(
    "--resume", metavar="FILE", type=click.Path(dir_okay=False), help="Go on where this transcript ends; TASK is next."
)
@catalog_options
@json_option
def command(
    task: str | None,
    roots: tuple[str, ...],
    *,
    flags: AgentFlags,
    resume: str | None,
    where: CatalogFlags,
    as_data: bool,
) -> int:
    """Carry out TASK with a model: it loads the skills that fit, reads their files and runs their scripts.

    Skills come from the folders ROOT, or from the standard places. Besides the skill tools the model has Read and Write
    for files of the working folder, and Bash for commands in a sandbox. You are asked before each of these calls unless
    an active skill approves it, and before a skill runs anything that you have not granted. Without a terminal nobody
    is asked, and such calls are refused.

    The model is --model, or the setting 'model' (PROWESS_MODEL). What the model says goes to the output stream, the
    rest to the error stream. With --json each event is a line of JSON.
    """
    if not task and resume is None:
        raise click.UsageError("Missing argument 'TASK'.")
    if resume is not None and flags.transcript is not None:
        raise click.UsageError("--resume goes on in its own transcript: leave --transcript out")
    if task and not roots and task.endswith("/") and os.path.isdir(task):  # the model would get the folder's name
        raise click.UsageError(f"{task!r} is a folder, and TASK comes first; to name folders alone, use --dir {task}")
    folders = (*where["folders"], *roots)
    if resume is not None and not folders:
        folders = find_earlier_places(resume)
    settings = load_cli_settings(**{**where, "folders": folders}, **flags.settings)
    model = load_model(settings)
    catalog = load_offered_catalog(settings)
    warn_edited_skills(catalog.skills)
    result = run_agent(task or "", catalog, model, settings=settings, flags=flags, resume=resume, as_data=as_data)
    raise_failure(result, resume or flags.transcript)
    return 0
