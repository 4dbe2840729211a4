"""`python -m hushcast_gateway CONFIG`: what `hushcast gateway run` does."""

import sys

from hushcast_gateway.process import run_gateway
from hushcast_gateway.settings import GatewaySettings
from hushcast_runtime.processes.process import main

main(sys.argv, GatewaySettings, run_gateway)
