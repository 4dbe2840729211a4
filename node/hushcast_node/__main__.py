"""`python -m hushcast_node CONFIG`: what `hushcast run node` does."""

import sys

from hushcast_node.program import NODE
from hushcast_runtime.processes.start import main

main(sys.argv, NODE)
