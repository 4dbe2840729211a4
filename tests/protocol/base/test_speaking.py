"""Speaking: each end of a link reads what the other may say, and the documentation has the same table."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from core_examples import host_card, small_message

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.cover import cover_frames
from hushcast_protocol.cover.lane_papers import LANE_PAPER
from hushcast_protocol.cover.lane_seals import HOST_BLOCK
from hushcast_protocol.cover.letter_contents import CONTENT
from hushcast_protocol.cover.letters import LAYER, LETTER
from hushcast_protocol.cover.receipt_list import BLOCK, LIST
from hushcast_protocol.cover.waybills import WAYBILL
from hushcast_protocol.overlay import box_frames, frame_directions, frames, keeper_frames
from hushcast_protocol.shards import shard_requests

EXAMPLES = [
    frames.Forward(small_message()),
    frames.Ack(1, ()),
    frames.Ping(),
    frames.Drop(small_message(), None),
    frames.Receipt("accepted"),
    frames.ParcelFrame(1, b"sealed", None),
    frames.ParcelAnswer(1, None, ()),
    shard_requests.AskLeaf(1, 1, 0),
    shard_requests.AskSlice(1, 0),
    shard_requests.AskPiece(1, 0),
    shard_requests.ShownLeaf(b"leaf", ()),
    shard_requests.ShownSlice(b"slice"),
    shard_requests.ShownPiece(b"piece", ()),
    shard_requests.ShardUnavailable(),
    keeper_frames.HandIn(small_message()),
    keeper_frames.AskKept(1, b"t" * 16, None),
    keeper_frames.ShownKept((b"m" * 32,), 2),
    keeper_frames.AskKeptMessages(1, b"t" * 16, (b"m" * 32,)),
    keeper_frames.ShownKeptMessages((small_message(),)),
    cover_frames.CoverPlace(b"p" * 32, b"r" * 32, bytes(WAYBILL), None),
    cover_frames.CoverPlaced(None, 7),
    cover_frames.CoverLetters(7, 6, (bytes(LETTER),) * 4),
    cover_frames.CoverBlocks(6, 6, (bytes(BLOCK),) * 4),
    cover_frames.CoverWaybill(bytes(WAYBILL), None),
    cover_frames.CoverPassed(7, b"w" * 16, (bytes(LETTER - LAYER),) * 5),
    cover_frames.CoverMarked(7, (cover_frames.MarkedContent(b"m" * 32, bytes(CONTENT)),)),
    cover_frames.CoverList(7, bytes(LIST)),
    cover_frames.CoverListed(7, b"w" * 16, bytes(BLOCK)),
    cover_frames.CoverBills((cover_frames.LanesBill(b"r" * 32, bytes(LANE_PAPER)),) * 3),
    cover_frames.CoverBill(bytes(LANE_PAPER), None),
    cover_frames.CoverGiven(7, b"l" * 16, bytes(HOST_BLOCK)),
    cover_frames.CoverHanded(7, b"b" * 16, bytes(BLOCK)),
]
OF_BOXES = [
    box_frames.BoxStanding((b"l" * 16,), 3, host_card(0), b"p" * 32, 0),
    box_frames.Hold(1, b"l" * 16, 1, (b"e" * 16,), (b"c" * 32,), None),
    box_frames.Seek(1, (box_frames.SoughtTrunk(1, b"t" * 16, True),), None),
    box_frames.Forget(1),
    box_frames.HoldAnswer(1, "quota"),
    box_frames.TopCopies((box_frames.MessageCopy(b"m" * 32, b"r" * 32),), True),
]
REQUESTS, ANSWERS = get_args(shard_requests.ShardRequest), get_args(shard_requests.ShardAnswer)
OF_KEEPERS = get_args(keeper_frames.KeeperRequest)
OF_COVER = get_args(frame_directions.BetweenCover)
READERS = {
    "a relay, of a relay": (
        frame_directions.decode_from_relay,
        {
            *(frames.Forward, frames.Ack, frames.Ping, frames.ParcelFrame, frames.ParcelAnswer),
            *(keeper_frames.HandIn, *OF_COVER),
        },
    ),
    "a host, of a child": (frame_directions.decode_from_child, {frames.Forward, frames.Ping}),
    "a child, of a host": (frame_directions.decode_to_child, {frames.Ack}),
    "a relay, of a stranger": (
        frame_directions.decode_from_stranger,
        {frames.Drop, frames.ParcelFrame, *REQUESTS, *OF_KEEPERS, cover_frames.CoverPlace},
    ),
    "a host, of an owner": (
        frame_directions.decode_from_owner,
        {frames.Ack, box_frames.Hold, box_frames.Seek, box_frames.Forget, frames.ParcelFrame},
    ),
    "an owner, of a host": (
        frame_directions.decode_to_owner,
        {
            *(box_frames.BoxStanding, box_frames.HoldAnswer, box_frames.TopCopies),
            *(frames.Forward, frames.Ping, frames.ParcelAnswer),
        },
    ),
    "a stranger, of a drop": (frame_directions.decode_receipt, {frames.Receipt}),
    "a stranger, of a parcel": (frame_directions.decode_parcel_answer, {frames.ParcelAnswer}),
    "a stranger, of a question": (shard_requests.decode_shard_answer, set(ANSWERS)),
    "a stranger, of a keeper": (
        frame_directions.decode_keeper_answer,
        set(get_args(keeper_frames.KeeperAnswer)),
    ),
    "a porter, of a daemon": (
        frame_directions.decode_from_covered,
        {cover_frames.CoverLetters, cover_frames.CoverBills},
    ),
    "a daemon, of its porter": (
        frame_directions.decode_to_covered,
        {cover_frames.CoverPlaced, cover_frames.CoverBlocks},
    ),
}


def test_the_examples_are_all_there_are():
    assert {type(frame) for frame in EXAMPLES} == set(get_args(frames.OverlayFrame))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("frame", EXAMPLES + OF_BOXES, ids=lambda frame: type(frame).__name__)
def test_an_end_reads_what_the_other_may_say_and_nothing_else(reader: str, frame: Any):
    decode, said = READERS[reader]
    if type(frame) in said:
        assert decode(encode(frame)) == frame
    else:
        with pytest.raises(DecodeError):
            decode(encode(frame))


def test_the_documentation_has_the_same_table():
    page = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()
    rows = re.search(r"## Frames of the overlay\n\n\| .*\n\|.*\n((?:\|.*\n)+)", page)
    assert rows is not None
    table = {}
    for row in rows[1].splitlines():
        who, what = [cell.strip() for cell in row.strip("|").split("|")]
        table[who] = [set(re.findall(r"`(\w+)`", part)) for part in what.split("back:")]
    names = {who: {kind.__name__ for kind in said} for who, (_, said) in READERS.items()}
    assert table == {
        "relay to relay": [names["a relay, of a relay"]],
        "relay to a host that lists it in no roster": [
            names["a host, of a child"],
            names["a child, of a host"],
        ],
        "owner of a [box](#boxes) to its host": [names["a host, of an owner"], names["an owner, of a host"]],
        "anonymous initiator to relay": [{"Drop"}, names["a stranger, of a drop"]],
        "anonymous initiator to relay, too": [{"ParcelFrame"}, names["a stranger, of a parcel"]],
        "anonymous initiator, for a [shard](#shards)": [
            {kind.__name__ for kind in REQUESTS},
            names["a stranger, of a question"],
        ],
        "anonymous initiator to a [keeper](#keepers)": [
            {kind.__name__ for kind in OF_KEEPERS},
            names["a stranger, of a keeper"],
        ],
        "anonymous initiator to a [porter](#cover)": [
            {"CoverPlace", *names["a porter, of a daemon"]},
            names["a daemon, of its porter"],
        ],
    }
