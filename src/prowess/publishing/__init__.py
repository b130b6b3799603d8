"""Publishing skills: versions that never change, in folders, object stores and OCI registries."""
