"""`python -m hushcast_located.service CONFIG`: what `hushcast located provide` does."""

import sys

from hushcast_located.service.process import run_provider
from hushcast_located.service.settings import ProviderSettings
from hushcast_runtime.processes.process import main

main(sys.argv, ProviderSettings, run_provider)
