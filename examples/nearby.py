"""Messages near a place, from a provider that need not be trusted: what does not hold is told by name.

    python examples/nearby.py shops.offer 60.17 24.94 shoe discount --name shoes

The offer is the provider's (`hushcast located offer` prints it), the feed's owner signs. With `--name` the
subscription goes on where it was when the program is started again; without it ends with the program.
`--blur` tells the provider less of the place. Under asyncio.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import suppress
from pathlib import Path

import hushcast
import hushcast_located


async def main(options: argparse.Namespace) -> None:
    """Print what happens."""
    async with hushcast.connect(options.socket) as daemon, followed(daemon, options) as feed:
        async for event in feed:
            for line in told(event):
                print(line, flush=True)


def followed(daemon: hushcast.Daemon, options: argparse.Namespace) -> hushcast_located.Feed:
    """Return the feed that was kept by the name, or a new one."""
    with suppress(hushcast.UsageError):
        return hushcast_located.subscribe(daemon, name=options.name, folder=options.folder)
    return hushcast_located.subscribe(
        daemon,
        hushcast_located.read_offer_given(options.offer),
        at=(options.latitude, options.longitude),
        keywords=options.keywords,
        blur=options.blur,
        name=options.name,
        folder=options.folder,
    )


def told(event: hushcast_located.Event) -> list[str]:
    """Return what an event says, in lines."""
    match event:
        case hushcast_located.Interval():
            return [
                "".join(sign if sign.isprintable() else "?" for sign in one.text) for one in event.messages
            ]
        case hushcast_located.FeedTrouble():
            return [f"-- the provider's answer does not hold: {event.problem}, interval {event.first}"]
        case hushcast_located.RequestAccepted():
            return ["-- the provider has taken the subscription"]
        case hushcast_located.Unanswered():
            return [f"-- no provider has answered for {event.seconds:.0f} s"]
        case hushcast_located.WeightsChange():
            return [f"-- words weigh otherwise from interval {event.number} on"]
        case _:
            return [f"-- {type(event).__name__.lower()}"]


def plain(text: str) -> str:
    """Return a stranger's text without what could drive a terminal."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Hear of what is near and about some words.")
    parser.add_argument("offer", help="the provider's offer, or a file that holds it")
    parser.add_argument("latitude", type=float, help="degrees")
    parser.add_argument("longitude", type=float, help="degrees")
    parser.add_argument("keywords", nargs="+")
    parser.add_argument("--blur", type=float, metavar="KM", help="tell the provider a cell so wide")
    parser.add_argument("--name", default="", help="keep the subscription by this name")
    parser.add_argument("--folder", type=Path, help="where; else below XDG_STATE_HOME")
    parser.add_argument("--socket", help="the daemon's; else HUSHCAST_SOCKET, or the usual places")
    with suppress(KeyboardInterrupt):
        try:
            asyncio.run(main(parser.parse_args()))
        except hushcast.HushcastError as error:
            sys.exit(f"nearby: {error}")
