"""A stranger's mailbox says of all that it is brought that it leads nowhere, to hold up who brings it.

Relays say so of what they know no route for, and whoever sent it takes it to another relay, up to twelve
times. For each message all leases for that next hop were looked at, in one step for all that one
acknowledgement names: 1,500 messages and 4,000 leases took 0.3 s of a processor.
"""

from __future__ import annotations

import os

from mailbox_end import open_mailbox
from small_network import Node, SmallNetwork, small_network, until
from steps import one_step

from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.content.messages import MAX_TOKENS, TRAIL_SIZE, Message, message_id
from hushcast_protocol.overlay.elements import element
from hushcast_protocol.overlay.frames import Ack, Forward
from hushcast_protocol.overlay.hops import mailbox_hop, relay_hop
from hushcast_protocol.overlay.leases import Install, LeaseBook, ToMailbox, ToRelay, give_consent, lease_mark

BOX, TOKEN = Seed(b"b" * 32), b"t" * 16
MESSAGES = 20
LEASES = 6_000  # of one next hop, half of them with one mark: strangers choose both


def install(net: SmallNetwork, relay: Node, previous: Node, address: Address) -> None:
    """Have a relay hold a lease by which messages of another lead to the mailbox."""
    assert relay.daemon.overlay.relay is not None
    day, lease = net.calendar.day(net.now), os.urandom(16)
    consent = give_consent(BOX, address, relay.id, lease, day)
    elements, mark = (element(net.profile, TOKEN, relay.id, previous.id),), lease_mark(TOKEN, relay.id)
    instruction = Install(lease, day, ToMailbox(consent), elements, mark, os.urandom(16))
    relay.daemon.overlay.relay.leases.book.install(instruction, net.now)


async def test_a_mailbox_says_of_nothing_that_it_leads_nowhere() -> None:
    async with small_network(relays=3, clients=0, epoch=36000) as net:
        relay, previous, _ = net.relays
        assert previous.identity is not None
        address, links = await open_mailbox(net, BOX)
        install(net, relay, previous, address)
        day, bodies = net.calendar.day(net.now), [os.urandom(1167) for _ in range(MESSAGES)]
        up = await net.knock(relay, previous.identity.seed)
        await up.send(
            *[
                Forward(Message(message_id(day, body), day, (TOKEN,), bytes(TRAIL_SIZE), body))
                for body in bodies
            ]
        )
        box = await links.receive()
        got = 0
        while got < MESSAGES:
            got += len(await box.receive())
        await box.send(Ack(MESSAGES, tuple(range(1, MESSAGES + 1))))
        await until(lambda: relay.count("refused_form") == 1, 10.0)
        assert relay.count("messages_detoured") == 0
        again = await links.receive()  # they wait for it all the same
        got = 0
        while got < MESSAGES:
            got += len(await again.receive())
        await again.send(Ack(MESSAGES, ()))
        assert relay.daemon.overlay.relay is not None
        spool = relay.daemon.overlay.relay.peers._spool
        await until(lambda: len(spool) == 0, 10.0)


def test_which_leases_a_message_followed_is_known_without_looking_at_all() -> None:
    us, hop, calendar = b"u" * 32, b"h" * 32, Calendar(3600)
    book = LeaseBook(us, calendar, b"k" * 32)
    day = 3
    for number in range(LEASES):
        name = number.to_bytes(16, "big")
        mark = lease_mark(TOKEN, us) if number % 2 else lease_mark(name, us)
        book.install(Install(name, day, ToRelay(hop), (name,), mark, name), calendar.day_start(day))
    held = {lease.id for lease in book.leases()}
    with one_step():
        for number in range(1500):
            assert len(book.followed(day, relay_hop(hop), number.to_bytes(16, "big"), MAX_TOKENS)) < 2
            assert len(book.followed(day, relay_hop(hop), TOKEN, MAX_TOKENS)) == MAX_TOKENS
    alike = book.followed(day, relay_hop(hop), TOKEN)
    assert len(alike) == LEASES // 2
    for lease in alike:
        book.prune(lease)
    assert book.followed(day, relay_hop(hop), TOKEN) == []
    assert {lease.id for lease in book.leases()} == held - {lease.id for lease in alike}
    assert book.next_hops({day}) == [relay_hop(hop)]
    assert book.address_of(mailbox_hop(BOX.public())) is None
