"""A proxy, or a few of its users, take all room that the server has for pseudonyms and tokens, so that nobody
else subscribes."""

from __future__ import annotations

import pytest
import trio
from register_world import NOW, PROXIES, TODAY
from small_central import small_central

from hushcast_protocol.base.crypto.group import Scalar, base
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.central import pseudonym_register, request_proofs
from hushcast_protocol.central.introduction import OpenedIntroduction, PseudonymSecret, pseudonym_of
from hushcast_protocol.central.pseudonym_register import PseudonymRegister

MOST, OF_ALL, EACH, ASSURED = 8, 32, 8, 2
SCALARS = [Scalar(number.to_bytes(32, "little")) for number in range(1, 1 + EACH)]
TOKENS = [base(scalar) for scalar in SCALARS]
ONE, OTHER = PROXIES


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> PseudonymRegister:
    for name, value in (
        ("MAX_PSEUDONYMS", MOST),
        ("MAX_TOKENS_OF_ALL", OF_ALL),
        ("MAX_TOKENS_EACH", EACH),
        ("TOKENS_ASSURED", ASSURED),
    ):
        monkeypatch.setattr(pseudonym_register, name, value)
    return PseudonymRegister(Calendar(60), bytes(16))


def subscribe(kept: PseudonymRegister, proxy: bytes, number: int, tokens: int) -> str:
    """Introduce a pseudonym and have it ask for so many tokens; return the verdict."""
    secret = PseudonymSecret(bytes([number]) * 32)
    name = pseudonym_of(secret)
    try:
        kept.introduce(proxy, OpenedIntroduction(name, "subscribe", TODAY, SCALARS[0], secret), NOW)
        kept.subscribe(proxy, request_proofs.subscribe(name, secret, 1, tuple(TOKENS[:tokens])), NOW)
    except Refusal as refusal:
        return refusal.reason
    return "accepted"


def test_few_pseudonyms_with_many_tokens_leave_room_for_all_others(kept: PseudonymRegister) -> None:
    verdicts = [subscribe(kept, ONE, number, EACH) for number in range(4)]
    assert verdicts == ["accepted"] * 2 + ["quota"] * 2
    assert [subscribe(kept, ONE, number, ASSURED) for number in range(10, 16)] == ["accepted"] * 6


def test_one_proxy_leaves_others_their_share(kept: PseudonymRegister) -> None:
    kept.proxies = 2
    verdicts = [subscribe(kept, ONE, number, 1) for number in range(MOST)]
    assert verdicts == ["accepted"] * 4 + ["quota"] * 4
    assert [subscribe(kept, OTHER, 10 + number, 1) for number in range(4)] == ["accepted"] * 4


def test_tokens_of_one_proxy_leave_others_theirs(kept: PseudonymRegister) -> None:
    kept.proxies = 2
    assert [subscribe(kept, ONE, number, EACH) for number in range(2)] == ["accepted", "quota"]
    assert [subscribe(kept, OTHER, 10 + number, EACH) for number in range(2)] == ["accepted", "quota"]


def test_who_asks_for_nothing_gives_way_to_its_own_proxy_alone(kept: PseudonymRegister) -> None:
    kept.proxies = 2
    for proxy, first in ((ONE, 0), (OTHER, 10)):
        for number in range(first, first + 4):
            assert subscribe(kept, proxy, number, 1) == "accepted"
            secret = PseudonymSecret(bytes([number]) * 32)
            kept.withdraw(proxy, request_proofs.withdraw(pseudonym_of(secret), secret, 2, ()))
    assert [subscribe(kept, ONE, 20 + number, 1) for number in range(4)] == ["accepted"] * 4
    assert [subscribe(kept, OTHER, 10 + number, 1) for number in range(4)] == ["form"] * 4  # all still known


async def test_the_server_shares_among_the_proxies_that_are_listed() -> None:
    async with small_central() as network:
        server = network.server.daemon
        assert server._register.proxies == 1
        network.add("second", "deliveries")
        network.add("third", "publications")
        server.replace_proxies(network.proxies)
        assert server._register.proxies == 2


async def test_a_proxy_wants_stamps_once_its_share_at_the_server_gets_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own room is for all that the server has: of several proxies none would ever be half full."""
    monkeypatch.setattr(pseudonym_register, "MAX_PSEUDONYMS", 4)
    async with small_central() as network:
        await network.subscriber()
        await network.subscriber()
        await trio.sleep(300)
        assert (await network.pong(network.deliveries)).difficulty > 0
        assert (await network.pong(network.publications)).difficulty == 0
