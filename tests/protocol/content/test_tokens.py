"""Topic keys, tokens and route elements: pinned, and different wherever they must be."""

import itertools

import pytest
from core_examples import NETWORK, TOPIC_KEY, bytes16, bytes32, properties, stream
from hypothesis import given
from hypothesis import strategies as st
from topic_examples import EVENTS, PLACES, PRIVATE, SECRET, topics, where

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.roster import Network
from hushcast_protocol.content.attributes import Label, Number
from hushcast_protocol.content.messages import MAX_TOKENS
from hushcast_protocol.content.tokens import (
    MAX_COVER,
    TOKEN_COUNTS,
    entry_tokens,
    published_tokens,
    token,
    topic_key,
)
from hushcast_protocol.content.topics import Topic, make_topic
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.profile import HARDENED, PAPER

A, B, C = (bytes([letter]) * 32 for letter in b"abc")
TOKEN = b"t" * 16


def test_vectors():
    """Computed once and pinned: a change here breaks every network that runs."""
    key = topic_key(Topic("news"), NETWORK.id, 1000)
    assert NETWORK.id.hex() == "aaa573af10e2614d5f167c14e49db8608bf346fb8c9605bd48cea7936c50da71"
    assert key.reveal().hex() == "c3da31f17b6f8083978d9aaeb763434fe9dc20778ce22d3a655bff36ae0ba35d"
    assert token(key).hex() == "896931c484766f6753001af7e71f6e66"
    assert token(key, b"part").hex() == "51d2dd90f1bbd9ecb09b7d51205f5209"
    assert element(HARDENED, token(key), A, B).hex() == "a5f6c0cd35115b33796eda45035290ff"
    assert element(HARDENED, token(key), A, ORIGIN).hex() == "609b14d737857bb77783e518c23ab663"
    assert element(PAPER, token(key), A, B).hex() == "f8a41f36e677e7d80848440cecb836da"


@pytest.mark.slow
def test_topic_keys_differ_by_topic_network_and_day():
    networks = [NETWORK.id, Network("example", "paper", 60).id]
    keys = [
        topic_key(Topic(name), network, day).reveal()
        for name, network, day in itertools.product(["news", "new"], networks, [1, 2])
    ]
    assert len(set(keys)) == 8
    assert topic_key(Topic("news"), NETWORK.id, 1).reveal() in keys


@pytest.mark.parametrize(
    "other", [("examples", "hardened", 60), ("example", "paper", 60), ("example", "hardened", 61)]
)
def test_networks_differ_in_each_field(other):
    assert Network(*other).id != NETWORK.id


@properties(100)
@given(st.binary(max_size=40), st.binary(max_size=40))
def test_tokens_differ_by_part_and_do_not_show_the_key(one, other):
    assert (token(TOPIC_KEY, one) == token(TOPIC_KEY, other)) == (one == other)
    assert len(token(TOPIC_KEY, one)) == 16


@properties(100)
@given(bytes16, bytes16, bytes32, bytes32, bytes32, bytes32)
def test_edge_elements_depend_on_token_relay_and_previous_hop(
    token_a, token_b, relay_a, relay_b, hop_a, hop_b
):
    ways = set(itertools.product({token_a, token_b}, {relay_a, relay_b}, {hop_a, hop_b}))
    assert len({element(HARDENED, *way) for way in ways}) == len(ways)


@properties(50)
@given(bytes16, bytes32, bytes32, bytes32, bytes32)
def test_elements_as_published_depend_on_the_token_alone(token_a, relay_a, relay_b, hop_a, hop_b):
    assert element(PAPER, token_a, relay_a, hop_a) == element(PAPER, token_a, relay_b, hop_b)
    assert element(PAPER, token_a, relay_a, hop_a) != token_a


def test_direction_counts():
    assert element(HARDENED, TOKEN, A, B) != element(HARDENED, TOKEN, B, A)


def test_no_two_lists_of_parts_hash_alike():
    lists = [(), (b"",), (b"", b""), (b"ab",), (b"a", b"b"), (b"", b"ab"), (b"ab", b""), (b"a", b"", b"b")]
    assert len({digest(Domain.TOKEN, *parts) for parts in lists}) == len(lists)


def test_every_use_of_the_hash_has_a_name_of_its_own():
    assert len({domain.value for domain in Domain}) == len(Domain.__members__)
    assert all(len(domain.value) <= 16 for domain in Domain)
    assert len({digest(domain, b"same") for domain in Domain}) == len(Domain.__members__)


