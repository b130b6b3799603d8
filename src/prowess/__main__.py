"""The package as a program, for a shell: the same command line as the installed program ``prowess``.

With ``-m`` Python puts the working folder first on the import path, and has imported this package, and what that needs,
from there before this module runs. So a configuration that is started in folders of other people names the installed
program; what is imported from here on does not come from the working folder in either case.
"""

import os
import sys


def _drop_working_folder() -> None:
    """Take the entry that ``-m`` adds off the import path; one that PYTHONPATH asked for stays, as it comes later."""
    try:
        here = os.getcwd()  # noqa: PTH109 - pathlib would be looked for in the working folder
    except OSError:  # the folder is gone: Python has added an empty entry
        here = ""
    if not sys.flags.safe_path and sys.path[:1] in ([here], [""]):
        del sys.path[0]


if __name__ == "__main__":
    _drop_working_folder()
    # Imported late: whatever this imports has to be looked for without the working folder.
    from prowess.cli.main import run

    run()
