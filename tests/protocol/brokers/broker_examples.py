"""Frames of brokers as they are said."""

from __future__ import annotations

from decimal import Decimal
from random import Random

from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.key_agreement import agreement_public
from hushcast_protocol.base.crypto.proof_of_work import ProofOfWork
from hushcast_protocol.base.crypto.secrets import EpochKey, Seed, TopicKey
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.broker_tree import BrokerPosition, sign_tree
from hushcast_protocol.brokers.clear_words import CoveredFilter, shown, words
from hushcast_protocol.brokers.community.charter import sign_charter
from hushcast_protocol.brokers.community.community_epochs import MemberEpoch
from hushcast_protocol.brokers.community.sealed_filter import seal_filter
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import (
    Ack,
    Advertise,
    AnonymityTerms,
    AskCharters,
    Communities,
    ExposureReport,
    Forward,
    HandUp,
    Join,
    KnownCharter,
    NewCharter,
    NewTree,
    ParentHello,
    Ping,
    Pong,
    Publish,
    Receipt,
    RequestAnswer,
    Subscribe,
    Unsubscribe,
)
from hushcast_protocol.brokers.full.aggregation import AskFactors, Factors
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.full.layers import Layer, NumberedLayer
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.content.attributes import Label, Number
from hushcast_protocol.content.messages import HEADER, SEAL, TRAIL_SIZE, Message, message_id
from hushcast_protocol.content.payload_sizes import PADDED_SIZES
from hushcast_protocol.content.topics import Topic

ROOT, INNER, EDGE = (Seed(bytes([n]) * 32) for n in (1, 2, 3))
NETWORK = BrokersNetwork("examples", "clear", 3600, ROOT.public())
SEATS = (
    BrokerPosition(ROOT.public(), memory_address(b"r" * 32), "root", None),
    BrokerPosition(INNER.public(), memory_address(b"i" * 32), "inner", ROOT.public()),
    BrokerPosition(EDGE.public(), memory_address(b"e" * 32), "edge", INNER.public()),
)
KEY = TopicKey(bytes(range(32)))
TOPIC = Topic("ships", (Label("kind"), Number("lat", Decimal(0), Decimal(15), Decimal(1))))
WIDE = Filter(TOPIC, (None, (0, 9)))
NARROW = Filter(TOPIC, ("fire", (2, 3)))
DAY = 20_000
BODY = b"body".ljust(HEADER + PADDED_SIZES[0] + SEAL, b".")
MESSAGE = Message(
    message_id(DAY, BODY), DAY, words(KEY, TOPIC, {"kind": "fire", "lat": 3}), bytes(TRAIL_SIZE), BODY
)
TERMS = AnonymityTerms(3, AnonymityCondition.SUCCESSOR, "generalise")
STAMP = ProofOfWork(1, bytes(8))
CHARTER = sign_charter(ROOT, NETWORK.id, 1, 0, [agreement_public(INNER.public())], Random(1).randbytes)
SEALED = seal_filter(MemberEpoch(ROOT.public(), 1, 0, EpochKey(bytes(32))), EDGE.public(), shown(KEY, NARROW))


def tree(version: int = 1) -> NewTree:
    return NewTree(sign_tree(ROOT, NETWORK, version, SEATS))


ITEM = LayeredWord(3, b"e" * 32, (Layer(b"o" * 32, b"t" * 32), Layer(b"p" * 32, b"t" * 32)))
NUMBERED = LayeredWord(3, b"e" * 32, (NumberedLayer(b"o" * 32, b"t" * 32, 7),))
FROM_BELOW = [
    Advertise(1, (shown(KEY, WIDE), shown(KEY, NARROW)), (), "no"),
    Advertise(2, (), (shown(KEY, WIDE).name,), "no"),
    Advertise(3, (shown(KEY, NARROW),), (), "part"),
    Advertise(4, (), (), "end"),
    Join(1, STAMP),
    Subscribe(5, b"n" * 16, shown(KEY, NARROW), TERMS),
    Unsubscribe(6, b"n" * 16),
    Ack(7),
    Ping(),
    tree(),
    Publish(MESSAGE, STAMP),
    Publish(MESSAGE, None),
    Advertise(8, (ITEM,), (), "no"),
    Subscribe(9, b"n" * 16, ITEM, TERMS),
    AskFactors(10, 3, b"a" * 32, ITEM.layers, b"r" * 32, b"c" * 32),
    HandUp(11, MESSAGE),
    AskCharters((KnownCharter(ROOT.public(), 3),)),
    NewCharter(CHARTER),
    Advertise(5, (SEALED,), (), "no"),
    Subscribe(7, b"n" * 16, SEALED, TERMS),
    Advertise(12, (CoveredFilter(shown(KEY, NARROW)),), (), "no"),
    Advertise(13, (NUMBERED,), (), "no"),
]
FROM_ABOVE = [
    ParentHello(bytes(16), 3, k=2),
    tree(2),
    RequestAnswer(1, "accepted"),
    ExposureReport(b"n" * 16, True),
    ExposureReport(b"n" * 16, False),
    Forward(MESSAGE),
    Pong(),
    Receipt("day", 0),
    RequestAnswer(2, "tree"),
    Factors(3, b"r" * 32, b"c" * 32),
    Communities((ROOT.public(),)),
    NewCharter(CHARTER),
]
