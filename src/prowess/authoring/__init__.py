"""For those who write skills: begin one, check and fix it, test whether it is found, pack it."""
