"""Keys of layers: two nodes agree on two each day, one for words and one for what opens messages."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from hushcast_protocol.base.hashes import DIGEST, Domain, digest
from hushcast_protocol.base.key_agreement import shared_secret
from hushcast_protocol.base.secrets import AgreementKey, Secret
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.full.group_action import KEY_SEED, GroupAction

MAX_KEPT_KEYS = 65_536  # pairs of a node, some 40 MB; one that was forgotten is agreed on again


@dataclass(frozen=True, slots=True)
class LayerKeys:
    """What two nodes share for a day: k and k' of the paper."""

    route: Secret
    content: Secret


def agree(action: GroupAction, own: AgreementKey, other: PublicKey, network: bytes, day: int) -> LayerKeys:
    """Return the keys of two nodes, the same at both ends; raise `AuthenticationError` as `shared_secret`."""
    secret = shared_secret(own, other)
    ends = sorted((own.public(), other))
    parts = (network, day.to_bytes(8, "big"), *ends)

    def seed(use: bytes) -> bytes:
        return digest(Domain.LAYER_KEY, use, *parts, key=secret, size=KEY_SEED)

    return LayerKeys(action.key(seed(b"route")), action.key(seed(b"content")))


class Keyring:
    """The keys that one node shares with others."""

    def __init__(self, action: GroupAction, own: AgreementKey, network: bytes) -> None:
        assert len(network) == DIGEST
        self.action = action
        self.own = own
        self.public = own.public()
        self.network = network
        self._kept: OrderedDict[tuple[int, PublicKey], LayerKeys] = OrderedDict()

    def __len__(self) -> int:
        """Return how many nodes and days there are keys for: two keys each."""
        return len(self._kept)

    def shared(self, other: PublicKey, day: int) -> LayerKeys:
        """Return the keys shared with another node; raise `AuthenticationError` where its key is none."""
        found = self._kept.get((day, other))
        if found is None:
            found = self._kept[day, other] = agree(self.action, self.own, other, self.network, day)
            if len(self._kept) > MAX_KEPT_KEYS:
                self._kept.popitem(last=False)
        return found

    def forget(self, day: int) -> None:
        """Forget the keys of the days up to this one."""
        for gone in [at for at in self._kept if at[0] <= day]:
            del self._kept[gone]
