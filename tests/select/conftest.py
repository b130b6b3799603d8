"""What the tests of selectors and budgets share: skills without files, made in a line."""

from collections.abc import Callable

import pytest

import prowess

Made = Callable[..., prowess.Skill]


@pytest.fixture
def made() -> Made:
    """A skill that is text only."""

    def make(
        name: str, description: str = "Does it.", *, tags: tuple[str, ...] = (), metadata_tags: str | None = None
    ) -> prowess.Skill:
        metadata = {} if metadata_tags is None else {"tags": metadata_tags}
        front = prowess.Frontmatter(name=name, description=description, tags=tags, metadata=metadata)
        return prowess.Skill(front, body="Do it.")

    return make
