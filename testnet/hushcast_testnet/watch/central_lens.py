"""The lens on one message of the central system: its way, and what server and proxies saw of it; pure.

Every sentence is derived from what they noted. What each does not see is the threat model's
("The central system" in docs/threat-model.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hushcast_runtime.wording import counted, listed
from hushcast_testnet.watch.diagram import PUBLISHER, Arrow, Box, Diagram
from hushcast_testnet.watch.message_traces import MessageStep, TracedMessage
from hushcast_testnet.watch.overlay_lens import (
    after,
    natural,
    publishers_card,
    row,
    subscribers_card,
    summary,
)

_SEALED_UP = "The topic's name, and the content: the body inside is sealed under the topic."
_NOBODY = "It fits no pseudonym: it sent nothing on."


@dataclass(frozen=True)
class CentralWhereabouts:
    """Who is who: the truth, which neither server nor proxies have."""

    roles: dict[str, str]  # `server`, `publications` or `deliveries`, by daemons' names
    proxies: dict[str, str]  # names of proxies by pseudonyms that were introduced there
    owners: dict[str, str]  # names of users' daemons by their pseudonyms

    def named(self, role: str) -> list[str]:
        """Return the names of those with a role."""
        return sorted((name for name, one in self.roles.items() if one == role), key=natural)


def way(message: TracedMessage, where: CentralWhereabouts) -> dict[str, Any]:
    """Return all that is shown of one message; times are seconds since the testnet began."""
    passed = [_Station(name, message, where) for name in _in_order(message, where)]
    inboxes = [_inbox(message, passed, name) for name in sorted(message.inboxes, key=natural)]
    ways = [
        f"It handed it to {listed(one.name for one in passed if one.role == 'publications') or 'a proxy'},"
        " under a pseudonym made for this message, over a circuit of its own."
    ]
    return {
        **row(message),
        "publisher": message.publisher,
        "summary": summary(message, f"{counted(len(passed), 'daemon')} between them passed it on"),
        "drawing": _drawing(message, passed).as_dict(),
        "stations": [publishers_card(message, ways), *(one.card() for one in passed), *inboxes],
        "others": sorted(set(where.roles) - {one.name for one in passed}, key=natural),
    }


class _Station:
    """The server, or a proxy, on a message's way: what it noted."""

    def __init__(self, name: str, message: TracedMessage, where: CentralWhereabouts) -> None:
        steps = [step for step in message.steps if step.daemon == name]
        self.name = name
        self.role = where.roles[name]
        self.first = min(step.time for step in steps)
        self.handed = [step for step in message.of("handed") if step.daemon == name]
        self.dispatched = [step for step in message.of("dispatched") if step.daemon == name]
        self.came_by = sorted({where.proxies.get(step.other or "", "a proxy") for step in self.handed})
        self.went_by = sorted({where.proxies.get(step.other or "", "a proxy") for step in self.dispatched})
        self.owners = {where.owners[step.other] for step in self.dispatched if step.other in where.owners}

    @property
    def kind(self) -> str:
        """Its box."""
        return {"publications": "origin", "server": "relay", "deliveries": "top"}[self.role]

    def card(self) -> dict[str, Any]:
        """Return what it saw, and what it did not."""
        role, saw, hidden = {
            "publications": self._publications,
            "server": self._server,
            "deliveries": self._deliveries,
        }[self.role]()
        return {
            "id": self.name,
            "name": self.name,
            "kind": self.kind,
            "role": role,
            "time": self.first,
            "saw": saw,
            "hidden": hidden,
            "note": "",
        }

    def _publications(self) -> tuple[str, list[str], list[str]]:
        saw = [
            "It came over an anonymous connection, under a pseudonym made for this one message: no name.",
            "It changed the tokens' key from the publisher's to the server's, knowing neither, and sent it"
            " on to the server.",
            *_tokens(self.handed),
            *_size(self.handed, "It was sealed to the server's key"),
        ]
        hidden = [_SEALED_UP, "Who published it.", "Whether anybody subscribes, and who."]
        return "publications proxy: here it entered the network", saw, hidden

    def _server(self) -> tuple[str, list[str], list[str]]:
        saw = [
            f"It came by {listed(self.came_by)}, under a pseudonym: no name."
            if self.handed
            else "It was here already when the server started.",
            *_tokens(self.handed),
            "It opened the outer layer, and found a body sealed under a topic.",
        ]
        if count := len({step.other for step in self.dispatched}):
            fits, proxies = counted(count, "pseudonym"), listed(self.went_by)
            saw.append(f"It fits {fits}: it sealed it anew for each, and sent it on by {proxies}.")
        else:
            saw.append(_NOBODY)
        hidden = [
            _SEALED_UP,
            "Who published it: a pseudonym is used once.",
            "Who subscribes: a pseudonym is for one subscription and one day, and stands for nobody.",
        ]
        return "server: it matches tokens with pseudonyms", saw, hidden

    def _deliveries(self) -> tuple[str, list[str], list[str]]:
        count = len({step.other for step in self.dispatched})
        saw = [
            f"It came from the server for {counted(count, 'pseudonym')}.",
            "It changed the key from the server's to the subscriber's, knowing neither, and sent it on over"
            f" {'an anonymous connection' if count == 1 else 'anonymous connections'} that"
            f" {'a user' if count == 1 else 'users'} opened.",
            *_size(self.dispatched, "It was sealed anew for each"),
        ]
        hidden = [
            _SEALED_UP,
            "Who published it.",
            "Who subscribes: it has pseudonyms, and no names.",
            "Which publication it was, but for its time and size: each delivery is sealed anew.",
        ]
        return "deliveries proxy: next to the subscribers", saw, hidden


