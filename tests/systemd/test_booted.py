"""What a person who runs servers expects of the package, tried in a booted systemd; in this order."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import next_package
import pytest
from booted import EPOCH, WITHIN, Machine, configuration

from hushcast_brokers.broker_sections import broker_lines
from hushcast_protocol.base.addresses import onion_address
from hushcast_protocol.base.crypto.secrets import Seed

pytestmark = pytest.mark.containers

DIRECTORY, RELAY, NODE = "hushcast-directory", "hushcast-node@relay", "hushcast-node"
UNITS = (DIRECTORY, RELAY, NODE)
FILES = ("/etc/hushcast-directory/directory.toml", "/etc/hushcast/relay.toml", "/etc/hushcast/node.toml")
GATEWAY, GATEWAY_FILE = "hushcast-gateway", "/etc/hushcast-gateway/gateway.toml"
SERVER, PROXY = "hushcast-central-server", "hushcast-central-proxy"
BROKER, BROKER_FILE = "hushcast-broker", "/etc/hushcast-broker/broker.toml"
TOMOGRAPHY = "hushcast-tomography"
PROVIDER, PROVIDER_FILE = "hushcast-located", "/etc/hushcast-located/provider.toml"
TOPIC, PAYLOAD = "a-topic-to-look-for", "a payload to look for"


@pytest.fixture(scope="module")
def network(machine: Machine) -> str:
    """Start directory, relay and client as services, by `init` and `join`; return the network's section."""
    for user, groups in (("alice", ["--groups", "hushcast"]), ("mallory", [])):
        machine.run("useradd", *groups, user)
    machine.run("hushcast", "init", "directory", "--network", "booted", "--epoch", str(EPOCH))
    louder(machine, "/etc/hushcast-directory/directory.toml")
    machine.systemctl("start", DIRECTORY)
    given = "/var/lib/hushcast-directory/network.toml"
    for role, name in (("relay", ["--name", "relay"]), ("client", [])):
        machine.run("hushcast", "init", role, *name)
        machine.run("hushcast", "join", given, *name)
    louder(machine, "/etc/hushcast/relay.toml")
    louder(machine, "/etc/hushcast/node.toml", 'metrics = "unix:/run/hushcast/metrics.sock"')
    machine.systemctl("start", RELAY)
    machine.systemctl("start", NODE)
    return machine.run("cat", given).stdout


def louder(machine: Machine, file: str, *top: str) -> None:
    """Log everything, for the test that looks for secrets in it; put lines at the top of the file."""
    text = machine.run("cat", file).stdout.replace('level = "info"', 'level = "debug"')
    machine.write(file, "\n".join([*top, text]))


def test_init_leaves_files_that_only_the_daemons_read(machine: Machine, network: str) -> None:
    for file, group in (
        ("/etc/hushcast/node.toml", "hushcast"),
        ("/etc/hushcast/relay.toml", "hushcast"),
        ("/etc/hushcast-directory/directory.toml", "hushcast-directory"),
    ):
        assert machine.run("stat", "-c", "%U:%G %a", file).stdout == f"root:{group} 640\n"
        assert machine.run("hushcast", "admin", "check-config", file).returncode == 0


def test_a_service_that_is_started_can_be_used(machine: Machine, network: str) -> None:
    """`systemctl start` returns when Tor, onion service and roster are there."""
    for unit in UNITS:
        state, status = machine.shown(unit, "ActiveState", "StatusText")
        assert (state, "working" in status) == ("active", True), f"{unit}: {status}"
    (relay,) = machine.asked("status", instance="relay")
    (client,) = machine.asked("status")
    assert (relay["ready"], client["ready"]) == (True, True)
    assert client["roster"]["relays"] == 1
    assert relay["tor"]["connected"]


