"""Fetching: guarded HTTP requests, git repositories and archives, each within its limits."""
