"""Succession: the keys that a directory had before, kept to answer daemons that know no later one."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.key_handovers import MAX_HANDOVERS, KeyHandover, sign_handover
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.wire import Bytes32, PublicKey, encode
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import Store, record_reader

_KIND = RecordKind(
    "former-key",
    StateOwner.DIRECTORY,
    holds="its former keys, with their hand-overs",
    lifetime="for ever",
    bound=f"the last {MAX_HANDOVERS}",
)


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    """A former key; without a hand-over it is remembered for the rosters that it signed alone."""

    seed: Bytes32
    new: PublicKey
    epoch: int  # of the first roster that it does not sign
    handover: Signed | None


_decode = record_reader(_Stored, "former key", "without it daemons that know that key alone would be lost; ")


@dataclass(frozen=True)
class Succession:
    """The former keys of a directory, the oldest first; empty where there are none."""

    past: tuple[KeyHandover, ...] = ()
    """From each former key to the next, signed or not."""
    seeds: tuple[Seed, ...] = ()
    """The keys of those from which signed hand-overs lead to the key of now."""
    signed: tuple[Signed, ...] = ()
    """These hand-overs."""

    def after(self, key: PublicKey) -> tuple[Signed, ...]:
        """Return the hand-overs from a former key to the one of now; none for any other key."""
        publics = [seed.public() for seed in self.seeds]
        return self.signed[publics.index(key) :] if key in publics else ()


async def load_succession(store: Store, network: Network, key: PublicKey) -> Succession:
    """Read the former keys of the directory that has the public `key` now.

    A hand-over whose new key never came into use (the machine failed meanwhile) is passed over.
    """
    stored = _in_use(await store.scan(_KIND), key)
    past = [KeyHandover(network.id, Seed(one.seed).public(), one.new, one.epoch) for one in stored]
    seeds: list[Seed] = []
    signed: list[Signed] = []
    for one in stored:
        if one.handover is None:
            seeds, signed = [], []
        else:
            seeds.append(Seed(one.seed))
            signed.append(one.handover)
    return Succession(tuple(past), tuple(seeds), tuple(signed))


async def hand_over(store: Store, network: Network, old: Seed, new: Seed, epoch: int, signs: bool) -> None:
    """Note that `new` signs rosters from `epoch` on, durably on return; `signs`: `old` tells daemons so.

    The oldest former key is forgotten where there are too many.
    """
    handover = KeyHandover(network.id, old.public(), new.public(), epoch)
    signed = sign_handover(old, handover) if signs else None
    held = await store.scan(_KIND)
    stored = [*_in_use(held, old.public()), _Stored(old.reveal(), new.public(), epoch, signed)]
    fresh = {number.to_bytes(8, "big"): one for number, one in enumerate(stored[-MAX_HANDOVERS:])}
    await store.write(
        *(Change(_KIND, key, None) for key, _ in held if key not in fresh),
        *(Change(_KIND, key, encode(one)) for key, one in fresh.items()),
    )


def _in_use(held: list[tuple[bytes, bytes]], key: PublicKey) -> list[_Stored]:
    stored = [_decode(value) for _, value in held]
    while stored and stored[-1].new != key:
        stored.pop()
    return stored
