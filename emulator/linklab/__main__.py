"""`python -m linklab`."""

import sys

from linklab.commands.cli import main

sys.exit(main())
