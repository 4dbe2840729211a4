"""`python -m hushcast_brokers.tomography CONFIG`: what `hushcast run tomography` does."""

import sys

from hushcast_brokers.program import TOMOGRAPHY
from hushcast_runtime.processes.start import main

main(sys.argv, TOMOGRAPHY)
