"""`python -m hushcast_located.owner_service CONFIG`: what `hushcast run located-owner` does."""

import sys

from hushcast_located.program import OWNER
from hushcast_runtime.processes.start import main

main(sys.argv, OWNER)
