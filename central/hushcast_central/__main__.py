"""`python -m hushcast_central server|proxy CONFIG`: what `hushcast central … run` does."""

import sys

from hushcast_central.process import run_proxy, run_server
from hushcast_central.settings import ProxySettings, ServerSettings
from hushcast_runtime.processes.process import main

if len(sys.argv) < 2 or sys.argv[1] not in ("server", "proxy"):
    sys.exit("say `server` or `proxy`, and give the path of a configuration")
if sys.argv[1] == "server":
    main(sys.argv[1:], ServerSettings, run_server)
else:
    main(sys.argv[1:], ProxySettings, run_proxy)
