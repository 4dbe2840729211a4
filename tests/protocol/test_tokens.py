"""Topic keys, tokens and route elements: pinned, and different wherever they must be."""

import itertools

import pytest
from core_examples import NETWORK, TOPIC_KEY, bytes16, bytes32, properties
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.hashes import Domain, digest
from hushcast_protocol.profile import HARDENED, PAPER
from hushcast_protocol.roster import Network
from hushcast_protocol.tokens import ORIGIN, element, token, topic_key
from hushcast_protocol.topics import Topic

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
