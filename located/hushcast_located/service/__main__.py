"""`python -m hushcast_located.service CONFIG`: what `hushcast run located-provider` does."""

import sys

from hushcast_located.program import PROVIDER
from hushcast_runtime.processes.start import main

main(sys.argv, PROVIDER)
