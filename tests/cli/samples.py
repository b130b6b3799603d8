"""One ordinary call of every command, in the project of the tests, and what must be there before it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import prowess

if TYPE_CHECKING:
    from collections.abc import Callable

SKILLS = Path(".agents") / "skills"


class Sample(NamedTuple):
    """Words of a command line, its statuses, the shape of its data, and what is done before."""

    words: tuple[str, ...]
    shape: str = ""
    """The name of the shape, where it is not the name of the sample."""
    statuses: frozenset[int] = frozenset((0,))
    before: tuple[Callable[[], object], ...] = ()
    sandbox: bool = False
    lines: bool = False
    """Whether ``--json`` prints a line of data for each thing that happens, instead of one object."""


def scripted() -> None:
    """Write the script of a model that loads csv-report and answers."""
    call = {"tool": "load_skill", "arguments": {"name": "csv-report"}}
    turns = [{"text": "A skill fits.", "calls": [call]}, {"text": "It is clean."}]
    Path("turns.json").write_text(json.dumps({"turns": turns}), encoding="utf-8")


def with_evals(skill: Path = SKILLS / "csv-report") -> None:
    """Write evals of a skill."""
    folder = skill / "evals"
    folder.mkdir()
    cases = [
        {"query": "what is in this csv file?", "should_trigger": True},
        {"query": "translate en.json into German", "should_trigger": False},
    ]
    (folder / "triggers.json").write_text(json.dumps(cases), encoding="utf-8")


def with_tasks() -> None:
    """Write an eval of csv-report that is a task as well, and the script of a model that carries it out."""
    folder = SKILLS / "csv-report" / "evals"
    folder.mkdir()
    case = {"query": "Is it clean?", "checks": [{"text": "clean"}, {"file": "report.md"}]}
    (folder / "tasks.json").write_text(json.dumps([case]), encoding="utf-8")
    scripted()


def governed() -> None:
    """Write policy files of the user: a rule, an approval, and a revocation of what ``installed`` installs."""
    folder = Path(prowess.default_user_dir()).parent
    folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    found = prowess.discover().get("notes")
    digest = found.digest() if found is not None else "ab" * 32
    texts = {
        "policy.toml": '[run]\nscripts = "approved"\n',
        "approved.toml": f'[[skill]]\ndigest = "{"cd" * 32}"\nexpires = 2099-01-01\n',
        "revoked.toml": f'[[skill]]\ndigest = "{digest}"\nreason = "it sends mail"\n',
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o644)


def packed() -> None:
    """Pack a skill into an archive in the working folder."""
    prowess.write_packed(prowess.pack(SKILLS / "csv-report"), "packed.skill")


def published() -> None:
    """Publish a skill to a folder in the working folder."""
    prowess.publish([SKILLS / "csv-report"], "./site", version="1.0")


def granted() -> None:
    """Grant trust to folder-report."""
    prowess.Trust().grant(prowess.scan(SKILLS)["folder-report"])


def another() -> None:
    """Make a skill in a folder where agents do not look."""
    prowess.create_skill("notes", "elsewhere", description="Writes notes.")


def installed() -> None:
    """Make the skill ``notes`` and install it for the project."""
    another()
    prowess.Installer().install_local("elsewhere/notes", project=True)


def linked() -> None:
    """Install ``notes`` and link it for one more agent."""
    installed()
    prowess.Installer().link("@local/notes", ["claude-code"])


def edited() -> None:
    """Install ``notes``, then change its source."""
    installed()
    with Path("elsewhere/notes/SKILL.md").open("a", encoding="utf-8") as file:
        file.write("\nOne more line.\n")


def updated() -> None:
    """Keep the lock file of an install of ``notes`` in a folder, and install another skill."""
    installed()
    Path("before").mkdir()
    shutil.copy("prowess.lock", "before")
    prowess.create_skill("more", "elsewhere", description="Writes more.")
    prowess.Installer().install_local("elsewhere/more", project=True)


def conflicted() -> None:
    """Install ``notes``, then make the conflict that git leaves after another side removed every skill."""
    installed()
    lock = Path("prowess.lock")
    head, mark, entries = lock.read_text(encoding="utf-8").partition("[[skill]]")
    lock.write_text(f"{head}<<<<<<< HEAD\n{mark}{entries}=======\n>>>>>>> theirs\n", encoding="utf-8")


def kept() -> None:
    """Install ``notes``, change it by hand and restore it, so that there is a backup."""
    installed()
    Path(".prowess/skills/local/notes/SKILL.md").write_text("mine", encoding="utf-8")
    prowess.Installer().sync()


SAMPLES: dict[str, Sample] = {
    "list": Sample(()),
    "list (agents)": Sample(("--agents", "--agent", "codex")),
    "list (installed)": Sample(("--installed",), before=(installed,)),
    "show": Sample(("csv-report",)),
    "read": Sample(("csv-report", "references/columns.md")),
    "search": Sample(("profile", "a", "csv", "--why")),
    "search (prepare)": Sample(("--prepare", "--words"), "search"),
    "explain": Sample(("csv-report",)),
    "explain (query)": Sample(("csv-report", "--query", "profile a csv"), "explain"),
    "prompt": Sample(("--query", "profile a csv", "--budget", "300")),
    "ui": Sample((str(SKILLS), "--export", "site")),
    "doctor": Sample((), statuses=frozenset((0, 1))),
    "new": Sample(("fresh-one", "--with", "scripts,references,assets,evals")),
    "check": Sample((str(SKILLS),)),
    "preview": Sample(("deep-review", "main..HEAD")),
    "eval": Sample((str(SKILLS / "csv-report"), "--selector", "lexical"), before=(with_evals,)),
    "eval (agent)": Sample(
        (str(SKILLS / "csv-report"), "--agent", "--model", "scripted:turns.json", "--runs", "1"),
        statuses=frozenset((1,)),  # the model writes no report
        before=(with_tasks,),
    ),
    "pack": Sample((str(SKILLS / "csv-report"),)),
    "publish": Sample((str(SKILLS / "csv-report"), "--version", "1.0", "--to", "./site", "--yes")),
    "unpublish": Sample(("csv-report@1.0", "--from", "./site", "--reason", "old", "--yes"), before=(published,)),
    "unpack": Sample(("packed.skill",), before=(packed,)),
    "find": Sample(("notes", "--index", "./elsewhere"), before=(another,)),
    "install": Sample(("./elsewhere/notes", "--project", "--yes"), before=(another,)),
    "install (list)": Sample(("./elsewhere/notes", "--list"), before=(another,)),
    "remove": Sample(("notes", "--yes"), before=(installed,)),
    "sync": Sample(("--yes",), before=(installed,)),
    "update": Sample(("--yes",), before=(edited,)),
    "outdated": Sample((), statuses=frozenset((1,)), before=(edited,)),
    "diff": Sample(("notes",), statuses=frozenset((1,)), before=(edited,)),
    "diff (lock)": Sample(("--lock", "before/prowess.lock"), statuses=frozenset((1,)), before=(updated,)),
    "verify": Sample((), before=(installed,)),
    "verify (recursive)": Sample(("--recursive",), before=(installed,)),
    "outdated (recursive)": Sample(("--recursive",), before=(installed,)),
    "sync (recursive)": Sample(("--locked", "--recursive"), before=(installed,)),
    "lock": Sample((), before=(installed,)),
    "lock (merge)": Sample(("--merge",), before=(conflicted,)),
    "link": Sample(("notes", "--agent", "claude-code", "--yes"), before=(installed,)),
    "unlink": Sample(("notes", "--agent", "claude-code", "--yes"), before=(linked,)),
    "adopt": Sample(("csv-report", "--yes")),
    "backups": Sample((), before=(kept,)),
    "cache": Sample(("--prune", "--yes"), before=(kept,)),
    "policy show": Sample((), before=(governed,)),
    "policy fetch": Sample((), before=(governed,)),
    "policy check": Sample((), statuses=frozenset((1,)), before=(installed, governed)),
    "review": Sample(("notes", "--yes"), before=(installed,)),
    "audit": Sample((), statuses=frozenset((1,)), before=(installed, governed)),
    "inventory": Sample(("--user",), before=(installed,)),
    "trust list": Sample((), before=(granted,)),
    "trust grant": Sample(("folder-report", "--yes")),
    "trust revoke": Sample(("folder-report",), before=(granted,)),
    "call": Sample(("load_skill", '{"name": "csv-report"}')),
    "call (no tool)": Sample(()),
    "run-script": Sample(("folder-report", "scripts/sizes.py", "nothing"), before=(granted,), sandbox=True),
    "run": Sample(("Is it clean?", "--model", "scripted:turns.json"), before=(scripted,), lines=True),
    "try": Sample(
        ("csv-report", "Is it clean?", "--model", "scripted:turns.json"), "run", before=(scripted,), lines=True
    ),
    "serve": Sample(("--check", str(SKILLS)), statuses=frozenset((0, 1))),
    "demo": Sample(()),
    "config": Sample(()),
    "completion": Sample(("bash",)),
}


def words_of(name: str, *more: str) -> list[str]:
    """Return the whole command line of a sample."""
    return [*name.partition(" (")[0].split(), *SAMPLES[name].words, *more]


def read_answers(name: str, printed: str) -> list[Any]:
    """Return what a sample printed as data: one answer, or one in each line where the command tells as it goes."""
    return [json.loads(text) for text in (printed.splitlines() if SAMPLES[name].lines else [printed])]


def prepare(name: str) -> None:
    """Do what a sample needs before."""
    for step in SAMPLES[name].before:
        step()
