"""Traces of brokers under layers that never ran: what each would write, by what brokers compute."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from hushcast_protocol.base.crypto.secrets import AgreementKey
from hushcast_protocol.base.trace import Observation, Truth, to_line
from hushcast_protocol.base.wire import encode
from hushcast_protocol.brokers.full.aggregation import Factors, asking, unblinded, with_share
from hushcast_protocol.brokers.full.layer_keys import Keyring, LayerKeys
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.full.layers import LayerPath, own_layers
from hushcast_protocol.brokers.full.rows import Rows
from hushcast_protocol.brokers.full.word_holder import WordHolder
from hushcast_protocol.brokers.privacy import Privacy

DAY = 10_000
NETWORK = bytes(32)


class Tree:
    """A root and so many levels of brokers, each with `fan_out` children, the lowest with clients."""

    def __init__(self, directory: Path, privacy: Privacy, fan_out: int, levels: int, seed: int = 1) -> None:
        self.privacy, self._directory = privacy, directory
        self._random = Random(seed)
        self._lines: dict[str, list[str]] = defaultdict(list)
        self._above: dict[str, list[str]] = {"root": []}
        self._rings: dict[str, Keyring] = {}
        self._rows: dict[str, Rows] = {}
        self._told: set[tuple[str, bytes]] = set()
        self._items: dict[tuple[str, str], str] = {}
        self.brokers = ["root"]
        lowest = ["root"]
        for level in range(levels):
            role = "edge" if level == levels - 1 else "inner"
            lowest = [self._join(f"{above}-{n}", above, role) for above in lowest for n in range(fan_out)]
            self.brokers += lowest
        self.clients = [
            self._join(f"client-{edge}-{n}", edge, "client") for edge in lowest for n in range(fan_out)
        ]
        for name in ("root", *self._above):
            self._ring(name)
        self._tell("root", "started", role="root", profile=privacy.text)

    def want(self, client: str, topic: str, word: bytes) -> None:
        """Ask for a word, of a topic."""
        ring, edge = self._ring(client), self._above[client][0]
        item = WordHolder(ring, self._publics(client), self.privacy.layers, DAY).item(word)
        element = self.privacy.action.element(word).hex()
        name = f"{topic} of {client}".encode().hex()
        self._items[client, topic] = item.name.hex()
        self._tell(client, "attached", client=f"key of {client}")
        self._tell(client, "subscribed", topic=topic, mailbox=name)
        self._tell(
            client,
            "wanted",
            topic=topic,
            day=DAY,
            item=item.name.hex(),
            own=ring.public.hex(),
            element=element,
        )
        self._agreed(client, item)
        asked = {"client": f"key of {client}", "name": name, "filter": encode(item).hex()}
        self._see(edge, "asked", **asked, k=1, condition="source", otherwise="wait")
        self._put(edge, ring.public, item)

    def settle(self) -> None:
        """Have brokers learn factors and show their rows to their parents, from below."""
        for broker in reversed(self.brokers[1:]):
            rows, above = self._rows[broker], self._above[broker]
            for day, path in rows.missing():
                list(rows.learn(day, path, self._compared(broker, broker, path)))
            self._make_up_a_child(broker)
            for item in rows.take_changes().shown:
                shown = {"show": (encode(item).hex(),), "withdraw": ()}
                self._agreed(broker, item)
                self._see(broker, "advertised", **shown)
                self._see(above[0], "advertised", child=self._key(broker), **shown)
                self._put(above[0], self._ring(broker).public, item)

    def send(self, topic: str, clients: Sequence[str]) -> None:
        """Send a message on a topic to these clients, which opens, under the names of their items."""
        inside, outside = (self._random.randbytes(16).hex() for _ in range(2))
        for client in clients:
            label = (self._items[client, topic], *(self._random.randbytes(16).hex() for _ in range(2)))
            self._see(self._above[client][0], "sent", message=outside, tokens=label, next=f"key of {client}")
            self._see(client, "opened", message=outside, inside=inside)
            self._tell(client, "delivered", topic=topic, message=inside)

    def _make_up_a_child(self, broker: str) -> None:
        """Have a broker learn what compares a child that it makes up, where those above say that."""
        own = AgreementKey(self._random.randbytes(AgreementKey.LENGTH))
        ring, name = Keyring(self.privacy.action, own, NETWORK), f"made up by {broker}"
        self._tell(name, "invented", by=self._key(broker))
        number = ring.number(b"made up")
        path = own_layers(ring.public, self._publics(broker), self.privacy.layers - 1, number)
        for layer in path:
            key = ring.shared(layer.target, DAY).route.reveal().hex()
            self._see(name, "agreed", day=DAY, own=ring.public.hex(), other=layer.target.hex(), key=key)
        if self.privacy.aggregates:
            self._compared(name, broker, path)

    def _compared(self, name: str, broker: str, path: LayerPath) -> LayerKeys:
        """Have a broker be given the factors of a path, and somebody write them down."""
        ask = asking(self.privacy.action, self._ring(broker).public, 1, DAY, path)
        for target in self._above[broker][: self.privacy.layers - 1]:
            ask = with_share(self._ring(target), ask, 1)
        answer, above = Factors(1, ask.route, ask.content), self._publics(broker)
        factors = unblinded(self._ring(broker), above, self.privacy.layers, DAY, path, answer)
        key = factors.route.reveal().hex()
        self._see(name, "compared", day=DAY, path=encode(path).hex(), key=key)
        return factors

    def write(self) -> None:
        """Write all lines down, into two files: reading many takes longer."""
        self._directory.mkdir(parents=True, exist_ok=True)
        for kind, lines in self._lines.items():
            (self._directory / f"all.{kind}.jsonl").write_text("".join(f"{line}\n" for line in lines))

    def _join(self, name: str, parent: str, role: str) -> str:
        self._above[name] = [parent, *self._above[parent]]
        self._tell(name, "started", role=role, profile=self.privacy.text)
        return name

    def _put(self, broker: str, child: bytes, item: LayeredWord) -> None:
        if broker not in self._rows:
            self._rows[broker] = Rows(
                self._ring(broker),
                self._publics(broker),
                self.privacy.layers,
                aggregates=self.privacy.aggregates,
            )
        rows = self._rows[broker]
        rows.put(child, rows.read(item))
        self._agreed(broker, item)

    def _agreed(self, name: str, item: LayeredWord) -> None:
        """Write down the keys that somebody used on an item."""
        ring = self._ring(name)
        for layer in item.layers:
            if ring.public in (layer.owner, layer.target):
                other = layer.target if layer.owner == ring.public else layer.owner
                if (name, other) not in self._told:
                    self._told.add((name, other))
                    key = ring.shared(other, DAY).route.reveal().hex()
                    self._see(name, "agreed", day=DAY, own=ring.public.hex(), other=other.hex(), key=key)

    def _publics(self, name: str) -> list[bytes]:
        return [self._ring(one).public for one in self._above[name]]

    def _ring(self, name: str) -> Keyring:
        if name not in self._rings:
            own = AgreementKey(self._random.randbytes(AgreementKey.LENGTH))
            self._rings[name] = Keyring(self.privacy.action, own, NETWORK)
        return self._rings[name]

    def _key(self, name: str) -> str:
        return name if name.startswith("client") else f"key of {name}"

    def _see(self, at: str, kind: Any, /, **fields: Any) -> None:
        self._lines["observations"].append(to_line(Observation(self._key(at), 1.0, DAY * 24, kind, **fields)))

    def _tell(self, at: str, kind: Any, /, **fields: Any) -> None:
        self._lines["truth"].append(to_line(Truth(self._key(at), 1.0, DAY * 24, kind, **fields)))
