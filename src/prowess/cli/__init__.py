"""The command line: a thin layer that calls the library, prints the answer and ends with an exit status."""
