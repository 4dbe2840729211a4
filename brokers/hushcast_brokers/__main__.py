"""`python -m hushcast_brokers CONFIG`: what `hushcast broker run` does."""

import sys
from pathlib import Path

from hushcast_brokers.broker.process import run_broker
from hushcast_brokers.broker.settings import load_broker
from hushcast_protocol.base.errors import HushcastError

if len(sys.argv) != 2:
    sys.exit("give the path of a configuration")
try:
    run_broker(lambda: load_broker(Path(sys.argv[1])))
except HushcastError as error:
    sys.exit(str(error))
