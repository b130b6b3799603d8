"""How the command line shows things: blocks of text, as plain text or for a terminal."""
