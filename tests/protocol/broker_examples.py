"""Frames of brokers as they are said."""

from __future__ import annotations

from decimal import Decimal
from random import Random

from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.agreement import agreement_public
from hushcast_protocol.base.secrets import EpochKey, Seed, TopicKey
from hushcast_protocol.base.stamps import Stamp
from hushcast_protocol.brokers.community.charter import sign_charter
from hushcast_protocol.brokers.community.epochs import Epoch
from hushcast_protocol.brokers.community.sealing import seal_filter
from hushcast_protocol.brokers.conditions import Condition
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import (
    Ack,
    Advertise,
    AskCharters,
    Communities,
    Done,
    Exposed,
    Forward,
    HandUp,
    Join,
    KnownCharter,
    NewCharter,
    NewTree,
    Ping,
    Pong,
    Publish,
    Receipt,
    Standing,
    Subscribe,
    Terms,
    Unsubscribe,
)
from hushcast_protocol.brokers.full.items import Layered
from hushcast_protocol.brokers.full.layers import Layer
from hushcast_protocol.brokers.full.secrets import AskFactors, Factors
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.brokers.tree import Seat, sign_tree
from hushcast_protocol.brokers.words import shown, words
from hushcast_protocol.content.attributes import Label, Number
from hushcast_protocol.content.messages import HEADER, PADDED_SIZES, SEAL, TRAIL_SIZE, Message, message_id
from hushcast_protocol.content.topics import Topic

ROOT, INNER, EDGE = (Seed(bytes([n]) * 32) for n in (1, 2, 3))
NETWORK = BrokersNetwork("examples", "clear", 3600, ROOT.public())
SEATS = (
    Seat(ROOT.public(), memory_address(b"r" * 32), "root", None),
    Seat(INNER.public(), memory_address(b"i" * 32), "inner", ROOT.public()),
    Seat(EDGE.public(), memory_address(b"e" * 32), "edge", INNER.public()),
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
TERMS = Terms(3, Condition.SUCCESSOR, "generalise")
STAMP = Stamp(1, bytes(8))
CHARTER = sign_charter(ROOT, NETWORK.id, 1, 0, [agreement_public(INNER.public())], Random(1).randbytes)
SEALED = seal_filter(Epoch(ROOT.public(), 1, 0, EpochKey(bytes(32))), EDGE.public(), shown(KEY, NARROW))


def tree(version: int = 1) -> NewTree:
    return NewTree(sign_tree(ROOT, NETWORK, version, SEATS))


ITEM = Layered(3, b"e" * 32, (Layer(b"o" * 32, b"t" * 32), Layer(b"p" * 32, b"t" * 32)))
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
]
FROM_ABOVE = [
    Standing(bytes(16), 3, k=2),
    tree(2),
    Done(1, "accepted"),
    Exposed(b"n" * 16, True),
    Exposed(b"n" * 16, False),
    Forward(MESSAGE),
    Pong(),
    Receipt("day", 0),
    Done(2, "tree"),
    Factors(3, b"r" * 32, b"c" * 32),
    Communities((ROOT.public(),)),
    NewCharter(CHARTER),
]