def _tokens(steps: Iterable[MessageStep]) -> list[str]:
    found = [step for step in steps if step.trunk]
    if not found:
        return []
    count = max(step.tokens for step in found)
    rest = " for the topic, the others for attributes or drawn at random." if count > 1 else "."
    return [f"{counted(count, 'token')} that it cannot read: {found[0].trunk[:8]}…{rest}"]


def _size(steps: Iterable[MessageStep], how: str) -> list[str]:
    sizes = {step.size for step in steps}
    return [f"{how}: {listed(f'{size:,}' for size in sorted(sizes))} bytes."] if sizes else []


def _in_order(message: TracedMessage, where: CentralWhereabouts) -> list[str]:
    """Return server and proxies on the way, by when they first saw it."""
    first: dict[str, float] = {}
    for step in message.steps:
        if step.daemon in where.roles:
            first[step.daemon] = min(step.time, first.get(step.daemon, step.time))
    return sorted(first, key=lambda name: (_LEVELS[where.roles[name]], first[name], name))


_LEVELS = {"publications": 1, "server": 2, "deliveries": 3}


def _inbox(message: TracedMessage, passed: list[_Station], name: str) -> dict[str, Any]:
    proxies = listed(one.name for one in passed if one.role == "deliveries" and name in one.owners)
    came = f"{proxies or 'its deliveries proxy'}, for the pseudonym of its subscription"
    return subscribers_card(message, name, came)


def _drawing(message: TracedMessage, passed: list[_Station]) -> Diagram:
    levels: list[list[Box]] = [[Box(PUBLISHER, message.publisher or "?", "publisher", "publisher")]]
    levels += [[] for _ in _LEVELS]
    for one in passed:
        levels[_LEVELS[one.role]].append(Box(one.name, one.name, one.kind, after(message, one.first)))
    levels.append(
        [
            Box(name, name, "mailbox", after(message, message.inboxes[name]))
            for name in sorted(message.inboxes, key=natural)
        ]
    )
    arrows = []
    servers = [one.name for one in passed if one.role == "server"]
    for one in passed:
        if one.role == "publications":
            arrows.append(Arrow(PUBLISHER, one.name, "dropped"))
            arrows += [Arrow(one.name, server, "sent") for server in servers]
        elif one.role == "deliveries":
            arrows += [Arrow(server, one.name, "sent") for server in servers]
            arrows += [Arrow(one.name, name, "sent") for name in sorted(one.owners & set(message.inboxes))]
    return Diagram(levels, arrows)
