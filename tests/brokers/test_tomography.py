"""The tomography service among brokers in memory: what it answers, what it refuses, and what it costs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from small_network import Process, until
from small_tree import KEY, SIX, SmallTree, filter_of, hears, shape
from talk import Talk

from hushcast_brokers.tomography import broker_statements
from hushcast_brokers.tomography.broker_statements import TomographyAddress
from hushcast_brokers.tomography.counters import TOMOGRAPHY_COUNTERS
from hushcast_brokers.tomography.daemon import TomographyDaemon, TomographyParts
from hushcast_brokers.tomography.questions import TomographyContact, ask_service
from hushcast_brokers.tree_request import BrokerContact
from hushcast_protocol.base.addresses import Address, memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.clear_words import shown
from hushcast_protocol.brokers.frames import AnonymityTerms, Subscribe
from hushcast_protocol.brokers.tomography.frames import (
    MAX_TOMOGRAPHY_FRAME,
    Ask,
    AskReply,
    LargestK,
    StateFilters,
    StatementRefused,
    decode_from_service,
)
from hushcast_protocol.brokers.tomography.questions import TomographyAnswer, TomographyQuestion, read_answer
from hushcast_protocol.brokers.tomography.statements import Statement, state
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import Tracer
from hushcast_runtime.transports.base import Transport, TransportError
from hushcast_runtime.transports.channel import open_channel

CAP = 16
SOUTH = "lat in [0, 50]"


class ServiceMember(Process):
    """The service; its keys and store outlive it, what it was told does not."""

    network: SmallTree

    def __init__(self, network: SmallTree) -> None:
        super().__init__(network, "tomography")  # type: ignore[arg-type]
        draw = network.environment("tomography keys").randomness
        self.seed, self.service = Seed.draw(draw), Seed.draw(draw)
        self.store: Any = MemoryStore()
        self.counters = Counters(TOMOGRAPHY_COUNTERS)
        self.daemon: Any = None

    @property
    def key(self) -> bytes:
        return self.seed.public()

    @property
    def address(self) -> Address:
        return memory_address(self.service.public())

    async def _run(self, transport: Transport, env: Environment, task_status: trio.TaskStatus[None]) -> None:
        parts = TomographyParts(
            self.network.net,
            self.seed,
            self.service,
            self.network.root.address,
            CAP,
            env,
            transport,
            self.store,
            self.counters,
        )
        self.daemon = TomographyDaemon(parts)
        self.daemon.clock.witness((env.now() - 3600, env.now() + 3600))
        await self.daemon.run(task_status=task_status)

    def status(self, name: str) -> Any:
        return self.daemon.status()[name]

    def question(
        self, where: str, k: int, origin: str, target: str = "root", **fields: Any
    ) -> TomographyQuestion:
        names = {
            "condition": AnonymityCondition.SOURCE,
            "spread": 1,
            "is_real": False,
            "sources": (),
        } | fields
        ends = {"origin": self.network[origin].key, "target": self.network[target].key}
        return TomographyQuestion(filter=shown(KEY, filter_of(where)), k=k, **ends, **names)

    async def ask(self, *given: Any, **fields: Any) -> TomographyAnswer:
        """Ask as people do."""
        network = self.network
        peer = BrokerContact(self.key, self.address)
        asker = TomographyContact(network.net, peer, network.wires.transport(), network.env)
        return await ask_service(asker, lambda tree: self.question(*given, **fields))

    def answer(self, *given: Any, **fields: Any) -> TomographyAnswer:
        """Answer as a broker is that asks about its own way."""
        of, now, askers = self.question(*given, **fields), self.network.now, self.daemon._askers
        signed = askers.service.ask(of.origin, of, now)
        askers._tell_largest()
        return read_answer(signed, self.key, of, now)

    def says(self, *given: Any, **fields: Any) -> bool:
        return self.answer(*given, **fields).is_anonymous

    async def link(self, seed: Seed | None) -> Talk:
        """Connect under a name or none; who is a broker has heard the largest k."""
        network = self.network
        link = Link.initiate(
            network.net.id, self.key, network.env.randomness, MAX_TOMOGRAPHY_FRAME, seed, network.view
        )
        way = network.wires.transport()
        channel, _ = await open_channel(way, self.address, network.env.isolation(), link, decode_from_service)
        return Talk(channel)


@asynccontextmanager
async def observed_tree(
    *but: str, tracer: Tracer | None = None
) -> AsyncIterator[tuple[SmallTree, ServiceMember]]:
    """A tree whose brokers, but some, state to a service."""
    async with trio.open_nursery() as nursery:
        network = SmallTree(nursery, 1, tracer)
        shape(network, SIX)
        service = ServiceMember(network)
        for member in network.members:
            if member.name not in but:
                member.tomography = TomographyAddress(service.key, service.address, CAP)
        await network.up()
        await service.start()
        stating = len(network.members) - len(but)
        await until(lambda: service.status("brokers_connected") == stating, 120.0, "brokers state")
        yield network, service
        assert network.count("internal_errors") == service.counters["internal_errors"] == 0
        nursery.cancel_scope.cancel()


async def settled() -> None:
    """Let brokers state what has changed."""
    await trio.sleep(3 * broker_statements.STATE_EVERY)


def statement(network: SmallTree, broker: str, number: int, where: str = SOUTH, **fields: Any) -> Any:
    """What a broker says and signs, whether it is so or not."""
    member = network[broker]
    given: dict[str, Any] = {"epoch": network.calendar.epoch(network.now), "is_held": True, "sources": ()}
    given |= {"bogus": 0, "until": int(network.now) + 600} | fields
    seed = given.pop("seed", member.seed)
    filter_ = shown(KEY, filter_of(where))
    return state(seed, Statement(broker=member.key, number=number, filter=filter_, **given))


async def test_it_tells_how_many_stand_behind_a_filter_on_the_way() -> None:
    async with observed_tree() as (network, service):
        first = await network.client("edge 1", SOUTH)
        await network.client("edge 1", SOUTH, "kind = fire")
        await network.client("edge 2", SOUTH)
        await network.client("edge 3", SOUTH)
        await settled()
        assert service.says(SOUTH, 3, "edge 1", "inner 1")
        assert not service.says(SOUTH, 4, "edge 1", "inner 1")
        assert service.says(SOUTH, 4, "inner 1")
        assert service.says(SOUTH, 3, "edge 2")
        assert not service.says("kind = fire", 2, "edge 1")
        assert not service.says("lat in [7, 8]", 1, "edge 3"), "of which nobody has said anything"
        answer = service.answer(SOUTH, 3, "edge 1")
        assert network.now < answer.until <= network.now + 300
        assert await first.unsubscribe() == "accepted"
        await settled()
        assert not service.says(SOUTH, 3, "edge 1", "inner 1")
        assert service.says(SOUTH, 2, "edge 1", "inner 1")
        for refused, k, reason in (("root", 3, "no-way"), ("edge 1", 3 * CAP + 1, "k")):
            with pytest.raises(Refusal, match=reason):
                service.answer(SOUTH, k, refused)
        assert network.count("statements_refused") == 0


async def test_what_is_not_shown_is_not_stated() -> None:
    async with observed_tree() as (network, service):
        terms = AnonymityTerms(2, AnonymityCondition.SOURCE, "wait")
        one, other = await network.client("edge 1"), await network.client("edge 1")
        serial = await one.say(lambda n: Subscribe(n, bytes(16), shown(KEY, filter_of(SOUTH)), terms))
        await settled()
        assert service.status("statements_held") == 0
        assert await other.subscribe(SOUTH, terms=terms) == "accepted"
        await until(lambda: one.verdict(serial) == "accepted")
        await settled()
        assert service.says(SOUTH, 2, "edge 1", "inner 1")


async def test_a_larger_k_has_brokers_state_more() -> None:
    async with observed_tree() as (network, service):
        for _ in range(12):
            await network.client("edge 1", SOUTH)
        await settled()
        sent = network["edge 1"].count("statements_sent")
        assert service.status("largest_k") == 8
        await network.client("edge 1", SOUTH)
        await settled()
        assert network["edge 1"].count("statements_sent") == sent, "above the largest k nobody speaks"
        answer = service.answer(SOUTH, 12, "edge 1")
        assert not answer.is_anonymous
        assert answer.until <= network.now + 10
        await trio.sleep(10)
        assert service.says(SOUTH, 12, "edge 1")


async def test_statements_that_do_not_hold_are_refused_and_counted() -> None:
    async with observed_tree("edge 3", "inner 2") as (network, service):
        edge, inner = await service.link(network["edge 3"].seed), await service.link(network["inner 2"].seed)
        assert await edge.hear() == await inner.hear() == LargestK(8)
        name, other = bytes(16), bytes(range(16))
        good = statement(network, "edge 3", 5, sources=(name,))
        await edge.say(StateFilters((good,), False))
        for wrong, reason in (
            (statement(network, "edge 3", 6, seed=network["edge 2"].seed), "forged"),
            (statement(network, "edge 2", 6), "forged"),
            (statement(network, "edge 3", 4), "stale"),
            (statement(network, "edge 3", 7, until=int(network.now) - 1), "stale"),
            (statement(network, "edge 3", 7, epoch=3), "stale"),
            (statement(network, "edge 3", 7, sources=tuple(bytes([n]) * 16 for n in range(CAP + 1))), "cap"),
            (statement(network, "edge 3", 5, sources=(other,)), "contradicted"),
            (statement(network, "edge 3", 9), "contradicted"),
        ):
            await edge.say(StateFilters((wrong,), False))
            assert (await edge.hear()).reason == reason
        await inner.say(StateFilters((statement(network, "inner 2", 1, sources=(other,)),), False))
        assert await inner.hear() == StatementRefused(1, "not-edge")
        assert service.status("statements_held") == 0
        assert {
            name: count for name, count in service.counters.as_dict().items() if "statements_" in name
        } == {
            "statements_taken": 1,
            "statements_forged": 2,
            "statements_stale": 3,
            "statements_contradicted": 2,
            "statements_unvouched": 2,
            "statements_refused": 0,
        }


async def test_only_brokers_have_names_and_only_they_state_and_watch() -> None:
    async with observed_tree("edge 3") as (network, service):
        stranger = await service.link(Seed.draw(network.env.randomness))
        assert await stranger.hear() is None
        assert service.counters["refused_unlisted"] == 1
        question = service.question(SOUTH, 2, "edge 3")
        for frame in (StateFilters((statement(network, "edge 3", 1),), False), Ask(1, question, True, None)):
            nobody = await service.link(None)
            assert await nobody.ask(frame) is None
        await until(lambda: service.counters["refused_form"] == 2)
        assert service.status("watches") == 0


async def test_who_watches_hears_of_a_fall_at_once_and_of_a_rise_later() -> None:
    async with observed_tree("edge 3") as (network, service):
        await network.client("edge 3", SOUTH)
        talk = await service.link(network["edge 3"].seed)
        assert isinstance(await talk.hear(), LargestK)
        question = service.question(SOUTH, 2, "edge 3")

        async def says(number: int, *names: bytes) -> None:
            made = statement(network, "edge 3", number, sources=tuple(name * 16 for name in names))
            await talk.say(StateFilters((made,), False))

        async def told(within: float) -> bool:
            frame = await talk.hear(within)
            assert isinstance(frame, AskReply)
            assert frame.answer is not None
            return read_answer(frame.answer, service.key, question, network.now).is_anonymous

        await says(1, b"a", b"b")
        await settled()
        await talk.say(Ask(7, question, True, None))
        assert await told(10.0)
        await says(2, b"b")
        assert not await told(10.0)
        began = network.now
        await says(3, b"b", b"c")
        assert await told(60.0)
        assert network.now >= began + 30
        await talk.close()
        await until(lambda: service.status("watches") == 0)


async def test_a_service_that_is_away_costs_nobody_anything() -> None:
    async with observed_tree() as (network, service):
        client = await network.client("edge 1", SOUTH)
        await settled()
        assert service.says(SOUTH, 1, "edge 1")
        await service.stop()
        with pytest.raises(TransportError):
            await service.ask(SOUTH, 5, "edge 1")
        other = await network.client("edge 2", SOUTH)
        await until(hears(client, message := await network.published(lat=7)))
        await until(hears(other, message))
        await until(lambda: network["edge 1"].status("tomography_connected") == 0)
        await client.unsubscribe()
        await service.start()
        await until(lambda: service.status("brokers_connected") == len(network.members), 600.0, "all state")
        await settled()
        assert service.says(SOUTH, 1, "edge 2")
        assert not service.says(SOUTH, 2, "edge 1", "inner 1")
        assert network.count("statements_refused") == 0


async def test_a_broker_that_starts_again_contradicts_nothing_it_said() -> None:
    async with observed_tree() as (network, service):
        await network.client("edge 1", SOUTH)
        await settled()
        edge = network["edge 1"]
        for _ in range(2):
            await edge.stop()
            await edge.start()
            await until(lambda: edge.status("tomography_connected") == 1, 60.0, "it states again")
        await settled()
        assert service.says(SOUTH, 1, "edge 1")
        assert service.counters["statements_contradicted"] == network.count("statements_refused") == 0


async def test_under_load_people_pay_and_brokers_do_not() -> None:
    async with observed_tree("edge 3") as (network, service):
        admission = service.daemon._admission
        admission.difficulty = admission._before = 10
        assert not (await service.ask(SOUTH, 5, "edge 1")).is_anonymous
        assert service.counters["questions_unpaid"] == 1
        assert service.counters["questions_answered"] == 1
        talk = await service.link(network["edge 3"].seed)
        assert isinstance(await talk.hear(), LargestK)
        answered = await talk.ask(Ask(1, service.question(SOUTH, 2, "edge 3"), False, None))
        assert answered.reason is None


async def test_a_broker_that_left_the_tree_is_heard_no_more() -> None:
    async with observed_tree() as (network, service):
        for edge in ("edge 1", "edge 3"):
            await network.client(edge, SOUTH)
        await settled()
        assert service.says(SOUTH, 1, "edge 3", "inner 2")
        gone = network["edge 3"]
        network.members.remove(gone)
        await network.list_all()
        await until(lambda: service.status("brokers_connected") == len(network.members), 60.0, "it is gone")
        network.members.append(gone)
        with pytest.raises(Refusal, match="no-way"):
            service.answer(SOUTH, 1, "edge 3", "inner 2")
        assert not service.says(SOUTH, 2, "inner 1")


async def test_a_broker_numbers_on_whatever_its_clock_says() -> None:
    async with observed_tree() as (network, _):
        edge = network["edge 1"]
        first = edge.daemon._telling._stating._number
        await edge.restart()
        assert edge.env is not None
        await until(lambda: edge.status("tomography_connected") == 1, 60.0, "it states again")
        assert edge.daemon._telling._stating._number >= first + broker_statements.NUMBERS_AHEAD


async def test_bogus_sources_are_stated_as_such_and_filters_up_to_a_cap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker_statements, "MAX_ROWS_EACH", 3)
    async with observed_tree() as (network, service):
        client = await network.client("edge 1", *(f"lat = {n}" for n in range(5)))
        await settled()
        assert network["edge 1"].count("statements_sent") == 3
        terms = AnonymityTerms(3, AnonymityCondition.SOURCE, "bogus")
        other = await network.client("edge 2")
        assert await other.subscribe(SOUTH, terms=terms) == "accepted"
        await settled()
        assert service.status("sources_bogus") == 2
        assert service.says(SOUTH, 3, "edge 2", "inner 1")
        assert not service.says(SOUTH, 2, "edge 2", "inner 1", is_real=True)
        await client.unsubscribe()
        await settled()
        assert network.count("statements_refused") == 0
