"""`hushcast testnet simulate`: a whole network in one process, under a clock of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import (
    FOLDER,
    carrier_option,
    depth_option,
    json_option,
    number_option,
    profile_option,
    seed_option,
    shard_size_option,
)
from hushcast_cli.testnets.broker_options import BrokerOptions, brokers_options, counts_of
from hushcast_cli.testnets.directory_simulation import AUTHORITIES
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.shard_count import SHARD_SIZE
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.overlay.profile import MAX_TREES, PROFILES, Root

if TYPE_CHECKING:
    from hushcast_protocol.brokers.frames import AnonymityTerms
    from hushcast_testnet.inventory import CarrierName
    from hushcast_testnet.simulations.scenario import Scenario

_positive = click.IntRange(min=1)
_PROXIES, _EDGES = 2, 3
_share = click.FloatRange(0, 0.9)
_FAULTS = ("kill", "churn", "droppers", "select")
_AS_GIVEN = ("depth", "origins", "seed", "traces", "trees", "minutes", "delay_rosters", "read_probes")


@click.command()
@carrier_option
@click.option(
    "--nodes",
    type=_positive,
    metavar="N",
    help="Relays; with another carrier daemons that publish, some of which subscribe.",
)
@click.option(
    "--proxies",
    type=click.IntRange(min=2),
    default=_PROXIES,
    show_default=True,
    help="With --carrier central.",
)
@click.option(
    "--edges",
    type=_positive,
    default=_EDGES,
    show_default=True,
    help="With --carrier brokers: edge brokers, below two inner ones.",
)
@brokers_options
@click.option(
    "--authorities",
    type=click.IntRange(1, AUTHORITIES),
    metavar="N",
    help="Directories that agree on rosters; unless given there is one alone.",
)
@shard_size_option()
@click.option("--subscribers", type=_positive, metavar="K", help="Subscribers on each topic.")
@click.option("--publications", type=_positive, metavar="P", help="Messages published.")
@click.option("--topics", type=_positive, metavar="T", help="Topics; one unless given.")
@depth_option
@profile_option
@click.option(
    "--origins",
    type=click.IntRange(1, 8),
    metavar="O",
    help="Random relays that each message is dropped at; the profile's unless given.",
)
@number_option("--trees", 1, MAX_TREES, default=1, help="Trees of each subscription.")
@seed_option
@click.option("--traces", type=FOLDER, metavar="DIR", help="Write traces into this directory.")
@click.option("--kill", type=_share, default=0.0, metavar="SHARE", help="Kill these relays at once.")
@click.option(
    "--churn",
    type=_share,
    default=0.0,
    metavar="SHARE",
    help="Relays that go each minute, and come back.",
)
@click.option(
    "--droppers",
    type=_share,
    default=0.0,
    metavar="SHARE",
    help="Relays that confirm and lose messages.",
)
@click.option(
    "--select", is_flag=True, help="The droppers collude: they lose only what they hold all copies of."
)
@click.option(
    "--delay-rosters",
    type=click.FloatRange(0, 1),
    default=0.0,
    metavar="EPOCHS",
    help="The directory delays rosters for some, to learn which subscriptions are one daemon's.",
)
@click.option(
    "--read-probes",
    type=_share,
    default=0.0,
    metavar="SHARE",
    help="Relays that know the topics, and read conditions in probes.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    metavar="M",
    help="Spread the publications over M virtual minutes.",
)
@click.option(
    "--k",
    type=click.IntRange(1, 1_000_000),
    metavar="K",
    help="With --carrier brokers: among how many each subscriber wants to hide.",
)
@click.option(
    "--condition",
    type=click.Choice([str(condition) for condition in AnonymityCondition]),
    help="Beside --k: who counts.  [default: source]",
)
@click.option(
    "--otherwise",
    type=click.Choice(["wait", "generalise", "bogus"]),
    help="Beside --k: what is done while they are fewer.  [default: generalise]",
)
@json_option
@pass_choices
def simulate(
    choices: Choices,
    /,
    carrier: CarrierName,
    proxies: int,
    edges: int,
    profile: str,
    authorities: int | None,
    shard_size: int | None,
    **others: Any,
) -> None:
    """Simulate a network in this process, faster than time.

    Counts how many of the (publication, subscriber) pairs were delivered, what was shown twice, and how many
    messages travelled against the ideal. Faults begin after the first tenth of the publications; without
    --minutes half of these follow at once, and half two epochs later, when other hosts are used. With --k
    each subscriber wants a cell of a map, small or large; what too few want is shown wider, or not at all.

    \b
    Example:
      hushcast testnet simulate --nodes 100 --subscribers 10 --publications 50
      hushcast testnet simulate --nodes 60 --authorities 3 --shard-size 10 --subscribers 2 --publications 50
      hushcast testnet simulate --carrier central --nodes 40 --subscribers 10 --publications 50 --kill 0.2
      hushcast testnet simulate --carrier brokers --nodes 40 --subscribers 30 --publications 50 --k 3
      hushcast testnet simulate --carrier brokers --clients 64 --privacy full --layers 2 --traces /tmp/traces
    """
    of_brokers = BrokerOptions(**{name: others.pop(name) for name in BrokerOptions.__annotations__})
    clients = of_brokers.clients
    counted = counts_of(clients if carrier == "brokers" else None, others)
    nodes, subscribers, publications, topics = counted
    if carrier == "overlay":
        check_nodes(nodes, is_cut=authorities is not None and shard_size != 0)
    from hushcast_testnet.simulations.faults import Faults
    from hushcast_testnet.simulations.scenario import Scenario

    scenario = Scenario(
        nodes,
        subscribers,
        publications,
        topics,
        profile=profile,
        faults=Faults(**{name: others.pop(name) for name in _FAULTS}),
        clients=clients if carrier == "overlay" else None,
        carrier=carrier,
        proxies=proxies,
        edges=edges,
        authorities=authorities or 0,
        shard_size=_size(authorities, shard_size, profile),
        **{name: others.pop(name) for name in _AS_GIVEN},
        terms=_terms(**others),
    )
    of_brokers.check(scenario)
    _run(choices, of_brokers.added_to(scenario))


def _size(authorities: int | None, shard_size: int | None, profile: str) -> int:
    if shard_size is not None and authorities is None:
        raise UsageError("--shard-size: a directory alone cuts nothing; give --authorities")
    if PROFILES[profile].root is Root.LISTED:
        if shard_size:
            raise UsageError(f"--shard-size: a network of profile {profile} has no shards")
        return 0
    return SHARD_SIZE if shard_size is None else shard_size


def _terms(
    k: int | None, condition: str | None, otherwise: Literal["wait", "generalise", "bogus"] | None
) -> AnonymityTerms | None:
    from hushcast_protocol.brokers.frames import AnonymityTerms

    if k is not None:
        return AnonymityTerms(
            k, AnonymityCondition(condition or AnonymityCondition.SOURCE), otherwise or "generalise"
        )
    if condition is not None or otherwise is not None:
        name = "--condition" if condition is not None else "--otherwise"
        raise UsageError(f"{name} is about --k, among how many subscribers hide: give that, too")
    return None


def _run(choices: Choices, scenario: Scenario) -> None:
    from hushcast_cli.output import json_line, table, write
    from hushcast_cli.progress import reporting
    from hushcast_cli.testnets.simulation_output import rows
    from hushcast_testnet.simulations.overlay_simulation import simulate

    check_scenario(scenario)
    with reporting() as progress:
        result = simulate(scenario, progress).as_dict()
    nodes = "relays" if scenario.carrier == "overlay" else "nodes"
    write(json_line(result) if choices.json else table(rows(result, nodes)))


def check_scenario(scenario: Scenario) -> None:
    """Raise `UsageError` if options contradict each other."""
    if scenario.terms is not None and scenario.carrier != "brokers":
        raise UsageError("brokers count who stands behind a filter: --k goes with --carrier brokers")
    if scenario.edges != _EDGES and scenario.carrier != "brokers":
        raise UsageError("edge brokers are a network of brokers': --edges goes with --carrier brokers")
    if scenario.carrier != "overlay":
        check_served(scenario)
        return
    if scenario.proxies != _PROXIES:
        raise UsageError("the overlay has no proxies: --proxies goes with --carrier central")
    if PROFILES[scenario.profile].root is Root.LISTED and scenario.nodes < 2:
        raise UsageError(
            f"--nodes 1: under --profile {scenario.profile} a relay subscribes at others; give 2"
        )
    check_subscribers(scenario)
    if scenario.origins is not None and scenario.origins > scenario.nodes:
        raise UsageError(f"--origins {scenario.origins}: there are only --nodes {scenario.nodes}")
    if scenario.faults.select and not scenario.faults.droppers:
        raise UsageError("--select says how --droppers choose: give their share, too")
    if scenario.delay_rosters or scenario.read_probes:
        check_learning(scenario)


def check_subscribers(scenario: Scenario) -> None:
    """Raise `UsageError` if there are too few who may subscribe."""
    is_listed = PROFILES[scenario.profile].root is Root.LISTED
    if is_listed and scenario.clients:
        raise UsageError(f"--clients: under --profile {scenario.profile} relays subscribe")
    if scenario.client_count == 0 and scenario.subscribers > scenario.nodes:
        why = f"under --profile {scenario.profile}" if is_listed else "with --clients 0"
        raise UsageError(
            f"--subscribers {scenario.subscribers}: {why} relays subscribe, and there are {scenario.nodes}"
        )
    if scenario.client_count and scenario.subscribers > scenario.client_count:
        raise UsageError(
            f"--subscribers {scenario.subscribers}: there are only --clients {scenario.client_count}"
        )
    if scenario.clients == 0 and scenario.delay_rosters:
        raise UsageError("--delay-rosters is about clients: give some --clients")


def check_served(scenario: Scenario) -> None:
    """Raise `UsageError` if options are the overlay's, or a network without relays cannot have these."""
    from hushcast_protocol.brokers.broker_tree import MAX_CHILDREN
    from hushcast_protocol.central.network import MAX_PROXIES

    overlays = {
        "--authorities": scenario.authorities,
        "--depth": scenario.depth is not None,
        "--origins": scenario.origins is not None,
        "--trees": scenario.trees != 1,
        "--droppers": scenario.faults.droppers,
        "--select": scenario.faults.select,
        "--delay-rosters": scenario.delay_rosters,
        "--read-probes": scenario.read_probes,
    }
    for name, is_given in overlays.items():
        if is_given:
            system = "the central system" if scenario.carrier == "central" else "a network of brokers"
            raise UsageError(f"{name} is about relays: {system} has none")
    if scenario.subscribers > scenario.nodes:
        raise UsageError(f"--subscribers {scenario.subscribers}: there are only --nodes {scenario.nodes}")
    if scenario.carrier == "brokers":
        if scenario.proxies != _PROXIES:
            raise UsageError("a network of brokers has no proxies: --proxies goes with --carrier central")
        if scenario.edges > MAX_CHILDREN:
            raise UsageError(f"--edges {scenario.edges}: there are {MAX_CHILDREN} at most")
        if scenario.fan_out is not None and scenario.edges != _EDGES:
            raise UsageError("--fan-out says how many edge brokers there are: give no --edges")
    elif scenario.proxies > MAX_PROXIES:
        raise UsageError(f"--proxies {scenario.proxies}: a server has {MAX_PROXIES} at most")


