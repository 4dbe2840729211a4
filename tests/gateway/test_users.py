"""Who is let in, as whom, and what a flood of passwords costs."""

from __future__ import annotations

import threading
import time

import pytest
import trio

from hushcast_gateway.clients.users import GatewayUsers
from hushcast_gateway.passwords import (
    MAX_COMPARED,
    MAX_KNOWN_AGAIN,
    MAX_PASSWORD,
    MAX_WAITING,
    Passwords,
    hashed,
    problem,
)
from hushcast_gateway.peer import ClientPeer
from hushcast_gateway.settings import GatewaySettings
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.access import AccessPermissions
from hushcast_protocol.mqtt.topics.topic_names import alone
from hushcast_protocol.mqtt.wire.packets import V5, Connect
from hushcast_runtime.environment import simulated_environment, system_environment
from hushcast_runtime.processes.config import parse_settings

HASHES = {"alice": hashed(b"secret"), "bob": hashed("pässword".encode())}
HERE, ELSEWHERE = ClientPeer(local=True), ClientPeer(local=False)
TEXT = f"""
[users.alice]
password = "{HASHES["alice"]}"
publish = ["users/%u/#"]
[users.bob]
password = "{HASHES["bob"]}"
uid = [1000]
[users.machine]
uid = [1001, 1002]
subscribe = ["#"]
[users.sensor]
certificate = "sensor.example"
publish = ["clients/%c/#"]
[[listen]]
kind = "unix"
path = "/run/mqtt.sock"
[[listen]]
kind = "tls"
port = 8883
certificate = "/c"
key = "/k"
client_ca = "/ca"
"""
ANONYMOUS = '[anonymous]\npublish = ["open/#"]\n'


def users(text: str = TEXT + ANONYMOUS, compare: object = None) -> GatewayUsers:
    settings = parse_settings(text.encode(), "gateway.toml", GatewaySettings)
    env = system_environment()
    return GatewayUsers(settings, Passwords(env.compute, env.randomness, compare))  # type: ignore[arg-type]


def connect(name: str | None = None, password: bytes | None = None, client_id: str = "c1") -> Connect:
    return Connect(V5, client_id, username=name, password=password)


async def name_of(users: GatewayUsers, connect: Connect, peer: ClientPeer = HERE) -> str | int:
    found = await users.authenticate(connect, peer)
    return found.user if isinstance(found, AccessPermissions) else int(found)


@pytest.mark.slow
async def test_by_password() -> None:
    known = users()
    for peer in (HERE, ELSEWHERE):
        assert await name_of(known, connect("alice", b"secret"), peer) == "alice"
        assert await name_of(known, connect("bob", "pässword".encode()), peer) == "bob"
        for name, password in (
            ("alice", b"Secret"),
            ("alice", b""),
            ("alice", None),
            ("alice", "pässword".encode()),
            ("nobody", b"secret"),
            ("machine", b"secret"),
            ("", b"secret"),
            ("", None),
            ("alice\x00", b"secret"),
        ):
            assert await name_of(known, connect(name, password), peer) == Reason.BAD_USER_NAME_OR_PASSWORD


@pytest.mark.slow
async def test_by_the_user_of_the_machine() -> None:
    known = users()
    assert await name_of(known, connect(), ClientPeer(True, uid=1002)) == "machine"
    assert await name_of(known, connect("machine"), ClientPeer(True, uid=1001)) == "machine"
    assert await name_of(known, connect("bob"), ClientPeer(True, uid=1000)) == "bob"
    assert await name_of(known, connect("alice", b"secret"), ClientPeer(True, uid=1000)) == "alice"
    assert await name_of(known, connect(), ClientPeer(True, uid=7)) == ""
    for name, password, uid in (("bob", None, 1001), ("bob", b"x", 1000), ("machine", None, 7)):
        refused = await name_of(known, connect(name, password), ClientPeer(True, uid=uid))
        assert refused == Reason.BAD_USER_NAME_OR_PASSWORD


