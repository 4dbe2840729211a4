"""The picture of a testnet of the central system, folded from its traces; pure.

A proxy cannot tell messages apart, and notes a hash of what is sealed. By that its lines belong to the
message that the server, which opens the outer layer, or the publisher names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from hushcast_testnet.watch.central_lens import CentralWhereabouts, way
from hushcast_testnet.watch.diagram import Arrow, Box, Diagram
from hushcast_testnet.watch.message_traces import MessageStep
from hushcast_testnet.watch.overlay_picture import OverlayPicture

PSEUDONYMS_KEPT = 4_000  # each publication has one, and each subscription and day
PAYLOADS_KEPT = 4_000  # hashes of what is sealed: one of each publication, and one of each delivery
BY = "by "
"""Before the name of a daemon where it is drawn as a publisher; as a subscriber its name is its box."""

KeptT = TypeVar("KeptT")


class CentralPicture(OverlayPicture):
    """The state folded from all traces so far."""

    def __init__(self) -> None:
        super().__init__()
        self._where = CentralWhereabouts({}, {}, {})
        self._known: dict[str, str] = {}  # messages by the hashes of what is sealed
        self._early: dict[str, list[MessageStep]] = {}  # what proxies noted before that was known

    def take(self, name: str, record: dict[str, Any]) -> None:
        """Take in one line of the daemon `name`'s traces; whatever the picture has no place for passes by."""
        match record.get("kind"):
            case "started" if record["role"] in ("server", "publications", "deliveries"):
                self._where.roles[name] = record["role"]
            case "introduced" if name not in self._where.roles:  # the truth, which a user tells
                _keep(self._where.owners, record["pseudonym"], name, PSEUDONYMS_KEPT)
            case "introduced" if self._where.roles[name] != "server":
                _keep(self._where.proxies, record["pseudonym"], name, PSEUDONYMS_KEPT)
            case "handed" if name not in self._where.roles:
                self._name_payload(record["payload"], record["message"])
            case "handed" | "dispatched" as kind:
                self._passed(name, kind, record)
            case _:
                super().take(name, record)

    def _passed(self, name: str, kind: str, record: dict[str, Any]) -> None:
        passes_on = kind == "dispatched" or self._where.roles[name] != "server"
        if passes_on:
            self._counts["sent"] += 1
            self._sent[name] += 1
            self._history.add("sent", record["time"])
        tokens = record.get("tokens") or ("",)
        where = record["pseudonym"], record.get("outcome"), len(tokens), tokens[0]
        step = MessageStep(record["time"], name, kind, *where, record["size"], 0)
        if (message := record.get("message")) is not None:
            self._name_payload(record["payload"], message)
        if (message := self._known.get(record["payload"])) is not None:
            self._learn(self._messages.observe(step, message))
        else:
            _keep(self._early, record["payload"], [], PAYLOADS_KEPT)
            self._early[record["payload"]].append(step)

    def _name_payload(self, payload: str, message: str) -> None:
        _keep(self._known, payload, message, PAYLOADS_KEPT)
        for step in self._early.pop(payload, []):
            self._learn(self._messages.observe(step, message))

    def _learn(self, steps: Iterable[MessageStep]) -> None:
        for step in steps:
            role, pseudonym = self._where.roles.get(step.daemon, ""), step.other or ""
            proxy, owner = self._where.proxies.get(pseudonym, ""), self._where.owners.get(pseudonym, "")
            match step.kind, role:
                case "delivered", _:
                    continue  # at a user's; the proxy that passed it on is counted
                case "handed", "server":
                    self._moves.append((step.time, proxy, step.daemon))
                    continue  # as above
                case "handed", _:
                    self._moves.append((step.time, BY + owner, step.daemon))
                case "dispatched", "server":
                    self._moves.append((step.time, step.daemon, proxy))
                case _:
                    self._moves.append((step.time, step.daemon, owner))
            self._counts["transmissions"] += 1
            self._sent_messages[step.daemon] += 1
            self._history.add("hops", step.time)

    def moves(self) -> list[dict[str, str]]:
        """Return the hops of messages since the last call, by the boxes of the drawing."""
        moved = [{"from": start, "to": end} for _, start, end in sorted(self._moves)]
        self._moves.clear()
        return moved

    def tree_drawing(self, mailbox: str, daemons: Iterable[str], message: str = "") -> Diagram | None:
        """Return the network as messages go through it: users, proxies, server, proxies, users."""
        names = list(daemons)
        publications, servers, deliveries = map(self._where.named, ("publications", "server", "deliveries"))
        if not servers or not names:
            return None
        server = servers[0]
        owners = {one.owner for one in self._subscriptions.values()}
        levels = [
            [Box(BY + name, name, "publisher", "as publisher") for name in names],
            [Box(name, name, "origin", "proxy") for name in publications],
            [Box(server, server, "relay")],
            [Box(name, name, "top", "proxy") for name in deliveries],
            [Box(n, n, "mailbox" if n in owners else "aside", "as subscriber") for n in names],
        ]
        arrows = [Arrow(BY + name, proxy, "dropped") for name in names for proxy in publications]
        arrows += [Arrow(proxy, server, "sent") for proxy in publications]
        arrows += [Arrow(server, proxy, "sent") for proxy in deliveries]
        arrows += [Arrow(proxy, name, "sent") for proxy in deliveries for name in names if name in owners]
        return Diagram(levels, arrows)

    def way(self, message: str) -> dict[str, Any] | None:
        """Return all that is shown of one message, the newest for an empty id; nothing if it is not kept."""
        chosen = self._chosen(message)
        return None if chosen is None else way(chosen, self._where)


def _keep(kept: dict[str, KeptT], key: str, value: KeptT, most: int) -> None:
    """Keep a value for a key that has none, and so many, the newest."""
    kept.setdefault(key, value)
    if len(kept) > most:
        del kept[next(iter(kept))]
