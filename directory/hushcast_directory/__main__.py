"""`python -m hushcast_directory CONFIG`: what `hushcast directory run` does."""

import sys

from hushcast_directory.server.process import run_directory
from hushcast_directory.server.settings import DirectorySettings
from hushcast_runtime.processes.process import main

main(sys.argv, DirectorySettings, run_directory)