async def test_by_certificate() -> None:
    known = users()
    assert await name_of(known, connect(), ClientPeer(False, certificate="sensor.example")) == "sensor"
    assert (
        await name_of(known, connect("sensor"), ClientPeer(False, certificate="sensor.example")) == "sensor"
    )
    assert (
        await name_of(known, connect(), ClientPeer(False, certificate="other.example"))
        == Reason.NOT_AUTHORIZED
    )
    assert await name_of(known, connect("sensor"), ClientPeer(False, certificate="x")) == 0x86


async def test_anybody_is_let_in_on_this_machine_alone_and_only_where_it_says_so() -> None:
    assert await name_of(users(), connect()) == ""
    assert await name_of(users(), connect(), ELSEWHERE) == Reason.NOT_AUTHORIZED
    assert await name_of(users(TEXT), connect()) == Reason.NOT_AUTHORIZED


async def test_where_there_are_no_users_a_name_means_nothing() -> None:
    nobody = users(ANONYMOUS)
    for name, password in (("alice", b"secret"), ("", None), ("alice", None)):
        assert await name_of(nobody, connect(name, password)) == ""
        assert await name_of(nobody, connect(name, password), ELSEWHERE) == Reason.NOT_AUTHORIZED


async def test_what_they_may_do() -> None:
    known = users()
    alice = await known.authenticate(connect("alice", b"secret"), HERE)
    sensor = await known.authenticate(
        connect(client_id="attic"), ClientPeer(False, certificate="sensor.example")
    )
    wild = await known.authenticate(connect(client_id="#"), ClientPeer(False, certificate="sensor.example"))
    anybody = await known.authenticate(connect(), HERE)
    assert isinstance(alice, AccessPermissions)
    assert isinstance(sensor, AccessPermissions)
    assert isinstance(wild, AccessPermissions)
    assert isinstance(anybody, AccessPermissions)
    assert alice.may_publish(alone("users/alice/x"))
    assert not alice.may_publish(alone("users/bob/x"))
    assert sensor.may_publish(alone("clients/attic/x"))
    assert not sensor.may_publish(alone("clients/cellar/x"))
    assert not wild.may_publish(alone("clients/attic/x"))
    assert anybody.may_publish(alone("open/x"))
    assert not anybody.may_subscribe(alone("open/x"))


async def test_a_configuration_read_again_holds_for_who_is_connected() -> None:
    known = users()
    alice = await known.authenticate(connect("alice", b"secret"), HERE)
    anybody = await known.authenticate(connect(), HERE)
    assert isinstance(alice, AccessPermissions)
    assert isinstance(anybody, AccessPermissions)
    text = (TEXT + ANONYMOUS).replace('publish = ["users/%u/#"]', 'subscribe = ["users/%u/#"]')
    known.replace(parse_settings(text.encode(), "", GatewaySettings))
    assert not alice.may_publish(alone("users/alice/x"))
    assert alice.may_subscribe(alone("users/alice/#"))
    known.replace(parse_settings(TEXT.replace("users.alice", "users.eve").encode(), "", GatewaySettings))
    assert not alice.may_subscribe(alone("users/alice/#"))
    assert not anybody.may_publish(alone("open/x"))
    assert await name_of(known, connect("alice", b"secret")) == Reason.BAD_USER_NAME_OR_PASSWORD


def test_who_is_away_may_what_the_configuration_of_now_says() -> None:
    known = users()
    alice, gone = known.permissions("alice", "c"), known.permissions("removed", "c")
    assert alice.may_publish(alone("users/alice/1"))
    assert not gone.may_publish(alone("users/removed/1"))
    known.replace(parse_settings(TEXT.replace("users.alice", "users.removed").encode(), "", GatewaySettings))
    assert not alice.may_publish(alone("users/alice/1"))
    assert gone.may_publish(alone("users/removed/1"))


async def test_who_was_removed_while_the_password_was_compared_is_not_let_in() -> None:
    removed = threading.Event()
    known = users(compare=lambda known_hash, given: removed.wait())
    async with trio.open_nursery() as nursery:

        async def ask() -> None:
            assert await name_of(known, connect("alice", b"secret")) == Reason.BAD_USER_NAME_OR_PASSWORD

        nursery.start_soon(ask)
        await trio.lowlevel.checkpoint()
        text = TEXT.replace("users.alice", "users.eve")
        known.replace(parse_settings(text.encode(), "", GatewaySettings))
        removed.set()


