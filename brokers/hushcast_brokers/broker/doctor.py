"""What a broker's doctor looks at beside what every daemon's does: its parent, and the brokers below it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hushcast_protocol.base.findings import Finding, bad, good, warning
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.broker_tree import BrokerTree
from hushcast_protocol.brokers.privacy import Privacy

_PARENT: Mapping[str, tuple[str, str]] = {
    "not listed": (
        "the root does not list this broker yet",
        "give the root's operator this broker's broker.toml, for `hushcast admin broker admit broker.toml`",
    ),
    "not reached": (
        "not reached",
        "its operator can say whether it runs; `hushcast admin broker replace` puts another in its place",
    ),
}


def examine_parent(state: str | None) -> Finding:
    """Look, as a broker that is not the root, whether its parent is reached; `None` before it was tried."""
    if state == "open":
        return good("parent", "connected")
    if state is None:
        return bad("parent", "not tried yet", "see above")
    return bad("parent", *_PARENT[state])


def examine_communities(held: tuple[int, int] | None) -> list[Finding]:
    """Tell how many communities there are, and in how many this broker is; `None`: there can be none."""
    if held is None:
        return []
    known, own = held
    if not known:
        advice = "the root's operator lists keepers as `communities`, and they hand in their charters"
        return [warning("communities", "none is known", advice)]
    return [good("communities", f"in {own} of {known}")]


def examine_aggregation(privacy: Privacy) -> list[Finding]:
    """Warn of a network in which layers do not hold against one broker that misbehaves."""
    if privacy.model != "full" or not privacy.aggregates:
        return []
    told = "brokers aggregate: one that makes up a child reads, alone, what its children ask for"
    advice = "a network made without `aggregation` takes as many brokers in a row as there are layers"
    return [warning("privacy", told, advice)]


def examine_service(connected: int | None) -> list[Finding]:
    """Look whether the tomography service takes statements; `None`: there is none to state to."""
    if connected is None:
        return []
    if connected:
        return [good("tomography", "stated to")]
    advice = "its operator can say whether it runs; --k counts each edge broker's own clients alone without"
    return [warning("tomography", "not reached", advice)]


def examine_below(tree: BrokerTree | None, own: PublicKey, connected: Collection[bytes]) -> list[Finding]:
    """Look at those below a broker, and, as the root, whether clients have an edge broker to attach to."""
    found = []
    if tree is None or own not in tree.brokers:
        return (
            []
            if tree is None
            else [bad("seat", "this broker has none in the tree", _PARENT["not listed"][1])]
        )
    seat = tree.brokers[own]
    if seat.role == "root" and not tree.edges:
        advice = "`hushcast admin broker admit broker.toml` lists one; without any nobody can subscribe"
        found.append(bad("edge brokers", "none listed", advice))
    below = [one.key in connected for one in tree.children(own)]
    if below:
        told = f"{sum(below)} of {len(below)} connected"
        advice = "`hushcast admin broker tree` says which are away; what is for them waits on this disk"
        if not any(below):
            found.append(bad("brokers below", told, advice))
        else:
            found.append(
                good("brokers below", told) if all(below) else warning("brokers below", told, advice)
            )
    return found
