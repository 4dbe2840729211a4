"""The dictionary attack: what a relay's whole state is worth to somebody with a list of topic names."""

from __future__ import annotations

import time

import pytest
from core_examples import (
    BOX,
    DAY,
    HOST,
    LEASE_SECRET,
    NETWORK,
    carry_out,
    host_card,
    lease_book,
    relay_id,
)
from topic_examples import SECRET, where

from hushcast_protocol.base.crypto.secrets import LeaseSecret, TopicKey, TopicSecret
from hushcast_protocol.content.tokens import entry_tokens, token, topic_key
from hushcast_protocol.content.topics import Topic, make_topic
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.installations import HostRoot, Installation
from hushcast_protocol.overlay.leases import LeaseBook
from hushcast_protocol.overlay.profile import HARDENED, PAPER, Profile
from hushcast_protocol.overlay.tree import plan

RELAYS = [relay_id(number) for number in range(12)]
CHEAPEST_GUESS = 0.020  # seconds of CPU
WHERE = "kind = fire"
SPECS = ("kind", "level:0..65535")


def books_after(
    topic: Topic, profile: Profile = HARDENED, secret: LeaseSecret = LEASE_SECRET
) -> dict[bytes, LeaseBook]:
    """All relays' lease books once somebody subscribed."""
    key = topic_key(topic, NETWORK.id, DAY)
    text = WHERE if topic.attributes else ""
    entries = entry_tokens(key, where(topic, text))
    root = HostRoot(BOX, relay_id(HOST))
    made = Installation(DAY, root, plan(RELAYS, 2, bytes(32)), token(key), entries, secret)
    books = {relay: lease_book(relay) for relay in RELAYS}
    for relay, book in books.items():
        carry_out(book, made.install(profile, relay, host_card(HOST)))
    return books


def elements_of(key: TopicKey, relay: bytes, profile: Profile, topic: Topic) -> set[bytes]:
    """All that an attacker who has a key can compute: every previous hop, the trunk, the entry."""
    tokens = {token(key), *(entry_tokens(key, where(topic, WHERE)) if topic.attributes else ())}
    return {element(profile, one, relay, hop) for one in tokens for hop in (ORIGIN, *RELAYS)}


def names(book: LeaseBook, relay: bytes, key: TopicKey, topic: Topic, profile: Profile = HARDENED) -> bool:
    """Tell whether a guess is confirmed by any lease or the routing table."""
    guesses = elements_of(key, relay, profile, topic)
    held = {one for lease in book.leases() for one in lease.elements}
    table = book.table(DAY)
    assert table is not None
    return bool(guesses & held) or any(table.lookup(guess) for guess in guesses)


@pytest.mark.slow
@pytest.mark.parametrize("specs", [(), SPECS], ids=["label", "attributes"])
def test_an_open_topic_can_be_tested_and_each_name_costs_one_argon2id(specs):
    """Whoever has the name confirms it at every relay: that is the limit. What it costs is measured here."""
    books = books_after(make_topic("news", specs))
    costs = []
    for guess in ("weather", "sports", "news"):
        topic = make_topic(guess, specs)
        began = time.thread_time()
        key = topic_key(topic, NETWORK.id, DAY)
        costs.append(time.thread_time() - began)
        assert all(names(book, relay, key, topic) == (guess == "news") for relay, book in books.items())
    assert min(costs) >= CHEAPEST_GUESS, costs


@pytest.mark.slow
def test_a_guess_cannot_be_used_again_on_another_day_or_network_or_schema():
    topic = make_topic("news", SPECS)
    book = books_after(topic)[RELAYS[0]]
    assert names(book, RELAYS[0], topic_key(topic, NETWORK.id, DAY), topic)
    for key in (
        topic_key(topic, NETWORK.id, DAY + 1),
        topic_key(topic, bytes(32), DAY),
        topic_key(make_topic("news", SPECS[:1]), NETWORK.id, DAY),
        topic_key(Topic("news"), NETWORK.id, DAY),
    ):
        assert not names(book, RELAYS[0], key, topic)


@pytest.mark.parametrize("profile", [HARDENED, PAPER], ids=lambda profile: profile.name)
def test_a_private_topic_cannot_be_tested_without_its_secret(profile):
    """Not even by who knows name, attributes, condition, network, day and all relays."""
    private = make_topic("news", SPECS, SECRET)
    books = books_after(private, profile)
    guesses = {
        "the open topic": make_topic("news", SPECS),
        "the plain name": Topic("news"),
        "a secret of zeros": make_topic("news", SPECS, TopicSecret(bytes(32))),
        "the network as secret": make_topic("news", SPECS, TopicSecret(NETWORK.id)),
    }
    for relay, book in books.items():
        assert names(book, relay, topic_key(private, NETWORK.id, DAY), private, profile)
    for guess in guesses.values():
        key = topic_key(guess, NETWORK.id, DAY)
        for relay, book in books.items():
            assert not names(book, relay, key, private, profile)


def test_a_private_key_depends_on_every_bit_of_the_secret():
    secret = SECRET.reveal()
    keys = {topic_key(make_topic("news", SPECS, SECRET), NETWORK.id, DAY).reveal()}
    for at in range(32):
        for bit in range(8):
            flipped = bytearray(secret)
            flipped[at] ^= 1 << bit
            topic = make_topic("news", SPECS, TopicSecret(bytes(flipped)))
            keys.add(topic_key(topic, NETWORK.id, DAY).reveal())
    assert len(keys) == 1 + 32 * 8


def test_private_topics_of_one_name_share_no_element():
    """Elements are equal only where relay, previous hop and token are: two topics of one name share none."""
    one, other = (
        books_after(
            make_topic("news", SPECS, TopicSecret(bytes([number]) * 32)),
            secret=LeaseSecret(bytes([number]) * 32),
        )
        for number in (1, 2)
    )
    for relay in RELAYS:
        first, second = (
            {e for lease in books[relay].leases() for e in lease.elements} for books in (one, other)
        )
        assert first.isdisjoint(second)
        assert len(first) == len(second)
