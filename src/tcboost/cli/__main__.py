"""`python -m tcboost.cli` is the command `tcboost`."""

import sys

from . import main

sys.exit(main())
