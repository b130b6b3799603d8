from __future__ import annotations

from deepagents.backends import FilesystemBackend
from deepagents.middleware import SkillsMiddleware


def discover(root: str) -> list[tuple[str, str]]:
    middleware = SkillsMiddleware(backend=FilesystemBackend(root_dir=root, virtual_mode=True), sources=["/"])
    found = middleware.before_agent({}, None, {})["skills_metadata"]
    return [(skill["name"], skill["description"]) for skill in found]
