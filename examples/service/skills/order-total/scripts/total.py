"""Print the sum of the prices on the command line."""

import sys
from decimal import Decimal

print(sum(map(Decimal, sys.argv[1:])))
