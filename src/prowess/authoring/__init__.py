"""For those who write skills: begin one, check and mend it, test whether it is found, pack it."""
