"""What is installed in each scope, and whether the disk agrees with the lock file. Nothing here changes the disk."""
