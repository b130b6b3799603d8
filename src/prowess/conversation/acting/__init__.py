"""What a skill may run: trust in its digest, commands in its instructions, and scripts in a sandbox."""