def test_without_a_roster_it_is_starting_and_says_so(machine: Machine, network: str) -> None:
    """It asks for patience: twenty seconds are all that the unit would have got."""
    key = re.sub(r'directory_key = "\w{2}', 'directory_key = "00', network)
    text = configuration("hushcast-node-lost", "client", key)
    machine.write("/etc/hushcast/lost.toml", text)
    unit = "hushcast-node@lost"
    machine.write(f"/etc/systemd/system/{unit}.service.d/short.conf", "[Service]\nTimeoutStartSec=20\n")
    machine.systemctl("daemon-reload")
    machine.systemctl("start", "--no-block", unit)
    waiting = "waiting for a roster from the directory"
    machine.until(lambda: machine.shown(unit, "StatusText") == (waiting,))
    machine.run("sleep", "23")
    assert machine.shown(unit, "ActiveState", "NRestarts") == ("activating", "0")
    machine.write("/etc/hushcast/lost.toml", text.replace("debug", "info"))
    machine.systemctl(
        "reload", "--no-block", unit
    )  # waits for the start; without --no-block, so does systemctl
    machine.systemctl("kill", "--signal=HUP", unit)
    machine.until(lambda: "configuration read again" in machine.journal(unit))
    assert machine.shown(unit, "ActiveState", "NRestarts") == ("activating", "0")
    machine.systemctl("stop", unit)
    doctor = ("hushcast", "doctor", "--config", "/etc/hushcast/lost.toml", "--json")
    found = {
        one["check"]: one for one in map(json.loads, machine.run(*doctor, check=False).stdout.splitlines())
    }
    assert [check for check, one in found.items() if one["verdict"] == "bad"] == ["daemon"]
    assert f"{unit} is inactive (dead)" in found["service"]["found"]
    assert "; its state was last written 0 minutes ago" in found["service"]["found"]
    assert found["service"]["advice"] == f"systemctl enable --now {unit}"


def test_publish_and_subscribe_in_the_right_group(machine: Machine, network: str) -> None:
    listening = machine.subscribed(TOPIC)
    machine.hushcast("publish", TOPIC, PAYLOAD, instance="relay")
    heard = [json.loads(line) for line in listening.communicate(timeout=WITHIN)[0].splitlines()]
    assert [event["payload"] for event in heard if event.get("event") == "message"] == [PAYLOAD]
    assert listening.returncode == 0


@pytest.mark.parametrize("command", [("status",), ("publish", TOPIC, "x"), ("subscriptions",), ("doctor",)])
def test_others_are_refused(machine: Machine, network: str, command: tuple[str, ...]) -> None:
    done = machine.hushcast(*command, user="mallory", check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert "Permission denied" in done.stderr


def test_others_read_neither_state_nor_configuration_nor_metrics(machine: Machine, network: str) -> None:
    for user, denied in (("alice", ["/var/lib/hushcast"]), ("mallory", ["/etc/hushcast", "/run/hushcast"])):
        for path in (*denied, "/var/lib/hushcast-directory", "/etc/hushcast-directory"):
            assert machine.run("ls", path, user=user, check=False).returncode != 0, (user, path)


def test_metrics_for_the_group(machine: Machine, network: str) -> None:
    program = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/run/hushcast/metrics.sock');"
        "s.sendall(b'GET /metrics HTTP/1.1\\r\\n\\r\\n'); print(s.makefile().read())"
    )
    text = machine.run("python3", "-c", program, user="alice").stdout
    assert "hushcast_ready 1.0" in text
    assert re.search(r"^hushcast_messages_delivered_total [1-9]", text, re.MULTILINE)
    assert machine.run("python3", "-c", program, user="mallory", check=False).returncode != 0


def test_the_doctor_finds_all_well(machine: Machine, network: str) -> None:
    for instance, more in (("relay", {"descriptor", "onion service", "seat"}), ("", {"subscriptions"})):
        findings = machine.asked("doctor", instance=instance)
        assert {found["verdict"] for found in findings} == {"good"}, findings
        expected = {"tor", "clock", "roster", "disk", "open files", "core dumps"}
        assert {found["check"] for found in findings} == expected | more


