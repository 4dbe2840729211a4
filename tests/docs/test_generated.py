"""What is generated from the declarations is up to date, and nothing of it is missing."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
from pages import ROOT

from hushcast_protocol.authorities import (
    admission,
    ballots,
    evidence,
    gathering,
    heads,
    listing,
    members,
    work,
)
from hushcast_protocol.authorities import frames as authority_frames
from hushcast_protocol.authorities import requests as directory_requests
from hushcast_protocol.base import handovers, links, roster, signatures, stamps
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.brokers import frames as brokers_frames
from hushcast_protocol.brokers import network as brokers_network
from hushcast_protocol.brokers import tree, words
from hushcast_protocol.brokers.community import charter, sealing
from hushcast_protocol.brokers.full import items, layers, secrets
from hushcast_protocol.brokers.tomography import answers, statements
from hushcast_protocol.brokers.tomography import frames as tomography_frames
from hushcast_protocol.central import frames as central_frames
from hushcast_protocol.central import introduction, network, rerouting
from hushcast_protocol.content import messages, reports
from hushcast_protocol.overlay import frames, leases, parcels
from hushcast_protocol.purposes import grants, issued
from hushcast_protocol.shards import guides, slices
from hushcast_protocol.shards import requests as shard_requests
from hushcast_protocol.spatial import (
    answer,
    batch,
    offer,
    pages,
    parts,
    proof,
    requests,
    subscription,
    table,
)
from hushcast_protocol.spatial import messages as located_messages

MODULES = (
    admission,
    listing,
    work,
    authority_frames,
    directory_requests,
    ballots,
    evidence,
    gathering,
    heads,
    members,
    brokers_frames,
    brokers_network,
    tree,
    words,
    charter,
    sealing,
    items,
    layers,
    secrets,
    central_frames,
    introduction,
    network,
    rerouting,
    frames,
    grants,
    handovers,
    issued,
    leases,
    links,
    messages,
    parcels,
    reports,
    roster,
    signatures,
    stamps,
    answers,
    statements,
    answer,
    batch,
    offer,
    parts,
    requests,
    located_messages,
    pages,
    proof,
    subscription,
    table,
    tomography_frames,
    slices,
    guides,
    shard_requests,
)


@pytest.fixture(scope="module")
def layouts() -> ModuleType:
    spec = importlib.util.spec_from_file_location("protocol_layouts", ROOT / "tools" / "protocol_layouts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
        if isinstance(kind, type) and issubclass(kind, Wire) and kind is not Wire
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
