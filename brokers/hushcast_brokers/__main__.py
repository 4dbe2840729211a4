"""`python -m hushcast_brokers CONFIG`: what `hushcast run broker` does."""

import sys

from hushcast_brokers.program import BROKER
from hushcast_runtime.processes.start import main

main(sys.argv, BROKER)
