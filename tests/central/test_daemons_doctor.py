"""What a daemon of a central network says of itself: the doctor, status, readiness."""

from __future__ import annotations

from pathlib import Path

from daemons import CentralNetworkOfDaemons, daemons
from small_network import ONE

from hushcast.control_messages import Finding
from hushcast_central.network_file import CentralNetworkSection, ProxySection
from hushcast_node.doctor import NodeDoctor
from hushcast_node.settings import NodeSettings


def settings(network: CentralNetworkOfDaemons, state: Path) -> NodeSettings:
    section = CentralNetworkSection(
        name=network.net.name,
        server="127.0.0.1:1",
        server_key=network.net.server.hex(),
        sealing_key=network.net.sealing_key.hex(),
        listed=tuple(
            ProxySection(role=proxy.role, key=proxy.key.hex(), address="127.0.0.1:2")
            for proxy in network.proxies
        ),
    )
    return NodeSettings(state=str(state), role="client", transport="tcp", network=section)


async def found(doctor: NodeDoctor) -> dict[str, Finding]:
    findings = {finding.check: finding for finding in await doctor.examine()}
    assert all(finding.advice or finding.verdict == "good" for finding in findings.values())
    del findings["core dumps"], findings["disk"], findings["open files"]
    return findings


async def test_the_doctor_asks_each_proxy_and_what_it_knows_of_the_server(tmp_path: Path) -> None:
    async with daemons(count=1) as network:
        node = network.nodes[0]
        doctor = NodeDoctor(settings(network, tmp_path), network.env)
        before = await found(doctor)
        assert {name: one.verdict for name, one in before.items()} == {
            "proxies for publications": "bad",
            "proxies for deliveries": "bad",
            "server": "bad",
            "subscriptions": "good",
        }
        doctor.daemon = node.daemon
        await node.listen(ONE)
        well = await found(doctor)
        assert {one.verdict for one in well.values()} == {"good"}
        assert well["proxies for deliveries"].found == "1 of 1 answer"
        assert well["server"].found == "reached by its proxies"
        await network.server.stop()
        assert (await found(doctor))["server"].found == "no proxy reaches it"
        assert node.daemon.side.describe() == "2 proxies, the server is away"
        await network.deliveries.stop()
        ill = await found(doctor)
        assert ill["proxies for deliveries"].found == "none of 1 answers"
        assert ill["proxies for publications"].verdict == "good"
        status = node.daemon.status()
        assert (status["role"], status["server"], status["subscriptions"]) == ("client", False, 1)
        assert "roster" not in status


async def test_proxies_that_are_silent_keep_nobody_waiting_for_each_in_turn(tmp_path: Path) -> None:
    async with daemons(count=0) as network:
        for number in range(12):
            await network.add(f"silent {number}", "deliveries").start()
        node = network.node("here")
        await node.start()
        for member in network.members[3:]:
            member.gate.shut()
        doctor = NodeDoctor(settings(network, tmp_path), network.env)
        doctor.daemon = node.daemon
        began = network.now
        assert (await found(doctor))["proxies for deliveries"].found == "1 of 13 answer"
        assert network.now - began < 60.0
