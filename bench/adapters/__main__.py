"""Measures one library in a fresh process; prints one JSON object.

The library first discovers ``SMALL``, a folder with one skill, so that what it imports on first use is not counted.
``digest`` says whether two libraries found the same.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import sys
import warnings

from bench.floor import clocked

if __name__ == "__main__":
    logging.disable()
    warnings.simplefilter("ignore")
    module, root, small = sys.argv[1:]
    discover = importlib.import_module(f"bench.adapters.{module}").discover
    discover(small)
    seconds, pairs = clocked(lambda: discover(root))
    same = repr(sorted((name, description.strip()) for name, description in pairs))
    digest = hashlib.sha256(same.encode()).hexdigest()
    print(json.dumps({"value": seconds, "count": len(pairs), "digest": digest}))
