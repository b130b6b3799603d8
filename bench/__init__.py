"""Measurements: ``python -m bench`` (ours), ``bench.peers`` (beside other loaders), ``bench.corpus`` (real skills)."""
