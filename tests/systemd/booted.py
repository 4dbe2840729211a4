"""A container in which systemd has booted, and what tests do in it."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushcast_runtime.processes.program import program_called

ROOT = Path(__file__).parents[2]
IMAGE = "localhost/hushcast-systemd-test"
PACKAGES = ("systemd", "systemd-sysv", "dbus", "tor", "python3", "ca-certificates", "procps", "iproute2")
WITHIN = 120.0  # seconds; other work may share the machine
LOOK_EVERY = 1.0  # seconds; a look starts a program in the machine, which may take a third of a second of CPU
EPOCH = 20  # seconds
MQTT_SOCKET = "/run/hushcast-gateway/mqtt.sock"
_PROGRAMS = ("podman", "runc", "debootstrap", "dpkg-deb")
_ENVIRONMENT = os.environ | {
    "CONTAINERS_CONF": str(ROOT / "testnet" / "hushcast_testnet" / "containers" / "containers.conf"),
    "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
}

_INSIDE = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "TERM": "xterm",
    "container": "podman",
}
"""What podman gives a program in a machine."""


def missing() -> str:
    """Return why no machine can be booted here, nothing if one can."""
    absent = [name for name in _PROGRAMS if shutil.which(name, path=_ENVIRONMENT["PATH"]) is None]
    if absent:
        return f"{', '.join(absent)} is missing; tools/require-machine installs it"
    if os.geteuid() != 0:
        return "booting systemd in a container takes root"
    image = _run([str(ROOT / "tools" / "debian-image"), IMAGE, *PACKAGES], within=900, check=False)
    if image.returncode != 0:
        return f"no image of this Debian can be made: {image.stderr.strip()}"
    tried = _run(["podman", "run", "--rm", "--privileged", IMAGE, "true"], WITHIN, check=False)
    return f"podman runs no containers here: {tried.stderr.strip()}" if tried.returncode != 0 else ""


def podman(
    *arguments: str | Path, within: float = WITHIN, stdin: str | None = None, check: bool = True
) -> str:
    """Run podman; return what it printed."""
    return _run(["podman", *map(str, arguments)], within, stdin, check).stdout


def _run(
    command: list[str],
    within: float,
    stdin: str | None = None,
    check: bool = True,
    env: Mapping[str, str] = _ENVIRONMENT,
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=within, env=env, check=False
    )
    assert not check or done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done


@contextmanager
def boot() -> Iterator[Machine]:
    """Boot a machine; it is gone when the block ends."""
    name = f"hushcast-test-{os.getpid()}"
    options = ["--systemd=always", "--privileged", "--name", name]
    podman("run", "--detach", *options, IMAGE, "/sbin/init")
    try:
        machine = Machine(name, int(podman("inspect", "--format", "{{.State.Pid}}", name)))
        machine.until(
            lambda: machine.run("systemctl", "is-system-running", check=False).stdout == "running\n"
        )
        yield machine
    finally:
        podman("rm", "--force", "--time", "5", name)


@dataclass(frozen=True)
class Machine:
    """A booted machine."""

    name: str
    init: int
    """Its first process, as the machine around it knows it."""

    def entering(self, user: str = "root") -> list[str]:
        """Return what runs the command behind it in the machine, as a user with the groups that it has.

        `podman exec` would take a quarter of a second of CPU each time, and tests look hundreds of times.
        """
        as_user = [] if user == "root" else ["runuser", "-u", user, "--"]
        return ["nsenter", "--target", str(self.init), "--all", "--", *as_user]

    def run(
        self, *command: str, user: str = "root", check: bool = True, within: float = WITHIN
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as a user."""
        return _run([*self.entering(user), *command], within, check=check, env=_INSIDE)

    def systemctl(self, *arguments: str, within: float = WITHIN) -> None:
        self.run("systemctl", *arguments, within=within)

    def shown(self, unit: str, *names: str) -> tuple[str, ...]:
        """Return properties of a unit."""
        text = self.run("systemctl", "show", unit, *(f"--property={name}" for name in names)).stdout
        found = dict(line.partition("=")[::2] for line in text.splitlines())
        return tuple(found[name] for name in names)

    def pid(self, unit: str) -> int:
        return int(self.shown(unit, "MainPID")[0])

    def journal(self, *units: str) -> str:
        chosen = [argument for unit in units for argument in ("--unit", unit)]
        return self.run("journalctl", "--boot", "--output=short", *chosen).stdout

    def write(self, path: str, text: str) -> None:
        """Write a file as root, mode 0640."""
        script = f"umask 027; mkdir -p $(dirname {path}); cat >{path}"
        _run([*self.entering(), "sh", "-c", script], WITHIN, stdin=text, env=_INSIDE)

    def until(self, true: Callable[[], bool], within: float = WITHIN) -> None:
        end = time.monotonic() + within
        while not true():
            assert time.monotonic() < end, "it did not happen in time"
            time.sleep(LOOK_EVERY)

    def install(self, package: Path) -> str:
        podman("cp", package, f"{self.name}:/root/package.deb")
        return self.run("dpkg", "--install", "/root/package.deb").stdout

    def bring_mqtt(self) -> None:
        """Copy an MQTT client in."""
        (paho,) = importlib.import_module("paho").__path__
        podman("cp", paho, f"{self.name}:/srv/paho")
        podman("cp", Path(__file__).with_name("mqtt_user.py"), f"{self.name}:/srv/mqtt_user.py")

    def join_private_tor(self) -> None:
        """Start a private Tor network inside, and make the system's tor a client of it."""
        program = (
            "import trio; from pathlib import Path; from hushcast_testnet.tor import private_tor;"
            "print(trio.run(private_tor.start, Path('/srv/tor'), 0).snippet)"
        )
        snippet = self.run("/opt/hushcast/bin/python3", "-I", "-c", program, within=300).stdout.strip()
        self.run("sh", "-c", f"cat {snippet} >>/etc/tor/torrc")
        self.systemctl("restart", "tor@default")

    def hushcast(
        self, *arguments: str, user: str = "alice", instance: str = "", check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line as a user, with the node of an instance."""
        socket = ["--socket", f"/run/hushcast-node-{instance}/control.sock"] if instance else []
        return self.run("hushcast", *socket, *arguments, user=user, check=check)

    def subscribed(self, topic: str, **options: Any) -> subprocess.Popen[str]:
        """Start listening for one message as alice; return once relays route the topic to her node."""
        listening = subprocess.Popen(
            [
                *self.entering("alice"),
                *("hushcast", "subscribe", topic, "--count", "1", "--timeout", str(WITHIN), "--json"),
            ],
            stdout=subprocess.PIPE,
            text=True,
            env=_INSIDE,
        )
        self.until(lambda: (topic, True) in [(s["topic"], s["ready"]) for s in self.asked("subscriptions")])
        return listening

    def mqtt(
        self, *words: str, user: str = "alice", name: str = "", password: str = "", place: str = MQTT_SOCKET
    ) -> subprocess.Popen[str]:
        """Start an MQTT client as a user; `words` are its identifier, how it ends, and what it does."""
        client = ("env", "PYTHONPATH=/srv", "python3", "/srv/mqtt_user.py", place, name, password, *words)
        return subprocess.Popen(
            [*self.entering(user), *client],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_INSIDE,
        )

    def heard_by_mqtt(self, *words: str, **options: str) -> list[list[Any]]:
        """Run an MQTT client to its end; return the events that it heard."""
        told, wrong = self.mqtt(*words, **options).communicate(timeout=WITHIN)
        assert told, wrong
        return [json.loads(line) for line in told.splitlines()]

    def asked(self, *arguments: str, **options: Any) -> list[dict[str, Any]]:
        """Run the command line with `--json`; return the objects."""
        return [
            json.loads(line) for line in self.hushcast(*arguments, "--json", **options).stdout.splitlines()
        ]


def configuration(unit: str, role: str, network: str, **top: str) -> str:
    """Return the configuration of a daemon that uses the system's tor."""
    lines = [f'program = "{program_called(role).name}"']
    lines += [f'role = "{role}"'] if role != "directory" else []
    lines += [f'state = "/var/lib/{unit}"', *(f'{name} = "{value}"' for name, value in top.items())]
    lines += ["[tor]", 'mode = "system"', 'control = "unix:/run/tor/control"', "[log]", 'level = "debug"']
    return "\n".join([*lines, network, ""])