def test_so_does_that_of_the_directory(machine: Machine, network: str) -> None:
    told = machine.run("hushcast", "doctor", "directory", "--json", check=False).stdout
    found = {line["check"]: line for line in map(json.loads, told.splitlines())}
    del found["open files"]  # a container may not be permitted as many as the unit asks for
    assert {line["verdict"] for line in found.values()} == {"good"}, found
    assert {"daemon", "onion service", "roster", "relays"} < found.keys()


def restarted(machine: Machine, unit: str, before: int) -> bool:
    state, pid = machine.shown(unit, "ActiveState", "MainPID")
    return state == "active" and int(pid) not in (0, before)


def test_killed_it_is_back_and_still_subscribed(machine: Machine, network: str) -> None:
    before = machine.pid(NODE)
    machine.run("kill", "-KILL", str(before))
    machine.until(lambda: restarted(machine, NODE, before))
    assert [held["topic"] for held in machine.asked("subscriptions")] == [TOPIC]
    listening = machine.subscribed(TOPIC)
    machine.hushcast("publish", TOPIC, "after the kill", instance="relay")
    assert "after the kill" in listening.communicate(timeout=WITHIN)[0]


def test_a_timer_makes_backups_and_one_of_them_is_restored(machine: Machine, network: str) -> None:
    for file, unit in (("/etc/hushcast/node.toml", NODE), (f"/etc/{DIRECTORY}/directory.toml", DIRECTORY)):
        name = machine.run("systemd-escape", "--path", file).stdout.strip()
        machine.systemctl("enable", "--now", f"hushcast-backup@{name}.timer")
        for _ in range(2):
            machine.systemctl("start", f"hushcast-backup@{name}.service")
            assert machine.shown(unit, "ActiveState") == ("active",)
        made = [f"/var/lib/hushcast-backup/{name}.{kind}" for kind in ("backup", "before")]
        assert machine.run("stat", "-c", "%U %a", *made).stdout == 2 * "root 600\n"
        assert machine.run("ls", "/var/lib/hushcast-backup", user="alice", check=False).returncode != 0
    met: dict[str, object] = {"ready": True, "nodes": 1}  # once the daemon has met its relay again
    before = [held | met for held in machine.asked("subscriptions")]
    machine.systemctl("stop", NODE)
    machine.run("sh", "-c", "rm -r /var/lib/hushcast/*")
    last = "/var/lib/hushcast-backup/etc-hushcast-node.toml.backup"
    machine.run("hushcast", "restore", "--config", "/etc/hushcast/node.toml", last)
    machine.systemctl("start", NODE)
    assert [held | met for held in machine.asked("subscriptions")] == before


def test_a_scheduler_that_stops_is_restarted_by_the_watchdog(machine: Machine, network: str) -> None:
    before = machine.pid(NODE)
    machine.run("kill", "-STOP", str(before))
    machine.until(lambda: restarted(machine, NODE, before))
    assert "Watchdog timeout" in machine.journal(NODE)
    assert "Failed with result 'watchdog'" in machine.journal(NODE)


def test_a_bad_configuration_fails_with_the_reason_in_the_journal(machine: Machine, network: str) -> None:
    text = configuration("hushcast-node-bad", "relay", network).replace('"relay"', '"rely"')
    machine.write("/etc/hushcast/bad.toml", text)
    unit = "hushcast-node@bad"
    machine.run("systemctl", "start", unit, check=False)
    assert machine.shown(unit, "ActiveState", "NRestarts", "ExecMainStatus") == ("failed", "0", "2")
    assert "hushcast: /etc/hushcast/bad.toml: role: Invalid enum value 'rely'" in machine.journal(unit)


def test_what_goes_bad_while_it_runs_changes_nothing(machine: Machine, network: str) -> None:
    before = machine.pid(NODE)
    file = "/etc/hushcast/node.toml"
    good = machine.run("cat", file).stdout
    machine.write(file, good.replace("debug", "loud"))
    assert machine.run("systemctl", "reload", NODE, check=False).returncode != 0
    machine.run("kill", "-HUP", str(before))
    machine.until(lambda: "going on with the one before" in machine.journal(NODE))
    machine.write(file, good)
    machine.systemctl("reload", NODE)
    machine.until(lambda: "configuration read again" in machine.journal(NODE))
    assert machine.pid(NODE) == before
    assert machine.shown(NODE, "ActiveState") == ("active",)


