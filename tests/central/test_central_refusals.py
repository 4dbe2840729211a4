"""Bad input from users: each is refused for its reason, counted, and costs nobody else anything."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import trio
from small_central import OTHER, TOPIC, SmallCentral, hears, small_central
from small_network import until

from hushcast_central.proxy import attached_users, transformation_keys, users
from hushcast_central.server import server_requests
from hushcast_protocol.base.crypto.proof_of_work import FIRST_DIFFICULTY, ProofOfWork, mint
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.central import pseudonym_register, request_proofs
from hushcast_protocol.central.frames import AcknowledgeDeliveries, Introduce, Ping, Subscribe, UserAnswer
from hushcast_protocol.central.introduction import PseudonymSecret, handed_in
from hushcast_protocol.central.rerouting import MAX_INSIDE, WrappedMessage, wrap
from hushcast_protocol.content.messages import Message
from hushcast_runtime import admission
from hushcast_runtime.transports import memory

OUTSIDE = bytes(32)  # of the group
SMALL_ORDER = b"\x01" + bytes(31)


async def refused(network: SmallCentral, proxy: Any, *frames: Any) -> str:
    """Say frames; return the last verdict, and that it is counted where it was refused."""
    connection = await network.connect(proxy)
    await connection.say(*frames)
    answers = [await connection.hear() for _ in frames]
    await connection.close()
    verdict: str = answers[-1].verdict
    if verdict != "accepted":
        assert answers[-1].proof is None
        assert network.count(f"refused_{verdict}") > 0
    return verdict


async def works(network: SmallCentral) -> None:
    """Check that all goes on as before."""
    ear = await network.subscriber()
    message = await network.published()
    await until(hears(ear, message))


async def test_introductions() -> None:
    async with small_central() as network:
        person = network.person("subscribe")
        good = person.introduce()
        beside = network.add("deliveries-2", "deliveries")
        network.server.daemon.replace_proxies(network.proxies)
        await beside.start()
        await network.linked()
        for proxy, frame, verdict in (
            (network.deliveries, Introduce(OUTSIDE, good.sealed, None), "form"),
            (network.deliveries, Introduce(b"\xff" * 32, good.sealed, None), "form"),
            (network.deliveries, Introduce(good.blinding, b"", None), "form"),
            (network.deliveries, Introduce(good.blinding, good.sealed[:-1] + b"x", None), "form"),
            (network.deliveries, network.person("publish").introduce(), "form"),
            (network.publications, good, "form"),
            (network.deliveries, network.person("subscribe", network.today - 1).introduce(), "day"),
            (network.deliveries, network.person("subscribe", network.today + 2).introduce(), "day"),
            (network.publications, network.person("publish", network.today + 2).introduce(), "day"),
            (network.deliveries, good, "accepted"),
            (network.deliveries, good, "accepted"),
            (beside, good, "taken"),
            (beside, person.introduce(), "taken"),
        ):
            assert await refused(network, proxy, frame) == verdict
        await works(network)


async def test_an_introduction_again_changes_nothing() -> None:
    """Nor does one with another blinding, which would lead elsewhere."""
    async with small_central() as network:
        ear = await network.subscriber()
        good = ear.person.introduce()
        other = network.person("subscribe").introduce()
        for frame in (good, good, Introduce(other.blinding, good.sealed, None)):
            assert await refused(network, network.deliveries, frame) == "accepted"
        message = await network.published()
        await until(hears(ear, message))


async def test_requests_to_subscribe() -> None:
    async with small_central() as network:
        person, victim = network.person("subscribe"), (await network.subscriber()).person
        await (await person.introduced(network.deliveries)).close()
        stranger = network.person("subscribe")

        def outside(point: bytes) -> Subscribe:
            return request_proofs.subscribe(person.pseudonym, person.secret, 50, (point,))

        stolen = request_proofs.subscribe(victim.pseudonym, person.secret, 50, person.tokens(TOPIC))
        taken_back = request_proofs.withdraw(victim.pseudonym, person.secret, 50, ())
        for frame, verdict in (
            (stranger.subscribe(TOPIC), "unknown"),
            (stranger.withdraw(), "unknown"),
            (request_proofs.attach(stranger.pseudonym, stranger.secret), "unknown"),
            (outside(OUTSIDE), "form"),
            (outside(SMALL_ORDER), "form"),
            (outside(b"\xff" * 32), "form"),
            (stolen, "proof"),
            (taken_back, "proof"),
            (request_proofs.attach(victim.pseudonym, person.secret), "proof"),
            (person.subscribe(TOPIC, serial=7), "accepted"),
            (person.subscribe(TOPIC, OTHER, serial=7), "form"),
            (person.subscribe(TOPIC, serial=6), "form"),
            (person.withdraw(TOPIC, serial=7), "form"),
            (network.person("publish").publish(network.message()), "form"),
        ):
            assert await refused(network, network.deliveries, frame) == verdict
        assert await refused(network, network.publications, person.subscribe(TOPIC)) == "form"
        assert await refused(network, network.publications, request_proofs.attach(*_who(person))) == "form"
        await works(network)
        assert network.server.daemon.status()["tokens"] == 3, "the victim's is where it was"


def _who(person: Any) -> tuple[bytes, PseudonymSecret]:
    return person.pseudonym, person.secret


async def test_publications() -> None:
    async with small_central() as network:
        good = network.message()
        yesterday = network.message(day=network.today - 1)
        with_trail = Message(good.id, good.day, good.tokens, b"\x01" + good.trail[1:], good.body)
        other_body = Message(good.id, good.day, good.tokens, good.trail, good.body[:-1] + b"x")
        odd_size = Message(good.id, good.day, good.tokens, good.trail, good.body + b"x")
        person = network.person("publish")
        connection = await person.introduced(network.publications)
        await connection.close()
        stranger = network.person("publish")

        def publication(inside: bytes, key: Any = None, **changed: Any) -> Any:
            wrapped = wrap(key or person.key, inside, network.env.randomness)
            wrapped = msgspec.structs.replace(wrapped, **changed)
            return request_proofs.publish(person.pseudonym, person.secret, person.tokens(TOPIC), wrapped)

        whole = person.publish(good)
        other_payload = msgspec.structs.replace(
            whole, wrapped=msgspec.structs.replace(whole.wrapped, payload=b"x" * 64)
        )
        for frame, verdict in (
            (stranger.publish(good), "unknown"),
            (person.publish(yesterday), "day"),
            (person.publish(with_trail), "form"),
            (person.publish(other_body), "form"),
            (person.publish(odd_size), "form"),
            (publication(b"no message"), "form"),
            (publication(bytes(MAX_INSIDE)), "form"),
            (publication(b"under another key", key=stranger.key), "form"),
            (publication(b"outside", mask=OUTSIDE), "form"),
            (publication(b"outside", masked=SMALL_ORDER), "form"),
            (other_payload, "proof"),
            (msgspec.structs.replace(whole, proof=bytes(16)), "proof"),
            (msgspec.structs.replace(whole, tokens=(OUTSIDE,)), "form"),
            (msgspec.structs.replace(whole, tokens=whole.tokens * 2), "proof"),
        ):
            assert await refused(network, network.publications, frame) == verdict
        assert network.count("publications_accepted") == 0
        assert await refused(network, network.publications, whole) == "accepted"
        await works(network)


async def test_as_published_points_are_checked_too() -> None:
    async with small_central("paper") as network:
        person = network.person("publish")
        await (await person.introduced(network.publications)).close()
        for mask, masked in ((OUTSIDE, None), (None, OUTSIDE), (None, SMALL_ORDER)):
            wrapped = wrap(person.key, b"inside", network.env.randomness)
            wrapped = WrappedMessage(mask or wrapped.mask, masked or wrapped.masked, wrapped.payload)
            frame = request_proofs.publish(person.pseudonym, person.secret, person.tokens(TOPIC), wrapped)
            assert await refused(network, network.publications, frame) == "form"
        await works(network)


async def test_bytes_that_are_no_frame_and_frames_out_of_place_end_the_connection() -> None:
    async with small_central() as network:
        person, other = network.person("subscribe"), network.person("subscribe")
        short = Subscribe(b"short", 1, (b"also short",), b"")
        for frames in (
            (short,),
            (AcknowledgeDeliveries(1, bytes(16)),),
            (UserAnswer("accepted", None),),
            (person.subscribe(TOPIC), other.subscribe(TOPIC)),
            (Introduce(bytes(32), bytes(300), None),),
        ):
            connection = await network.connect(network.deliveries)
            await connection.say(*frames)
            while (answer := await connection.hear()) is not None:
                assert answer.verdict == "unknown"
        await until(lambda: network.deliveries.count("refused_form") == 5, 5.0)
        named = await network.connect(network.deliveries, us=Seed(bytes(32)))
        assert await named.hear() is None
        ear = await network.subscriber()
        await ear.connection.say(person.subscribe(TOPIC))
        await until(lambda: ear.closed)
        await works(network)


async def test_acknowledgements_that_do_not_hold_end_the_attachment_and_delete_nothing() -> None:
    async with small_central() as network:
        ear = await network.subscriber(acknowledges=False)
        messages = [await network.published() for _ in range(2)]
        person = ear.person
        for number in (1, 2, 3, 2**40):
            await until(lambda ear=ear: len(ear.wrapped) == 2)
            await ear.connection.say(AcknowledgeDeliveries(number, bytes(16)))
            await until(lambda ear=ear: ear.closed)
            ear = await network.attached(person, acknowledges=False)
        assert network.server.count("refused_proof") == 2
        assert network.server.count("refused_form") == 2
        await until(lambda: len(ear.wrapped) == 2)
        assert network.server.daemon.status()["deliveries_waiting"] == 2
        await ear.acknowledge()
        await until(lambda: network.server.daemon.status()["deliveries_waiting"] == 0)
        await ear.acknowledge()
        last = await network.published()
        await until(hears(ear, *messages, last))


async def test_a_proxy_under_load_wants_stamps() -> None:
    async with small_central() as network:
        proxy = network.publications
        for _ in range(2):  # of now, and of a minute ago
            proxy.daemon._admission._load._peak = proxy.daemon._admission._load._rate = 100.0
            await trio.sleep(60)
        difficulty = (await network.pong(proxy)).difficulty
        assert difficulty >= FIRST_DIFFICULTY
        person = network.person("publish")
        frame = person.introduce()
        epoch = network.calendar.epoch(network.now)
        paid = mint(proxy.seed.public(), epoch, handed_in(frame.sealed), difficulty, network.env.randomness)
        connection = await network.connect(proxy)
        assert await connection.ask(frame) == UserAnswer("stamp", None)
        wrong = msgspec.structs.replace(frame, stamp=ProofOfWork(epoch, bytes(8)))
        assert await connection.ask(wrong) == UserAnswer("stamp", None)
        elsewhere = msgspec.structs.replace(person.introduce(), stamp=paid)
        assert await connection.ask(elsewhere) == UserAnswer("stamp", None)
        assert (await connection.ask(Ping())).difficulty == difficulty
        right = msgspec.structs.replace(frame, stamp=paid)
        assert await connection.ask(right) == UserAnswer("accepted", None)
        assert await connection.ask(right) == UserAnswer("stamp", None), "it is spent"
        assert network.count("refused_stamp") == 4


async def test_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pseudonym_register, "MAX_TOKENS_EACH", 2)
    monkeypatch.setattr(pseudonym_register, "MAX_PSEUDONYMS", 3)
    monkeypatch.setattr(transformation_keys, "MAX_TRANSFORMATIONS", 5)
    async with small_central() as network:
        person = (await network.subscriber()).person
        many = person.subscribe(TOPIC, b"two", b"three")
        assert await refused(network, network.deliveries, many) == "quota"
        for _ in range(2):
            await network.subscriber()
        waiting = network.person("subscribe")
        assert await refused(network, network.deliveries, waiting.introduce()) == "quota"
        assert network.server.daemon.status()["pseudonyms"] == 3
        monkeypatch.setattr(pseudonym_register, "MAX_PSEUDONYMS", 8)
        for _ in range(2):
            await (await network.person("subscribe").introduced(network.deliveries)).close()
        assert await refused(network, network.deliveries, waiting.introduce()) == "quota"
        for _ in range(8):  # those that publish give way
            await network.published()


async def test_introductions_are_limited_at_the_proxy_and_at_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_requests, "INTRODUCTIONS_AT_ONCE", 3.0)
    monkeypatch.setattr(server_requests, "INTRODUCTIONS_A_MINUTE", 1.0)
    async with small_central() as network:
        for _ in range(3):
            await (await network.person("subscribe").introduced(network.deliveries)).close()
        person = network.person("subscribe")
        assert await refused(network, network.deliveries, person.introduce()) == "quota"
        await network.published()
        await trio.sleep(60)
        assert await refused(network, network.deliveries, person.introduce()) == "accepted"
    monkeypatch.undo()
    monkeypatch.setattr(admission, "HANDED_IN_AT_ONCE", 2.0)
    monkeypatch.setattr(admission, "HANDED_IN_A_SECOND", 0.1)
    async with small_central() as network:
        frames = [network.person("subscribe").introduce() for _ in range(8)]
        connection = await network.connect(network.deliveries)
        await connection.say(*frames)
        verdicts = [(await connection.hear()).verdict for _ in frames]
        assert "quota" in verdicts
        assert verdicts[0] == "accepted"


async def test_who_says_much_is_slowed_and_who_stays_idle_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "MAX_ATTACHED", 2)
    async with small_central() as network:
        connection = await network.connect(network.deliveries)
        began = trio.current_time()
        await connection.say(*[Ping()] * 104)
        for _ in range(104):
            await connection.hear()
        assert trio.current_time() - began >= 40 / users.REQUESTS_A_SECOND
        assert await connection.hear(users.ASK_WITHIN + 10) is None
        ears = [await network.subscriber() for _ in range(3)]
        await until(lambda: sum(ear.closed for ear in ears) == 1)
        assert network.deliveries.count("strangers_dropped") == 1


async def test_who_reads_nothing_takes_no_room_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that wait for all are bounded, and the slowest gives way."""
    monkeypatch.setattr(attached_users, "MAX_HELD_OF_ALL", 800_000)
    monkeypatch.setattr(memory, "MAX_IN_FLIGHT", 10_000)
    async with small_central() as network:
        silent = []
        for _ in range(3):
            person = network.person("subscribe")
            connection = await person.introduced(network.deliveries)
            await network.accepted(person, connection, person.subscribe(TOPIC))
            await person.attach(connection)
            silent.append(connection)
        ear = await network.subscriber()
        messages = [await network.published(size=4) for _ in range(4)]
        await until(hears(ear, *messages), 20.0)
        assert not ear.closed
        held = network.deliveries.daemon._users.held
        assert 0 < held.total <= 800_000
        await until(lambda: network.deliveries.daemon.status()["attached"] == 1, 300.0)
        assert held.total == 0