def check_learning(scenario: Scenario) -> None:
    """Raise `UsageError` if those who want to learn cannot in this scenario."""
    if scenario.authorities:
        raise UsageError("--authorities: who wants to learn does so by a directory alone")
    if scenario.delay_rosters and scenario.read_probes:
        raise UsageError("--delay-rosters and --read-probes are two simulations: give one of them")
    name = "--delay-rosters" if scenario.delay_rosters else "--read-probes"
    if scenario.faults:
        raise UsageError(
            f"{name} does not go with --kill, --churn or --droppers: its figures would be theirs"
        )
    if scenario.minutes is None:
        raise UsageError(f"{name} takes time: give the virtual --minutes, 60 an epoch")
    if scenario.topics < 2:
        raise UsageError(f"{name} asks which is whose: give at least 2 --topics")
    if scenario.read_probes and scenario.subscribers > 1:
        raise UsageError(
            "--read-probes takes all probes on a topic for one subscription's: give --subscribers 1"
        )
    if scenario.delay_rosters:
        if PROFILES[scenario.profile].root is Root.LISTED:
            raise UsageError(
                f"--delay-rosters is about clients: under --profile {scenario.profile} relays subscribe"
            )
        if min(scenario.nodes, scenario.subscribers) < 2:
            raise UsageError(
                "--delay-rosters asks which is whose: give at least 2 --subscribers and 2 --nodes"
            )


def check_nodes(nodes: int, is_cut: bool = False) -> None:
    """Raise `UsageError` if there are more relays than a roster lists, or than directories cut."""
    from hushcast_protocol.base.roster import MAX_RELAYS, MAX_SEATED

    if is_cut and nodes > MAX_SEATED:
        raise UsageError(f"--nodes {nodes}: a network in shards has at most {MAX_SEATED} relays")
    if not is_cut and nodes > MAX_RELAYS:
        raise UsageError(f"--nodes {nodes}: a roster lists at most {MAX_RELAYS} relays")