PROBE = """
import os, socket
def connects(host):
    with socket.socket() as s:
        s.settimeout(5)
        try:
            s.connect((host, PORT))
            return True
        except OSError:
            return False
def works(action, *arguments):
    try:
        action(*arguments)
        return True
    except OSError:
        return False
print("PROBED", {
    "loopback": connects("127.0.0.1"), "outer": connects("OUTER"),
    "raw": works(socket.socket, socket.AF_INET, socket.SOCK_RAW), "v6": works(socket.socket, socket.AF_INET6),
    "netlink": works(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW),
    "usr": works(open, "/usr/probe", "w"), "etc": works(open, "/etc/hushcast/probe", "w"),
    "home": works(os.listdir, "/home/alice"), "others": os.path.exists("/proc/1/status"),
    "state": works(open, "/var/lib/hushcast-node-probe/probe", "w"),
    "tor": works(socket.socket(socket.AF_UNIX).connect, "/run/tor/control"),
    "cookie": works(open, "/run/tor/control.authcookie"),
}, flush=True)
"""
ALLOWED = {"loopback", "state", "tor", "cookie"}


def probed(machine: Machine, name: str, *more: str) -> dict[str, bool]:
    """Run the probe in place of a node, in everything that the unit puts around it."""
    outer = machine.run("hostname", "-I").stdout.split()[0]
    server = ("python3", "-m", "http.server", "8099", "--bind", "0.0.0.0")
    machine.run("systemd-run", "--collect", f"--unit={name}-server", *server)
    machine.until(lambda: "8099" in machine.run("ss", "-ltn").stdout)
    program = PROBE.replace("PORT", "8099").replace("OUTER", outer)
    machine.write(f"/etc/hushcast/{name}.py", program)
    unit = f"hushcast-node@{name}"
    command = f"/opt/hushcast/bin/python3 -I /etc/hushcast/{name}.py"
    lines = ["[Service]", "Type=oneshot", "Restart=no", "ExecStartPre=", "ExecStart=", f"ExecStart={command}"]
    lines += ["StateDirectory=", "StateDirectory=hushcast-node-probe", *more, ""]
    machine.write(f"/etc/systemd/system/{unit}.service.d/probe.conf", "\n".join(lines))
    machine.run("mkdir", "-p", "/home/alice")
    machine.systemctl("daemon-reload")
    machine.systemctl("start", unit)
    machine.systemctl("stop", f"{name}-server")
    (found,) = re.findall(r"PROBED ({.*})", machine.journal(unit))
    return json.loads(found.replace("'", '"').replace("True", "true").replace("False", "false"))


def test_from_inside_the_unit_only_loopback_is_reached(machine: Machine, network: str) -> None:
    found = probed(machine, "probe")
    assert {name for name, possible in found.items() if possible} == ALLOWED


def test_the_probe_would_notice(machine: Machine, network: str) -> None:
    found = probed(machine, "open", "IPAddressDeny=", "IPAddressAllow=")
    assert {name for name, possible in found.items() if possible} == ALLOWED | {"outer"}


@pytest.fixture(scope="module")
def gateway(machine: Machine, network: str) -> None:
    """Start a gateway as an operator does: its Unix socket is for alice, by her uid, and not for bob."""
    machine.run("usermod", "--append", "--groups", GATEWAY, "alice")
    machine.run("useradd", "--groups", GATEWAY, "bob")
    machine.bring_mqtt()
    machine.run("hushcast", "init", "gateway")
    louder(machine, GATEWAY_FILE)
    alice = machine.run("id", "--user", "alice").stdout.strip()
    text = machine.run("cat", GATEWAY_FILE).stdout.replace("uid = [0]", f"uid = [{alice}]")
    machine.write(GATEWAY_FILE, text + '\n[daemon]\nsocket = "/run/hushcast/control.sock"\n')
    machine.systemctl("enable", "--now", GATEWAY)


