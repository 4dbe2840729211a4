"""What is generated from the declarations is up to date, and nothing of it is missing."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from hushcast_protocol.authorities import (
    authority_set,
    ballots,
    descriptor_exchange,
    directory_requests,
    evidence,
    head_inside,
    heads,
    listing,
    name_work,
    seat_admission,
)
from hushcast_protocol.authorities import frames as authority_frames
from hushcast_protocol.base import key_handovers, roster
from hushcast_protocol.base.crypto import proof_of_work, signatures
from hushcast_protocol.base.link import links
from hushcast_protocol.base.wire import Lasting, Wire
from hushcast_protocol.brokers import broker_tree, clear_words
from hushcast_protocol.brokers import frames as brokers_frames
from hushcast_protocol.brokers import network as brokers_network
from hushcast_protocol.brokers.community import charter, sealed_filter
from hushcast_protocol.brokers.full import aggregation, layered_word, layers
from hushcast_protocol.brokers.tomography import frames as tomography_frames
from hushcast_protocol.brokers.tomography import questions, statements
from hushcast_protocol.central import frames as central_frames
from hushcast_protocol.central import introduction, network, rerouting, wire_announcement
from hushcast_protocol.content import messages, reports
from hushcast_protocol.cover import cover_frames
from hushcast_protocol.overlay import (
    box_frames,
    frames,
    host_cards,
    keeper_frames,
    leases,
    letter_errands,
    parcels,
)
from hushcast_protocol.purposes import grants, signed_vocabulary
from hushcast_protocol.shards import candidates, guides, shard_requests, slices
from hushcast_protocol.spatial import (
    batch,
    located_answer,
    located_messages,
    located_requests,
    located_subscription,
    message_parts,
    offer,
    owner_keys,
    verification_object,
    weight_table,
    word_pages,
)

MODULES = (
    cover_frames,
    letter_errands,
    seat_admission,
    listing,
    name_work,
    authority_frames,
    directory_requests,
    ballots,
    evidence,
    descriptor_exchange,
    head_inside,
    heads,
    authority_set,
    brokers_frames,
    brokers_network,
    broker_tree,
    clear_words,
    charter,
    sealed_filter,
    layered_word,
    layers,
    aggregation,
    central_frames,
    introduction,
    network,
    rerouting,
    wire_announcement,
    frames,
    keeper_frames,
    box_frames,
    grants,
    key_handovers,
    signed_vocabulary,
    leases,
    links,
    messages,
    parcels,
    reports,
    roster,
    signatures,
    proof_of_work,
    questions,
    statements,
    located_answer,
    batch,
    offer,
    owner_keys,
    message_parts,
    located_requests,
    located_messages,
    word_pages,
    verification_object,
    located_subscription,
    weight_table,
    tomography_frames,
    slices,
    candidates,
    guides,
    shard_requests,
    host_cards,
)


@pytest.fixture(scope="module")
def layouts() -> ModuleType:
    return importlib.import_module("protocol_layouts")


def test_the_layouts_are_up_to_date(layouts: ModuleType) -> None:
    page = layouts.PAGE.read_text()
    assert layouts.renewed(page) == page, "run python tools/protocol_layouts.py"


def test_the_page_has_every_part_once(layouts: ModuleType) -> None:
    assert sorted(layouts.parts_of(layouts.PAGE.read_text())) == sorted(layouts.part_names())


def test_every_wire_type_has_a_layout(layouts: ModuleType) -> None:
    declared = {
        kind
        for module in MODULES
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Wire) and kind not in (Wire, Lasting)
    }
    assert declared == {kind for kinds in layouts.SECTIONS.values() for kind in kinds}


def test_a_page_that_is_old_is_noticed(layouts: ModuleType) -> None:
    old = "before\n<!-- generated: message -->\nnothing\n<!-- end -->\nafter"
    new = layouts.renewed(old)
    assert new != old
    assert "`tokens`" in new
    assert new.startswith("before\n")
    assert new.endswith("\nafter")
    assert layouts.renewed(new) == new
