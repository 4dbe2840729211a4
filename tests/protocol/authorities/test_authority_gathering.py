"""What authorities tell each other of descriptors: newer ones are asked for, and each has its bounds."""

from __future__ import annotations

import pytest
from core_examples import seed, signed_descriptor
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcast_protocol.authorities.ballots import MAX_LISTED
from hushcast_protocol.authorities.descriptor_exchange import (
    MAX_BATCH,
    MAX_GATHERED,
    MAX_GIVEN,
    MAX_HAVE,
    AskDescriptors,
    DescriptorBatch,
    DescriptorExchange,
    HaveDescriptors,
    decode_peer_frame,
    shown,
)
from hushcast_protocol.authorities.frames import MAX_PEER_FRAME
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import DecodeError, PeerError
from hushcast_protocol.base.roster import MAX_DESCRIPTOR, descriptor_digest
from hushcast_protocol.base.wire import encode

ONE, OTHER = seed(1).public(), seed(2).public()


def held(number: int, issued: int = 10) -> tuple[bytes, bytes, int]:
    return number.to_bytes(32, "big"), number.to_bytes(16, "big"), issued


def test_only_what_is_newer_is_asked_for_and_once() -> None:
    gathering = DescriptorExchange()
    own = {held(1)[0]: 10, held(2)[0]: 9, held(3)[0]: 11}
    have = HaveDescriptors((held(1), held(2), held(3), held(4)))
    assert gathering.heard(ONE, have, own.get) == [AskDescriptors((held(2)[1], held(4)[1]))]
    assert gathering.heard(ONE, have, own.get) == []
    # Another one may hold what the first does not give.
    assert gathering.heard(OTHER, have, own.get) == [AskDescriptors((held(2)[1], held(4)[1]))]


def test_only_what_was_asked_for_is_taken_and_once() -> None:
    gathering = DescriptorExchange()
    signed = signed_descriptor(1)
    known = descriptor_digest(signed.body)
    (question,) = gathering.ask(ONE, [known])
    given = gathering.asked(OTHER, question, {known: signed}.get)
    assert given == DescriptorBatch((signed,))
    assert gathering.given(OTHER, given) == []
    assert gathering.given(ONE, given) == [(known, signed)]
    assert gathering.given(ONE, given) == []
    assert gathering.asked(OTHER, AskDescriptors((bytes(16),)), {known: signed}.get) is None
    gathering.ask(ONE, [known])
    gathering.begin()
    assert gathering.given(ONE, given) == []  # late: it is of an exchange gone by
    with pytest.raises(DecodeError):
        gathering.given(ONE, DescriptorBatch((signed, Signed(b"no descriptor", bytes(64)))))


def test_one_sender_has_no_more_than_its_share() -> None:
    gathering = DescriptorExchange()
    many = [held(number) for number in range(MAX_GATHERED + 500)]
    asked = [question for have in shown(many) for question in gathering.heard(ONE, have, {}.get)]
    assert sum(len(question.digests) for question in asked) == MAX_GATHERED
    assert all(len(question.digests) <= MAX_BATCH for question in asked)
    assert gathering.heard(OTHER, HaveDescriptors((held(1),)), {}.get) != []
    gathering.begin()
    assert gathering.heard(ONE, HaveDescriptors((held(1),)), {}.get) != []


def test_one_asker_is_given_no_more_than_its_share() -> None:
    gathering = DescriptorExchange()
    signed = Signed(b"", bytes(64))
    question = AskDescriptors((bytes(16),) * MAX_BATCH)
    answers = [
        gathering.asked(ONE, question, lambda known: signed) for _ in range(MAX_GIVEN // MAX_BATCH + 3)
    ]
    assert sum(len(answer.descriptors) for answer in answers if answer) <= MAX_GIVEN
    assert answers[-1] is None
    assert gathering.asked(OTHER, question, lambda known: signed) is not None


def test_the_largest_frames_fit() -> None:
    all_held = [(bytes([255]) * 32, bytes(16), 2**47)] * MAX_LISTED
    frames = shown(all_held)
    assert [len(frame.held) for frame in frames] == [*[MAX_HAVE] * 18, MAX_LISTED - 18 * MAX_HAVE]
    largest = DescriptorBatch((Signed(bytes(MAX_DESCRIPTOR), bytes(64)),) * MAX_BATCH)
    for frame in (frames[0], largest, AskDescriptors((bytes(16),) * MAX_BATCH)):
        assert decode_peer_frame(encode(frame)) == frame
        assert len(encode(frame)) <= MAX_PEER_FRAME
    for bad in (["have", [held(1)] * (MAX_HAVE + 1)], ["ask-descriptors", []], ["descriptors", [1]]):
        with pytest.raises(DecodeError):
            decode_peer_frame(encode(bad))


@settings(deadline=None)
@given(st.data())
def test_every_cut_and_flip_is_refused_or_read(data: st.DataObject) -> None:
    whole = encode(
        data.draw(st.sampled_from([HaveDescriptors((held(1), held(2))), AskDescriptors((bytes(16),))]))
    )
    cut = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[cut] ^= 1 << data.draw(st.integers(0, 7))
    for bad in (whole[:cut], bytes(flipped)):
        try:
            frame = decode_peer_frame(bad)
        except PeerError:
            continue
        assert encode(frame) is not None
        assert bad != whole[:cut]
