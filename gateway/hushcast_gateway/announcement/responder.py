"""The responder: a process of its own that answers mDNS for a gateway, until that is gone.

Whoever is in the local network sends it what they like. So it has nothing of the gateway's: it reads one line
with announcements, says what came of them, and ends with its standard input, which the gateway holds open.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import IPv4Address
from typing import BinaryIO

import msgspec
from zeroconf import Error, IPVersion, ServiceInfo, Zeroconf

from hushcast_gateway.announcement.announcement import ANNOUNCED, Announcement

MAX_MEMORY = 512 * 1024 * 1024  # bytes of address space: what others announce is remembered; it takes 250 MiB
NICENESS = 10  # others of the local network may keep it busy, and the gateway goes first


def respond(announced: Sequence[Announcement], wait: BinaryIO, told: BinaryIO) -> None:
    """Answer for announcements of one address, and say so, until `wait` ends; then take them back.

    Raises `OSError` or zeroconf's `Error` where that cannot be.
    """
    responder = Zeroconf(interfaces=[announced[0].address], ip_version=IPVersion.V4Only)
    try:
        for one in announced:
            responder.register_service(
                ServiceInfo(
                    one.service_type,
                    f"{one.name}.{one.service_type}",
                    port=one.port,
                    addresses=[IPv4Address(one.address).packed],
                    server=f"{one.name}.local.",
                )
            )
        told.write(ANNOUNCED)
        told.flush()
        wait.read()
    finally:
        responder.close()  # says goodbye, so that nobody looks for it


def main() -> None:
    """Answer for what standard input says in its first line."""
    with suppress(PermissionError):  # a service may not
        os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    announced = msgspec.json.decode(sys.stdin.buffer.readline(), type=list[Announcement])
    try:
        respond(announced, sys.stdin.buffer, sys.stdout.buffer)
    except (OSError, Error) as error:  # of the first, what the system calls it: an address is not to be told
        why = error.strerror if isinstance(error, OSError) else None
        sys.stdout.buffer.write((why or type(error).__name__).encode())
        sys.exit(1)


if __name__ == "__main__":
    main()
