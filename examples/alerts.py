"""Alerts from a place: hears of what is reported in a box on the map, and of nothing else.

    hushcast topic new fires --attribute lat:-90..90:0.001 --attribute lon:-180..180:0.001 --output fires.link
    python examples/alerts.py fires.link 60 61 24 25

It tells, too, what may be missing: messages that others got and this daemon did not, messages that it removed
before we came, how much of the network reaches us, and a daemon that went away. Under asyncio.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import suppress

import hushcast


async def main(options: argparse.Namespace) -> None:
    """Print what happens, and what is said of the place."""
    box = f"lat in [{options.south}, {options.north}], lon in [{options.west}, {options.east}]"
    link = hushcast.read_link(options.link_file)
    async with (
        hushcast.connect(options.socket) as daemon,
        daemon.subscribe(link, where=box, coverage=True) as messages,
    ):
        async for event in messages.events():
            print(told(event), flush=True)


def told(event: hushcast.Event) -> str:
    """Return what an event says, in a line."""
    match event:
        case hushcast.Message():
            text = "".join(sign if sign.isprintable() else "?" for sign in event.text)
            return f"{event.attributes['lat']:.3f} {event.attributes['lon']:.3f}: {text}"
        case hushcast.Lost():
            count = "some" if event.count is None else event.count
            return f"-- {count} messages were removed before this program got them"
        case hushcast.Gap():
            return f"-- a message was missed that others got: {event.id}"
        case hushcast.Unopened():
            return f"-- a message came that does not open here: {event.id}"
        case hushcast.Withdrawn():
            return "-- what was said here was withdrawn"
        case hushcast.Coverage(share=None):
            return "-- nothing is known yet of how much of the network reaches us"
        case hushcast.Coverage():
            return f"-- {event.share:.0%} of the network reaches us, as {event.probes} probes say"
        case hushcast.Disconnected():
            return "-- the daemon went away; it is waited for"
        case hushcast.Reconnected():
            return "-- the daemon is back"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Hear of what is reported in a box on the map.")
    parser.add_argument("link_file", help="the topic's link, with the attributes lat and lon")
    for side in ("south", "north", "west", "east"):
        parser.add_argument(side, type=float, help="degrees")
    parser.add_argument("--socket", help="the daemon's; else HUSHCAST_SOCKET, or the usual places")
    with suppress(KeyboardInterrupt):
        try:
            asyncio.run(main(parser.parse_args()))
        except hushcast.HushcastError as error:
            sys.exit(f"alerts: {error}")
