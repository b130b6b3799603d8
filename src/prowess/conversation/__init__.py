"""One conversation over a catalogue: which skills it sees, which are active, what they may use and run."""
