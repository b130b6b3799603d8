"""The known agents, the folders in which they look for skills, in which order, and which agents are used here.

The table has one row for each agent: its id, its name for people, its folder in a project, its folders in the home
folder (``~/.config`` stands for the configuration folder), and the variable that moves its own folder, if it has one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import SourceError
from prowess.files.projects import NATIVE_PROJECT, config_home, project_folders
from prowess.skills.explanation import Place, SkillScope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


_MAX_SUGGESTIONS, _MAX_NAME_SHOWN = 3, 80
_MIN_MATCH_LENGTH = 3  # One or two letters are part of too many ids to suggest them.
_SHARED = ".agents/skills"
_SHARED_AT_HOME = frozenset(("~/.agents/skills", "~/.config/agents/skills"))


class Agent(NamedTuple):
    """An agent and where it looks for skills; paths have ``/`` between folders, ``~`` is the home folder."""

    id: str
    title: str
    project: str
    user: tuple[str, ...] = ()
    variable: str = ""
    own: str = ""
    """The folder that ``variable`` replaces."""

    def find_marks(self, root: str, home: str, env: Mapping[str, str]) -> Iterator[str]:
        """Yield the folders that show that this agent, or one of its family, is used: its folders for skills are there.

        Folders that many agents share show nothing, and neither do plain names in a project such as ``data``.
        """
        if root and self.project.startswith(".") and self.project != _SHARED:
            yield os.path.join(root, os.path.dirname(self.project))
        for path in self.user:
            if path not in _SHARED_AT_HOME:
                yield os.path.dirname(os.path.join(*_resolve_folder(self, path, home, env)))

    def user_folders(self, home: str, env: Mapping[str, str]) -> Iterator[str]:
        """Yield the folders that the agent searches for skills of this user."""
        for path in self.user:
            yield os.path.join(*_resolve_folder(self, path, home, env))


def _resolve_folder(agent: Agent, path: str, home: str, env: Mapping[str, str]) -> tuple[str, str]:
    """Return the folder that ``path`` begins with, moved where a variable says so, and the rest of the path."""
    for prefix, variable in ((f"~/{agent.own}/", agent.variable), ("~/.config/", "XDG_CONFIG_HOME")):
        moved = env.get(variable, "") if variable else ""
        # A relative folder would depend on where the program was started; XDG demands that such a value is ignored.
        if os.path.isabs(moved) and path.startswith(prefix):
            return moved, path.removeprefix(prefix)
    return home, path.removeprefix("~/")


_ROWS = (
    Agent("aider-desk", "AiderDesk", ".aider-desk/skills", ("~/.aider-desk/skills",)),
    Agent("amp", "Amp", ".agents/skills", ("~/.config/agents/skills",)),
    Agent("antigravity", "Antigravity", ".agents/skills", ("~/.gemini/antigravity/skills",)),
    Agent("antigravity-cli", "Antigravity CLI", ".agents/skills", ("~/.gemini/antigravity-cli/skills",)),
    Agent("astrbot", "AstrBot", "data/skills", ("~/.astrbot/data/skills",)),
    Agent(
        "autohand-code", "Autohand Code CLI", ".autohand/skills", ("~/.autohand/skills",), "AUTOHAND_HOME", ".autohand"
    ),
    Agent("augment", "Augment", ".augment/skills", ("~/.augment/skills",)),
    Agent("bob", "IBM Bob", ".bob/skills", ("~/.bob/skills",)),
    Agent("claude-code", "Claude Code", ".claude/skills", ("~/.claude/skills",), "CLAUDE_CONFIG_DIR", ".claude"),
    Agent("openclaw", "OpenClaw", "skills", ("~/.openclaw/skills",)),
    Agent("cline", "Cline", ".agents/skills", ("~/.agents/skills",)),
    Agent("codearts-agent", "CodeArts Agent", ".codeartsdoer/skills", ("~/.codeartsdoer/skills",)),
    Agent("codebuddy", "CodeBuddy", ".codebuddy/skills", ("~/.codebuddy/skills",)),
    Agent("codemaker", "Codemaker", ".codemaker/skills", ("~/.codemaker/skills",)),
    Agent("codestudio", "Code Studio", ".codestudio/skills", ("~/.codestudio/skills",)),
    Agent("codex", "Codex", ".agents/skills", ("~/.agents/skills", "~/.codex/skills"), "CODEX_HOME", ".codex"),
    Agent("command-code", "Command Code", ".commandcode/skills", ("~/.commandcode/skills",)),
    Agent("continue", "Continue", ".continue/skills", ("~/.continue/skills",)),
    Agent("cortex", "Cortex Code", ".cortex/skills", ("~/.snowflake/cortex/skills",)),
    Agent("crush", "Crush", ".crush/skills", ("~/.config/crush/skills",)),
    Agent("cursor", "Cursor", ".agents/skills", ("~/.cursor/skills",)),
    Agent("deepagents", "Deep Agents", ".agents/skills", ("~/.deepagents/agent/skills",)),
    Agent("devin", "Devin for Terminal", ".devin/skills", ("~/.config/devin/skills",)),
    Agent("dexto", "Dexto", ".agents/skills", ("~/.agents/skills",)),
    Agent("droid", "Droid", ".agents/skills", ("~/.factory/skills",)),
    Agent("eve", "Eve", "agent/skills", ()),
    Agent("firebender", "Firebender", ".agents/skills", ("~/.firebender/skills",)),
    Agent("forgecode", "ForgeCode", ".forge/skills", ("~/.forge/skills",)),
    Agent("fx", "fx", ".agents/skills", ("~/.agents/skills",)),
    Agent("gemini-cli", "Gemini CLI", ".agents/skills", ("~/.gemini/skills",)),
    Agent("github-copilot", "GitHub Copilot", ".agents/skills", ("~/.copilot/skills",)),
    Agent("goose", "Goose", ".goose/skills", ("~/.config/goose/skills",)),
    Agent("grok", "Grok Build", ".grok/skills", ("~/.grok/skills",), "GROK_HOME", ".grok"),
    Agent("hermes-agent", "Hermes Agent", ".hermes/skills", ("~/.hermes/skills",), "HERMES_HOME", ".hermes"),
    Agent("inference-sh", "inference.sh", ".inferencesh/skills", ("~/.inferencesh/skills",)),
    Agent("jazz", "Jazz", ".jazz/skills", ("~/.jazz/skills",)),
    Agent("junie", "Junie", ".junie/skills", ("~/.junie/skills",)),
    Agent("iflow-cli", "iFlow CLI", ".iflow/skills", ("~/.iflow/skills",)),
    Agent("kilo", "Kilo Code", ".agents/skills", ("~/.kilo/skills",)),
    Agent("kimchi", "Kimchi", ".kimchi/skills", ("~/.config/kimchi/harness/skills",)),
    Agent("kimi-code-cli", "Kimi Code CLI", ".agents/skills", ("~/.agents/skills",)),
    Agent("kiro-cli", "Kiro CLI", ".kiro/skills", ("~/.kiro/skills",)),
    Agent("kode", "Kode", ".kode/skills", ("~/.kode/skills",)),
    Agent("lingma", "Lingma", ".lingma/skills", ("~/.lingma/skills",)),
    Agent("loaf", "Loaf", ".agents/skills", ("~/.agents/skills",)),
    Agent("mcpjam", "MCPJam", ".mcpjam/skills", ("~/.mcpjam/skills",)),
    Agent("minimax-code", "MiniMax Code", ".minimax/skills", ("~/.minimax/skills",)),
    Agent("mistral-vibe", "Mistral Vibe", ".vibe/skills", ("~/.vibe/skills",), "VIBE_HOME", ".vibe"),
    Agent("moxby", "Moxby", ".moxby/skills", ("~/.moxby/skills",)),
    Agent("mux", "Mux", ".mux/skills", ("~/.mux/skills",)),
    Agent("opencode", "OpenCode", ".agents/skills", ("~/.config/opencode/skills",)),
    Agent("openhands", "OpenHands", ".openhands/skills", ("~/.openhands/skills",)),
    Agent("ona", "Ona", ".ona/skills", ("~/.ona/skills",)),
    Agent("pi", "Pi", ".agents/skills", ("~/.agents/skills",)),
    Agent("posit-assistant", "Posit Assistant", ".posit/assistant/skills", ("~/.posit/assistant/skills",)),
    Agent("qoder", "Qoder", ".qoder/skills", ("~/.qoder/skills",)),
    Agent("qoder-cn", "Qoder CN", ".qoder/skills", ("~/.qoder-cn/skills",)),
    Agent("qwen-code", "Qwen Code", ".qwen/skills", ("~/.qwen/skills",)),
    Agent("replit", "Replit", ".agents/skills", ("~/.config/agents/skills",)),
    Agent("reasonix", "Reasonix", ".reasonix/skills", ("~/.reasonix/skills",)),
    Agent("rovodev", "Rovo Dev", ".rovodev/skills", ("~/.rovodev/skills",)),
    Agent("roo", "Roo Code", ".roo/skills", ("~/.roo/skills",)),
    Agent("sarvam-code", "Sarvam Code", ".agents/skills", ("~/.agents/skills",)),
    Agent("tabnine-cli", "Tabnine CLI", ".tabnine/agent/skills", ("~/.tabnine/agent/skills",)),
    Agent("terramind", "Terramind", ".terramind/skills", ("~/.terramind/skills",)),
    Agent("tinycloud", "Tinycloud", ".tinycloud/skills", ("~/.tinycloud/skills",)),
    Agent("trae", "Trae", ".trae/skills", ("~/.trae/skills",)),
    Agent("trae-cn", "Trae CN", ".trae/skills", ("~/.trae-cn/skills",)),
    Agent("warp", "Warp", ".agents/skills", ("~/.agents/skills",)),
    Agent("windsurf", "Windsurf", ".windsurf/skills", ("~/.codeium/windsurf/skills",)),
    Agent("zed", "Zed", ".agents/skills", ("~/.agents/skills",)),
    Agent("zcode", "ZCode", ".zcode/skills", ("~/.zcode/skills",)),
    Agent("zencoder", "Zencoder", ".zencoder/skills", ("~/.zencoder/skills",)),
    Agent("zenflow", "Zenflow", ".zencoder/skills", ("~/.zencoder/skills",)),
    Agent("neovate", "Neovate", ".neovate/skills", ("~/.neovate/skills",)),
    Agent("pochi", "Pochi", ".pochi/skills", ("~/.pochi/skills",)),
    Agent("promptscript", "PromptScript", ".agents/skills", ()),
    Agent("adal", "AdaL", ".adal/skills", ("~/.adal/skills",)),
    Agent("universal", "Universal", ".agents/skills", ("~/.config/agents/skills",)),
)


def get_agent(name: str) -> Agent:
    """Return the agent of that id; raise ``SourceError``, which names those that may be meant, when there is none."""
    agent = AGENTS.get(name)
    if agent is None:
        close = _suggest_ids(name.strip().lower())
        meant = f"; did you mean {' or '.join(close)}?" if close else ""
        raise SourceError(f"unknown agent {name[:_MAX_NAME_SHOWN]!r}{meant}", code="unknown-agent")
    return agent


def find_agents(root: str, home: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sorted ids of the agents that have a folder of their own in a project or in a home folder.

    ``root`` is the project's folder, ``""`` for none; ``env`` has the variables that move an agent's folder.
    """
    return tuple(sorted(agent.id for agent in _ROWS if any(map(os.path.isdir, agent.find_marks(root, home, env)))))


