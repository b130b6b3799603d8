"""The format: what a SKILL.md says, whether that is right, and how skills are shown. Nothing here opens a file."""
