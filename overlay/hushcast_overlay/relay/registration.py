"""Registration: a relay keeps a valid descriptor with the directory."""

from __future__ import annotations

from collections.abc import Callable

import trio

from hushcast_directory.client.roster_source import RosterSource
from hushcast_overlay.relay.identity import Identity
from hushcast_overlay.relay.name_work import RelayNameWork
from hushcast_protocol.authorities.name_work import NameWork
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.roster import Descriptor, Network, sign_descriptor
from hushcast_protocol.base.versions import wires
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import Listener, TransportError

VALIDITY = 3  # epochs that a descriptor holds: a relay away for two is still listed and keeps its seats
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between attempts


class Registration:
    """How a relay stands with the directory."""

    def __init__(self) -> None:
        self.working: RelayNameWork | None = None
        """Looks for the work that is shown."""
        self.done = False
        """Whether the directory has taken a descriptor since this daemon started."""
        self.problem: str | None = None
        """Why it did not take the last one: its own words, or what became of the connection."""


async def register(
    identity: Identity,
    listener: Listener,
    network: Network,
    source: RosterSource,
    env: Environment,
    registration: Registration,
    difficulty: Callable[[], int],
) -> None:
    """Hand in a fresh descriptor, trying until the directory takes it.

    `difficulty` is asked once. Where work is asked for it is found first.
    """
    # A descriptor holds for three epochs: where these are short, a minute would be too late.
    backoff = Backoff(FIRST_PAUSE, min(LONGEST_PAUSE, network.epoch_seconds / 6), env.randomness)
    bits: int | None = None
    while True:
        work = await _work(registration)
        bits = difficulty() if bits is None else bits
        now = int(env.now())
        descriptor = Descriptor(
            network.id,
            identity.seed.public(),
            listener.address,
            identity.parcel_key.public(),
            now,
            now + VALIDITY * network.epoch_seconds,
            bits,
            wires.spoken(),
        )
        try:
            await listener.published()
            await source.register(sign_descriptor(identity.seed, descriptor), work)
        except (TransportError, PeerError, Refusal) as error:
            registration.problem = str(error)
            pause = backoff.next()
            log.warning("not registered", reason=str(error), again_in=round(pause))
            await trio.sleep(pause)
            continue
        registration.done, registration.problem = True, None
        return


async def _work(registration: Registration) -> NameWork | None:
    """Return the work to show, once there is some that is worth what the authorities ask for."""
    if (working := registration.working) is None:
        return None
    if working.lacks():
        registration.problem = "the directories ask newcomers for work, which is being looked for"
        await working.done()
    return working.work
