"""`python -m hushcast_node CONFIG`: what `hushcast node run` does."""

import sys

from hushcast_node.process import run_node
from hushcast_node.settings import NodeSettings
from hushcast_runtime.processes.process import main

main(sys.argv, NodeSettings, run_node)
