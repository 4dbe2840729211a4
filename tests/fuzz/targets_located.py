"""Targets: what a provider and a subscriber of located feeds read, signed anew where an owner could lie."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from random import Random

import msgspec
from alert_examples import documents
from fuzzing import Script, Target, scripts
from mutating import mutate_bytes, mutate_packed, mutate_text
from spatial_world import OWNER, World, entries, wants
from targets_decoders import unpacked

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.proof_of_work import mint
from hushcast_protocol.base.crypto.sealed_box import seal_box
from hushcast_protocol.base.crypto.secrets import AgreementKey, Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, signature
from hushcast_protocol.base.errors import PeerError, UsageError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.alert_documents import read_document
from hushcast_protocol.spatial.batch import WholeBatch, read_batch
from hushcast_protocol.spatial.feed_events import MAX_PASSED, IntervalArrived
from hushcast_protocol.spatial.feed_follower import MAX_EARLY, FeedFollower
from hushcast_protocol.spatial.keywords import MAX_WORD, MAX_WORDS, are_words, asked_words, words_of
from hushcast_protocol.spatial.located_answer import ProviderBatch, decode_answer
from hushcast_protocol.spatial.located_messages import EXAMPLE as MESSAGE
from hushcast_protocol.spatial.located_messages import LocatedMessage, read_message
from hushcast_protocol.spatial.located_requests import (
    MAX_DAYS,
    SIZES,
    AskTable,
    RequestConfirmation,
    RequestOpener,
    SealedRequest,
    SubscribeRequest,
    WithdrawRequest,
    decode_reply,
)
from hushcast_protocol.spatial.located_subscription import EXAMPLE as SUBSCRIPTION
from hushcast_protocol.spatial.located_subscription import LocatedSubscription, read_subscription
from hushcast_protocol.spatial.message_parts import MAX_BEGUN, PART, Assembly, MessagePart, cut
from hushcast_protocol.spatial.offer import Offer, read_offer, write_offer
from hushcast_protocol.spatial.owner_keys import MAX_OWNER_KEYS, OwnerKeys, decode_handovers, sign_handover
from hushcast_protocol.spatial.places import on_earth
from hushcast_protocol.spatial.subscription_register import (
    RegisteredSubscription,
    RequestVerdict,
    SubscriptionRegister,
    WithdrawnSubscription,
    decode_record,
)
from hushcast_protocol.spatial.verifier import verify
from hushcast_protocol.spatial.weight_table import read_table

_WORLD = World.draw(Random("located"), most=12)
_FEED = _WORLD.feeds[-1]
_KEY = AgreementKey(bytes([3]) * 32)
_ASKED = {one.digest: one for one in _WORLD.subscriptions}


def _signed_anew(data: bytes, purpose: SignaturePurpose, at: int) -> bytes:
    """Sign whatever stands where the signed body does, as an owner may."""
    tree = unpacked(data)
    if isinstance(tree, list) and len(tree) > at and isinstance(tree[at], list) and len(tree[at]) > 2:
        body = tree[at][1]
        if isinstance(body, bytes):
            tree[at][2] = signature(OWNER, purpose, body)
    return encode(tree)


def _batch(data: bytes) -> object:
    """A provider: what it takes it can answer from, and the answers hold."""
    owner, batch, root = read_batch(_signed_anew(data, SignaturePurpose.LOCATED_BATCH, 2))
    assert owner == OWNER.public()
    assert batch.body.count == len(list(entries(root)))
    if batch.body.table == _FEED.table.digest:
        _hold(ProviderBatch(batch, root, _FEED.table), _WORLD.subscriptions[0])
    return root


def _table(data: bytes) -> object:
    table = read_table(_signed_anew(data, SignaturePurpose.LOCATED_TABLE, 1), OWNER.public())
    asked = table.asked(_WORLD.subscriptions[0])
    assert asked.whole >= 1
    return asked


def _keys(data: bytes) -> object:
    """A subscriber: whatever these keys sign, each is followed by what it named, and by no other."""
    tree = unpacked(data)
    for one in tree if isinstance(tree, list) else ():
        if isinstance(one, list) and len(one) > 2 and isinstance(one[1], bytes):
            seed = next((seed for seed in _SEEDS if seed.public() in one[1][:80]), OWNER)
            one[2] = signature(seed, SignaturePurpose.LOCATED_HANDOVER, one[1])
    given = decode_handovers(encode(tree))
    keys = OwnerKeys(OWNER.public()).extended(given)
    assert len(keys.signed) <= MAX_OWNER_KEYS
    assert keys.extended(given) == keys == OwnerKeys.read(keys.root, keys.signed)
    named = {one.last: (one.old, one.new) for one in keys.said}
    for at in sorted(named):
        if at in named and keys.end != at:
            assert (keys.of(at), keys.of(at + 1)) in (named[at], (keys.root, keys.root))
    return keys


_SEEDS = [OWNER, *(Seed(bytes([at]) * 32) for at in (21, 22, 23))]
_HANDOVERS = tuple(
    sign_handover(old, new.public(), 10 * at, bytes([at]) * 32)
    for at, (old, new) in enumerate(pairwise(_SEEDS), start=1)
)
_REVOKED = (*_HANDOVERS[:2], sign_handover(_SEEDS[2], None, 30, bytes(32)))


def _hold(feed: ProviderBatch, one: LocatedSubscription) -> None:
    (answer,) = feed.answers([one])
    said = verify(OWNER.public(), one, encode(answer))
    wanted = [entry.message.id for entry in entries(feed.root) if wants(one, entry.message, feed.table)]
    assert sorted(message.id for message in said.messages) == sorted(wanted)


def _answer(data: bytes) -> object:
    """A subscriber: what holds says what the honest answer for that batch says."""
    answer = decode_answer(data)
    one = _ASKED.get(answer.subscription, _WORLD.subscriptions[0])
    said = verify(OWNER.public(), one, data)
    feed = _WORLD.feeds[said.batch.body.number - 1]
    wanted = [entry.message for entry in entries(feed.root) if wants(one, entry.message, feed.table)]
    assert {(each.id, each.payload) for each in said.messages} == {(each.id, each.payload) for each in wanted}
    return said


def _line(data: bytes) -> object:
    """A subscription as a person writes it: every one that is taken gets an answer that holds."""
    name, one = read_subscription(data)
    assert on_earth(one.place)
    _hold(_FEED, one)
    return name


def _message(data: bytes) -> object:
    message = read_message(data, 1)
    assert on_earth(message.place)
    return message


def _document(data: bytes) -> object:
    found = read_document(data)
    for one in found.messages:
        assert on_earth(one.place)
        assert msgspec.msgpack.decode(encode(one), type=LocatedMessage) == one
    return found.messages


def _words(data: bytes) -> object:
    """Any text: words are within their bounds, and what is asked for in its own words is found in it."""
    text = data.decode(errors="replace")
    said, asked = words_of(text), asked_words(text)
    for words in (said, asked):
        assert are_words(words)
        assert all(1 <= len(one) <= MAX_WORD for one in words)
    assert set(asked) <= set(said) or len(said) == MAX_WORDS
    return said


def _parts(data: bytes) -> object:
    """Parts between those of an honest whole: they keep nobody from it, and are held within the bound."""
    honest, first, second = _cut()
    assembly = Assembly()
    assembly.take(first, 1)
    try:
        assembly.take(data, 2)
    finally:
        assert assembly.oldest == 1
        assert assembly.take(second, 3) == honest
        assert len(assembly._begun) <= MAX_BEGUN
    return assembly


@cache
def _cut() -> tuple[bytes, bytes, bytes]:
    """An honest whole, a little longer than a part, and its parts."""
    honest = b"honest" * (PART // 5)
    return honest, *cut(honest)


def _following(data: bytes) -> object:
    """A provider sends anything, and the subscriber dies now and then: what is told is true."""
    script, now = Script(data), float(_WORLD.feeds[0].batch.body.start)
    one = _WORLD.subscriptions[0]
    following = FeedFollower(OWNER.public(), one, now, 1)
    told: list[int] = []
    while script:
        move = script.number()
        if move < 200:
            reply = script.choose(_replies())
            if move < 40:
                at = script.number(2) % len(reply)
                reply = reply[:at] + script.take(3) + reply[at + 3 :]
            following.hear(reply, now, len(told))
        elif move < 220:
            following = FeedFollower(OWNER.public(), one, now, 1, followed=following.state)
            told.clear()  # what was not noted may come again
        elif move < 240:
            now += script.number(2)
        elif (deadline := following.deadline) is not None:
            now = max(now, deadline)
        for _ in range(200):
            event = following.step(now)
            if event is None:
                break
            if isinstance(event, IntervalArrived):
                feed = _WORLD.feeds[event.batch.body.number - 1]
                wanted = {
                    each.message.id for each in entries(feed.root) if wants(one, each.message, feed.table)
                }
                assert {message.id for message in event.messages} == wanted
                assert event.batch.body.number not in told
                told.append(event.batch.body.number)
        else:
            raise AssertionError("it never comes to an end")
        assert following.deadline is None or following.deadline > now
        assert len(following._early) <= MAX_EARLY
        assert len(following.state.passed) <= MAX_PASSED
    return following


@cache
def _replies() -> list[bytes]:
    taken = [encode(RequestConfirmation(at % 3, feed.batch.signed)) for at, feed in enumerate(_WORLD.feeds)]
    return [*_answers(), *taken]


def _offer(data: bytes) -> object:
    offer = read_offer(data.decode(errors="replace"))
    assert offer.difficulty >= 1
    return offer


def _request(data: bytes) -> object:
    """A request whose plain bytes are anything, sealed and paid for."""
    data = data[: max(SIZES)]
    box = seal_box(_KEY.public(), data, Random(1).randbytes)
    stamp = mint(_KEY.public(), 1, digest(Domain.LOCATED_REQUEST, box), 1, Random(2).randbytes)
    request = RequestOpener(_KEY, 1).open(encode(SealedRequest(stamp, box)), 1)
    assert len(data) in SIZES
    if isinstance(request, SubscribeRequest):
        _hold(_FEED, request.subscription)
    return request


def _sealed(data: bytes) -> object:
    return RequestOpener(_KEY, 1).open(data, 1)


def _provider(data: bytes) -> object:
    """Any run of requests: caps hold, of two requests the higher number, and what is kept is read back."""
    script, register = Script(data), SubscriptionRegister(2)
    today, highest = 100, dict[bytes, int]()
    while script:
        name, number, until = (
            bytes([script.number() % 4]) * 32,
            script.number() % 8,
            today + script.number() % 40,
        )
        if script.number() % 2:
            request: SubscribeRequest | WithdrawRequest = SubscribeRequest(
                name, number, until, "link", _WORLD.subscriptions[0]
            )
        else:
            request = WithdrawRequest(name, number, until)
        if register.take(request, today, script.number()) is RequestVerdict.TAKEN:
            assert number > highest.get(name, -1)
            highest[name] = number
        register.spare()
        for key in register.names():
            record = register.get(key)
            assert decode_record(encode(record)) == record
            assert today <= record.until <= today + MAX_DAYS
            assert record.number == highest[key]
        assert len(register) <= 2
        assert len(register.names()) <= 4
        if script.number() % 4 == 0:
            today += script.number() % 20
            for key in register.expire(register.names(), today):
                del highest[key]
        highest = {key: highest[key] for key in register.names()}
    return register


def _requests() -> list[bytes]:
    one = _WORLD.subscriptions[0]
    asked = [
        SubscribeRequest(bytes(32), 1, 2, "link", one),
        WithdrawRequest(bytes(32), 2, 3),
        AskTable("link"),
    ]
    return [(encode(request) + b"\1").ljust(SIZES[0], b"\0") for request in asked]


def _boxes() -> list[bytes]:
    found = []
    for number, plain in enumerate(_requests()):
        box = seal_box(_KEY.public(), plain, Random(number).randbytes)
        content = digest(Domain.LOCATED_REQUEST, box)
        found.append(encode(SealedRequest(mint(_KEY.public(), 1, content, 1, Random(number).randbytes), box)))
    return found


def _answers() -> list[bytes]:
    return [encode(answer) for answers in _WORLD.answers for answer in answers]


def _batches() -> list[bytes]:
    return [_whole(feed) for feed in _WORLD.feeds]


def _whole(feed: ProviderBatch) -> bytes:
    messages = sorted((entry.message for entry in entries(feed.root)), key=lambda one: one.id)
    return encode(WholeBatch(OWNER.public(), feed.batch.signed, tuple(messages)))


def _tables() -> list[bytes]:
    return [encode(_FEED.table.whole)]


def _lines() -> list[bytes]:
    return [
        SUBSCRIPTION.encode(),
        b'{"lat": -89.999, "lon": 180, "keywords": "fl\xc3\xbcssig 9", "alpha": 0, "threshold": 1}',
    ]


_TEXTS = ("大雨警報 M7.5", "แผ่นดินไหว 🇫🇮👩‍🚒", "IŞIK می‌خواهم שָׁלוֹם", "지진이 puu\u00adtavara")
TARGETS = [
    Target("located-batch", _batch, _batches, (PeerError,), mutate_packed, 5),
    Target("located-table", _table, _tables, (PeerError,), mutate_packed, 5),
    Target("located-answer", _answer, _answers, (PeerError,), mutate_packed, 10),
    Target("located-subscription", _line, _lines, (UsageError,), mutate_text, 5),
    Target(
        "located-parts",
        _parts,
        lambda: [*cut(b"short"), encode(MessagePart(bytes(32), 1, 3, b"middle"))],
        (PeerError,),
        mutate_packed,
        2,
    ),
    Target(
        "located-offer",
        _offer,
        lambda: [write_offer(Offer(_KEY.public(), "link", OWNER.public(), 3)).encode()],
        (UsageError,),
        mutate_text,
        5,
    ),
    Target(
        "located-register",
        _provider,
        lambda: [bytes(range(60)), bytes(reversed(range(60)))],
        (),
        mutate_bytes,
        5,
    ),
    Target(
        "located-kept",
        decode_record,
        lambda: [
            encode(RegisteredSubscription(1, 2, "link", _WORLD.subscriptions[0], 3)),
            encode(WithdrawnSubscription(4, 5)),
        ],
        (PeerError,),
        mutate_packed,
        5,
    ),
    Target("located-request", _request, _requests, (PeerError,), mutate_bytes, 5),
    Target("located-sealed", _sealed, _boxes, (PeerError,), mutate_packed, 5),
    Target(
        "located-reply",
        decode_reply,
        lambda: [encode(RequestConfirmation(1, _FEED.batch.signed)), *_answers()],
        (PeerError,),
        mutate_packed,
        5,
    ),
    Target(
        "located-keys", _keys, lambda: [encode(_HANDOVERS), encode(_REVOKED)], (PeerError,), mutate_packed, 2
    ),
    Target("located-following", _following, scripts, (), weight=1),
    Target("located-alerts", _document, documents, (UsageError,), mutate_text, 5),
    Target("located-words", _words, lambda: [one.encode() for one in _TEXTS], (), mutate_bytes, 5),
    Target("located-message", _message, lambda: [MESSAGE.encode()], (UsageError,), mutate_text, 5),
]
