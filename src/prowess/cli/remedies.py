"""Remedies in the words of the command line, for codes whose hint in the library names a Python keyword."""

from __future__ import annotations

from prowess.errors import HINTS, SkillError, UnknownSkillError
from prowess.text.spelling import did_you_mean

REMEDIES: dict[str, str] = {
    "address-refused": "say --allow-private if that machine is meant",
    "already-installed": "update it with 'prowess update', or install it with --replace",
    "bad-reference": (
        "a source is ./PATH (a folder or an archive), owner/repo or an address; an installed skill is NAME or @org/NAME"
    ),
    "bad-scheme": "use https or ssh, say --allow-http for plain http, or name a local folder with ./ or /",
    "binary": "write its bytes to a file: --raw > FILE",
    "commands-not-run": "look at them with 'prowess show NAME', then 'prowess trust grant NAME'",
    "local-edits": "keep your changes elsewhere, or update with --force, which keeps a backup",
    "declared-no-more": "declare it again in prowess.toml, or remove it with 'prowess sync --remove'",
    "name-taken": "move it away or remove it; 'prowess install' can also take its place, with --replace",
    "missing-skill-md": (
        "a skill is a folder with a SKILL.md: check the path, or begin a skill with 'prowess new NAME'"
    ),
    "no-skills": "name a skill's folder (./NAME) or say --dir FOLDER; 'prowess list' shows where Prowess looked",
    "no-indexes": (
        "under [settings] in ~/.config/prowess/config.toml, or in prowess.toml, write "
        'indexes = ["https://skills.example.com", "owner/repo"]; or say --index ADDRESS'
    ),
    "too-many-indexes": "name fewer with --index, or in the setting indexes",
    "no-evals": "write queries into evals/triggers.json of the skill; see 'prowess new NAME --with evals'",
    "no-sandbox": "install bubblewrap, or Prowess with the extra 'sandbox', or say --sandbox none",
    "folder-too-large": "name a smaller folder with --folder, or leave Bash out of --tools",
    "not-found": "check the path; 'prowess show NAME' lists the files of a skill",
    "not-installed": "'prowess list' shows what is installed",
    "not-trusted": "look at it with 'prowess show NAME', then 'prowess trust grant NAME'",
    "plain-http": "use https, or say --allow-http if the network is trusted",
    "rolled-back": "ask whoever publishes it; if going back is meant, say 'prowess update --allow-rollback'",
    "would-replace": "choose another name or folder, or say --force to replace what exists",
    "unknown-version": "'git ls-remote ADDRESS' lists the versions that there are",
    "unknown-agent": "see 'prowess list --help' for the known agents, or docs/reference/agents.md for their folders",
}


def find_error_remedy(error: SkillError) -> str:
    """Return what to do about an error: similar names for an unknown skill, or the remedy of its code."""
    if not isinstance(error, UnknownSkillError):
        return find_remedy(error.code)
    # Without any skill, 'choose one of these' would be no help: then the remedy is how to get some.
    return did_you_mean(error.name, error.available) or find_remedy(error.code if error.available else "no-skills")


def find_remedy(code: str) -> str:
    """Return what to do about a code, in the words of the command line; ``""`` if nothing is known."""
    return REMEDIES.get(code) or HINTS.get(code, "")
