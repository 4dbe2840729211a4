"""Targets: what people write or paste: topics, links, attributes, conditions, values, addresses."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from fuzzing import Target
from mutating import mutate_text
from topic_examples import EVENTS, PRIVATE, WORD

from hushcast_directory.server.closed_network import names_in
from hushcast_directory.server.kept_evidence import checked, read_proofs
from hushcast_protocol.authorities.ballots import Cast
from hushcast_protocol.authorities.evidence import Evidence
from hushcast_protocol.base import addresses
from hushcast_protocol.base.crypto.secrets import Seed, TopicKey
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, signature
from hushcast_protocol.base.errors import DecodeError, UsageError
from hushcast_protocol.base.trace import Observation, Truth, to_line
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content import attributes, bodies, predicates, tokens, topics
from hushcast_protocol.content.link_text import unpack, write_packed
from hushcast_runtime.transports.endpoints import parse_endpoint

KEY = TopicKey(b"k" * 32)
_FINE = topics.make_topic("x", ["n:-0.000000000001..0.000000000001:0.000000000001"])
_WIDE = topics.make_topic("x", ["n:0..4294967295"])
_TOPICS = (EVENTS, PRIVATE, WORD, _FINE, _WIDE)


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")  # as the command line gives it


def _topic(data: bytes) -> None:
    topic = topics.parse_topic(_text(data))
    assert topics.parse_topic(topics.write_link(topic)) == topic
    assert topic.schema
    assert len(repr(topic)) < 20


def _link(data: bytes) -> None:
    """A link with a right hash around whatever it holds."""
    topic = topics.parse_topic(write_packed(data))
    assert topics.parse_topic(topics.write_link(topic)) == topic
    tokens.published_tokens(KEY, topic, {}, Random(0).randbytes)


def _attribute(data: bytes) -> None:
    attribute = attributes.parse_attribute(_text(data))
    assert attributes.parse_attribute(attributes.write_attribute(attribute)) == attribute
    if isinstance(attribute, attributes.Number):
        assert 1 <= attribute.bits <= attributes.MAX_BITS
        assert attribute.place(attribute.high) == attribute.last
        assert attribute.value(attribute.last) == attribute.high


def _where(data: bytes) -> None:
    which, _, text = _text(data).partition("|")
    topic = _TOPICS[len(which) % len(_TOPICS)]
    predicate = predicates.parse_where(text, topic.attributes)
    assert predicates.parse_where(predicates.write_where(predicate), topic.attributes) == predicate
    entries = tokens.entry_tokens(KEY, predicate)
    assert 1 <= len(entries) <= tokens.MAX_COVER


def _setting(data: bytes) -> None:
    which, _, text = _text(data).partition("|")
    topic = _TOPICS[len(which) % len(_TOPICS)]
    values = topics.parse_values(topic, text.split("\n"))
    topics.check_values(topic, values)
    found = tokens.published_tokens(KEY, topic, values, Random(0).randbytes)
    assert len(found) in tokens.TOKEN_COUNTS
    for attribute in topic.attributes:
        if attribute.name in values:
            attributes.as_json(attribute, values[attribute.name])


def _values(data: bytes) -> None:
    """Attributes as they come in a message: checked, matched, shown."""
    values = bodies._decode_values(data)
    for topic in _TOPICS:
        condition = predicates.parse_where("lat in [60, 61], kind = fire", EVENTS.attributes)
        condition.matches(values)
        try:
            topics.check_values(topic, values)
        except DecodeError:
            continue
        for attribute in topic.attributes:
            if attribute.name in values:
                attributes.as_json(attribute, values[attribute.name])
        tokens.published_tokens(KEY, topic, values, Random(0).randbytes)


def _address(data: bytes) -> None:
    address = addresses.parse_address(_text(data))
    _, port = addresses.split(address)
    assert 1 <= port <= 65535
    assert addresses.is_onion(address) or address.startswith("127.") or ".memory:" in address
    addresses.is_of_key(address, bytes(32))


def _endpoint(data: bytes) -> None:
    endpoint = parse_endpoint(_text(data))
    assert endpoint.path or endpoint.host.startswith("127.")
    if endpoint.path == endpoint.path.strip():
        assert parse_endpoint(str(endpoint)) == endpoint


def _trace(data: bytes) -> None:
    """A trace line stays one line, of valid UTF-8, that says what was seen."""
    import json

    text = data.decode(errors="replace")
    for record in (
        Observation(text, 1.0, 2, "received", message=text, tokens=(text, text), size=len(data)),
        Observation(text, 1.0, 2, "installed", lease=text, mark=text, next=text),
        Truth(text, 1.0, 2, "subscribed", topic=text, tree={text: None, "x": text}),
    ):
        line = to_line(record)
        assert "\n" not in line
        assert "\r" not in line
        assert json.loads(line)["node"] == text
        line.encode()


def _lines(*texts: str) -> Callable[[], list[bytes]]:
    return lambda: [text.encode(errors="surrogateescape") for text in texts]


def _links() -> list[bytes]:
    return [unpack(topics.write_link(topic)[9:]) or b"" for topic in _TOPICS]


def _crowded() -> list[bytes]:
    """Links with too many attributes, with two of a name, and with more tokens than a message carries."""
    wide = ["n:0..4294967295", "m:0..4294967295", "k:0..4294967295"]
    names = [["a" + str(number) for number in range(8)], ["a", "a"], wide]
    return [topics.encode(topics._Link("x", tuple(specs), None)) for specs in names]


def _value_maps() -> list[bytes]:
    maps: list[dict[str, Any]] = [
        {"kind": "fire", "lat": 3},
        {"lat": 0, "lon": 2**31},
        {"level": 65535},
        {"n": 1},
    ]
    return [bodies.encode(values) for values in maps]


def _names(data: bytes) -> None:
    """Names of a closed network's relays, as its operator wrote them."""
    assert all(len(name) == 32 for name in names_in(data, "there"))


