"""The command line: a thin layer that asks the library, prints the answer and ends with a status."""
