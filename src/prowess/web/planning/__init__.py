"""One module a kind of change: a function that finds out what would be done, and returns it as a ``PreparedChange``."""
