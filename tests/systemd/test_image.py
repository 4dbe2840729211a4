"""The image for operators: directory, relay and client by `init` and `join`, and a message between them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from booted import EPOCH, LOOK_EVERY, ROOT, WITHIN, podman

from hushcast_cli.configuration.places import user_places
from hushcast_testnet.tor.private_tor import TorNetwork

FOLDER = ROOT / "systemd" / "containers"
IMAGE = "localhost/hushcast-image-test"
USER = 7411
CENTRAL = ("central-server", "publications-proxy", "deliveries-proxy")
DAEMONS = ("node", "directory", *CENTRAL, "broker-root", "broker", "tomography")


def services() -> dict[str, Any]:
    return dict(yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"])


@pytest.mark.parametrize("name", services())
def test_containers_have_no_rights(name: str) -> None:
    service = services()[name]
    assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges"])
    assert service["read_only"] is True
    assert {"ports", "privileged", "cap_add", "devices", "user"}.isdisjoint(service)
    assert f"useradd --uid {USER}" in (FOLDER / "Containerfile").read_text()


@pytest.mark.parametrize("name", DAEMONS)
def test_daemons_have_no_network_and_share_sockets_alone_with_tor(name: str) -> None:
    daemon, tor = services()[name], services()["tor"]
    assert daemon["network_mode"] == "none"
    assert set(daemon["volumes"]) & set(tor["volumes"]) == {"tor-sockets:/run/hushcast-tor"}


@pytest.mark.parametrize("name", [name for name in services() if name != "tor"])
def test_an_engine_hears_whether_what_runs_is_ready(name: str) -> None:
    service = services()[name]
    # As in the image, whose variables say where `init` writes it.
    usual = user_places(name, None, {"XDG_CONFIG_HOME": "/etc", "XDG_STATE_HOME": "/var/lib"}).config
    command = service["command"]
    config = command[command.index("--config") + 1] if "--config" in command else str(usual)
    check = service["healthcheck"]
    assert check["test"] == ["CMD", "hushcast", "healthcheck", "--config", config]
    assert check["interval"] == "60s"


def test_a_gateway_shares_the_nodes_socket_and_nothing_else_with_daemons() -> None:
    found = services()
    gateway = set(found["gateway"]["volumes"])
    assert gateway & set(found["node"]["volumes"]) == {"node-sockets:/run/hushcast"}
    assert gateway.isdisjoint(found["directory"]["volumes"] + found["tor"]["volumes"])


@pytest.mark.parametrize("name", ["located-provider", "located-owner"])
def test_a_provider_and_an_owner_have_no_network_and_share_the_nodes_socket_alone(name: str) -> None:
    found = services()
    one = found.pop(name)
    assert one["network_mode"] == "none"
    shared = {volume for other in found.values() for volume in other["volumes"]}
    assert set(one["volumes"]) & shared == {"node-sockets:/run/hushcast"}


def test_tor_opens_no_port() -> None:
    doors = [line for line in (FOLDER / "torrc").read_text().splitlines() if "Port " in line]
    assert len(doors) == 2
    assert all(" unix:/run/hushcast-tor/" in door for door in doors)


@dataclass(frozen=True)
class Project:
    """Containers of one operator, driven as the documentation says."""

    name: str
    file: Path

    def compose(self, *words: str, stdin: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "podman_compose", "-p", self.name, *self.files(), *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=WITHIN,
            check=False,
            env=os.environ
            | {
                "HUSHCAST_IMAGE": IMAGE,
                "CONTAINERS_CONF": str(ROOT / "testnet/hushcast_testnet/containers/containers.conf"),
                "DISABLE_HC_SYSTEMD": "true",  # there may be none; podman asks as well when it is told to
            },
        )
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done

    def files(self) -> list[str]:
        return ["-f", str(FOLDER / "compose.yaml"), "-f", str(self.file)]

    def run(self, service: str, *words: str, stdin: str = "") -> str:
        return self.compose("run", "--rm", "--no-deps", "-T", service, *words, stdin=stdin).stdout

    def look(self, service: str, *words: str) -> str:
        """Run a program in a container and return what it prints, nothing if it fails.

        By the engine, for what is asked again and again: compose takes six times as long.
        """
        return podman("exec", f"{self.name}_{service}_1", *words, check=False)

    def remove(self) -> None:
        """Leave nothing of it."""
        label = f"label=io.podman.compose.project={self.name}"
        podman("rm", "--force", "--depend", "--ignore", "--time", "5", "--filter", label)
        podman("volume", "prune", "--force", "--filter", label)
        podman("network", "prune", "--force", "--filter", label)

    def hushcast(self, *words: str) -> list[dict[str, Any]]:
        told = self.compose("exec", "-T", "node", "hushcast", *words, "--json").stdout
        return [json.loads(line) for line in told.splitlines()]


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(LOOK_EVERY)


@pytest.fixture(scope="module")
def image(package: Path) -> str:
    """Build the image from the package."""
    build = [ROOT / "tools" / "build-image", IMAGE, package.parent]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    return IMAGE


@pytest.fixture
def project(image: str, tor_network: TorNetwork, tmp_path: Path) -> Iterator[Callable[[str], Project]]:
    """Return what makes projects whose tor is in a private network."""
    override = tmp_path / "private.yaml"  # the private network is on this machine's loopback
    override.write_text("services:\n  tor:\n    network_mode: host\n")
    made: list[Project] = []

    def make(name: str) -> Project:
        made.append(new := Project(f"hushcast-image-{os.getpid()}-{name}", override))
        snippet = Path(tor_network.snippet).read_text()
        new.compose(
            *("run", "--rm", "-T", "--entrypoint", "sh", "tor", "-c", "cat >/etc/hushcast-tor/private.conf"),
            stdin=snippet,
        )
        return new

    yield make
    for each in made:
        each.remove()


@pytest.mark.containers
@pytest.mark.tor
def test_a_network_of_containers_by_init_and_join_alone(project: Callable[[str], Project]) -> None:
    first, second = project("one"), project("two")
    assert "next: hushcast run directory" in first.run(
        "directory", "init", "directory", "--network", "image", "--epoch", str(EPOCH)
    )
    first.compose("up", "--detach", "directory")
    network = given_out(first, "directory", "network.toml")
    for operator, role in ((first, "relay"), (second, "client")):
        operator.run("node", "init", role)
        assert f"a {role} of the network image" in operator.run("node", "join", "-", stdin=network)
        operator.compose("up", "--detach", "node")
    for operator in (first, second):
        until(lambda operator=operator: ready(operator))  # type: ignore[misc]
    assert (
        second.hushcast("subscribe", "news", "--count", "0", "--timeout", str(WITHIN))[0]["event"]
        == "subscribed"
    )
    first.hushcast("publish", "news", "it rains")
    heard = second.hushcast("subscribe", "news", "--count", "1", "--timeout", str(WITHIN))
    assert "it rains" in [event.get("payload") for event in heard]
    open_gateway(second)
    second.compose("exec", "-T", "gateway", "/opt/hushcast/bin/python3", "-c", MQTT_PUBLISH)
    heard = second.hushcast("subscribe", "news", "--count", "1", "--timeout", str(WITHIN))
    assert "by MQTT" in [event.get("payload") for event in heard]
    for name in ("node", "directory"):
        assert podman("healthcheck", "run", f"{first.name}_{name}_1") == ""
    for name in ("tor", "node", "directory"):
        (found,) = json.loads(podman("inspect", f"{first.name}_{name}_1"))
        assert found["HostConfig"]["ReadonlyRootfs"] is True
        assert found["EffectiveCaps"] in (None, [])
        assert found["Config"]["User"] == "hushcast"
        assert (found["HostConfig"]["NetworkMode"] == "none") is (name != "tor")


@pytest.mark.containers
@pytest.mark.tor
def test_brokers_in_containers(project: Callable[[str], Project]) -> None:
    root, edge = project("root"), project("edge")
    init = ("init", "broker-root", "--network", "image", "--epoch", str(EPOCH), "--privacy", "full")
    root.run("broker-root", *init)
    root.compose("up", "--detach", "broker-root")
    network = given_out(root, "broker-root", "network.toml")
    edge.run("broker", "init", "broker")
    edge.run("broker", "join", "-", "--config", "/etc/hushcast/broker.toml", stdin=network)
    edge.compose("up", "--detach", "broker")
    seat = given_out(edge, "broker", "broker.toml")
    listed = ("hushcast", "admin", "broker", "admit", "-", "--config", "/etc/hushcast/broker-root.toml")
    root.compose("exec", "-T", "broker-root", *listed, stdin=seat)
    edge.run("node", "init", "client")
    assert "a client of the network image" in edge.run("node", "join", "-", stdin=network)
    edge.compose("up", "--detach", "node")
    until(lambda: ready(edge))
    edge.hushcast("subscribe", "news", "--count", "0", "--timeout", str(WITHIN))
    edge.hushcast("publish", "news", "it rains")
    heard = edge.hushcast("subscribe", "news", "--count", "1", "--timeout", str(WITHIN))
    assert "it rains" in [event.get("payload") for event in heard]
    asked = ("hushcast", "doctor", "broker", "--config", "/etc/hushcast/broker.toml", "--json")
    told = edge.compose("exec", "-T", "broker", *asked, check=False).stdout.splitlines()
    bad = {line["check"] for line in map(json.loads, told) if line["verdict"] != "good"}
    assert bad <= {"open files"}, "which is the engine's to allow"


def given_out(operator: Project, service: str, file: str) -> str:
    """Return a file that a daemon writes for others, once it has."""
    path = f"/var/lib/hushcast-{service}/{file}"
    until(lambda: operator.look(service, "cat", path) != "")
    return operator.compose("exec", "-T", service, "cat", path).stdout


MQTT_PUBLISH = """
import socket
def text(words): return len(words).to_bytes(2, "big") + words.encode()
def packet(kind, rest): return bytes([kind, len(rest)]) + rest
with socket.socket(socket.AF_UNIX) as client:
    client.settimeout(30)
    client.connect("/run/hushcast-gateway/mqtt.sock")
    client.sendall(packet(0x10, text("MQTT") + bytes([4, 2, 0, 60]) + text("booted")))
    assert client.recv(4) == bytes([0x20, 2, 0, 0])
    client.sendall(packet(0x32, text("hush/open/news") + bytes([0, 1]) + b"by MQTT"))
    assert client.recv(4) == bytes([0x40, 2, 0, 1])
"""


def open_gateway(operator: Project) -> None:
    """Start a gateway beside the node, as the documentation says; return when it reaches the node."""
    operator.run("gateway", "init", "gateway")
    script = "cat >>/etc/hushcast/gateway.toml"
    operator.compose(
        *("run", "--rm", "--no-deps", "-T", "--entrypoint", "sh", "gateway", "-c", script),
        stdin='\n[daemon]\nsocket = "/run/hushcast/control.sock"\n',
    )
    operator.compose("up", "--detach", "--no-deps", "gateway")

    def reached() -> bool:
        told = operator.look("gateway", "hushcast", "doctor", "gateway", "--json")
        found = {line["check"]: line["verdict"] for line in map(json.loads, told.splitlines())}
        return found.get("daemon") == found.get("listen #2") == "good"

    until(reached)


def ready(operator: Project) -> bool:
    told = operator.look("node", "hushcast", "status", "--json")
    return told != "" and json.loads(told)["ready"] is True
