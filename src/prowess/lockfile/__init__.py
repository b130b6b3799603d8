"""The lock file: what it records of each install, and how it is parsed, merged and written."""
