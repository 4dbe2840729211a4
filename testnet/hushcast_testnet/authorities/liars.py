"""`python -m hushcast_testnet.authorities.liars CONFIG…`: directories of a testnet that lie.

Each takes the key, the address and the transport of a directory that was stopped; one adversary moves all of
them, each epoch by another combination of faults, until a signal comes. They list whom the last head did, and
a relay that nobody reached.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random

import trio

from hushcast_directory.server.process import KEY_FILES
from hushcast_directory.server.settings import DirectorySettings
from hushcast_protocol.authorities.listing import ListedRelay
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import HushcastError, UsageError
from hushcast_runtime.environment import system_environment
from hushcast_runtime.files import load_seed
from hushcast_runtime.processes.config import load_settings
from hushcast_runtime.processes.process import open_transport
from hushcast_runtime.storage.state_lock import locked
from hushcast_testnet.authorities.adversary import PHANTOM, AuthorityFault
from hushcast_testnet.authorities.live_world import LiveWorld


async def lie(configurations: Sequence[DirectorySettings], random: Random) -> None:
    """Lie as all of these directories until cancelled; they are of one network and one set."""
    env = system_environment()
    states = [Path(settings.state) for settings in configurations]
    keys = [tuple(load_seed(state / name, env.randomness) for name in KEY_FILES) for state in states]
    # As `LiveWorld.faulty`, which is in the order that the seeds are given.
    signing: list[Seed] = [seed for seed, _ in keys]
    settings = configurations[0]
    sitting = settings.sitting(signing[0].public())
    if sitting is None:
        raise UsageError("this directory is alone: its configuration has no authorities to lie to")
    world = LiveWorld(settings.network.network(), sitting.authorities, signing, env, random)

    def reached(epoch: int) -> tuple[ListedRelay, ...]:
        listings = [one for member in world.faulty for one in member.published.values()]
        newest = max(listings, key=lambda listing: listing.epoch, default=None)
        seats = () if newest is None else newest.seats
        return (*(seat[:3] for seat in seats), (PHANTOM, bytes(16), 0))

    async with trio.open_nursery() as nursery:
        transport = await open_transport(settings, nursery, lambda tor: None)
        listeners = [
            await transport.listen(service, sitting.address_of(seed.public())) for seed, service in keys
        ]
        kinds = list(itertools.combinations_with_replacement(AuthorityFault, len(keys)))
        random.shuffle(kinds)
        await world.serve(transport, listeners, lambda epoch: kinds[epoch % len(kinds)], reached)


def main(files: Sequence[str]) -> None:
    """Lie as the directories with these configurations; a failure is one line of text."""
    try:
        configurations = [load_settings(Path(file), DirectorySettings) for file in files]
        if not configurations:
            raise UsageError("give the configurations of directories that do not run")
        with ExitStack() as held:
            for settings in configurations:
                held.enter_context(locked(Path(settings.state)))
            trio.run(lie, configurations, Random(1))  # noqa: S311
    except HushcastError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main(sys.argv[1:])