async def test_an_unknown_name_costs_what_a_known_one_costs() -> None:
    compared: list[str] = []

    def compare(known: str, given: bytes) -> bool:
        compared.append(known)
        return True  # whatever it says, nobody unknown comes in by it

    known = users(compare=compare)
    for name in ("alice", "nobody", "machine", ""):
        found = await name_of(known, connect(name, b"x"))
        assert found == ("alice" if name == "alice" else Reason.BAD_USER_NAME_OR_PASSWORD)
    assert compared == [HASHES["alice"]] * 4


async def test_a_flood_of_passwords_takes_two_threads_and_is_refused_beyond_its_queue() -> None:
    running, most = 0, 0
    lock, go = threading.Lock(), threading.Event()

    def compare(known: str, given: bytes) -> bool:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        go.wait()
        with lock:
            running -= 1
        return given == b"secret"

    known = users(compare=compare)
    answers: list[str | int] = []

    async def ask(password: bytes) -> None:
        answers.append(await name_of(known, connect("alice", password)))

    async with trio.open_nursery() as nursery:
        for number in range(MAX_COMPARED + MAX_WAITING + 50):
            nursery.start_soon(ask, b"secret" if number % 2 else b"wrong")
        while len(answers) < 50 or running < MAX_COMPARED:  # noqa: ASYNC110 - refused at once, while all threads hang
            await trio.sleep(0.001)
        go.set()
    assert most == MAX_COMPARED
    assert answers.count(Reason.SERVER_BUSY) == 50
    assert (
        answers.count("alice") + answers.count(Reason.BAD_USER_NAME_OR_PASSWORD) == MAX_COMPARED + MAX_WAITING
    )


async def test_who_was_right_before_comes_back_during_a_flood() -> None:
    go, compared = threading.Event(), 0

    def compare(known: str, given: bytes) -> bool:
        nonlocal compared
        compared += 1
        return given == b"secret" if compared == 1 else go.wait()

    known = users(compare=compare)
    assert await name_of(known, connect("alice", b"secret")) == "alice"
    async with trio.open_nursery() as nursery:
        for _ in range(MAX_COMPARED + MAX_WAITING):
            nursery.start_soon(known.authenticate, connect("bob", b"wrong"), HERE)
        while compared < 1 + MAX_COMPARED:  # noqa: ASYNC110 - threads tell nobody
            await trio.sleep(0.001)
        assert await name_of(known, connect("alice", b"secret")) == "alice"
        for name in ("alice", "bob", "nobody"):  # a wrong one is not known again, nor for another user
            password = b"wrong" if name == "alice" else b"secret"
            assert await name_of(known, connect(name, password)) == Reason.SERVER_BUSY
        go.set()


async def test_passwords_that_were_right_are_bounded() -> None:
    env = system_environment()
    passwords = Passwords(simulated_environment(1).compute, env.randomness, lambda known, given: True)
    for number in range(MAX_KNOWN_AGAIN + 10):
        assert await passwords.are_equal(str(number), b"x")
    assert len(passwords._right) <= MAX_KNOWN_AGAIN


def test_hashes_are_told_from_what_is_none() -> None:
    assert problem(HASHES["alice"]) is None
    assert HASHES["alice"] != hashed(b"secret"), "salted"
    for text in ("", "secret", HASHES["alice"][:-1], HASHES["alice"] + "\n", "$2b$12$abc"):
        assert problem(text) is not None
    for password in (b"", b"x" * (MAX_PASSWORD + 1)):
        with pytest.raises(UsageError, match=str(MAX_PASSWORD)):
            hashed(password)


async def test_comparing_does_not_stall_other_clients() -> None:
    known = users()
    longest = 0.0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(known.authenticate, connect("alice", b"wrong"), HERE)
        for _ in range(50):
            before = time.perf_counter()
            await trio.sleep(0.001)
            longest = max(longest, time.perf_counter() - before)
    assert longest < 0.5  # seconds; other work may share the machine
