"""`python -m hushcast_directory CONFIG`: what `hushcast directory run` does."""

import sys

from hushcast_directory.run import run_directory
from hushcast_directory.settings import DirectorySettings
from hushcast_runtime.process import main

main(sys.argv, DirectorySettings, run_directory)
