"""Archives: zip and tar files are unpacked in memory, or refused as a whole."""
