"""The command line, for a shell that starts the package itself; equal to the installed program ``prowess``.

With ``-m`` Python puts the working folder first on the import path, and imports this package from there before this
module runs. So a configuration that is started in other people's folders should name the installed program. Nothing
that is imported from here on comes from the working folder.
"""

import os
import sys


def _drop_working_folder() -> None:
    """Remove the entry that ``-m`` adds to the import path; an entry of PYTHONPATH comes later, and stays."""
    try:
        here = os.getcwd()  # noqa: PTH109 - pathlib would be looked for in the working folder
    except OSError:  # the folder is gone: Python has added an empty entry
        here = ""
    if not sys.flags.safe_path and sys.path[:1] in ([here], [""]):
        del sys.path[0]


if __name__ == "__main__":
    _drop_working_folder()
    # Imported late: everything that this imports must be searched without the working folder.
    from prowess.cli.entry_point import run

    run()
