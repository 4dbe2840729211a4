"""Frames: tags of their own, and limits that hold what they must."""

from typing import get_args

import msgspec
import pytest
from core_examples import small_message, stream

from hushcast_protocol.authorities import directory_requests as asked
from hushcast_protocol.base.crypto.proof_of_work import ProofOfWork
from hushcast_protocol.base.crypto.secrets import TopicKey
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.messages import MAX_TOKENS, Message
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD
from hushcast_protocol.overlay import frames
from hushcast_protocol.overlay.confirmations import MAX_CONFIRMATIONS
from hushcast_protocol.overlay.parcels import MAX_PARCEL
from hushcast_protocol.overlay.profile import HARDENED, MAX_DEPTH, PAPER, PROFILES, Root


def largest_message() -> Message:
    tokens = tuple(number.to_bytes(16, "big") for number in range(MAX_TOKENS))
    return compose(TopicKey(bytes(32)), 2**48 - 1, tokens, Content(bytes(MAX_PAYLOAD)), stream())


@pytest.mark.parametrize(
    "frame",
    [
        frames.Forward(largest_message()),
        frames.Drop(largest_message(), ProofOfWork(2**48 - 1, bytes(8))),
        frames.Ack(2**48 - 1, ()),
        frames.ParcelFrame(2**48 - 1, bytes(MAX_PARCEL), ProofOfWork(2**48 - 1, bytes(8))),
        frames.ParcelAnswer(2**48 - 1, "withdrawn", (bytes(16),) * MAX_CONFIRMATIONS),
    ],
    ids=lambda frame: type(frame).__name__,
)
def test_the_largest_frames_fit(frame):
    assert frames.decode_overlay(encode(frame)) == frame


@pytest.mark.parametrize(
    "frame",
    [
        frames.ParcelFrame(1, bytes(MAX_PARCEL + 1), None),
        frames.ParcelAnswer(1, "x" * 65, ()),
        frames.ParcelAnswer(1, "unheard of", ()),
        frames.ParcelAnswer(1, "", ()),
        frames.ParcelAnswer(1, "Form", ()),
        frames.ParcelAnswer(1, None, (bytes(16),) * (MAX_CONFIRMATIONS + 1)),
        frames.ParcelAnswer(1, None, (b"short",)),
        frames.Ack(-1, ()),
        frames.Ack(2**48, ()),
        frames.Receipt("unheard of"),
        frames.Receipt(None),
    ],
)
def test_frames_over_their_limits_are_refused(frame):
    with pytest.raises(DecodeError):
        frames.decode_overlay(encode(frame))


@pytest.mark.parametrize("reason", get_args(frames.RefusalReason))
def test_every_reason_to_refuse_a_parcel_is_read(reason):
    answer = frames.ParcelAnswer(1, reason, ())
    assert frames.decode_overlay(encode(answer)) == answer


PRINTABLE = "".join(map(chr, range(32, 127)))


@pytest.mark.parametrize("reason", ["", PRINTABLE, "x" * 256])
def test_a_directory_says_why_in_printable_ascii(reason):
    answer = asked.DirectoryRefusal(reason)
    assert asked.decode_directory_answer(encode(answer)) == answer


@pytest.mark.parametrize(
    "reason", ["a\nline", "\n", "full\n", "\x1b[2J", "\x7f", "\x00", "caf\u00e9", "\u202e", "x" * 257]
)
def test_a_directory_cannot_write_on_a_terminal_or_forge_log_lines(reason):
    with pytest.raises(DecodeError):
        asked.decode_directory_answer(encode(asked.DirectoryRefusal(reason)))


def test_each_kind_of_end_reads_its_own_frames_only():
    overlay = [frames.Forward(small_message()), frames.Ack(1, ()), frames.Receipt("accepted")]
    requests, answers = (
        [asked.Fetch(1)],
        [
            asked.RelayRegistered(),
            asked.DirectoryRefusal("full"),
            asked.Rosters(None, False),
        ],
    )
    readers = [
        (frames.decode_overlay, overlay),
        (asked.decode_directory_request, requests),
        (asked.decode_directory_answer, answers),
    ]
    for read, own in readers:
        for _, theirs in readers:
            for frame in theirs:
                if theirs is own:
                    assert read(encode(frame)) == frame
                else:
                    with pytest.raises(DecodeError):
                        read(encode(frame))


def test_frames_on_the_wire_do_not_change():
    assert encode(frames.Ack(7, ())) == msgspec.msgpack.encode(["ack", 7, []])
    assert encode(frames.Receipt("day")) == msgspec.msgpack.encode(["receipt", "day"])
    assert encode(frames.ParcelFrame(1, b"s", None)) == msgspec.msgpack.encode(["parcel", 1, b"s", None])
    stamp = ProofOfWork(2, b"12345678")
    assert encode(stamp) == msgspec.msgpack.encode(["stamp", 2, b"12345678"])
    assert encode(frames.ParcelAnswer(1, None, ())) == msgspec.msgpack.encode(["parcel-answer", 1, None, []])
    message = small_message()
    fields = ["message", message.id, message.day, list(message.tokens), message.trail, message.body]
    assert encode(frames.Forward(message)) == msgspec.msgpack.encode(["forward", fields])


def test_profiles_are_what_the_design_says():
    assert {"paper": PAPER, "hardened": HARDENED} == PROFILES
    assert (PAPER.root, PAPER.edge_elements, PAPER.trail_alone_drops) == (Root.LISTED, False, True)
    assert (HARDENED.root, HARDENED.edge_elements, HARDENED.trail_alone_drops) == (Root.HOST, True, False)
    assert all(1 <= profile.depth <= MAX_DEPTH for profile in PROFILES.values())
