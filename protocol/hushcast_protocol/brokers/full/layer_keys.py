"""Keys of layers: two nodes agree on two each day, one for words and one for what opens messages."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from hushcast_protocol.base.crypto.hashes import DIGEST, Domain, digest
from hushcast_protocol.base.crypto.key_agreement import shared_secret
from hushcast_protocol.base.crypto.secrets import AgreementKey, Secret
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.full.group_action import KEY_SEED, GroupAction
from hushcast_protocol.brokers.full.layers import AnyLayer, Layer, NumberedLayer

MAX_KEPT_KEYS = 65_536  # pairs of a node, some 40 MB; one that was forgotten is agreed on again


_NUMBER = 6  # bytes of a pad's number: of a million items of one node two have the same once in 500 days


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

    def on(self, layer: AnyLayer, day: int) -> LayerKeys:
        """Return the keys of a layer one of whose ends is this node; raises as `shared`."""
        found = self.shared(layer.target if layer.owner == self.public else layer.owner, day)
        if isinstance(layer, Layer):
            return found
        update = self.action.updated
        return LayerKeys(update(found.route, layer.number), update(found.content, layer.number))

    def number(self, *parts: bytes) -> int | None:
        """Return the number of an item that this node makes of these, the same again; None: it has none."""
        if not self.action.is_one_time:
            return None
        drawn = digest(Domain.PAD_NUMBER, *parts, key=self.own.reveal(), size=_NUMBER)
        return int.from_bytes(drawn, "big")

    def check(self, layers: Iterable[AnyLayer]) -> None:
        """Raise `Refusal` (`form`) where layers have numbers and must have none, or the other way round."""
        if any(isinstance(one, NumberedLayer) is not self.action.is_one_time for one in layers):
            raise Refusal("form")

    def forget(self, day: int) -> None:
        """Forget the keys of the days up to this one."""
        for gone in [at for at in self._kept if at[0] <= day]:
            del self._kept[gone]