def exposure(machine: Machine, unit: str) -> str:
    told = machine.run("systemd-analyze", "security", "--no-pager", unit).stdout
    (found,) = re.findall(r"Overall exposure level for \S+: (\d+\.\d)", told)
    return str(found)


def test_a_gateway_reaches_its_daemon(machine: Machine, gateway: None) -> None:
    working = "working, 0 clients connected"
    machine.until(lambda: machine.shown(GATEWAY, "ActiveState", "StatusText") == ("active", working))
    told = machine.run("hushcast", "doctor", "gateway", "--json", check=False).stdout
    found = {line["check"]: line["verdict"] for line in map(json.loads, told.splitlines())}
    files = machine.run("cat", f"/proc/{machine.pid(GATEWAY)}/limits").stdout
    clamped = re.search(r"Max open files +1024 ", files)  # a container may not raise its limits
    assert found.pop("open files") == ("bad" if clamped else "good")
    assert set(found.values()) == {"good"}, told
    assert machine.heard_by_mqtt("sensor", "published", "publish", f"hush/open/{TOPIC}-too", PAYLOAD) == [
        ["connected", 0, False],
        ["published", 0],
    ]
    assert exposure(machine, GATEWAY) == exposure(machine, NODE)


@pytest.fixture(scope="module")
def provider(machine: Machine, network: str) -> None:
    """Start a provider of a located feed as an operator does."""
    owner = machine.run("hushcast", "located", "key", "new", "/root/owner.key").stdout.strip()
    link = "/etc/hushcast-located/feed.link"
    machine.run("hushcast", "topic", "new", "--private", "--output", link, TOPIC)
    machine.run("chown", PROVIDER, link)
    machine.run("hushcast", "init", "located-provider")
    louder(machine, PROVIDER_FILE)
    text = machine.run("cat", PROVIDER_FILE).stdout.replace('# owner = "…"', f'owner = "{owner}"')
    machine.write(PROVIDER_FILE, text.replace("# feed = ", "feed = "))
    machine.systemctl("enable", "--now", PROVIDER)


def test_a_provider_reaches_its_daemon_without_a_network(machine: Machine, provider: None) -> None:
    working = "working, 0 subscriptions"
    machine.until(lambda: machine.shown(PROVIDER, "ActiveState", "StatusText") == ("active", working))
    told = machine.run("hushcast", "doctor", "located-provider", "--json", check=False).stdout
    found = {line["check"]: line["verdict"] for line in map(json.loads, told.splitlines())}
    assert found.pop("batches") == "warning"  # nobody has published one
    assert set(found.values()) == {"good"}, told
    assert machine.run("hushcast", "located", "offer").stdout.startswith("hushcast-provider:")
    assert machine.run("ls", "/var/lib/hushcast", user=PROVIDER, check=False).returncode != 0
    assert float(exposure(machine, PROVIDER)) <= float(exposure(machine, NODE))


def test_a_gateways_socket_is_for_its_group_and_its_files_for_itself(machine: Machine, gateway: None) -> None:
    assert machine.heard_by_mqtt("bob", "connected", user="bob") == [["connected", 0x87, False]]
    refused = machine.mqtt("mallory", "connected", user="mallory").communicate(timeout=WITHIN)
    assert (refused[0], "PermissionError" in refused[1]) == ("", True)
    # Hashes of passwords, certificates' keys, links; and, the other way, what the daemon keeps.
    own = ("/etc/hushcast-gateway/gateway.toml", "/var/lib/hushcast-gateway/state.db")
    for user, denied in (("alice", own), ("bob", own), ("hushcast", own), (GATEWAY, ["/var/lib/hushcast"])):
        for path in denied:
            assert machine.run("ls", path, user=user, check=False).returncode != 0, (user, path)


