"""Options of `hushcast testnet simulate` for networks of brokers: privacy, tree, clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import click

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition

if TYPE_CHECKING:
    from hushcast_protocol.brokers.frames import AnonymityTerms
    from hushcast_protocol.brokers.privacy import PrivacyModel
    from hushcast_testnet.simulations.scenario import Scenario

# As the protocol has them, which would load all that keys of layers take; a test compares.
FEWEST, USUAL, MOST = 2, 3, 4  # layers
FAN_OUT = 8  # unless given, where --clients is
INTERESTS, TOPICS = 2, 20  # of a client in the mean, and of all, unless given


@dataclass(frozen=True)
class BrokerOptions:
    """What was given of these options; None where one was not."""

    privacy: PrivacyModel | None
    layers: int | None
    aggregation: bool | None
    fan_out: int | None
    clients: int | None
    tomography: bool
    zipf: bool

    def check(self, scenario: Scenario) -> None:
        """Raise `UsageError` if options contradict each other, or are not the carrier's."""
        given = {
            "--privacy": self.privacy is not None,
            "--layers": self.layers is not None,
            "--aggregation": self.aggregation is not None,
            "--fan-out": self.fan_out is not None,
            "--tomography": self.tomography,
            "--zipf": self.zipf,
        }
        for name, is_given in given.items():
            if is_given and scenario.carrier != "brokers":
                raise UsageError(f"{name} is about networks of brokers: it goes with --carrier brokers")
        if self.clients is not None and scenario.carrier == "central":
            raise UsageError("--clients: in the central system all --nodes are clients")
        if self.clients == 0 and scenario.carrier == "brokers":
            raise UsageError("--clients 0: a network of brokers has one at least")
        for name in ("--layers", "--aggregation"):
            if given[name] and self.privacy != "full":
                raise UsageError(f"{name} is about words under layers: it goes with --privacy full")
        if self.tomography and (scenario.terms is None or self.privacy not in (None, "clear")):
            raise UsageError("--tomography counts for --k what brokers can read: give --k, and no --privacy")
        if scenario.terms is not None and is_useless(scenario.terms, self):
            raise UsageError(
                "--otherwise bogus: nobody would be deceived: under `source` only a tomography service counts"
                " sources, and in a community there is none: add --tomography, or take another --condition"
            )
        if scenario.terms is not None and self.privacy == "full":
            raise UsageError("--k: with --privacy full no broker reads conditions, or counts who has one")
        if scenario.terms is not None and self.privacy in ("hash", "group"):
            raise UsageError(f"--k: with --privacy {self.privacy} brokers compare whole topics alone")
        if scenario.carrier == "brokers" and scenario.profile == "paper" and self.privacy != "full":
            raise UsageError("--profile paper: of brokers, only what --privacy full does was published")

    def added_to(self, scenario: Scenario) -> Scenario:
        """Return a scenario with what these options say of its network."""
        if scenario.carrier != "brokers":
            return scenario
        from hushcast_protocol.brokers.privacy import DEFAULT_AGGREGATION, Privacy

        privacy = Privacy(self.privacy or "clear")
        if self.privacy == "full":
            profile: Literal["hardened", "paper"] = "paper" if scenario.profile == "paper" else "hardened"
            aggregates = DEFAULT_AGGREGATION[profile] if self.aggregation is None else self.aggregation
            privacy = Privacy("full", self.layers or USUAL, profile, aggregates)
        fan_out = self.fan_out if self.fan_out or not self.clients else FAN_OUT
        return replace(scenario, privacy=privacy, fan_out=fan_out, tomography=self.tomography, zipf=self.zipf)


def is_useless(terms: AnonymityTerms, options: BrokerOptions) -> bool:
    """Tell whether terms ask for bogus sources where edge brokers refuse to make any up."""
    if terms.k == 1 or terms.otherwise != "bogus":
        return False
    is_by_source = terms.condition is AnonymityCondition.SOURCE
    return options.privacy in ("community", "group") or (is_by_source and not options.tomography)


def counts_of(clients: int | None, given: dict[str, Any]) -> tuple[int, int, int, int]:
    """Take out of what was given how many nodes, subscribers a topic, publications and topics there are.

    With `clients` the last three have defaults. Raises `click.MissingParameter` and `UsageError`.
    """
    nodes, *counts = (given.pop(name) for name in ("nodes", "subscribers", "publications", "topics"))
    subscribers, publications, topics = counts
    if clients is None:
        needed = {"nodes": nodes, "subscribers": subscribers, "publications": publications}
        for name, value in needed.items():
            if value is None:
                raise click.MissingParameter(param_type="option", param_hint=f"'--{name}'")
        return nodes, subscribers, publications, topics or 1
    if nodes is not None:
        raise UsageError("--clients are all --nodes of a network of brokers: give one of the two")
    topics = topics or TOPICS
    subscribers = subscribers or max(1, min(clients, round(INTERESTS * clients / topics)))
    return clients, subscribers, publications or topics, topics


def brokers_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--clients",
        type=click.IntRange(min=0),
        metavar="N",
        help="Daemons that are no relays, of whom subscribers are drawn; with 0 relays subscribe. Unless"
        " given half as many as subscriptions. With --carrier brokers, in place of --nodes: N clients, with"
        f" {INTERESTS} subscriptions each in the mean to {TOPICS} topics, a message on each, unless given.",
    ),
    click.option(
        "--fan-out",
        type=click.IntRange(min=2),
        metavar="F",
        help=f"With --carrier brokers: children of a broker, in place of --edges; {FAN_OUT} with --clients.",
    ),
    click.option(
        "--privacy",
        type=click.Choice(["clear", "community", "full", "hash", "group"]),
        help="With --carrier brokers: what brokers may learn; clear unless given. hash and group are what the"
        " paper finds wanting.",
    ),
    click.option(
        "--layers",
        type=click.IntRange(FEWEST, MOST),
        metavar="M",
        help=f"With --privacy full: layers, keys that words are under; {USUAL} unless given.",
    ),
    click.option(
        "--aggregation/--no-aggregation",
        default=None,
        help="With --privacy full: whether brokers are told what compares their children's words; unless"
        " given they are with --profile paper alone.",
    ),
    click.option(
        "--tomography",
        is_flag=True,
        help="With --k: a tomography service, so that clients of several edge brokers count together.",
    ),
    click.option(
        "--zipf",
        is_flag=True,
        help="With --carrier brokers: messages are of topics by Zipf's law, not in turn.",
    ),
)
