"""Host cards: signed by the host and by the address, or worth nothing."""

from __future__ import annotations

import pytest
from core_examples import host_card, relay_id, seed

from hushcast_protocol.base.addresses import Address, memory_address, onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, signature
from hushcast_protocol.base.errors import AuthenticationError, PeerError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.overlay.host_cards import HostCard, HostPlace, check_host_card, make_host_card

HOST, SERVICE, OTHER = seed(1), seed(2), seed(3)
ADDRESS = onion_address(SERVICE.public())


def signed(relay: Seed, service: Seed, address: Address, by: tuple[Seed, Seed]) -> HostCard:
    place = encode(HostPlace(relay.public(), service.public(), address))
    first, second = (signature(key, SignaturePurpose.HOST_CARD, place) for key in by)
    return HostCard(place, first, second)


@pytest.mark.parametrize("address", [ADDRESS, memory_address(SERVICE.public()), Address("127.0.0.1:4711")])
def test_a_card_tells_who_is_where(address: Address) -> None:
    made = make_host_card(HOST, SERVICE, address)
    assert check_host_card(made) == (HOST.public(), address)
    assert made == make_host_card(HOST, SERVICE, address) == signed(HOST, SERVICE, address, (HOST, SERVICE))
    assert check_host_card(host_card(3))[0] == relay_id(3)


WRONG = {
    "nobody says for a host where it is": signed(HOST, SERVICE, ADDRESS, (OTHER, SERVICE)),
    "nobody has others dial an address that is not his": signed(HOST, SERVICE, ADDRESS, (HOST, OTHER)),
    "nor by a key of his own": signed(HOST, OTHER, ADDRESS, (HOST, OTHER)),
    "signatures are not exchanged": signed(HOST, SERVICE, ADDRESS, (SERVICE, HOST)),
}


@pytest.mark.parametrize("why", WRONG)
def test_one_that_both_keys_have_not_signed_is_worth_nothing(why: str) -> None:
    with pytest.raises(AuthenticationError):
        check_host_card(WRONG[why])


def test_no_bit_of_a_card_can_be_changed() -> None:
    made = make_host_card(HOST, SERVICE, ADDRESS)
    for part in ("place", "by_relay", "by_service"):
        good = bytes(getattr(made, part))
        for bit in range(0, 8 * len(good), 7):
            bad = bytearray(good)
            bad[bit // 8] ^= 1 << bit % 8
            parts = {name: getattr(made, name) for name in ("place", "by_relay", "by_service")}
            with pytest.raises(PeerError):
                check_host_card(HostCard(**(parts | {part: bytes(bad)})))
