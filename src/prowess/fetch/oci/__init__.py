"""OCI registries: a skill is pulled from one, and pushed to one."""
