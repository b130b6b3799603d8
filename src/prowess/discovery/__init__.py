"""Discovery: which folders are searched for skills, how they are walked, and how changes are noticed."""
