"""One module a kind of change: a function that reads a form, and has ``changes`` prepare what the form asks for."""
