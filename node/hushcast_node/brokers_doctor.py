"""What the doctor looks at in a daemon of a network of brokers: the root, the tree, the edge broker."""

from __future__ import annotations

from hushcast_brokers.broker.doctor import examine_aggregation
from hushcast_node.brokers_adapter import BrokersAdapter
from hushcast_protocol.base.findings import Finding, bad, good, warning
from hushcast_protocol.brokers.privacy import read_privacy
from hushcast_runtime.processes.examinations import examine_files
from hushcast_runtime.wording import counted

FILES_NEEDED = 512  # open files: applications, publications, and one link to an edge broker


async def examine_brokers(side: BrokersAdapter | None) -> list[Finding]:
    """Return the findings, asking the root for a sign of life; no side: the daemon is not up yet."""
    is_reached = side is not None and await side.reach_root()
    around = [*_wire(side), *_aggregation(side), *_community(side), *_edge(side)]
    return [_root(is_reached), _tree(side), *around, examine_files(FILES_NEEDED)]


def _wire(side: BrokersAdapter | None) -> list[Finding]:
    return [] if side is None else side.examine_wire()


def _root(is_reached: bool) -> Finding:
    if is_reached:
        return good("root", "answers")
    return bad(
        "root",
        "does not answer",
        "what is published waits in the outbox; wait for tor, then ask the network's operator",
    )


def _tree(side: BrokersAdapter | None) -> Finding:
    tree = side.tree.newest if side is not None else None
    if tree is None:
        return bad(
            "tree", "none is held", "see the root above; then compare the configuration with network.toml"
        )
    found = f"version {tree.version}, {counted(len(tree.brokers), 'broker')}"
    if not tree.edges:
        return bad("tree", f"{found}, none for clients", "ask the network's operator")
    return good("tree", f"{found}, {len(tree.edges)} of them for clients")


def _aggregation(side: BrokersAdapter | None) -> list[Finding]:
    return [] if side is None else examine_aggregation(read_privacy(side.profile_name))


def _community(side: BrokersAdapter | None) -> list[Finding]:
    """Look whether this daemon is in its community: nothing in a network without."""
    membership = side.membership if side is not None else None
    if membership is None:
        return []
    if (missing := membership.missing()) is not None:
        return [bad("community", "this daemon is not in it", missing)]
    epoch = membership.current()
    return [good("community", f"a member, epoch {epoch.number if epoch is not None else 0}")]


def _edge(side: BrokersAdapter | None) -> list[Finding]:
    """Look at the edge broker: nothing where nothing was ever subscribed."""
    edge = side.edge() if side is not None else None
    if side is None or edge is None:
        return []
    if edge["refusal"] is not None:
        return [
            bad(
                "edge broker",
                f"does not serve this daemon: {edge['refusal']}",
                "give its operator the key of `hushcast status --json` (edge, client)"
                if edge["refusal"] == "unknown"
                else "wait, or ask its operator",
            )
        ]
    if not edge["asked"]:
        return [good("edge broker", "not needed: nothing is subscribed")]
    if not edge["reached"]:
        return [
            warning("edge broker", "not reached", "messages wait there; another is used after some minutes")
        ]
    if edge["routed"] < edge["asked"]:
        return [
            warning(
                "edge broker",
                f"reached, {edge['routed']} of {edge['asked']} routed",
                "wait: brokers further up confirm; with `--k`, others have to subscribe first",
            )
        ]
    return [good("edge broker", f"reached, all of {edge['asked']} routed")]
