"""`python -m hushcast_directory CONFIG`: what `hushcast run directory` does."""

import sys

from hushcast_directory.program import DIRECTORY
from hushcast_runtime.processes.start import main

main(sys.argv, DIRECTORY)
