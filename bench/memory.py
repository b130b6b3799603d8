"""The memory of this process: what it has now, and the most that it has had."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path


def resident_bytes() -> int:
    """Return the memory that the process has now; where the system does not tell, the most that it has had."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:  # no /proc
        return peak_bytes()
    return pages * os.sysconf("SC_PAGE_SIZE")


def peak_bytes() -> int:
    """Return the most memory that the process has had."""
    try:
        # Not what getrusage says: on Linux that counts the process which started this one too.
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:  # no /proc
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return int(re.findall(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)[0]) * 1024
