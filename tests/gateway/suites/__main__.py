"""Public conformance suites against an MQTT server: a table, and exit code 1 if anything failed.

python tests/gateway/suites --paho DIR --mosquitto DIR --port 18830

DIR are checkouts of github.com/eclipse/paho.mqtt.testing and github.com/eclipse/mosquitto; nothing of them
is part of this repository. The server is to forget everything between two runs, and to refuse subscriptions
to `test/nosubscribe`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import interoperability  # noqa: E402
import sequences  # noqa: E402
from outcomes import Outcome  # noqa: E402


def main() -> int:
    """Run the suites asked for; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python tests/gateway/suites", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--paho", type=Path, metavar="DIR", help="a checkout of eclipse/paho.mqtt.testing")
    parser.add_argument("--mosquitto", type=Path, metavar="DIR", help="a checkout of eclipse/mosquitto")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=18830)
    parser.add_argument("--only", default="", metavar="TEXT", help="tests whose names hold this")
    parser.add_argument("--limit", type=float, default=90, metavar="SECONDS", help="for each of paho's tests")
    parser.add_argument(
        "--under", default="", metavar="TOPIC", help="paho's topics begin with this: hush/ALIAS/"
    )
    options = parser.parse_args()
    if not options.paho and not options.mosquitto:
        parser.error("name a checkout: --paho DIR, --mosquitto DIR, or both")
    server = options.host, options.port
    failed = 0
    if options.mosquitto:
        data = options.mosquitto / "test" / "broker" / "data"
        failed += tell("mosquitto's sequences", sequences.run(data, server, options.only))
    if options.paho:
        for version in interoperability.MODULES:
            outcomes = interoperability.run(
                options.paho, version, server, options.only, options.limit, options.under
            )
            failed += tell(f"paho's tests of {version}", outcomes)
    return 1 if failed else 0


def tell(suite: str, outcomes: Iterable[Outcome]) -> int:
    """Print what failed as it comes, then the figures; return how many failed."""
    began = time.monotonic()
    passed = failed = left_out = 0
    for one in outcomes:
        if one.left_out:
            left_out += 1
        elif one.failure is None:
            passed += 1
        else:
            failed += 1
            print(f"FAILED {one.name}: {one.failure}", flush=True)
        if one.note:
            print(f"note   {one.name}: {one.note}", flush=True)
    print(
        f"{suite}: {passed} of {passed + failed} passed in {time.monotonic() - began:.0f} s"
        + (f", {left_out} left out" if left_out else ""),
        flush=True,
    )
    return failed if passed else max(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
