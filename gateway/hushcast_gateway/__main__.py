"""`python -m hushcast_gateway CONFIG`: what `hushcast run gateway` does."""

import sys

from hushcast_gateway.program import GATEWAY
from hushcast_runtime.processes.start import main

main(sys.argv, GATEWAY)
