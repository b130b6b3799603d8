"""The lock file: what is installed, file by file, and whether the disk still agrees with it."""
