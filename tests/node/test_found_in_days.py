"""With 18 probes a day, where keepers are, relays that lose everything are found within days."""

from __future__ import annotations

import pytest
from hosted_network import in_use, subscribed
from kept_network import kept_network
from small_network import DAY_SECONDS, Node, until

from hushcast_protocol.overlay.forwarding import ForwardingDecision, ForwardingOutcome
from hushcast_protocol.overlay.profile import Root


def confirms_and_loses(relay: Node) -> None:
    """Have a relay confirm all and send nothing."""
    assert relay.daemon.overlay.relay is not None
    router = relay.daemon.overlay.relay.forwarding._router
    router.route = lambda *_: ForwardingDecision(ForwardingOutcome.DUPLICATE)  # type: ignore[method-assign]


@pytest.mark.slow
async def test_of_twenty_relays_both_that_lose_everything_are_found_within_four_days() -> None:
    """One of them at the top of the tree, the other one with nobody below it."""
    async with kept_network(relays=20, clients=1, root=Root.HOST, probes_an_epoch=None) as net:
        client, *_ = net.clients
        await subscribed(client)
        host = in_use(net, client)
        tree = client.route().on(net.calendar.day(net.now))[0].installation.tree
        others = [relay for relay in net.relays if relay is not host]
        top = next(one for one in others if tree.parents[one.id] is None and tree.children.get(one.id))
        leaf = next(one for one in others if one is not top and not tree.children.get(one.id))
        bad = {top.id, leaf.id}
        for relay in (top, leaf):
            confirms_and_loses(relay)
        coverage = client.route().coverage
        await until(lambda: set(coverage.suspects()) >= bad, 4 * DAY_SECONDS, "both are found")
        assert set(coverage.suspects()) == bad, "and nobody else"
