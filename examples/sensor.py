"""A sensor: publishes readings with attributes, and loses none of those that it could hand to its daemon.

    hushcast topic new garden --private --attribute place --attribute celsius:-40..60:0.1 --output garden.link
    python examples/sensor.py garden.link --place greenhouse --every 60

A daemon that is away is waited for, at the start as well. A network that is away is the daemon's to wait for:
`enqueue` returns when the reading is on its disk. A plain script, which does one thing at a time.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from contextlib import suppress

import hushcast


def read_celsius() -> float:
    """Read the thermometer: put yours here."""
    return random.gauss(20, 2)


def main(options: argparse.Namespace) -> None:
    """Publish a reading now and then."""
    link = hushcast.read_link(options.link_file)
    with hushcast.connect_sync(options.socket, wait=True, timeout=None) as daemon:
        taken = 0
        while not options.count or taken < options.count:
            celsius = read_celsius()
            taken += 1
            try:
                published = daemon.enqueue(
                    link,
                    json.dumps({"at": round(time.time()), "celsius": round(celsius, 1)}),
                    # Subscribers may ask for `celsius in [30, ]`, and hear of nothing else.
                    attributes={"place": options.place, "celsius": celsius},
                )
                print(f"{celsius:.1f} °C is {published.id}", flush=True)
            except hushcast.Refusal as error:  # the outbox is full: the network is away for too long
                print(f"one reading is lost: {error}", file=sys.stderr)
            time.sleep(options.every)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Publish readings of a thermometer.")
    parser.add_argument("link_file", help="the topic's link, with the attributes place and celsius")
    parser.add_argument("--place", default="here")
    parser.add_argument("--every", type=float, default=60, help="seconds between two readings")
    parser.add_argument("--count", type=int, default=0, help="end after so many; 0: never")
    parser.add_argument("--socket", help="the daemon's; else HUSHCAST_SOCKET, or the usual places")
    with suppress(KeyboardInterrupt):
        try:
            main(parser.parse_args())
        except hushcast.HushcastError as error:
            sys.exit(f"sensor: {error}")
