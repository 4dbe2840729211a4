"""The units say what they should, alike, and systemd itself finds little that an attacker could use."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from booted import ROOT

from hushcast_cli.exits import ExitCode
from hushcast_cli.main import cli

FOLDER = ROOT / "systemd"
BACKUP = FOLDER / "hushcast-backup@.service"
LAB_JOB = FOLDER / "lab" / "hushcast-lab-job@.service"
UNITS = [unit for unit in sorted(FOLDER.glob("*.service")) if unit != BACKUP]  # what goes on running
MOST = 1.5  # of 10, by systemd-analyze

each = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
analyze = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="NOT TESTED: systemd-analyze is not there (package systemd)",
)


def settings(unit: Path) -> list[tuple[str, str]]:
    lines = [line for line in unit.read_text().splitlines() if "=" in line and not line.startswith("#")]
    return [(name, value) for name, _, value in (line.partition("=") for line in lines)]


def test_there_are_eleven() -> None:
    names = ["hushcast-broker.service"]
    names += ["hushcast-central-proxy.service", "hushcast-central-server.service"]
    names += ["hushcast-directory-probe.service", "hushcast-directory.service", "hushcast-gateway.service"]
    names += ["hushcast-located-owner.service", "hushcast-located.service"]
    names += ["hushcast-node.service", "hushcast-node@.service", "hushcast-tomography.service"]
    assert [unit.name for unit in UNITS] == names


def path_of(words: list[str]) -> str:
    """Return the path of the command that these words lead to; click refuses options that it has not."""
    context = cli.make_context("hushcast", words)
    while isinstance(context.command, click.Group):
        name, command, rest = context.command.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        assert command is not None
        context = command.make_context(name, rest, parent=context)
    return context.command_path


@pytest.mark.parametrize("unit", [*UNITS, BACKUP, LAB_JOB], ids=lambda unit: unit.name)
def test_its_commands_are_those_of_today_and_its_manual_page_is_there(unit: Path) -> None:
    typed = [value.split() for name, value in settings(unit) if name.startswith("Exec")]
    ours = [words[1:] for words in typed if words[0].lstrip("-") == "/usr/bin/hushcast"]
    paths = [path_of(words) for words in ours]
    for path, words in zip(paths, ours, strict=True):
        assert path.removeprefix("hushcast ") in " ".join(words), "no name of before"
    pages = {f"man:{path.replace(' ', '-')}(1)" for path in paths}
    assert dict(settings(unit))["Documentation"] in pages


@analyze
@pytest.mark.parametrize("unit", [*UNITS, BACKUP, LAB_JOB], ids=lambda unit: unit.name)
def test_exposure(unit: Path) -> None:
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    (exposure,) = re.findall(r"Overall exposure level for \S+: (\d+\.\d)", told)
    assert float(exposure) <= MOST


@analyze
@pytest.mark.parametrize("unit", [*UNITS, BACKUP, LAB_JOB], ids=lambda unit: unit.name)
def test_systemd_understands_every_line(unit: Path, tmp_path: Path) -> None:
    """With programs that are there; which ones are not is the machine's affair."""
    text = (
        unit.read_text().replace("/usr/bin/hushcast", "/bin/true").replace("Documentation", "# Documentation")
    )
    (tmp_path / unit.name.replace("@", "@x")).write_text(text)
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / unit.name.replace("@", "@x"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert unit.name.partition("@")[0].partition(".")[0] not in done.stderr, done.stderr


@analyze
def test_the_drop_in_of_an_announced_gateway_lets_a_house_through_and_nothing_else(tmp_path: Path) -> None:
    unit, more = FOLDER / "hushcast-gateway.service", FOLDER / "hushcast-gateway-announce.conf"
    assert {name for name, _ in settings(more)} == {"IPAddressAllow"}
    folder = tmp_path / f"{unit.name}.d"
    folder.mkdir()
    (folder / "announce.conf").write_text(more.read_text())
    text = (
        unit.read_text().replace("/usr/bin/hushcast", "/bin/true").replace("Documentation", "# Documentation")
    )
    (tmp_path / unit.name).write_text(text)
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / unit.name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "announce" not in done.stderr
    assert "hushcast-gateway" not in done.stderr, done.stderr


def test_all_stand_in_the_same_sandbox() -> None:
    """What differs between them is who and where."""
    own = {"Description", "Documentation", "ExecStart", "ExecStartPre", "ExecReload", "User", "Group"}
    own |= {"StateDirectory", "RuntimeDirectory"}
    alike = {unit.name: [setting for setting in settings(unit) if setting[0] not in own] for unit in UNITS}
    gateway, provider, owner, probe = (
        alike.pop(f"hushcast-{name}.service")
        for name in ("gateway", "located", "located-owner", "directory-probe")
    )
    first, *rest = alike.values()
    assert all(other == first for other in rest)
    # A gateway needs no tor; of the daemons it reaches the control socket alone, and it may listen on IPv6.
    # One that stands by has its socket in the directory of the one that ends.
    gateway.remove(("RuntimeDirectoryPreserve", "yes"))
    its_own = {"After", "Wants", "SupplementaryGroups", "RestrictAddressFamilies", "InaccessiblePaths"}
    assert [setting for setting in gateway if setting[0] not in its_own] == [
        setting for setting in first if setting[0] not in its_own
    ]
    # Nor do a provider and an owner, and they have no network.
    its_own |= {"IPAddressDeny", "IPAddressAllow", "PrivateNetwork"}
    for other in (provider, owner, probe):
        assert [setting for setting in other if setting[0] not in its_own] == [
            setting for setting in first if setting[0] not in its_own
        ]


def test_backups_have_no_network_and_are_off_unless_enabled() -> None:
    found = dict(settings(BACKUP))
    assert (found["PrivateNetwork"], found["IPAddressDeny"]) == ("yes", "any")
    assert (found["StateDirectoryMode"], found["UMask"]) == ("0700", "0077")
    assert found["CapabilityBoundingSet"] == "CAP_DAC_OVERRIDE CAP_SETUID CAP_SETGID"
    # All else is as around a daemon.
    node = settings(FOLDER / "hushcast-node.service")
    sandbox = node[node.index(("PrivateDevices", "yes")) : node.index(("SystemCallErrorNumber", "EPERM"))]
    assert set(sandbox) <= set(settings(BACKUP))
    timer = settings(BACKUP.with_suffix(".timer"))
    assert ("WantedBy", "timers.target") in timer
    assert "enable" not in (ROOT / "tools" / "deb" / "postinst").read_text()


def test_analyses_have_no_network_and_no_rights_and_are_off_unless_enabled() -> None:
    found = dict(settings(LAB_JOB))
    assert (found["PrivateNetwork"], found["DynamicUser"], found["CapabilityBoundingSet"]) == (
        "yes",
        "yes",
        "",
    )
    assert (found["StateDirectoryMode"], found["UMask"]) == ("0700", "0077")
    assert ("WantedBy", "timers.target") in settings(LAB_JOB.with_suffix(".timer"))


def test_a_gateway_reaches_the_daemons_socket_and_nothing_else_of_it() -> None:
    gateway, node = (dict(settings(FOLDER / f"hushcast-{name}.service")) for name in ("gateway", "node"))
    # Who may use the node's socket, and who reads the configuration: those at the MQTT socket do not.
    assert gateway["SupplementaryGroups"].split() == [node["Group"], "hushcast-gateway-config"]
    assert (
        "/etc/hushcast-gateway   2750 root hushcast-gateway-config"
        in (FOLDER / "hushcast.tmpfiles").read_text()
    )
    assert gateway["User"] != node["User"]
    assert node["StateDirectoryMode"] == "0700"
    assert gateway["RestrictAddressFamilies"] == "AF_UNIX AF_INET AF_INET6"


@each
def test_only_loopback_is_reached(unit: Path) -> None:
    found = dict(settings(unit))
    if unit.name.startswith(("hushcast-located", "hushcast-directory-probe")):  # not even that
        assert (found["PrivateNetwork"], found["RestrictAddressFamilies"]) == ("yes", "AF_UNIX")
        assert found.get("IPAddressAllow") is None
    else:
        assert found["IPAddressAllow"] == "localhost"
    assert found["IPAddressDeny"] == "any"


@pytest.mark.parametrize("name", ["located", "located-owner"])
def test_a_provider_and_an_owner_reach_the_daemons_socket_and_nothing_else_of_it(name: str) -> None:
    found, node = (dict(settings(FOLDER / f"hushcast-{one}.service")) for one in (name, "node"))
    assert found["SupplementaryGroups"] == node["Group"]
    assert found["User"] != node["User"]
    assert "/etc/hushcast" in found["InaccessiblePaths"]


def test_what_probes_reaches_the_list_and_no_key() -> None:
    """It is the directory's user, so that the directory reads the list; its keys are hidden from it."""
    probe, directory = (
        dict(settings(FOLDER / f"hushcast-directory{name}.service")) for name in ("-probe", "")
    )
    assert probe["User"] == directory["User"]
    assert probe["StateDirectory"] != directory["StateDirectory"]
    assert f"/var/lib/{directory['StateDirectory']}" in probe["InaccessiblePaths"]


@each
def test_a_configuration_that_cannot_be_used_is_not_tried_again(unit: Path) -> None:
    assert dict(settings(unit))["RestartPreventExitStatus"] == str(ExitCode.USAGE.value)


@each
def test_each_daemon_has_places_of_its_own(unit: Path) -> None:
    found = dict(settings(unit))
    assert found["StateDirectory"] == found["RuntimeDirectory"]
    assert found["StateDirectoryMode"] == "0700"
    assert (FOLDER / "hushcast.sysusers").read_text().count(f"u {found['User']} ") == 1
