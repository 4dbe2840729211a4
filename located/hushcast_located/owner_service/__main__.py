"""`python -m hushcast_located.owner_service CONFIG`: what `hushcast located own run` does."""

import sys

from hushcast_located.program import OWNER
from hushcast_runtime.processes.process import main

main(sys.argv, OWNER)
