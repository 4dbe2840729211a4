"""What a daemon in a network of brokers says of itself: the doctor, status, the summary for people."""

from __future__ import annotations

from pathlib import Path

from broker_daemons import TreeOfDaemons, tree_of_daemons
from small_network import ONE, TWO, until

from hushcast.control_messages import Finding
from hushcast_brokers.network_file import BrokersNetworkSection
from hushcast_cli.operate.status_summary import summary
from hushcast_node.doctor import NodeDoctor
from hushcast_node.settings import NodeSettings

ROWS = (("edge", "edge", "root"),)


def settings(network: TreeOfDaemons, state: Path) -> NodeSettings:
    section = BrokersNetworkSection(
        name=network.net.name, root="127.0.0.1:1", root_key=network.net.root.hex()
    )
    return NodeSettings(state=str(state), role="client", transport="tcp", network=section)


async def found(doctor: NodeDoctor) -> dict[str, Finding]:
    findings = {finding.check: finding for finding in await doctor.examine()}
    assert all(finding.advice or finding.verdict == "good" for finding in findings.values())
    for other in ("core dumps", "disk", "open files", "subscriptions"):
        del findings[other]
    return findings


async def test_the_doctor_asks_the_root_and_looks_at_tree_and_edge_broker(tmp_path: Path) -> None:
    async with tree_of_daemons(1, ROWS) as network:
        node, edge = network.nodes[0], network["edge"]
        doctor = NodeDoctor(settings(network, tmp_path), network.env)
        before = await found(doctor)
        assert {name: one.verdict for name, one in before.items()} == {"root": "bad", "tree": "bad"}
        doctor.daemon = node.daemon
        idle = await found(doctor)
        assert {one.verdict for one in idle.values()} == {"good"}
        version = node.daemon.brokers.tree.view.epoch
        assert idle["tree"].found == f"version {version}, 2 brokers, 1 of them for clients"
        await node.listen(ONE)
        well = await found(doctor)
        assert well["edge broker"] == Finding("edge broker", "good", "reached, all of 1 routed")
        await network.root.stop()
        network.nursery.start_soon(node.listen, TWO)
        await until(lambda: node.daemon.brokers.edge()["asked"] == 2)  # type: ignore[index]
        ill = await found(doctor)
        assert (ill["root"].verdict, ill["tree"].verdict) == ("bad", "good")
        assert ill["edge broker"].found == "reached, 1 of 2 routed"
        await edge.stop()
        await until(lambda: not node.daemon.brokers.edge()["reached"])  # type: ignore[index]
        assert (await found(doctor))["edge broker"].found == "not reached"
        assert node.daemon.side.describe() == "2 brokers, the edge broker is away"


async def test_status_tells_people_of_the_tree_and_the_edge_broker() -> None:
    async with tree_of_daemons(1, ROWS) as network:
        node = network.nodes[0]
        before = dict(summary(node.daemon.status()))
        assert before["brokers"] == f"2 brokers, 1 for clients, version {node.daemon.brokers.tree.view.epoch}"
        assert {"roster", "edge broker"}.isdisjoint(before)
        await node.listen(ONE)
        assert dict(summary(node.daemon.status()))["edge broker"] == "reached, 1 of 1 routed"
        await node.daemon.service.unsubscribe(ONE)
        assert dict(summary(node.daemon.status()))["edge broker"] == "not needed: nothing is subscribed"


async def test_before_the_root_has_answered_it_says_so() -> None:
    async with tree_of_daemons(0, ROWS) as network:
        for member in network.members:
            await member.stop()
        network.waits = False
        node = network.node("node")
        await node.start()
        assert not node.daemon.ready
        assert node.daemon.side.waits_for() == "waiting for the root of the brokers to answer"
        assert (
            dict(summary(node.daemon.status()))["ready"]
            == "no: waiting for the root of the brokers to answer"
        )