def _proofs(data: bytes) -> None:
    """Proofs that somebody sent: what is read is told in the same words."""
    for proof in read_proofs(data, "there"):
        line = json.dumps(checked(proof, bytes(32)).line()).encode()
        assert read_proofs(line, "there") == [proof]


def _proof() -> str:
    seed, network = Seed(bytes(32)), bytes(32)
    bodies = [encode(Cast(network, 7, seed.public(), bytes([one]) * 32)) for one in (1, 2)]
    first, second = (Signed(body, signature(seed, SignaturePurpose.BALLOT, body)) for body in bodies)
    return json.dumps(checked(Evidence(seed.public(), first, second), network).line())


def _targets() -> list[Target]:
    from mutating import mutate_packed

    wheres = (
        "|lat in [60, 61], lon in [24, ], kind = fire",
        '|kind = "a \\"b\\", c"',
        "xx|level in [3, 9]",
        "xxxx|n in [1, 4294967294]",  # needs more intervals than a subscription may hold
        "|kind in [1, 2]",
        "|lat in [91, 95]",
        "|lat in [2, 1]",
        "|lat in [90, 91], lat = 3",
        "xxx|n = 0",
    )
    settings = ("|lat=60.17\nkind=fire", "x|lon=-180\nlat=90", "xx|level=65535", "xxx|n=0.000000000001")
    specs = (
        "kind",
        "lat:-90..90:0.001",
        "n:0..4294967295",
        "a:-1e3..1E3:1e-3",
        "x:0..0.000000000002:0.000000000001",
    )
    places = ("127.0.0.1:9051", "unix:/run/tor/control", '"unix:/a"', "127.8.0.1:1")
    whole = (addresses.onion_address(bytes(32)), "127.0.0.1:7411", "0" * 32 + ".memory:1")
    named = tuple(topics.write_link(topic) for topic in _TOPICS)
    return [
        Target("topic", _topic, _lines("weather/helsinki", "ﬃ é", *named), (UsageError,), mutate_text, 20),
        Target("link-text", _link, lambda: _links() + _crowded(), (UsageError,), mutate_packed, 20),
        Target("attribute", _attribute, _lines(*specs), (UsageError,), mutate_text, 20),
        Target("where", _where, _lines(*wheres), (UsageError,), mutate_text, 20),
        Target("setting", _setting, _lines(*settings), (UsageError,), mutate_text, 10),
        Target("values", _values, _value_maps, (DecodeError,), mutate_packed, 10),
        Target("address", _address, _lines(*whole), (DecodeError,), mutate_text, 10),
        Target("endpoint", _endpoint, _lines(*places), (UsageError,), mutate_text, 10),
        Target(
            "names", _names, _lines(f"# ours\n{'0a' * 32} # one\n", "ab" * 32), (UsageError,), mutate_text, 5
        ),
        Target("proofs", _proofs, _lines(_proof()), (UsageError,), mutate_text, 5),
        Target("trace", _trace, _lines("node", "a\u2028b\r\n", '"\\'), (), mutate_text, 5),
    ]


TARGETS = _targets()