def test_a_gateways_users_change_by_reload_and_sessions_outlive_a_stop(
    machine: Machine, gateway: None
) -> None:
    script = f"echo 'a password to look for' | hushcast gateway passwd lamp --config {GATEWAY_FILE}"
    machine.run("sh", "-c", script)
    text = machine.run("cat", GATEWAY_FILE).stdout
    machine.write(GATEWAY_FILE, text.replace(" = []", ' = ["local/#"]'))
    lamp = {"name": "lamp", "password": "a password to look for", "place": "1883"}
    assert machine.heard_by_mqtt("lamp", "connected", **lamp) == [["connected", 0x86, False]]
    machine.systemctl("reload", GATEWAY)
    machine.until(lambda: "configuration read again" in machine.journal(GATEWAY))
    listening = machine.mqtt("lamp", "disconnected", "subscribe", f"local/{TOPIC}", **lamp)
    assert listening.stdout is not None
    heard = [json.loads(listening.stdout.readline()) for _ in range(2)]
    assert heard == [["connected", 0, False], ["subscribed", 1]]
    machine.systemctl("stop", GATEWAY)
    assert json.loads(listening.communicate(timeout=WITHIN)[0]) == ["disconnected", 0x8B]
    machine.systemctl("start", GATEWAY)
    machine.heard_by_mqtt("sensor", "published", "publish", f"local/{TOPIC}", PAYLOAD)
    assert machine.heard_by_mqtt("lamp", "message", **lamp) == [["connected", 0, True], ["message", PAYLOAD]]


@pytest.fixture(scope="module")
def central(machine: Machine, network: str) -> None:
    """Start a server and a proxy as services, as two operators do who have one machine each."""
    machine.run("hushcast", "init", "central-server", "--network", "booted", "--epoch", str(EPOCH))
    louder(machine, f"/etc/{SERVER}/central-server.toml")
    machine.systemctl("start", SERVER)
    config = f"/etc/{PROXY}/central-proxy.toml"
    machine.run("hushcast", "init", "deliveries-proxy")
    machine.run("hushcast", "join", f"/var/lib/{SERVER}/network.toml", "--config", config)
    louder(machine, config)
    machine.systemctl("start", PROXY)


def test_a_proxy_waits_until_the_server_lists_it(machine: Machine, central: None) -> None:
    waiting = "deliveries: waiting for the server to list this proxy"
    machine.until(lambda: machine.shown(PROXY, "ActiveState", "StatusText") == ("active", waiting))
    machine.run("hushcast", "admin", "central", "admit", f"/var/lib/{PROXY}/proxy.toml")
    machine.until(lambda: machine.shown(PROXY, "StatusText") == ("deliveries: working",))
    told = machine.run("hushcast", "doctor", "central-server", "--json", check=False).stdout
    found = {line["check"]: line["verdict"] for line in map(json.loads, told.splitlines())}
    assert [check for check, verdict in found.items() if verdict != "good"] == ["proxies for publications"]
    config = f"/etc/{SERVER}/central-server.toml"
    assert machine.run("stat", "-c", "%U:%G %a", config).stdout == f"root:{SERVER} 640\n"
    for reader, unit in ((SERVER, PROXY), (PROXY, SERVER), ("hushcast", SERVER), ("alice", PROXY)):
        for path in (f"/var/lib/{unit}", f"/etc/{unit}"):
            assert machine.run("ls", path, user=reader, check=False).returncode != 0, (reader, path)
    assert exposure(machine, SERVER) == exposure(machine, PROXY) == exposure(machine, NODE)


@pytest.fixture(scope="module")
def root(machine: Machine, network: str) -> None:
    """Start the root of a network of brokers as a service."""
    machine.run("hushcast", "init", "broker-root", "--network", "booted", "--epoch", str(EPOCH))
    louder(machine, BROKER_FILE)
    machine.systemctl("start", BROKER)


