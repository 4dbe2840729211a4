"""Programs of a located feed for tests: a provider that leaves an interval out, and a subscriber.

python located_programs.py provider CONFIG [NUMBER]
python located_programs.py subscriber SOCKET OFFER KEYWORDS FOLDER PATIENCE
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import trio

import hushcast
import hushcast_located
from hushcast_located.service.answerer import Answerer
from hushcast_located.service.identity import ProviderIdentity
from hushcast_located.service.process import ProviderProcess
from hushcast_located.service.provider import Provider
from hushcast_located.service.settings import ProviderSettings
from hushcast_located.subscriber.environment import SubscriberEnvironment
from hushcast_runtime.processes.config import load_settings
from hushcast_runtime.processes.process import run_until_signal
from hushcast_runtime.storage.store import Store


def provide(config: str, left_out: int) -> None:
    class LeavesOut(Answerer):
        async def publish(self, daemon: hushcast.Daemon, link: str, number: int, answer: bytes) -> None:
            if number != left_out:
                await super().publish(daemon, link, number, answer)

    class Dishonest(ProviderProcess):
        def _make(self, identity: ProviderIdentity, store: Store) -> Provider:
            return Provider(self._settings, identity, store, self._env, self._counters, LeavesOut)

    settings = load_settings(Path(config), ProviderSettings)
    process = Dishonest(settings)
    run_until_signal(settings, lambda: settings, process.live, process.health)


async def follow(socket: str, offer: str, keywords: str, folder: str, patience: str) -> None:
    world = SubscriberEnvironment(patience=float(patience), retry=10.0)
    async with hushcast.connect(socket) as daemon:
        feed = hushcast_located.subscribe(
            daemon,
            Path(offer).read_text(),
            at=(60.17, 24.94),
            keywords=keywords,
            name="feed",
            folder=Path(folder),
            world=world,
        )
        async with feed:
            async for event in feed:
                told: dict[str, object] = {"event": type(event).__name__, "at": time.time()}
                if isinstance(event, hushcast_located.Interval):
                    told |= {"number": event.number, "messages": [one.id for one in event.messages]}
                elif isinstance(event, hushcast_located.FeedTrouble):
                    told |= {"problem": str(event.problem), "first": event.first, "last": event.last}
                print(json.dumps(told), flush=True)


if __name__ == "__main__":
    what, *given = sys.argv[1:]
    if what == "provider":
        provide(given[0], int(given[1]) if given[1:] else 0)
    else:
        trio.run(follow, *given)
