"""The part of the packages' metadata that depends on where the project is published.

The address of the repository stands in one place: ``repository`` under ``[tool.hatch.metadata.hooks.custom]`` in
``pyproject.toml``. It is empty until somebody publishes the project. The build makes two things from it: the URLs of
the packages, and a README whose links work on a package index.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE_LINK = re.compile(r"(?P<picture>!?)\[(?P<label>[^\]]*)\]\((?!https?:|#)(?P<path>[^)\s]+)\)")


class PublishedMetadata(MetadataHookInterface):
    """Fills in ``readme`` and ``urls``, which ``pyproject.toml`` declares as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README and, where the address of the repository is known, the URLs."""
        repository = str(self.config.get("repository", "")).rstrip("/")
        release = f"v{metadata['version']}"
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": rewrite_links(text, repository, release),
        }
        metadata["urls"] = project_urls(repository, release)


def project_urls(repository: str, release: str) -> dict[str, str]:
    """Return the URLs of a release by their well-known labels, or no URL where ``repository`` is empty."""
    if not repository:
        return {}
    return {
        "Homepage": repository,
        "Documentation": f"{repository}/tree/{release}/docs",
        "Source": f"{repository}/tree/{release}",
        "Changelog": f"{repository}/blob/{release}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


def rewrite_links(text: str, repository: str, release: str) -> str:
    """Return a page whose links to files of the repository work on any other site.

    A link leads to the file in the repository, as it was at that release. Where ``repository`` is empty, a link
    becomes its label and a picture is left out.
    """

    def rewrite(link: re.Match[str]) -> str:
        if not repository:
            return "" if link["picture"] else link["label"]
        view = "raw" if link["picture"] else "blob"
        return f"{link['picture']}[{link['label']}]({repository}/{view}/{release}/{link['path']})"

    return _RELATIVE_LINK.sub(rewrite, text)
