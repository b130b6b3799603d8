"""The tests of this room have a skill in one line, a site on loopback, and git's own servers."""

from tests.source_fixtures import Load, cache, load, put, servers

__all__ = ["Load", "cache", "load", "put", "servers"]
