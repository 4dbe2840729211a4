"""A server brings much to one pseudonym, and times when others acknowledge: which are the same daemon's?

While it takes what one of its pseudonyms is brought, a daemon has no time for the others, nor its disk; what
these acknowledge would come later. So would it while a daemon publishes.
"""

from __future__ import annotations

import pytest
import trio
from daemons import daemons
from slow_store import SlowStore

from benchmarks.answers.__main__ import later
from benchmarks.answers.watched_networks import Watch, bring, sealed, takers
from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.content.topics import make_topic

PLACES = make_topic("places", ["lat:-90..90:1"])
CHANGE = 0.004  # seconds that one takes
BURST, TRIALS = 20, 60


async def told() -> bool:
    """Tell whether a server sees that the pseudonym which it times is of the daemon that it keeps busy."""
    async with daemons(0) as network:
        pseudonyms: list[bytes] = []
        for name, wheres in (("reader", ("lat in [0, 10]", "lat in [0, 20]")), ("other", ("",))):
            reader = network.node(name)
            reader.store = SlowStore(CHANGE)
            await reader.start()
            for where in wheres:
                await reader.listen(PLACES, where)
                while not (new := takers(network.server.daemon) - {*pseudonyms}):  # noqa: ASYNC110
                    await trio.sleep(1)
                pseudonyms += new
        publisher = network.node("publisher")
        await publisher.start()
        watch, timed = Watch(network.server.daemon), pseudonyms[0]
        took: dict[str, list[float]] = {"same": [], "other": []}
        for _ in range(TRIALS):
            for kind, busy in (("same", pseudonyms[1]), ("other", pseudonyms[2])):
                messages = [
                    await sealed(publisher.daemon, PLACES, network.today, lat=5) for _ in range(BURST + 1)
                ]
                watch.begin()
                bring(network.server.daemon, *zip([busy] * BURST + [timed], messages, strict=True))
                took[kind].append(await watch.answer(timed))
                await trio.sleep(3 * NEWEST.acknowledges_within)
        share, around = later(took["same"], took["other"])
        return abs(share - 0.5) > 1.5 * around


@pytest.mark.slow
async def test_a_server_does_not_see_which_pseudonyms_are_one_daemons() -> None:
    assert not await told()


@pytest.mark.slow
async def test_it_sees_it_where_they_answer_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushcast_runtime.transports.drawn_answers.DrawnAnswers._drawn", lambda _: 0.0005)
    assert await told()
