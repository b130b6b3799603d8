"""Installing: skills are planned, fetched, staged, moved into place, locked and verified, all or nothing."""
