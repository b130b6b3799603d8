"""What the command line costs beside what it must do: ``python -m bench.startup WHAT ROOT`` prints one JSON object.

The CPU time of one process: Python alone, click and the same scan without a command line, the command in a pipe, and
the command on a terminal; of the demonstration, which is mostly other processes, the time by the clock.
"""

from __future__ import annotations

import json
import os
import pty
import resource
import subprocess
import sys
import threading
import time

SCAN = "import sys, click, prowess; prowess.scan(sys.argv[1])"
COMMANDS: dict[str, list[str]] = {
    "python": ["-c", "pass"],
    "version": ["-m", "prowess", "--version"],
    "click_and_scan": ["-c", SCAN],
    "list": ["-m", "prowess", "list"],
    "list_terminal": ["-m", "prowess", "list"],
    "demo": ["-m", "prowess", "demo"],
}
ROOTED = frozenset(("click_and_scan", "list", "list_terminal"))


def main(what: str, root: str) -> None:
    words = [sys.executable, *COMMANDS[what], *([root] if what in ROOTED else [])]
    begin = time.monotonic()
    if what.endswith("terminal"):
        _on_terminal(words)
    else:
        subprocess.run(words, check=True, stdout=subprocess.PIPE)
    taken = time.monotonic() - begin
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"value": taken if what == "demo" else used.ru_utime + used.ru_stime, "count": 1}))


def _on_terminal(words: list[str]) -> None:
    master, slave = pty.openpty()
    reader = threading.Thread(target=_drain, args=(master,), daemon=True)
    reader.start()
    subprocess.run(words, check=True, stdout=slave, env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"})
    os.close(slave)
    reader.join(10)


def _drain(master: int) -> None:
    try:
        while os.read(master, 65536):
            pass
    except OSError:  # the other end is closed
        return


if __name__ == "__main__":
    main(*sys.argv[1:])
