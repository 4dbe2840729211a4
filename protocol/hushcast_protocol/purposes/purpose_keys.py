"""Keys of purposes: X25519 pairs by purpose, kind and epoch, all of them from one secret of the issuer.

Who writes has the public halves alone, and cannot read what others wrote, nor what it wrote itself on another
day. Epochs have 7 days: a grant that leaks opens nothing of later ones.
"""

from __future__ import annotations

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import AgreementKey, Secret, Seed
from hushcast_protocol.purposes.key_cover import CoverElement

EPOCH_SECONDS = 7 * 24 * 3600
MAX_EPOCHS = 26  # of a vocabulary or a grant: half a year, in which a writer needs no new vocabulary


class PurposeRoot(Secret):
    """What all keys of an issuer's purposes come from."""

    __slots__ = ()


class PurposeKey(AgreementKey):
    """The private key of one purpose, alone or with all below it, for one epoch."""

    __slots__ = ()


def epoch_of(now: float) -> int:
    """Return the epoch of a moment in Unix seconds."""
    return int(now // EPOCH_SECONDS)


def epoch_start(epoch: int) -> int:
    """Return the first second of an epoch."""
    return epoch * EPOCH_SECONDS


def root_of(issuer: Seed) -> PurposeRoot:
    """Return the root of an issuer, whose one secret is its signing key's seed."""
    return PurposeRoot(digest(Domain.PURPOSE_ROOT, key=issuer.reveal()))


def private_key(root: PurposeRoot, series: int, epoch: int, element: CoverElement) -> PurposeKey:
    """Return the key of an element for an epoch; another `series` has other keys throughout."""
    place = series.to_bytes(8, "big") + epoch.to_bytes(8, "big") + bytes([element.whole])
    return PurposeKey(digest(Domain.PURPOSE_KEY, place, element.purpose.encode(), key=root.reveal()))
