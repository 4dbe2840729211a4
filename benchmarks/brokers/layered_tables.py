"""Tables under layers, with aggregation and without: `python -m benchmarks.brokers.layered_tables`.

A tree of brokers, interests by Zipf's law: rows, advertisements, keys and factors that brokers hold, and
whether publications come to all who asked, and to nobody else. For docs/brokers.md; it takes some minutes.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from random import Random
from typing import get_args

from hushcast_protocol.base.crypto.secrets import AgreementKey
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.full.aggregation import Factors, asking, unblinded, with_share
from hushcast_protocol.brokers.full.layer_keys import Keyring
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.full.published_names import element_name
from hushcast_protocol.brokers.full.rows import Rows
from hushcast_protocol.brokers.full.word_holder import WordHolder
from hushcast_protocol.brokers.privacy import Privacy, PrivacyProfile
from hushcast_testnet.simulations.broker_trees import fanned

DAY = 20_000
TOPICS = 500
INTERESTS = 3  # of a client
_NETWORK = bytes(32)


class Network:
    """Brokers by their names, root first, and who asked for what."""

    def __init__(self, privacy: Privacy, clients: int, fan_out: int, seed: int) -> None:
        random = Random(seed)  # noqa: S311 - to be drawn again the same
        shape = fanned(clients, fan_out, privacy.layers)
        self.privacy = privacy
        self.parents = {name: parent for name, _, parent in shape.brokers}
        self.roles = {name: role for name, role, _ in shape.brokers}
        self.rings = {name: self._ring(random) for name in self.parents}
        above = {name: self._above(name) for name in self.parents}
        self.rows = {
            name: Rows(ring, above[name], privacy.layers, aggregates=privacy.aggregates)
            for name, ring in self.rings.items()
        }
        self.words = [random.randbytes(16) for _ in range(TOPICS)]
        self.wanted: dict[int, set[PublicKey]] = defaultdict(set)
        self.advertised = self.factors = 0
        self._brokers = {ring.public: name for name, ring in self.rings.items()}
        for edge in shape.edges:
            ring = self._ring(random)
            holder = WordHolder(ring, (self.rings[edge].public, *above[edge]), privacy.layers, DAY)
            for topic in zipf(random, INTERESTS):
                self.wanted[topic].add(ring.public)
                self._put(edge, ring.public, (holder.item(self.words[topic]),))
        for name in reversed(self.parents):
            if self.parents[name]:
                self._pass_on(name, above[name])

    def _ring(self, random: Random) -> Keyring:
        own = AgreementKey(random.randbytes(AgreementKey.LENGTH))
        return Keyring(self.privacy.action, own, _NETWORK)

    def _above(self, name: str) -> list[PublicKey]:
        found = []
        while name := self.parents[name]:
            found.append(self.rings[name].public)
        return found

    def _put(self, broker: str, child: PublicKey, items: Iterable[LayeredWord]) -> None:
        rows = self.rows[broker]
        for item in items:
            rows.put(child, rows.read(item))
            self.advertised += 1

    def _pass_on(self, name: str, above: list[PublicKey]) -> None:
        ring, rows, layers = self.rings[name], self.rows[name], self.privacy.layers
        for day, path in rows.missing():
            ask = asking(self.privacy.action, ring.public, 1, day, path)
            for target in above[: layers - 1]:
                ask = with_share(self.rings[self._brokers[target]], ask, 1)
            answer = Factors(1, ask.route, ask.content)
            rows.learn(day, path, unblinded(ring, above, layers, day, path, answer))
            self.factors += 1
        self._put(self.parents[name], ring.public, rows.take_changes().shown)

    def reached(self, topic: int) -> tuple[set[PublicKey], int]:
        """Return the clients that a message on a topic comes to, and how many labels went over links."""
        found: set[PublicKey] = set()
        name = element_name(self.privacy.action.element(self.words[topic]))
        waiting, labels = [("root", name)], 0
        while waiting:
            at, name = waiting.pop()
            for onward in self.rows[at].matching(DAY, name):
                labels += 1
                if onward.child in self._brokers:
                    waiting.append((self._brokers[onward.child], onward.name))
                else:
                    found.add(onward.child)
        return found, labels

    @property
    def rows_held(self) -> int:
        """Rows of all brokers."""
        return sum(len(rows.rows(DAY)) for rows in self.rows.values())

    def keys(self, role: str) -> float:
        """Return how many others a broker of this role shares keys with, in the mean."""
        return statistics.fmean(
            len(ring._kept) for name, ring in self.rings.items() if self.roles[name] == role
        )

    def keys_in_paper(self, role: str, clients: int) -> float:
        """Return with how many it would by the paper: m ancestors, and all descendants on m levels."""
        below: dict[str, list[str]] = defaultdict(list)
        for name, parent in self.parents.items():
            below[parent].append(name)
        each = clients / sum(role == "edge" for role in self.roles.values())
        found = []
        for name in (name for name, its in self.roles.items() if its == role):
            level: list[str] = [name]
            count: float = min(self.privacy.layers, len(self._above(name)))
            for _ in range(self.privacy.layers):
                count += sum(each if self.roles[one] == "edge" else 0 for one in level)
                level = [child for one in level for child in below[one]]
                count += len(level)
            found.append(float(count))
        return statistics.fmean(found)


def zipf(random: Random, count: int) -> list[int]:
    """Draw different topics; the n-th is asked for 1/n times as often as the first."""
    found: dict[int, None] = {}
    while len(found) < count:
        found |= dict.fromkeys(random.choices(range(TOPICS), _WEIGHTS, k=count - len(found)))
    return list(found)


_WEIGHTS = [1 / (number + 1) for number in range(TOPICS)]


def main(arguments: list[str] | None = None) -> int:
    """Build trees and publish."""
    options = _parser().parse_args(arguments)
    for fan_out in options.fan_out:
        for layers in options.layers:
            both = {
                aggregates: Network(
                    Privacy("full", layers, options.profile, aggregates),
                    options.clients,
                    fan_out,
                    options.seed,
                )
                for aggregates in (True, False)
            }
            _tell(both, options, fan_out, layers)
    return 0


def _tell(both: Mapping[bool, Network], options: argparse.Namespace, fan_out: int, layers: int) -> None:
    print(f"fan-out {fan_out}, m = {layers}, {len(both[True].parents)} brokers, {options.clients} clients")
    for aggregates, network in both.items():
        random = Random(options.seed)  # noqa: S311 - to be drawn again the same
        missed = excess = labels = 0
        known = {topic: network.reached(topic) for topic in range(TOPICS)}  # tables stay as they are
        for _ in range(options.publications):
            (topic,) = zipf(random, 1)
            reached, sent = known[topic]
            missed += len(network.wanted[topic] - reached)
            excess += len(reached - network.wanted[topic])
            labels += sent
        print(
            f"  {'with   ' if aggregates else 'without'} aggregation: {network.rows_held:,} rows,"
            f" {network.advertised:,} advertisements, {network.factors:,} factors;"
            f" {options.publications:,} publications: {missed} deliveries missed, {excess} in excess,"
            f" {labels / options.publications:.1f} labels each"
        )
    rows = both[True].rows_held / both[False].rows_held
    advertised = both[True].advertised / both[False].advertised
    print(f"  ratio: rows {rows:.3f}, advertisements {advertised:.3f}")
    print(f"  interests named by how much comes for them: {_by_shares(both[True], options):.1%}")
    for role in ("edge", "inner"):
        network = both[True]
        print(
            f"  keys of an {role} broker: with {network.keys(role):.1f} others, by the paper's count with"
            f" {network.keys_in_paper(role, options.clients):.1f}"
        )
    sys.stdout.flush()


def by_shares(counts: Mapping[str, int], shares: Mapping[str, float], messages: int) -> dict[str, str]:
    """Return the likeliest topic of each row, by how many of all `messages` it was sent.

    `shares` are the topics' shares of all messages, as far as they are known. Each row is judged alone.
    """
    return {
        row: max(shares, key=lambda topic: (_likelihood(count, shares[topic], messages), topic))
        for row, count in counts.items()
    }


def _likelihood(count: int, share: float, messages: int) -> float:
    """Return the logarithm of how likely a binomial count is, but for what is the same for all shares."""
    if share in (0.0, 1.0):
        return 0.0 if count == share * messages else -math.inf
    return count * math.log(share) + (messages - count) * math.log1p(-share)


def _by_shares(network: Network, options: argparse.Namespace) -> float:
    """Return the share of interests that a client's broker names which knows how much topics carry."""
    random = Random(options.seed)  # noqa: S311 - to be drawn again the same
    counts = dict.fromkeys(map(str, network.wanted), 0)
    for _ in range(options.publications):
        (topic,) = zipf(random, 1)
        if str(topic) in counts:
            counts[str(topic)] += 1
    shares = {str(topic): weight / sum(_WEIGHTS) for topic, weight in enumerate(_WEIGHTS)}
    named = by_shares(counts, shares, options.publications)
    right = sum(len(wanting) for topic, wanting in network.wanted.items() if named[str(topic)] == str(topic))
    return right / sum(map(len, network.wanted.values()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.brokers.layered_tables", description=__doc__)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--publications", type=int, default=10_000)
    parser.add_argument("--fan-out", nargs="+", type=int, default=[4, 8, 32])
    parser.add_argument("--layers", nargs="+", type=int, default=[2, 3, 4])
    parser.add_argument("--profile", choices=get_args(PrivacyProfile), default="paper")
    parser.add_argument("--seed", type=int, default=1)
    return parser


if __name__ == "__main__":
    sys.exit(main())
