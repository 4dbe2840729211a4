"""Whoever has the key that a directory gave up speaks as its other authority, to stop it for good.

A key is given up because somebody else may have it. He signs a second head of an epoch that was the old
key's, which is a fork, or one of an epoch that nobody signed for, as after a backup was restored.
"""

from __future__ import annotations

import pytest
from authority_world import FIRST, NETWORK, SEEDS, members, start_of
from told_heads import head_told

from hushcast_protocol.authorities.actions import AuthorityState
from hushcast_protocol.authorities.chain import Chain, ChainState, handed_over
from hushcast_protocol.authorities.head_questions import Heads
from hushcast_protocol.authorities.heads import (
    AssentBody,
    CertifiedHead,
    IndexedSignature,
    assent_to,
    decode_head,
    head_digest,
)
from hushcast_protocol.authorities.listing import Listing
from hushcast_protocol.authorities.machine import Authority
from hushcast_protocol.base.key_handovers import KeyHandover
from hushcast_protocol.base.wire import encode

OLD, NEW = members(1, 1), members(1, 1, 1)
NOBODY = Listing(FIRST, (), ())
GAP = 3  # epochs for which nobody signs: those that a restored backup may have signed


def signed_by_old(epoch: int, previous: bytes) -> CertifiedHead:
    head = encode(head_told(NETWORK.id, epoch, previous, OLD, root=NOBODY.root))
    assent = assent_to(SEEDS[0], AssentBody(NETWORK.id, epoch, head_digest(head)))
    return CertifiedHead(head, (IndexedSignature(0, assent),))


def rotated() -> Authority:
    """A directory that has taken another key, with the last head of its old one."""
    chain = Chain(NETWORK.id, ChainState(OLD))
    chain.take(signed_by_old(FIRST, bytes(32)))
    handover = KeyHandover(NETWORK.id, OLD.keys[0], NEW.keys[0], FIRST + 1 + GAP)
    kept = AuthorityState(handed_over(chain.state, handover), voted=FIRST + GAP, assented=FIRST + GAP)
    machine = Authority(NETWORK, SEEDS[1], kept, start_of(FIRST + 1))
    machine.know(NOBODY)
    return machine


@pytest.mark.parametrize("epoch", [FIRST, FIRST + 1, FIRST + GAP])
def test_who_has_a_key_that_was_given_up_says_nothing_by_it(epoch: int) -> None:
    machine = rotated()
    assert OLD.keys[0] not in machine.chain.named(), "no link of its is taken for an authority's"
    assert machine.take(OLD.keys[0], Heads((signed_by_old(epoch, b"\1" * 32),)), 0.0) == []
    assert machine.chain.state.fork is None
    machine.alone((), None, start_of(FIRST + 1 + GAP) + NETWORK.calendar.grace)
    newest = machine.chain.state.newest
    assert newest is not None
    assert decode_head(newest.head).authorities.keys == NEW.keys
    assert machine.take(OLD.keys[0], Heads((signed_by_old(epoch, b"\1" * 32),)), 0.0) == []
    assert machine.chain.state.fork is None
    assert machine.due_alone(start_of(FIRST + 2 + GAP) + 2 * NETWORK.calendar.grace) == FIRST + 2 + GAP
