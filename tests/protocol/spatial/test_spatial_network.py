"""Located feeds over a network: parts, offers and requests, as they travel and as strangers forge them."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace
from spatial_world import OWNER, World

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.proof_of_work import mint
from hushcast_protocol.base.crypto.sealed_box import seal_box
from hushcast_protocol.base.crypto.secrets import AgreementKey, TopicSecret
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError, UsageError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD
from hushcast_protocol.content.topics import make_topic, write_link
from hushcast_protocol.spatial.keywords import MAX_WORD
from hushcast_protocol.spatial.located_answer import MAX_ANSWER
from hushcast_protocol.spatial.located_requests import (
    SIZES,
    AskTable,
    LocatedRequest,
    RequestConfirmation,
    RequestOpener,
    SealedRequest,
    SubscribeRequest,
    WithdrawRequest,
    decode_reply,
    seal_request,
)
from hushcast_protocol.spatial.located_subscription import MAX_KEYWORDS, LocatedSubscription
from hushcast_protocol.spatial.message_parts import (
    MAX_APART,
    MAX_BEGUN,
    MAX_PARTS,
    PART,
    Assembly,
    MessagePart,
    cut,
)
from hushcast_protocol.spatial.offer import MAX_LINK, MAX_OFFER, Offer, read_offer, write_offer

KEY = AgreementKey(bytes([3]) * 32)
LINK = write_link(make_topic("answers", (), TopicSecret(bytes([4]) * 32)))
OFFER = Offer(KEY.public(), LINK, OWNER.public(), 3)
DAY = 20_000
WORLD = World.draw(Random("network"), most=4, intervals=1)
ASKED = WORLD.subscriptions[0]
REQUESTS: list[LocatedRequest] = [
    SubscribeRequest(bytes([5]) * 32, 1, DAY + 3, LINK, ASKED),
    WithdrawRequest(bytes([5]) * 32, 2, DAY + 3),
    AskTable(LINK),
]


def whole(parts: list[bytes], assembly: Assembly | None = None) -> bytes | None:
    """What comes of parts one after the other, of which the last completes something."""
    assembly = assembly or Assembly()
    found = [assembly.take(part) for part in parts]
    assert found[:-1] == [None] * (len(found) - 1)
    return found[-1]


# --- Parts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 3 * PART])
def test_parts_make_the_whole_in_any_order(size: int) -> None:
    data = Random(size).randbytes(size)
    parts = cut(data)
    assert len(parts) == max(-(-size // PART), 1)
    assert all(len(part) <= MAX_PAYLOAD for part in parts)
    assert whole(parts) == whole(parts[::-1]) == data


def test_the_largest_answer_has_parts_enough() -> None:
    assert MAX_PARTS * PART >= MAX_ANSWER


def test_a_part_that_comes_twice_counts_once() -> None:
    data = bytes(2 * PART)
    first, second = cut(data)
    assert whole([first, first, second]) == data


def test_the_oldest_whole_makes_room() -> None:
    halves = [cut(bytes([number]) * (PART + 1)) for number in range(MAX_BEGUN + 1)]
    assembly = Assembly()
    for first, _ in halves:
        assembly.take(first)
    assert assembly.take(halves[0][1]) is None  # forgotten; its second part begins anew, and makes room
    assert assembly.take(halves[2][1]) == bytes([2]) * (PART + 1)


def test_what_waits_says_from_which_message_on_all_is_needed() -> None:
    first, second = cut(bytes(PART + 1))
    other, last = cut(bytes([1]) * (PART + 1))
    assembly = Assembly()
    assert assembly.oldest is None
    assert not assembly.is_waiting
    assembly.take(first, 7)
    assembly.take(other, 8)
    assert assembly.oldest == 7
    assert assembly.is_waiting
    assembly.take(second, 9)
    assert assembly.oldest == 8
    assembly.take(last, 8 + MAX_APART)
    assert assembly.oldest is None
    assembly.take(first, 1000)
    assert assembly.take(second, 1001 + MAX_APART) is None  # nobody waits for so long
    assert assembly.oldest == 1001 + MAX_APART


def test_parts_of_no_whole_are_refused() -> None:
    name = digest(Domain.LOCATED_PART, b"whole")
    for wrong in (
        b"",
        b"no part",
        encode(MessagePart(name, 1, 1, b"whole")),
        encode(MessagePart(name, 0, 1, b"another")),
        encode(MessagePart(name, 0, MAX_PARTS + 1, b"")),
        encode(MessagePart(name, 0, 1, bytes(PART + 1))),
        encode(MessagePart(name, 0, 1, b"whole")) + b"\0",
    ):
        with pytest.raises(DecodeError):
            Assembly().take(wrong)


def test_who_says_another_number_of_parts_spoils_nothing() -> None:
    data = bytes(PART + 1)
    first, second = cut(data)
    assembly = Assembly()
    assembly.take(first)
    with pytest.raises(DecodeError):
        assembly.take(encode(MessagePart(digest(Domain.LOCATED_PART, data), 0, 1, b"forged")))
    assert assembly.take(second) == data


# --- Offers ------------------------------------------------------------------------------------------------


def test_an_offer_is_one_line_of_text() -> None:
    text = write_offer(OFFER)
    assert read_offer(f"  {text}\n") == OFFER
    assert len(text.split()) == 1
    largest = replace(OFFER, requests="x" * MAX_LINK)
    assert len(encode(largest)) <= MAX_OFFER
    assert read_offer(write_offer(largest)) == largest


def test_an_offer_that_was_cut_or_altered_is_told() -> None:
    text = write_offer(OFFER)
    wrong = [text[:end] for end in range(len(text))]
    wrong += [text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :] for at in range(len(text))]
    wrong += [text + "A", text + "ä", "hushcast-provider:" + "A" * 5000]
    for one in wrong:
        with pytest.raises(UsageError, match="hushcast located offer"):
            read_offer(one)


def test_an_offer_for_nothing_is_none() -> None:
    for nothing in (replace(OFFER, difficulty=0), replace(OFFER, requests="x" * (MAX_LINK + 1))):
        with pytest.raises(UsageError):
            read_offer(write_offer(nothing))


# --- Requests ----------------------------------------------------------------------------------------------


def sealed(request: LocatedRequest, number: int = 0, offer: Offer = OFFER, day: int = DAY) -> bytes:
    return seal_request(request, offer, day, Random(f"sealed {number}").randbytes)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_a_request_is_opened_once(request_: LocatedRequest) -> None:
    opening = RequestOpener(KEY, OFFER.difficulty)
    data = sealed(request_)
    assert opening.open(data, DAY) == request_
    with pytest.raises(AuthenticationError):
        opening.open(data, DAY)
    assert opening.open(sealed(request_, 1), DAY) == request_  # told again, and paid again


def test_requests_have_three_sizes() -> None:
    def wide(count: int) -> SubscribeRequest:
        words = tuple("\U00020000" * (MAX_WORD - 2) + f"{number:02}" for number in range(count))
        asked = replace(ASKED, words=words)
        return SubscribeRequest(bytes(32), 2**48 - 1, 2**48 - 1, "x" * MAX_LINK, asked)

    assert [len(sealed(request)) for request in REQUESTS] == [len(sealed(REQUESTS[0]))] * len(REQUESTS)
    around = len(sealed(REQUESTS[0])) - SIZES[0]
    for request, size in ((wide(8), SIZES[1]), (wide(MAX_KEYWORDS), SIZES[2])):
        data = sealed(request)
        assert len(data) - around == size
        assert RequestOpener(KEY, OFFER.difficulty).open(data, DAY) == request


def test_a_request_without_a_stamp_of_the_day_is_refused() -> None:
    data = sealed(REQUESTS[0])
    assert RequestOpener(KEY, OFFER.difficulty).open(data, DAY + 1) == REQUESTS[0]
    for opening, day in ((RequestOpener(KEY, OFFER.difficulty), DAY + 2), (RequestOpener(KEY, 19), DAY)):
        with pytest.raises(AuthenticationError):
            opening.open(data, day)


def test_a_request_to_another_provider_is_refused() -> None:
    other = AgreementKey(bytes([9]) * 32)
    with pytest.raises(AuthenticationError):
        RequestOpener(other, 1).open(sealed(REQUESTS[0], offer=replace(OFFER, difficulty=1)), DAY)


def test_a_key_of_low_order_is_refused() -> None:
    with pytest.raises(AuthenticationError):
        seal_request(REQUESTS[0], replace(OFFER, key=bytes(32)), DAY, Random(1).randbytes)


@pytest.mark.parametrize(
    "plain",
    [
        b"",
        bytes(SIZES[0]),
        b"\x01" + bytes(SIZES[0] - 1),
        (encode(REQUESTS[1]) + b"\x01").ljust(SIZES[0] + 1, b"\0"),
        (encode(REQUESTS[1]) + b"\x01").ljust(SIZES[0] - 1, b"\0") + b"\x02",
        (encode(REQUESTS[1]) + b"x\x01").ljust(SIZES[0], b"\0"),
    ],
    ids=["empty", "zeros", "pad alone", "another size", "rest behind the pad", "more than a request"],
)
def test_what_is_not_padded_as_it_has_to_be_is_refused(plain: bytes) -> None:
    box = seal_box(KEY.public(), plain, Random(2).randbytes)
    stamp = mint(KEY.public(), DAY, digest(Domain.LOCATED_REQUEST, box), 1, Random(3).randbytes)
    with pytest.raises(DecodeError):
        RequestOpener(KEY, 1).open(encode(SealedRequest(stamp, box)), DAY)


@pytest.mark.parametrize("wrong", [{"place": (0, 0, 0)}, {"words": ("b", "a")}])
def test_a_subscription_as_nobody_writes_it_is_refused(wrong: dict[str, object]) -> None:
    request = SubscribeRequest(bytes(32), 1, DAY, LINK, replace(ASKED, **wrong))
    with pytest.raises(DecodeError):
        RequestOpener(KEY, OFFER.difficulty).open(sealed(request), DAY)


def test_a_request_that_was_damaged_is_refused() -> None:
    data = sealed(REQUESTS[0])
    for at in range(0, len(data), 7):
        for wrong in (data[:at], data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]):
            with pytest.raises(PeerError):
                RequestOpener(KEY, OFFER.difficulty).open(wrong, DAY)


def test_two_requests_of_one_subscriber_have_nothing_in_common() -> None:
    one, other = sealed(REQUESTS[0], 1), sealed(REQUESTS[0], 2)
    alike = sum(first == second for first, second in zip(one, other, strict=True))
    assert alike < len(one) / 20  # chance makes one byte in 256 alike, and the form some twenty


def test_replies_are_told_apart() -> None:
    feed = WORLD.feeds[0]
    for reply in (
        RequestConfirmation(1, None),
        RequestConfirmation(2, feed.batch.signed),
        WORLD.answers[0][0],
        feed.table.whole,
    ):
        assert decode_reply(encode(reply)) == reply
    with pytest.raises(DecodeError):
        decode_reply(encode(LocatedSubscription(ASKED.place, ASKED.words, 0, 0)))
