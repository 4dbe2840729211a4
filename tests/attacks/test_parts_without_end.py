"""Whoever knows a topic sends parts that never end, contradict, or make nothing: nothing is shown that nobody
published, what waits is bounded, and others' messages come through.
"""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from parts_reader import AUTHOR, SECRETS, TOKENS, Reader, payload

from hushcast_local import waiting_parts
from hushcast_local.inbox_records import PART
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, signature
from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.messages import SEAL, Message
from hushcast_protocol.content.parts import MAX_PARTS, part_content

FORGER = Seed(b"f" * 32)


def part(reader: Reader, payload: bytes, proof: bytes | None = None) -> Message:
    """A part with whatever is in it, signed by a key that is good for it unless another proof is given."""
    own = FORGER.public() + signature(FORGER, SignaturePurpose.PART, payload)
    return sealed(reader, Content(payload, part_proof=proof or own))


def sealed(reader: Reader, content: Content) -> Message:
    return compose(reader.key(reader.day), reader.day, TOKENS, content, reader.env.randomness)


async def test_a_flood_of_first_parts_has_a_bound_and_lets_others_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting_parts, "MAX_WAITING_PARTS", 20)
    reader, flood = Reader(), 0
    for one in reader.parts(reader.whole(1), SECRETS[1]):
        for _ in range(3):
            flood += 1
            await reader.take(reader.parts(reader.whole(0), Seed(flood.to_bytes(32, "big")))[0])
        await reader.take(one)
        assert len(reader.subscription._parts._wholes) <= 20
    assert await reader.shown() == [payload(1)]
    left = await reader.store.scan(PART)
    assert len(left) <= 20
    listener = reader.subscription.inbox.listen()
    assert listener.lost() == 0, "of a message nobody is told for one part of it"
    await reader.die_within(reader.whole(0, "small"), 9)
    assert len(reader.subscription._parts._wholes) == len(left)


async def test_what_was_sent_once_keeps_no_later_message_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strangers' parts give way, however many each of their messages has, and that is told once for each."""
    monkeypatch.setattr(waiting_parts, "MAX_WAITING_PARTS", 20)
    reader = Reader()
    for stranger in range(5):
        secret = Seed(bytes([200 + stranger]) * 32)
        for one in reader.parts(reader.whole(0), secret)[:4]:
            await reader.take(one)
    listener = reader.subscription.inbox.listen()
    for at, one in enumerate(reader.parts(reader.whole(1), SECRETS[1])):
        if at % 4 == 1:
            await reader.take(reader.parts(reader.whole(0), Seed(bytes([100 + at]) * 32))[0])
        await reader.take(one)
    assert await reader.shown() == [payload(1)]
    assert 0 < (listener.lost() or 0) <= 5


async def test_a_part_for_a_subscription_that_has_ended_leaves_nothing() -> None:
    reader = Reader()
    reader.subscription.scope.cancel()
    reader.subscription.inbox.close()
    await reader.subscription.inbox.erase()
    await reader.take(reader.parts(reader.whole(0), SECRETS[0])[0])
    await reader.store.write()
    assert not await reader.store.scan(PART)


async def test_nobody_adds_to_a_message_or_puts_another_piece_into_it() -> None:
    reader = Reader()
    whole = reader.whole(0)
    true = [part_content(SECRETS[0], whole, number) for number in range(5)]
    for content in true[:4]:
        proof = content.part_proof
        assert proof is not None
        other = content.payload[:10] + bytes(len(content.payload) - 10)
        forged = proof[:32] + signature(FORGER, SignaturePurpose.PART, other)
        for false in (replace(content, payload=other), replace(content, payload=other, part_proof=forged)):
            await reader.take(sealed(reader, false))
        await reader.take(sealed(reader, content))
    assert reader.counters["messages_not_ours"] == 8
    await reader.take(sealed(reader, true[4]))
    assert await reader.shown() == [payload(0)]


async def test_one_key_for_two_messages_makes_one_of_them_or_none() -> None:
    reader = Reader()
    for number, whole in enumerate([reader.whole(0), reader.whole(2), reader.whole(1)]):
        for at in range(3):
            content = part_content(SECRETS[number], whole, at).payload
            await reader.take(part(reader, content))
    assert len(await reader.store.scan(PART)) == 3
    assert not await reader.shown()


@pytest.mark.parametrize("inside", ["nothing", "a probe", "a part", "another topic's"])
async def test_what_makes_no_message_leaves_nothing(inside: str) -> None:
    reader = Reader()
    whole = reader.whole(0)
    if inside == "nothing":
        whole = replace_body(whole, bytes(len(whole.body)))
    elif inside == "a probe":
        content = Content(b"p" * 2000, {"kind": "big"}, probe=True)
        whole = sealed(reader, content)
    elif inside == "a part":
        proof = part_content(SECRETS[1], reader.whole(0), 0).part_proof
        whole = sealed(reader, Content(b"p" * 2000, part_proof=proof))
    else:
        key = reader.key(reader.day + 1)
        whole = compose(key, reader.day, TOKENS, Content(b"o" * 2000), reader.env.randomness, AUTHOR)
    for one in reader.parts(whole, SECRETS[0]):
        await reader.take(one)
    assert await reader.shown() == []
    assert reader.counters["messages_not_ours"] == 1
    assert not await reader.store.scan(PART)
    for one in reader.parts(whole, SECRETS[0], later=1)[1:]:
        await reader.take(one)
    assert not await reader.store.scan(PART), "its parts are known, and begin nothing anew"


def replace_body(message: Message, body: bytes) -> Message:
    return Message(message.id, message.day, message.tokens, message.trail, body)


async def test_no_part_takes_a_long_step() -> None:
    reader = Reader()
    whole = sealed(reader, Content(b"l" * 60_000, {"kind": "big"}))
    parts = reader.parts(whole, SECRETS[0])
    assert (len(parts), len(whole.body)) == (MAX_PARTS, 103 + 64 * 1024 + SEAL)
    longest = 0.0
    for one in parts:
        begin = time.thread_time()
        await reader.take(one)
        longest = max(longest, time.thread_time() - begin)
    assert await reader.shown() == [b"l" * 60_000]
    assert longest < 0.05
