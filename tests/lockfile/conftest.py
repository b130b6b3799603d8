"""The tests of this room write a skill in one line."""

from tests.skill_fixtures import put

__all__ = ["put"]