def test_a_root_signs_the_tree_of_whom_it_admits(machine: Machine, root: None) -> None:
    lonely = "root: working, but no broker is listed yet: `hushcast admin broker admit` lists one"
    machine.until(lambda: machine.shown(BROKER, "ActiveState", "StatusText") == ("active", lonely))
    somebody = Seed(b"\1" * 32).public()
    machine.write("/root/broker.toml", broker_lines(somebody, onion_address(somebody), "edge", None))
    machine.run("hushcast", "admin", "broker", "admit", "/root/broker.toml")
    below = "root: working, 0 of 1 brokers below connected"
    machine.until(lambda: machine.shown(BROKER, "StatusText") == (below,))
    machine.until(lambda: "edge" in machine.run("hushcast", "admin", "broker", "tree").stdout)
    told = machine.run("hushcast", "doctor", "broker", "--json", check=False).stdout
    found = {line["check"]: line["verdict"] for line in map(json.loads, told.splitlines())}
    del found["open files"]  # a container may not be permitted as many as the unit asks for
    assert [check for check, verdict in found.items() if verdict != "good"] == ["brokers below"]
    assert machine.run("stat", "-c", "%U:%G %a", BROKER_FILE).stdout == f"root:{BROKER} 640\n"
    for path in (f"/var/lib/{BROKER}", f"/etc/{BROKER}"):
        assert machine.run("ls", path, user="hushcast", check=False).returncode != 0
    assert exposure(machine, BROKER) == exposure(machine, NODE)


def test_a_tomography_service_asks_the_root_for_its_tree(machine: Machine, root: None) -> None:
    config = f"/etc/{TOMOGRAPHY}/tomography.toml"
    machine.run("hushcast", "init", "tomography")
    machine.run("hushcast", "join", f"/var/lib/{BROKER}/network.toml", "--config", config)
    louder(machine, config)
    machine.systemctl("start", TOMOGRAPHY)
    stated = "working, 0 of 2 brokers state"
    machine.until(lambda: machine.shown(TOMOGRAPHY, "ActiveState", "StatusText") == ("active", stated))
    assert machine.run("stat", "-c", "%U:%G %a", config).stdout == f"root:{TOMOGRAPHY} 640\n"
    for reader, owner in ((BROKER, TOMOGRAPHY), (TOMOGRAPHY, BROKER)):
        for path in (f"/var/lib/{owner}", f"/etc/{owner}"):
            assert machine.run("ls", path, user=reader, check=False).returncode != 0, (reader, path)
    assert exposure(machine, TOMOGRAPHY) == exposure(machine, NODE)


def test_no_core_is_left(machine: Machine, network: str) -> None:
    for unit in UNITS:
        limits = machine.run("cat", f"/proc/{machine.pid(unit)}/limits").stdout
        assert re.search(r"Max core file size +0 +0 ", limits)
        # Only root looks into a process that the kernel would not dump.
        assert machine.run("stat", "-c", "%U", f"/proc/{machine.pid(unit)}/maps").stdout == "root\n"


def test_the_journal_gives_nothing_away(
    machine: Machine, gateway: None, central: None, root: None, provider: None
) -> None:
    """Everything ran at the most verbose level; onion addresses have 56 characters, keys 64 or 44."""
    units = (*UNITS, GATEWAY, SERVER, PROXY, BROKER, TOMOGRAPHY, PROVIDER, "hushcast-node@lost")
    journal = machine.journal(*units)
    assert "debug" in journal
    for secret in (TOPIC, PAYLOAD, "after the kill", "a password to look for", "sensor", "lamp"):
        assert secret not in journal
    assert ".onion" not in journal
    assert not re.search(r"\b[a-z2-7]{56}\b|\b[0-9a-f]{32,}\b|[A-Za-z0-9+/]{43}=", journal)
    assert not re.search(r"\b(?!127\.0\.0\.1\b)\d+\.\d+\.\d+\.\d+\b", journal)


def keys(machine: Machine) -> str:
    states = "/var/lib/hushcast-node-relay /var/lib/hushcast-directory"
    return machine.run("sh", "-c", f"cd / && sha256sum $(find {states} -name '*.key' | sort)").stdout


