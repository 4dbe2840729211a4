"""Server and proxies die at any moment: what had a receipt arrives, and subscriptions live on."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio
from hanging_disk import Disk
from small_central import TOPIC, Ear, Member, Person, SmallCentral, small_central
from small_network import until

from hushcast_protocol.central import request_proofs
from hushcast_protocol.central.frames import AttachAnswer
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.base import TransportError


class Daemon:
    """A user as a daemon is one: it attaches again, and introduces itself again to who forgot it."""

    def __init__(self, network: SmallCentral) -> None:
        self.network = network
        self.person = network.person("subscribe")
        self.request = self.person.subscribe(TOPIC)
        self.subscribed = False
        self.attachments = 0
        network.nursery.start_soon(self._live)

    @property
    def heard(self) -> list[bytes]:
        return [message.id for message in self.person.heard]

    async def _live(self) -> None:
        while True:
            with suppress(TransportError, trio.TooSlowError):
                await self._attach()
            await trio.sleep(self.network.env.uniform(0.5, 1.5))

    async def _attach(self) -> None:
        person = self.person
        connection = await self.network.connect(self.network.deliveries)
        if not self.subscribed:
            await self._subscribe(connection)
        answer = await connection.ask(request_proofs.attach(person.pseudonym, person.secret))
        if isinstance(answer, AttachAnswer):
            self.attachments += 1
            person.salt = answer.salt
            ear = Ear(person, connection)
            await until(lambda: ear.closed, 100_000.0)
        elif answer is not None and answer.verdict == "unknown":
            self.subscribed = False
        await connection.close()

    async def _subscribe(self, connection) -> None:
        person = self.person
        await connection.ask(person.introduce())
        answer = await connection.ask(self.request)
        if answer is not None and answer.verdict == "accepted":
            assert request_proofs.is_from_server(person.secret, self.request, answer)
            self.subscribed = True
        elif answer is not None and answer.verdict == "form":
            self.request = person.subscribe(TOPIC)


async def killed(network: SmallCentral, member: Member) -> None:
    """Kill a member; often what it wrote last never reached the disk."""
    pick = network.env.below
    if isinstance(member.store, Disk) and pick(2):
        member.store.hang()
        await trio.sleep(network.env.uniform(0.0, 2.0))
    await member.stop()
    if isinstance(member.store, Disk):
        member.store.lose()
    await trio.sleep(network.env.uniform(0.0, 5.0))
    await member.start()


async def published(network: SmallCentral, receipts: list[bytes], count: int) -> None:
    """Publish until there is a receipt for each, whatever becomes of the connection."""
    for _ in range(count):
        message = network.message()
        while True:
            with suppress(TransportError, trio.TooSlowError):
                if await network.publish(message) == "accepted":
                    break
            await trio.sleep(1.0)
        receipts.append(message.id)
        await trio.sleep(network.env.uniform(0.0, 3.0))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
async def test_killed_twenty_times_under_traffic_nothing_with_a_receipt_is_lost(seed: int) -> None:
    async with small_central(seed=seed) as network:
        for member in network.members:
            await member.stop()
            member.store = Disk(member.store)
            await member.start()
        users = [Daemon(network) for _ in range(3)]
        await until(lambda: all(user.attachments for user in users))
        receipts: list[bytes] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(published, network, receipts, 30)
            nursery.start_soon(published, network, receipts, 30)
            for _ in range(20):
                await trio.sleep(network.env.uniform(0.0, 4.0))
                await killed(network, network.members[network.env.below(3)])
        assert len(receipts) == 60
        for user in users:
            await until(lambda user=user: set(receipts) <= set(user.heard), 300.0, "all that had receipts")
        await until(lambda: network.server.daemon.status()["deliveries_waiting"] == 0)


async def test_a_receipt_comes_only_from_the_disk() -> None:
    async with small_central() as network:
        await network.server.stop()
        disk = network.server.store = Disk(network.server.store)
        await network.server.start()
        await network.linked()
        user = Daemon(network)
        await until(lambda: user.attachments == 1)
        disk.hang()
        message = network.message()
        assert await network.publish(message) == "closed"
        await network.server.stop()
        disk.lose()
        await network.server.start()
        await network.linked()
        assert await network.publish(message) == "accepted"
        await until(lambda: message.id in user.heard)
        assert network.count("publications_repeated") == 0


async def test_a_subscription_counts_only_from_the_disk() -> None:
    for name in ("server", "deliveries"):
        async with small_central() as network:
            member: Member = getattr(network, name)
            await member.stop()
            disk = member.store = Disk(member.store)
            await member.start()
            await network.linked()
            disk.hang()
            person = network.person("subscribe")
            connection = await network.connect(network.deliveries)
            await connection.say(person.introduce(), person.subscribe(TOPIC))
            heard = []
            with trio.move_on_after(30):
                heard += [await connection.hear(100), await connection.hear(100)]
            assert len(heard) < 2, "it was told what no disk has"
            await member.stop()
            disk.lose()
            await member.start()
            await network.linked()
            again: Person = person
            connection = await again.introduced(network.deliveries)
            await network.accepted(again, connection, again.subscribe(TOPIC))


async def test_who_forgot_everything_is_told_again() -> None:
    """The same key and secret, with another blinding: the proxy's key still fits."""
    for name in ("server", "deliveries"):
        async with small_central() as network:
            user = Daemon(network)
            await until(lambda user=user: user.attachments == 1)
            member: Member = getattr(network, name)
            await member.stop()
            member.store = MemoryStore()
            await member.start()
            await until(lambda user=user: user.attachments == 2)
            message = await network.published()
            await until(lambda user=user, message=message: message.id in user.heard)


async def test_what_waits_and_who_withdrew_outlive_a_restart() -> None:
    async with small_central() as network:
        ear, over = await network.subscriber(), await network.subscriber()
        await network.accepted(over.person, await network.connect(network.deliveries), over.person.withdraw())
        await ear.leave()
        messages = [await network.published(size=size) for size in (0, 4, 1)]
        for member in network.members:
            await member.restart()
        await network.linked()
        back = await network.attached(ear.person)
        await until(lambda: len(back.wrapped) == 3)
        assert [message.id for message in ear.person.heard] == [message.id for message in messages]
        answer = await (await network.connect(network.deliveries)).ask(
            request_proofs.attach(over.person.pseudonym, over.person.secret)
        )
        assert answer.verdict == "unknown"
        assert await network.publish(messages[0]) == "accepted"
        await trio.sleep(30)
        assert len(back.wrapped) == 3, "it came before the restart"


async def test_a_link_that_breaks_lets_users_go_and_comes_back() -> None:
    async with small_central() as network:
        ear = await network.subscriber()
        network.server.daemon.replace_proxies(())
        await until(lambda: ear.closed)
        await until(lambda: network.deliveries.daemon.link_state == "not listed")
        assert network.server.daemon.connected() == set()
        assert network.server.count("refused_unlisted") > 0
        network.server.daemon.replace_proxies(network.proxies)
        await network.linked()
        assert network.server.daemon.connected() == {proxy.key for proxy in network.proxies}
        message = await network.published()
        back = await network.attached(ear.person)
        await until(lambda: len(back.wrapped) == 1)
        assert ear.person.heard[-1].id == message.id