# Topics with attributes and secrets


@pytest.mark.slow
@properties(300)
@given(topics(), st.data())
def test_published_tokens_are_the_trunk_and_a_fixed_count(topic, data):
    carried = {}
    for one in topic.attributes:
        if data.draw(st.booleans()):
            carried[one.name] = "fire" if isinstance(one, Label) else data.draw(st.integers(0, one.last))
    tokens = published_tokens(TOPIC_KEY, topic, carried, stream(data.draw(st.integers(0, 99))))
    entries = sum(
        one.bits + 1 if isinstance(one, Number) else 1 for one in topic.attributes if one.name in carried
    )
    assert len(tokens) == min(count for count in TOKEN_COUNTS if count > entries)
    assert len(tokens) <= MAX_TOKENS == 80
    assert len(set(tokens)) == len(tokens)
    assert tokens[0] == token(TOPIC_KEY)
    assert list(tokens[1:]) == sorted(tokens[1:])


def test_padding_is_drawn_anew_and_tokens_are_not():
    one, other = (published_tokens(TOPIC_KEY, EVENTS, {"kind": "fire"}, stream(n)) for n in (1, 2))
    assert len(one) == len(other) == 8
    assert len(set(one) & set(other)) == 2


def test_the_widest_topic_fits():
    topic = make_topic("t", ["a:0..4294967295", "b:0..4294967295", "c:0..2047", "d"])
    carried = {"a": 1, "b": 2, "c": 3, "d": "x"}
    assert len(published_tokens(TOPIC_KEY, topic, carried, stream())) == 80


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", 1),
        ("kind = fire", 1),
        ("lat in [60, 61]", None),
        ("lat in [60, 61], kind = fire", None),  # a thousandth of the places lets fewer through than a label
        ("lat in [-60, 60], kind = fire", 1),
        ("lat in [,]", 1),
        ("lat = 60.17", 1),
    ],
)
def test_subscriptions_enter_by_the_condition_that_lets_the_fewest_through(text, entries):
    predicate = where(EVENTS, text)
    tokens = entry_tokens(TOPIC_KEY, predicate)
    assert 1 <= len(tokens) <= MAX_COVER
    if entries is None:
        assert tokens == entry_tokens(TOPIC_KEY, where(EVENTS, "lat in [60, 61]"))
    else:
        assert len(tokens) == entries
    if "kind" in text and entries == 1:
        assert tokens == entry_tokens(TOPIC_KEY, where(EVENTS, "kind = fire"))
    assert (tokens == (token(TOPIC_KEY),)) == (text == "")


def test_names_and_kinds_of_attributes_tell_tokens_apart():
    topic = make_topic("t", ["a", "b", "x:0..7", "y:0..7"])
    entries = [
        entry_tokens(TOPIC_KEY, where(topic, text))[0]
        for text in ("", "a = 1", "b = 1", "x = 1", "y = 1", "x = 2", "x in [2, 3]", "x in [4, ]")
    ]
    assert len(set(entries)) == len(entries)


def test_vectors_of_topics_with_attributes_and_secrets():
    """Computed once and pinned: a change here breaks every network that runs."""
    key = topic_key(PRIVATE, NETWORK.id, 1000)
    assert key.reveal().hex() == "7d296972268194a5fd0c41bd7ce4b4b8d905971594502ffe42d0058279e940fc"
    assert (
        topic_key(EVENTS, NETWORK.id, 1000).reveal().hex()
        == "48dd372005dfd9196e26fc229ea23638ecece634324458fe459fe218089137ca"
    )
    assert token(key).hex() == "4e27b277a66689c5c17aab7018f2d8e9"
    assert entry_tokens(key, where(PRIVATE, "kind = fire"))[0].hex() == "9dbb5ee7d628f158c4e588c8f3b23edb"
    assert entry_tokens(key, where(PRIVATE, "lat = 60.17"))[0].hex() == "b431f98e6bc06b934e5ef242ab884ada"


def test_keys_differ_by_schema_and_secret():
    topics = [EVENTS, PRIVATE, make_topic("events", PLACES[:2]), make_topic("events", PLACES[:2], SECRET)]
    topics += [make_topic("events"), make_topic("event", PLACES, SECRET)]
    keys = {topic_key(topic, NETWORK.id, 1).reveal() for topic in topics}
    assert len(keys) == len(topics)
