"""The picture of a testnet of brokers, folded from its traces; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_testnet.layouts import broker_names
from hushcast_testnet.watch.brokers_lens import KINDS, BrokerWhereabouts, role_of, way
from hushcast_testnet.watch.diagram import Arrow, Box, Diagram
from hushcast_testnet.watch.overlay_lens import natural
from hushcast_testnet.watch.overlay_picture import MAILBOXES_KEPT, OverlayPicture

INSIDE_KEPT = 1_500  # ids on the way, of messages that are kept and of probes


class BrokersPicture(OverlayPicture):
    """The state folded from all traces so far."""

    def __init__(self) -> None:
        super().__init__()
        self._places = BrokerWhereabouts({}, {})
        self._edges: dict[str, str] = {}  # the edge brokers of daemons
        self._asked: dict[str, tuple[str, str]] = {}  # client and edge broker by names of subscriptions
        self._wanted: dict[str, str] = {}  # daemons by names of items, under layers
        self._inside: dict[str, str] = {}  # ids of messages by those that they have on their way

    def take(self, name: str, record: dict[str, Any]) -> None:
        """Take in one line of the daemon `name`'s traces; whatever the picture has no place for passes by."""
        if (inside := self._inside.get(record.get("message", ""))) and record.get("kind") != "opened":
            record = {**record, "message": inside}
        super().take(name, record)
        match record.get("kind"):
            case "started" if role_of(name) in KINDS:
                self._places.brokers[record["node"]] = name
                self._places.privacy = record.get("profile", "")
            case "asked":
                asked = _item(record) if self._places.has_layers else record["name"]
                self._asked[asked] = record["client"], name
                if len(self._asked) > MAILBOXES_KEPT:
                    del self._asked[next(iter(self._asked))]
                self._place(asked)
            case "wanted":
                self._wanted[record["item"]] = name
                if len(self._wanted) > MAILBOXES_KEPT:
                    del self._wanted[next(iter(self._wanted))]
                self._place(record["item"])
            case "opened":
                self._inside[record["message"]] = record["inside"]
                if len(self._inside) > INSIDE_KEPT:
                    del self._inside[next(iter(self._inside))]
                self._learn(self._messages.merge(record["message"], record["inside"]))
            case "subscribed":
                self._place(record["mailbox"])

    def _place(self, subscription: str) -> None:
        """Say whose key a client's is, once both it and its edge broker have named a subscription."""
        owner = self._owners.get(subscription) or self._wanted.get(subscription)
        if owner is not None and subscription in self._asked:
            client, edge = self._asked[subscription]
            self._places.clients[client] = owner
            self._edges[owner] = edge
            if len(self._places.clients) > MAILBOXES_KEPT:
                del self._places.clients[next(iter(self._places.clients))]

    def moves(self) -> list[dict[str, str]]:
        """Return the hops of messages since the last call; `from` is empty where a message entered."""
        brokers = self._places.brokers.values()
        named = [
            (start, end if end in brokers else self._places.of(end)) for _, start, end in sorted(self._moves)
        ]
        self._moves.clear()
        return [{"from": start, "to": end} for start, end in named]

    def tree_drawing(self, mailbox: str, daemons: Iterable[str], message: str = "") -> Diagram | None:
        """Return the tree of brokers as messages go down it, with daemons below their edge brokers."""
        known = set(self._places.brokers.values())
        edges = sum(role_of(name) == "edge" for name in known)
        tree = [(name, role, parent) for name, role, parent in broker_names(edges) if name in known]
        if not edges:
            return None
        levels = [
            [Box(name, name, kind) for name, role, _ in tree if role == at] for at, kind in KINDS.items()
        ]
        owners = {one.owner for one in self._subscriptions.values()}
        names = sorted(daemons, key=natural)
        levels.append([Box(name, name, "mailbox" if name in owners else "aside") for name in names])
        arrows = [Arrow(parent, name, "sent") for name, _, parent in tree if parent]
        arrows += [
            Arrow(self._edges[name], name, "sent") for name in names if name in owners & self._edges.keys()
        ]
        return Diagram([level for level in levels if level], arrows)

    def way(self, message: str) -> dict[str, Any] | None:
        """Return all that is shown of one message, the newest for an empty id; nothing if it is not kept."""
        chosen = self._chosen(message)
        return None if chosen is None else way(chosen, self._places)


def _item(record: dict[str, Any]) -> str:
    """Return the name of the item that a client asked for."""
    return digest(Domain.LAYERED, bytes.fromhex(record["filter"]), size=LABEL).hex()
