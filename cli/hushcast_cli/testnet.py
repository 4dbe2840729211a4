"""`hushcast testnet`: private networks on this machine, as processes or in containers."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from hushcast_cli.chaos import chaos
from hushcast_cli.options import Choices, json_option, new_testnet_option, pass_choices, testnet_option
from hushcast_cli.simulate import simulate
from hushcast_cli.watch import watch
from hushcast_protocol.base.epochs import MAX_EPOCH, MIN_EPOCH
from hushcast_runtime.wording import counted


@click.group()
@json_option
def testnet() -> None:
    """Try Hushcast on this machine, in a network of its own.

    Testnets write traces of all that their daemons see and do: they protect nobody.
    """
    from hushcast_runtime.logs import configure_logs

    configure_logs("error", as_json=False)  # progress tells enough; standard output is for results


testnet.add_command(simulate)
testnet.add_command(chaos)
testnet.add_command(watch)


@testnet.command()
@new_testnet_option
@click.option("--nodes", type=click.IntRange(min=1), default=10, show_default=True, help="Relays.")
@click.option("--clients", type=click.IntRange(min=0), default=2, show_default=True, help="Clients.")
@click.option(
    "--transport",
    type=click.Choice(["tor", "tcp"]),
    default="tor",
    show_default=True,
    help="A private Tor network, or loopback connections.",
)
@click.option(
    "--epoch",
    type=click.IntRange(MIN_EPOCH, MAX_EPOCH),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="Length of an epoch.",
)
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
@json_option
@pass_choices
def up(
    choices: Choices,
    directory: Path,
    nodes: int,
    clients: int,
    transport: Literal["tor", "tcp"],
    epoch: int,
    breakable: bool,
    backend: Literal["processes", "containers"],
    gateway: bool,
) -> None:
    """Start a testnet and leave it running.

    Returns when all is ready; if that fails, nothing is left running. With --json, prints what `testnet
    status` prints.

    \b
    Example:
      hushcast testnet up --dir /tmp/testnet --nodes 10 --clients 2
      hushcast testnet up --dir /tmp/testnet --gateway
    """
    from hushcast_cli.output import json_line, note, write
    from hushcast_cli.progress import reporting
    from hushcast_cli.remembered import remember_testnet
    from hushcast_cli.simulate import check_nodes
    from hushcast_testnet import testnet as networks

    check_nodes(nodes)
    with reporting() as progress:
        networks.up(directory, nodes, clients, transport, epoch, progress, breakable, backend, gateway)
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
    """Show a testnet's daemons: relays first, then clients.

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
    write(text_line(f"epoch      {found['epoch']} s"))
    for daemon in [{"name": "directory", "role": "", "socket": ""} | found["directory"], *found["nodes"]]:
        running = f"pid {daemon['pid']}" if daemon["pid"] else "not running"
        write(text_line(f"{daemon['name']:<11}{daemon['role']:<8}{running:<13}{daemon['socket']}".rstrip()))
    for one in found["gateways"]:
        running = f"pid {one['pid']}" if one["pid"] else "not running"
        write(
            text_line(f"{one['name']:<11}{'mqtt':<8}{running:<13}127.0.0.1:{one['port']}, by {one['daemon']}")
        )


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
@json_option
def demo(gateway: bool) -> None:
    """Show a private network at work and count what arrived.

    A private Tor network comes up, relays and clients join, some subscribe and others publish.

    The last line on standard output is a JSON object with the outcome. Fails if anything was lost.

    \b
    Example:
      hushcast testnet demo
    """
    from hushcast_cli.exits import Failure
    from hushcast_cli.output import json_line, write
    from hushcast_cli.progress import telling

    if gateway:
        from hushcast_testnet.gateway_demo import demo as show
    else:
        from hushcast_testnet.demo import demo as show

    with telling() as (progress, tell):
        outcome = show(progress, tell)
    write(json_line(outcome))
    if outcome["lost"]:
        raise Failure(f"{counted(outcome['lost'], 'delivery was', 'deliveries were')} lost")
