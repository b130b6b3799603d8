from __future__ import annotations

from agents.sandbox.capabilities.skills import LocalDirLazySkillSource
from agents.sandbox.entries import LocalDir
from agents.sandbox.workspace_paths import SandboxPathGrant


def discover(root: str) -> list[tuple[str, str]]:
    source = LocalDirLazySkillSource(source=LocalDir(src=root))
    grants = (SandboxPathGrant(path=root, read_only=True),)
    found = source.list_skill_metadata(skills_path=".agents", source_grants=grants)
    return [(skill.name, skill.description) for skill in found]