def _suggest_ids(name: str) -> list[str]:
    """Return the ids whose title is the name, that contain it, or that are spelled like it, the nearest first."""
    from difflib import get_close_matches

    by_title = [agent.id for agent in _ROWS if agent.title.lower() == name]
    containing = [agent.id for agent in _ROWS if len(name) >= _MIN_MATCH_LENGTH and name in agent.id]
    return [
        *dict.fromkeys([*by_title, *containing, *get_close_matches(name[:_MAX_NAME_SHOWN], AGENTS, n=_MAX_SUGGESTIONS)])
    ][:_MAX_SUGGESTIONS]


AGENTS: dict[str, Agent] = {agent.id: agent for agent in _ROWS}
"""Every known agent by its id."""


BASE_NAME = os.path.join("prowess", "skills")
"""How the path of every install base in the standard places ends."""
SHARED_SKILLS = ".agents/skills"
CLAUDE_SKILLS = ".claude/skills"
_GITHUB_SKILLS = ".github/skills"
"""Where GitHub Copilot and VS Code look in a project, besides the two above."""


def standard_places(
    cwd: str,
    home: str,
    *,
    agents: Iterable[str] = (),
    project: bool = True,
    user: bool = True,
    env: Mapping[str, str] | None = None,
) -> tuple[Place, ...]:
    """Return every folder where skills may be, the one that wins first.

    ``project`` and ``user`` say whose folders count, ``agents`` whose besides; ``env`` has the variables that move an
    agent's folders.
    """
    chosen = [get_agent(name) for name in agents]
    env = env or {}
    places: dict[str, Place] = {}
    if project:
        for folder in project_folders(cwd, home):
            standard = NATIVE_PROJECT, SHARED_SKILLS, CLAUDE_SKILLS, _GITHUB_SKILLS
            for name in (*standard, *(agent.project for agent in chosen)):
                _add_place(places, os.path.join(folder, name), SkillScope.PROJECT)
    if user:
        for path in user_folders(home, env):
            _add_place(places, path, SkillScope.USER)
        for agent in chosen:
            for path in agent.user_folders(home, env):
                _add_place(places, path, SkillScope.USER)
    return tuple(places.values())


def _add_place(places: dict[str, Place], path: str, scope: SkillScope) -> None:
    path = os.path.normpath(path)
    # The first wins: a folder that several agents share keeps the rank of the first of them.
    places.setdefault(path, Place(path, scope))


def user_folders(home: str, env: Mapping[str, str]) -> Iterator[str]:
    """Yield the user's own folders."""
    yield os.path.join(config_home(home, env), "prowess", "skills")
    yield os.path.join(home, os.path.normpath(SHARED_SKILLS))
    yield os.path.join(env.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude"), "skills")


def lock_file_of(place: str) -> str:
    """Return the path of the lock file that records what is installed in a place; ``""`` for no install base."""
    if not place.endswith(BASE_NAME):
        return ""
    above = place.removesuffix(os.sep + NATIVE_PROJECT.replace("/", os.sep))
    return os.path.join(above if above != place else os.path.dirname(place), "prowess.lock")


def install_bases(home: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folders into which installers put skills, and to which they link from other folders."""
    shared = os.path.join(home, os.path.normpath(SHARED_SKILLS))
    return (os.path.join(config_home(home, env), "prowess", "skills"), shared)
