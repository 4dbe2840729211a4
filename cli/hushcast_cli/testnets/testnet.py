"""`hushcast testnet`: private networks on this machine, as processes or in containers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.options import (
    carrier_option,
    json_option,
    new_testnet_option,
    number_option,
    shard_size_option,
    testnet_option,
)
from hushcast_cli.testnets.chaos import chaos
from hushcast_cli.testnets.compare import compare
from hushcast_cli.testnets.directory_simulation import AUTHORITIES
from hushcast_cli.testnets.distance_options import distance_options
from hushcast_cli.testnets.simulate import simulate
from hushcast_cli.testnets.watch import watch
from hushcast_protocol.base.epochs import MAX_EPOCH, MIN_EPOCH
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.keeping_rule import MAX_KEEPERS
from hushcast_protocol.overlay.profile import PROFILES
from hushcast_runtime.wording import counted

if TYPE_CHECKING:
    from hushcast_testnet.inventory import CarrierName
    from hushcast_testnet.layouts import BrokersModel
    from hushcast_testnet.tor.distance import Distance


@click.group(cls=CommandGroup)
@json_option
def testnet() -> None:
    """Try Hushcast on this machine, in a network of its own.

    Testnets write traces of all that their daemons see and do: they protect nobody.
    """
    from hushcast_runtime.logs import configure_logs

    configure_logs("error", as_json=False)  # progress tells enough; standard output is for results


@testnet.command()
@new_testnet_option
@carrier_option
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    help="Relays; with another carrier daemons that publish and subscribe.  [default: 10; 6]",
)
@click.option("--clients", type=click.IntRange(min=0), help="Clients beside the relays.  [default: 2]")
@click.option(
    "--authorities",
    type=click.IntRange(1, AUTHORITIES),
    metavar="N",
    help="Directories, of which more than half agree on each roster.  [default: 1]",
)
@shard_size_option()
@click.option(
    "--keepers",
    type=click.IntRange(0, MAX_KEEPERS),
    metavar="K",
    help="With --authorities: relays that keep what is published on a topic, a third at most.  [default: 6]",
)
@click.option(
    "--cover",
    is_flag=True,
    help="With --authorities: relays take letters of daemons with cover, in rounds of 20 seconds.",
)
@click.option(
    "--proxies",
    type=click.IntRange(min=2),
    help="With --carrier central: proxies, of both roles in turn.  [default: 2]",
)
@click.option(
    "--edges",
    type=click.IntRange(min=1),
    help="With --carrier brokers: edge brokers, which have the daemons.  [default: 3]",
)
@click.option(
    "--privacy",
    type=click.Choice(["clear", "community", "full"]),
    help="With --carrier brokers: what brokers learn.  [default: clear]",
)
@click.option(
    "--layers",
    type=click.IntRange(2, 4),
    help="With --privacy full: layers on what is asked for.  [default: 3]",
)
@click.option(
    "--aggregation/--no-aggregation",
    default=None,
    help="With --privacy full: whether brokers compare their children's words; unless given with --profile"
    " paper alone.",
)
@click.option(
    "--profile",
    type=click.Choice(sorted(PROFILES)),
    help="Behaviour, of brokers with --privacy full: as published, or as it should be.  [default: hardened]",
)
@click.option(
    "--tomography",
    "with_tomography",
    is_flag=True,
    help="With --carrier brokers: a tomography service, so that clients of several edge brokers count for k.",
)
@click.option(
    "--transport",
    type=click.Choice(["tor", "tcp"]),
    default="tor",
    show_default=True,
    help="A private Tor network, or loopback connections.",
)
@number_option("--epoch", MIN_EPOCH, MAX_EPOCH, default=30, metavar="SECONDS", help="Length of an epoch.")
@click.option(
    "--breakable",
    is_flag=True,
    help="Let `testnet chaos` set clocks wrong and, on tcp and in containers, break connections.",
)
@click.option(
    "--backend",
    type=click.Choice(["processes", "containers"]),
    default="processes",
    show_default=True,
    help="Processes of this machine, or containers by docker or podman.",
)
@click.option(
    "--gateway",
    is_flag=True,
    help="Start an MQTT gateway beside each client; home/# travels between them.",
)
@distance_options
@click.option(
    "--observe-links",
    is_flag=True,
    help="With --distance: give each daemon a tor of its own, and trace what passes on its line.",
)
@json_option
@pass_choices
def up(
    choices: Choices,
    /,
    directory: Path,
    carrier: CarrierName,
    nodes: int | None,
    epoch: int,
    gateway: bool,
    observe_links: bool,
    **others: Any,
) -> None:
    """Start a testnet and leave it running.

    On the overlay it is a directory, or with --authorities several that agree, relays and clients. On the
    central system it is one server, proxies between it and its users, and the users' daemons: --nodes. With
    --carrier brokers it is a root, two inner brokers, --edges below these, and daemons, the first four at one
    edge broker to try `subscribe --k`; with --tomography daemons of all edge brokers count for that.

    Returns when all is ready, or leaves nothing running. With --json, prints what `testnet status` prints.

    \b
    Example:
      hushcast testnet up --dir /tmp/testnet --nodes 10 --clients 2
      hushcast testnet up --dir /tmp/testnet --authorities 5
      hushcast testnet up --dir /tmp/testnet --authorities 3 --nodes 12 --shard-size 4
      hushcast testnet up --dir /tmp/testnet --carrier central --nodes 6
      hushcast testnet up --dir /tmp/testnet --carrier brokers --privacy full
      hushcast testnet up --dir /tmp/testnet --carrier brokers --privacy community
      hushcast testnet up --dir /tmp/testnet --gateway
      hushcast testnet up --dir /tmp/testnet --distance 40
      hushcast testnet up --dir /tmp/testnet --distance 40 --observe-links
    """
    from hushcast_cli.last_testnet import remember_testnet
    from hushcast_cli.output import json_line, note, write
    from hushcast_cli.progress import reporting
    from hushcast_cli.testnets.simulate import check_nodes
    from hushcast_testnet import testnet as networks

    if nodes is not None and carrier == "overlay":
        check_nodes(nodes)
    with reporting() as progress:
        networks.up(
            directory,
            nodes,
            epoch_seconds=epoch,
            progress=progress,
            with_gateways=gateway,
            carrier=carrier,
            observe_links="all" if observe_links else "none",
            **others,
        )
    remember_testnet(directory)
    if choices.json:
        write(json_line(networks.status(directory)))
    else:
        note(f"ready: `hushcast testnet status --dir {directory}` shows its sockets")


@testnet.command()
@testnet_option
@json_option
@pass_choices
def status(choices: Choices, directory: Path) -> None:
    """Show a testnet's daemons: relays first, then clients; before all, server and proxies, or brokers.

    Of MQTT gateways it shows the ports that clients connect to.

    \b
    Example:
      hushcast testnet status --dir /tmp/testnet --json
    """
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_testnet import testnet as networks

    found = networks.status(directory)
    if choices.json:
        write(json_line(found))
        return
    write(text_line(f"ready      {'yes' if found['ready'] else 'no'}"))
    write(text_line(f"transport  {found['transport']}"))
    if far := found["distance"]:
        running = f"pid {far['pid']}" if far["pid"] else "not running"
        write(text_line(f"distance   {far['ms']} ms one way, drawn by seed {far['seed']}; proxy {running}"))
    write(text_line(f"epoch      {found['epoch']} s"))
    rows = [
        *((name, "", found[name], "") for name in ("directory", "server", "tomography") if found.get(name)),
        *((one["name"], "", one, "") for one in found.get("directories", ())),
        *((one["name"], "proxy", one, "") for one in found.get("proxies", ())),
        *((one["name"], one["role"], one, "") for one in found.get("brokers", ())),
        *((one["name"], one["role"], one, one["socket"]) for one in found["nodes"]),
        *((one["name"], "mqtt", one, _port_of(one)) for one in found["gateways"]),
    ]
    width = 2 + max(9, *(len(name) for name, *_ in rows))
    for name, role, one, place in rows:
        running = f"pid {one['pid']}" if one["pid"] else "not running"
        write(text_line(f"{name:<{width}}{role:<8}{running:<13}{place}".rstrip()))


def _port_of(gateway: Mapping[str, Any]) -> str:
    return f"127.0.0.1:{gateway['port']}, by {gateway['daemon']}"


@testnet.command()
@testnet_option
@json_option
def down(directory: Path) -> None:
    """Stop exactly what `up` started, and daemons of this testnet that were started again.

    \b
    Example:
      hushcast testnet down --dir /tmp/testnet
    """
    from hushcast_cli.progress import reporting
    from hushcast_testnet import testnet as networks

    with reporting() as progress:
        networks.down(directory, progress)


@testnet.command()
@click.option(
    "--gateway",
    is_flag=True,
    help="Show two houses instead: a sensor in one, a dashboard in the other, by MQTT.",
)
@carrier_option
@click.option(
    "--privacy",
    type=click.Choice(["clear", "community", "full"]),
    help="With --carrier brokers: what brokers learn.  [default: clear]",
)
@distance_options
@json_option
def demo(gateway: bool, carrier: CarrierName, privacy: BrokersModel | None, distance: Distance) -> None:
    """Show a private network at work and count what arrived.

    A private Tor network comes up, relays and clients join, some subscribe and others publish. With --carrier
    central it is a server, two proxies and six daemons; a range and a private topic are among what they want.
    With --carrier brokers six brokers stand in their place, and a condition is shown to them once three
    subscribers stand behind it; with --privacy community all is sealed to members, and with --privacy full
    none reads what is wanted, under three layers of keys.

    The last line on standard output is a JSON object with the outcome. Fails if anything was lost.

    \b
    Example:
      hushcast testnet demo
      hushcast testnet demo --distance 40
      hushcast testnet demo --carrier central
      hushcast testnet demo --carrier brokers
      hushcast testnet demo --carrier brokers --privacy community
      hushcast testnet demo --carrier brokers --privacy full
    """
    from hushcast_cli.exits import Failure
    from hushcast_cli.output import json_line, write
    from hushcast_cli.progress import telling

    if gateway and carrier != "overlay":
        raise UsageError("--gateway shows two houses on the overlay: leave --carrier away")
    if privacy is not None and carrier != "brokers":
        raise UsageError("--privacy is of a network of brokers: it goes with --carrier brokers")
    with telling() as (progress, tell):
        if gateway:
            from hushcast_testnet.demonstrations import gateway_demo

            outcome = gateway_demo.demo(progress, tell, distance)
        else:
            from hushcast_testnet.demonstrations import carrier_demo as demos

            outcome = demos.demo(progress, tell, carrier, privacy or "clear", distance)
    write(json_line(outcome))
    if outcome.get("extra"):
        raise Failure(f"{counted(outcome['extra'], 'arrival')} too many: twice, or where it was not wanted")
    if outcome["lost"]:
        raise Failure(f"{counted(outcome['lost'], 'delivery was', 'deliveries were')} lost")


for _command in (watch, chaos, simulate, compare):
    testnet.add_command(_command)
