"""The changes that people make, for the command line and the console: each is prepared, shown, and carried out."""
