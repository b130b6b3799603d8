"""The frontmatter of a SKILL.md: where it lies in the bytes, how its YAML is read, and which fields it gives."""
