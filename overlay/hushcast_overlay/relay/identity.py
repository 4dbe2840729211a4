"""A daemon's long-lived keys and where it keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hushcast_protocol.base.crypto.secrets import FilterKey, ParcelKey, Randomness, Seed
from hushcast_runtime.files import load_or_create, load_seed

KEY_FILES = ("identity.key", "service.key", "parcel.key", "filter.key")
"""In a relay's state directory, in the order of `Identity`."""
RECORDS_OF_IDENTITY = (
    *("lease", "tombstone", "parcel", "label", "intake", "routed", "spool", "spool-body", "work"),
    *("shard-part", "box", "sought", "kept", "kept-body", "kept-gave-way", "there", "restarted"),
    *("cover-place", "cover-letter", "cover-block", "cover-waybill"),
    *("box-lane", "cover-bill", "cover-bills", "cover-lanes"),
)
"""Kinds of records that mean nothing to a relay of another name: what it routes, and what is on its way.

So are its shards: others are in those. And when it was there would tie the names.
"""
RECORDS_OF_ADDRESS = ("address",)
"""Kinds of records that belong to an onion service's key."""


@dataclass(frozen=True)
class Identity:
    """The keys of one relay."""

    seed: Seed
    service: Seed
    parcel_key: ParcelKey
    filter_key: FilterKey


def draw_identity(randomness: Randomness) -> Identity:
    """Draw keys that are kept nowhere, for simulations."""
    return Identity(
        Seed.draw(randomness),
        Seed.draw(randomness),
        ParcelKey.draw(randomness),
        FilterKey.draw(randomness),
    )


def load_identity(directory: Path, randomness: Randomness) -> Identity:
    """Return the keys kept in a private directory, drawing them the first time."""
    seed, service, parcel_key, filter_key = (directory / name for name in KEY_FILES)
    return Identity(
        load_seed(seed, randomness),
        load_seed(service, randomness),
        ParcelKey(load_or_create(parcel_key, ParcelKey.LENGTH, randomness)),
        FilterKey(load_or_create(filter_key, FilterKey.LENGTH, randomness)),
    )
