"""Print the size of each file named on the command line."""

import os
import sys

for name in sys.argv[1:]:
    size = os.path.getsize(name) if os.path.isfile(name) else 0
    print(f"{size:>10,} {name}")
