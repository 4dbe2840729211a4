"""What devices say to each other: sealed, signed, of fixed sizes, and nothing to who is not meant."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.crypto.secrets import AgreementKey, Seed
from hushcast_protocol.base.errors import AuthenticationError, PeerError, UsageError
from hushcast_protocol.devices.beats import MAX_BEAT, Beat, fitting, open_beat, seal_beat
from hushcast_protocol.devices.circle_secrets import (
    CircleSecret,
    Expelled,
    check_secret,
    draw_secret,
    first_keys,
    is_hidden_topic,
    is_stale,
    take_secret,
)
from hushcast_protocol.devices.invitations import (
    DeviceInvitation,
    Welcome,
    network_mark,
    open_joining,
    open_welcome,
    read_invitation,
    seal_joining,
    seal_welcome,
    write_invitation,
)
from hushcast_protocol.devices.shared_entries import DeviceValue, SubscriptionValue, write_entry
from hushcast_protocol.devices.shared_state import SUMMARY

RANDOMNESS = random.Random(1).randbytes
SEEDS = [Seed(bytes([number]) * 32) for number in (1, 2, 3)]
AGREEMENTS = [AgreementKey(bytes([number]) * 32) for number in (4, 5, 6)]
KEYS = [seed.public() for seed in SEEDS]
SECRET = CircleSecret(bytes(range(32)))
LIVING = {
    key: DeviceValue(f"{number}", agreement.public())
    for number, (key, agreement) in enumerate(zip(KEYS, AGREEMENTS, strict=True))
}
INVITATION = DeviceInvitation(network_mark(bytes(32)), bytes(range(32)), KEYS[0], 1_000)
ENTRY = write_entry(SEEDS[1], 1, LIVING[KEYS[1]])
BEAT = Beat(KEYS[0], 7, bytes(SUMMARY), (ENTRY,))


def test_a_beat_has_one_of_three_sizes_whatever_is_in_it() -> None:
    entries = [
        write_entry(SEEDS[0], number, SubscriptionValue(f"hushcast:{number:0>200}", "", bytes(16)))
        for number in range(400)
    ]
    sizes = set()
    for count in (0, 1, 5, 20, 400):
        fit = fitting(entries[:count])
        payload = seal_beat(SECRET, SEEDS[0], Beat(KEYS[0], 7, bytes(SUMMARY), fit), RANDOMNESS)
        assert open_beat(SECRET, payload).entries == fit
        sizes.add(len(payload))
    assert sizes == {4 * 1024, 16 * 1024, MAX_BEAT}
    assert 100 < len(fitting(entries)) < 400


@given(st.data())
def test_a_beat_that_was_changed_or_is_of_others_is_none(data: st.DataObject) -> None:
    payload = seal_beat(SECRET, SEEDS[0], BEAT, RANDOMNESS)
    place = data.draw(st.integers(0, len(payload) - 1))
    flipped = bytearray(payload)
    flipped[place] ^= 1 << data.draw(st.integers(0, 7))
    for broken in (bytes(flipped), payload[:place]):
        with pytest.raises(PeerError):
            open_beat(SECRET, broken)
    with pytest.raises(PeerError):
        open_beat(CircleSecret(bytes(32)), payload)


def test_a_beat_is_signed_by_the_device_that_it_names() -> None:
    with pytest.raises(AuthenticationError):
        open_beat(SECRET, seal_beat(SECRET, SEEDS[1], BEAT, RANDOMNESS))


def test_a_new_secret_opens_for_those_that_stay_alone() -> None:
    first = first_keys(RANDOMNESS)
    staying = {key: LIVING[key] for key in KEYS[:2]}
    assert is_stale(first, {KEYS[2]})
    signed, keys = draw_secret(SEEDS[0], first, staying, {KEYS[2]}, RANDOMNESS)
    assert take_secret(signed, KEYS[1], AGREEMENTS[1]) == keys
    assert keys.rank > first.rank
    assert not is_stale(keys, {KEYS[2]})
    with pytest.raises(Expelled):
        take_secret(signed, KEYS[2], AGREEMENTS[2])
    for key, agreement in ((KEYS[1], AGREEMENTS[2]), (bytes(32), AGREEMENTS[2])):
        with pytest.raises(AuthenticationError):
            take_secret(signed, key, agreement)
    with pytest.raises(AuthenticationError):
        take_secret(msgspec.structs.replace(signed, signature=bytes(64)), KEYS[1], AGREEMENTS[1])


def test_nobody_draws_a_secret_in_another_s_name() -> None:
    keys = first_keys(RANDOMNESS)
    signed, _ = draw_secret(SEEDS[0], keys, LIVING, (), RANDOMNESS)
    for last in (None, signed):
        assert check_secret(signed, keys, (), last) is None
        with pytest.raises(AuthenticationError):
            check_secret(msgspec.structs.replace(signed, signature=bytes(64)), keys, (), last)


def test_nothing_follows_from_one_secret_to_the_next() -> None:
    first = first_keys(RANDOMNESS)
    _, keys = draw_secret(SEEDS[0], first, LIVING, (), RANDOMNESS)
    assert first.secret.topic() != keys.secret.topic()
    assert first.secret.seal_key() != keys.secret.seal_key()
    assert is_hidden_topic(first.secret.topic())
    for secret in (SECRET, INVITATION, ENTRY):
        assert str(list(range(32))) not in repr(secret)
        assert "\\x01\\x02" not in repr(secret)


def test_an_invitation_is_a_link_and_no_topic_s() -> None:
    link = write_invitation(INVITATION)
    assert read_invitation(f" {link}\n") == INVITATION
    assert len(link) < 220, "a code of it fits a terminal"
    for place in range(9, len(link)):
        with pytest.raises(UsageError):
            read_invitation(link[:place] + ("A" if link[place] != "A" else "B") + link[place + 1 :])
    for text in ("", "news", "hushcast:", "x" * 5000):
        with pytest.raises(UsageError):
            read_invitation(text)


def test_a_new_device_is_answered_and_nobody_else() -> None:
    joining = seal_joining(INVITATION, ENTRY, RANDOMNESS)
    entry = open_joining(INVITATION, joining)
    welcome = Welcome(SECRET.reveal(), 3, bytes(16), (KEYS[2],), (ENTRY,))
    answer = seal_welcome(INVITATION, SEEDS[0], entry.read(), welcome, RANDOMNESS)
    assert open_welcome(INVITATION, AGREEMENTS[1], answer) == welcome
    assert open_welcome(INVITATION, AGREEMENTS[1], answer).keys().secret == SECRET
    with pytest.raises(PeerError):
        open_welcome(INVITATION, AGREEMENTS[2], answer)
    with pytest.raises(PeerError):
        open_welcome(INVITATION, AGREEMENTS[1], joining)
    forged = seal_welcome(INVITATION, SEEDS[2], entry.read(), welcome, RANDOMNESS)
    with pytest.raises(AuthenticationError):
        open_welcome(INVITATION, AGREEMENTS[1], forged)
    for place in range(0, len(joining), 7):
        with pytest.raises(PeerError):
            open_joining(INVITATION, joining[:place])


def test_a_device_joins_as_itself_alone() -> None:
    about_another = write_entry(SEEDS[1], 1, LIVING[KEYS[0]], KEYS[0])
    for entry in (about_another, write_entry(SEEDS[1], 1, SubscriptionValue("hushcast:x", "", bytes(16)))):
        with pytest.raises(PeerError):
            open_joining(INVITATION, seal_joining(INVITATION, entry, RANDOMNESS))
