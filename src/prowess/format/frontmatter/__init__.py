"""The frontmatter of a SKILL.md: where it is in the bytes, how its YAML is read, and which fields it gives."""
