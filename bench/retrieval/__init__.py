"""Whether search finds the right skill, what it costs, and what a selection shows: ``python -m bench.retrieval``."""
