"""Asking the tomography service: over the transport of a daemon's configuration, and in words."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import trio

from hushcast_brokers.tomography.questions import NOT_READY, TomographyContact, ask_service
from hushcast_brokers.tomography.section import TomographyFile
from hushcast_brokers.tomography.settings import AskerSettings
from hushcast_cli.choices import Choices
from hushcast_cli.configuration.operator_files import read_given
from hushcast_cli.output import json_line, text_line, write
from hushcast_protocol.base.errors import Refusal, UsageError
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.broker_tree import BrokerTree
from hushcast_protocol.brokers.clear_words import ID_DAY, shown
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.tomography.questions import MAX_SPREAD, TomographyAnswer, TomographyQuestion
from hushcast_protocol.brokers.tomography.statements import MAX_CROWD
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.tokens import topic_key
from hushcast_protocol.content.topics import Interest, Topic
from hushcast_runtime.environment import Environment, system_environment
from hushcast_runtime.processes.config import load_settings, parse_toml
from hushcast_runtime.processes.process import open_transport

LEAST_DIGITS = 8  # of a key, so that another broker's hardly begins so, too

_REASONS = {
    NOT_READY: "the service holds no tree yet: its doctor says why",
    "no-way": "the service knows no way from this broker to the root: it holds another tree",
    "exact": "it tells people of crowds alone: ask for a larger --k, and for an edge broker",
    "k": "all edge brokers together may not vouch for so many, or there are fewer than --spread",
    "quota": "it is asked too much, perhaps about this topic: try again in some minutes",
    "stamp": "it is asked too much, and wants more work: try again",
    "form": "it does not take this filter",
}


@dataclass(frozen=True)
class TomographyOptions:
    """What was asked for on the command line."""

    origin: str
    k: int
    spread: int

    def __post_init__(self) -> None:
        if self.k > MAX_CROWD:
            raise UsageError(f"--k: nobody can be asked for a crowd of more than {MAX_CROWD}")
        if self.spread > MAX_SPREAD:
            raise UsageError(f"--spread: at most {MAX_SPREAD} edge brokers")


def asker_settings(config: Path, service: Path | None) -> AskerSettings:
    """Return how the service is reached; raise `UsageError`."""
    settings = load_settings(config, AskerSettings)
    if service is not None:
        data, where = read_given(service)
        settings = msgspec.structs.replace(
            settings, tomography=parse_toml(data, where, TomographyFile).tomography
        )
        settings.check()
    if settings.tomography is None:
        raise UsageError(f"{config} names no tomography service: give its tomography.toml with --service")
    return settings


async def ask_for(
    settings: AskerSettings, topic: Topic, where: str, wanted: TomographyOptions
) -> tuple[TomographyAnswer, float]:
    """Return the answer, and the seconds for which it holds.

    Raises `UsageError`, `Refusal`, `PeerError` or `TransportError`.
    """
    env = system_environment()
    network = settings.network.network()
    given = Filter.of(Interest(topic, parse_where(where, topic.attributes)))
    key = await env.compute(topic_key, topic, network.id, ID_DAY)
    filter_ = shown(key, given)

    def question(tree: BrokerTree) -> TomographyQuestion:
        origin = edge_in(tree, wanted.origin)
        return TomographyQuestion(
            filter_, origin, network.root, wanted.k, AnonymityCondition.SOURCE, wanted.spread, False, ()
        )

    answer = await _ask(settings, env, question)
    return answer, answer.until - env.now()


def tell(choices: Choices, told: tuple[TomographyAnswer, float]) -> None:
    """Print an answer."""
    answer, left = told
    question = answer.question
    if choices.json:
        line = {
            "anonymous": answer.is_anonymous,
            "until": answer.until,
            "from": question.origin.hex(),
            "k": question.k,
            "spread": question.spread,
        }
        write(json_line(line))
        return
    what = f"{question.k} subscribers want just this wherever it is shown on the way to the root"
    found = f"yes: {what}" if answer.is_anonymous else f"no: it is not known that {what}"
    write(text_line(f"{found}; said for {max(0, round(left))} seconds"))


def edge_in(tree: BrokerTree, text: str) -> PublicKey:
    """Return the key of the one edge broker that a text names; raise `UsageError`."""
    found = [edge.key for edge in tree.edges if edge.key.hex().startswith(text.lower())]
    if len(text) < LEAST_DIGITS or not found:
        raise UsageError(f"--from: write {LEAST_DIGITS} digits or more of an edge broker's key in the tree")
    if len(found) > 1:
        raise UsageError("--from: more than one edge broker's key begins so: write more digits")
    return found[0]


async def _ask(
    settings: AskerSettings, env: Environment, make: Callable[[BrokerTree], TomographyQuestion]
) -> TomographyAnswer:
    assert settings.tomography is not None
    with tempfile.TemporaryDirectory(prefix="hushcast-") as own:
        reached = msgspec.structs.replace(settings, state=own)
        async with trio.open_nursery() as nursery:
            transport = await open_transport(reached, nursery, lambda tor: None)
            asker = TomographyContact(settings.network.network(), settings.tomography.peer(), transport, env)
            try:
                answer = await ask_service(asker, make)
            except Refusal as refusal:
                raise Refusal(_REASONS.get(refusal.reason, refusal.reason)) from None
            nursery.cancel_scope.cancel()
    return answer