def test_an_upgrade_keeps_identity_subscriptions_and_inbox(
    machine: Machine, network: str, package: Path, tmp_path: Path
) -> None:
    machine.hushcast("publish", TOPIC, "before the upgrade", instance="relay")
    machine.until(lambda: delivered(machine) >= 1)
    before, pids = keys(machine), [machine.pid(unit) for unit in UNITS]
    topics = sorted(held["topic"] for held in machine.asked("subscriptions"))
    assert TOPIC in topics
    machine.install(next_package.make(package, tmp_path))
    for unit, pid in zip(UNITS, pids, strict=True):
        machine.until(lambda unit=unit, pid=pid: restarted(machine, unit, pid))  # type: ignore[misc]
    assert keys(machine) == before
    assert sorted(held["topic"] for held in machine.asked("subscriptions")) == topics
    # There is a private topic of this name, too, since the gateway was looked at.
    waited = machine.hushcast("subscribe", TOPIC, "--open", "--count", "1", "--timeout", "60")
    assert "before the upgrade" in waited.stdout


def delivered(machine: Machine) -> int:
    return int(machine.asked("status")[0]["counters"]["messages_delivered"])


def test_the_way_back_is_a_step_of_the_state_and_the_older_package(
    machine: Machine, network: str, package: Path
) -> None:
    before, topics = keys(machine), sorted(held["topic"] for held in machine.asked("subscriptions"))
    machine.hushcast("publish", TOPIC, "before the way back", instance="relay")
    machine.until(lambda: delivered(machine) >= 1)
    machine.run("cp", "/root/package.deb", "/root/next.deb")
    machine.install(package)
    for unit in UNITS:  # without a step back it does not start, and is not tried again
        machine.until(lambda unit=unit: machine.shown(unit, "ActiveState") == ("failed",))  # type: ignore[misc]
        assert machine.shown(unit, "ExecMainStatus", "Result") == ("2", "exit-code")
        assert "hushcast admin step-back" in machine.journal(unit)
    machine.run("dpkg", "--install", "/root/next.deb")
    for unit, file in zip(UNITS, FILES, strict=True):
        machine.systemctl("stop", unit)
        machine.run("hushcast", "admin", "step-back", "--config", file)
    machine.install(package)
    for unit in UNITS:
        machine.systemctl("reset-failed", unit)
        machine.systemctl("start", unit)
    assert keys(machine) == before
    assert sorted(held["topic"] for held in machine.asked("subscriptions")) == topics
    waited = machine.hushcast("subscribe", TOPIC, "--open", "--count", "1", "--timeout", "60")
    assert "before the way back" in waited.stdout


def test_removal_stops_and_keeps_purging_leaves_nothing(machine: Machine, network: str) -> None:
    machine.systemctl("enable", NODE, RELAY)
    machine.run("dpkg", "--remove", "hushcast")
    for unit in (*UNITS, GATEWAY):
        assert machine.shown(unit, "ActiveState")[0] in ("inactive", "failed")
    assert machine.run("ls", "/var/lib/hushcast/state.db", check=False).returncode == 0
    machine.run("dpkg", "--purge", "hushcast")
    script = "ls -d /opt/hushcast /var/lib/hushcast* /etc/hushcast* /run/hushcast* /usr/bin/hushcast"
    left = machine.run("sh", "-c", f"{script} /etc/systemd/system/*.wants/hushcast* 2>/dev/null", check=False)
    assert left.stdout == ""


def test_the_package_brings_pages_and_completion(package: Path) -> None:
    listed = subprocess.run(["dpkg-deb", "--contents", package], check=True, capture_output=True, text=True)
    for path in (
        "man1/hushcast.1.gz",
        "man1/hushcast-subscribe.1.gz",
        "bash-completion/completions/hushcast",
        "zsh/vendor-completions/_hushcast",
        "fish/vendor_completions.d/hushcast.fish",
    ):
        assert f"/usr/share/{'man/' if path.startswith('man1') else ''}{path}\n" in listed.stdout
    for path in (
        "/textual/__init__.py",
        "/h11/__init__.py",
        "-py3-none-any.whl",
        "/examples/relay.toml",
        "/examples/chat.py",
    ):
        assert f"{path}\n" in listed.stdout, "what `top` and `watch` need, and a wheel for the rest"
