"""One conversation: what is active, what it may use, what filters it."""
