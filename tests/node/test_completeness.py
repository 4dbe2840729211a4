"""What arrives where relays lose all that passes them, over two weeks, with all that is there against it."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, get_args

import pytest
import trio
from hosted_network import hosts_of, subscribed
from kept_network import kept_network, loses_all
from small_network import ONE, Node, SmallNetwork

from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay.profile import Root

EPOCH = 3600  # seconds, as on a real network: looks come 5 to 20 minutes later
RELAYS = 30
FirstHost = Literal["stays", "comes and goes", "loses"]
UP, DOWN = 48, 8  # epochs in the mean that an honest relay is up, and away


class Outcome(NamedTuple):
    """Of so many messages of one publisher to the sole subscriber."""

    sent: int
    lacking_after_an_epoch: int  # when the epoch after that of its publication is over
    lacking: int  # at the end
    not_told: int  # of these, how many no gap tells of
    twice: int
    drops_anew: int
    without_looks: int  # both origins lose them: without the publisher's looks these would lack for good

    def __str__(self) -> str:
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self._asdict().items())


async def churn(net: SmallNetwork, relays: list[Node]) -> None:
    """Have relays go and come back, with their disks, at moments that remember nothing."""

    async def come_and_go(relay: Node) -> None:
        while True:
            await trio.sleep(_pause(net, UP * EPOCH))
            await relay.stop()
            await trio.sleep(_pause(net, DOWN * EPOCH))
            await relay.start()

    async with trio.open_nursery() as nursery:
        for relay in relays:
            nursery.start_soon(come_and_go, relay)


async def play(
    bad: int,
    messages: int,
    days: float,
    days_after: float,
    host: FirstHost = "stays",
    relays: int = RELAYS,
    reads_with_a_relay: bool = False,
) -> Outcome:
    """Publish so many messages over so many days, where so many of the relays lose everything.

    They do as origins, in trees, as keepers and as hosts. All honest relays come and go, but hosts that stay.
    A reader that runs a relay, which stays, has no trees.
    """
    async with kept_network(
        relays=relays, clients=2, epoch=EPOCH, root=Root.HOST, probes_an_epoch=None
    ) as net:
        reader, publisher = net.relays[0] if reads_with_a_relay else net.clients[0], net.clients[1]
        await subscribed(reader)
        ear = await reader.listen()
        hosts = hosts_of(net, reader)
        others = [relay for relay in net.relays if relay not in (*hosts, reader)]
        hostile = ([*hosts[:1], *others] if host == "loses" else others)[:bad]
        for relay in hostile:
            loses_all(relay)
            inquiries: Any = relay.daemon.overlay.relay.inquiries  # type: ignore[union-attr]
            inquiries._ask = _asks_nobody
        stay = hostile + hosts if host == "stays" else hostile
        net.nursery.start_soon(churn, net, [one for one in net.relays if one not in (*stay, reader)])
        sent: dict[bytes, float] = {}
        published = []
        for _ in range(messages):
            publication = await publisher.daemon.service.publish(ONE, Content(b"x"))
            published.append(publication)
            sent[publication.message.id] = net.now
            await trio.sleep(_pause(net, days * EPOCHS_A_DAY * EPOCH / messages))
        await trio.sleep(days_after * EPOCHS_A_DAY * EPOCH)
        came = {one.id: one.received_at for one in ear.heard}
        lacking = set(sent) - set(came)
        late = sum(one not in came or came[one] > _over(net, moment) for one, moment in sent.items())
        untold = len(lacking - set(ear.gaps))
        anew = publisher.count("publications_dropped_anew")
        losers = {relay.id for relay in hostile}
        unheld = sum(bool(one.origins) and losers.issuperset(one.origins) for one in published)
        return Outcome(messages, late, len(lacking), untold, len(ear.heard) - len(came), anew, unheld)


def _pause(net: SmallNetwork, mean: float) -> float:
    """A time that remembers nothing, in seconds."""
    return -mean * math.log(1 - net.env.uniform(0.0, 1.0))


async def _asks_nobody(*_: object) -> bool:
    await trio.lowlevel.checkpoint()
    return True


def _over(net: SmallNetwork, moment: float) -> float:
    return net.calendar.epoch_start(net.calendar.epoch(moment) + 2)


@pytest.mark.slow
@pytest.mark.parametrize("reads_with_a_relay", [False, True])
async def test_of_150_messages_of_hours_none_lacks_where_a_fifth_of_the_relays_lose_everything(
    reads_with_a_relay: bool,
) -> None:
    """Some five have both origins among these, and come by a look of the publisher's.

    That may be of the next epoch: without a tree its host asks for it in the one after.
    """
    outcome = await play(4, 150, 0.25, 0.125, relays=20, reads_with_a_relay=reads_with_a_relay)
    assert outcome.without_looks > 0
    assert outcome.lacking == outcome.twice == 0
    assert outcome.lacking_after_an_epoch <= outcome.without_looks * reads_with_a_relay


@pytest.mark.soak
@pytest.mark.parametrize("host", get_args(FirstHost))
@pytest.mark.parametrize("bad", [3, 6])
async def test_of_what_two_weeks_bring_little_lacks_two_weeks_later_and_all_of_that_is_told(
    bad: int, host: FirstHost
) -> None:
    outcome = await play(bad, 2500, 14, 14, host)
    print(outcome)
    assert outcome.not_told == outcome.twice == 0
    assert outcome.lacking <= 1
    assert host != "stays" or outcome.lacking_after_an_epoch <= 1
