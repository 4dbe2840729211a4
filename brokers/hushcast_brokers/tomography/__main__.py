"""`python -m hushcast_brokers.tomography CONFIG`: what `hushcast tomography run` does."""

import sys
from pathlib import Path

from hushcast_brokers.tomography.process import run_tomography
from hushcast_brokers.tomography.settings import TomographySettings
from hushcast_protocol.base.errors import HushcastError
from hushcast_runtime.processes.config import load_settings

if len(sys.argv) != 2:
    sys.exit("give the path of a configuration")
try:
    run_tomography(lambda: load_settings(Path(sys.argv[1]), TomographySettings))
except HushcastError as error:
    sys.exit(str(error))
