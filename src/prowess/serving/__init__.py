"""What every HTTP server of Prowess keeps: who may ask, how much, where it listens, and when connections end."""
