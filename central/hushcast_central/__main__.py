"""`python -m hushcast_central server|proxy CONFIG`: what `hushcast run` does."""

import sys

from hushcast_central.program import PROXY, SERVER
from hushcast_runtime.processes.start import main

if len(sys.argv) < 2 or sys.argv[1] not in ("server", "proxy"):
    sys.exit("say `server` or `proxy`, and give the path of a configuration")
main(sys.argv[1:], SERVER if sys.argv[1] == "server" else PROXY)
