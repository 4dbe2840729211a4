"""What each client gets of messages with several names, by plain sets over all names.

By hand, ten thousand drawn worlds:

    python tests/gateway/naming.py --worlds 10000
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import helper_folders  # noqa: F401

from broker_world import Client, World
from names_oracle import ALIASES, FILTERS, MAPS, PURPOSES, TOPICS, USERS, Drawn, covers, grants
from purposes_house import VOCABULARY

import hushcast
from hushcast_gateway.counters import GatewayCounters
from hushcast_gateway.network.gateway_network import GatewayNetwork
from hushcast_gateway.network_ways import NetworkWays
from hushcast_gateway.purposes.rules import Purposes
from hushcast_gateway.sections.purposes_section import PurposesOfUser, PurposesSection
from hushcast_gateway.settings import (
    AliasSection,
    DaemonSection,
    GatewaySettings,
    MapSection,
    NetworkTopicsSection,
)
from hushcast_protocol.mqtt.network_publication import NetworkPublication
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.access import Access, AccessPermissions
from hushcast_protocol.mqtt.wire.codec import encode
from hushcast_protocol.mqtt.wire.packets import PubAck, Publish, Will
from hushcast_runtime.environment import simulated_environment

LINKS = {name: hushcast.new_link(name, private=True) for name in ALIASES}


class AtOnce(GatewayNetwork):
    """The way to the network, with a daemon that takes at once what may go to it."""

    def publish(self, publication: NetworkPublication) -> int:
        made = self._made(publication)
        return made if isinstance(made, Reason) else Reason.SUCCESS


def joined(
    aliases: dict[str, str], maps: dict[str, str], section: PurposesSection, random: Random
) -> tuple[World, Purposes]:
    """Return a broker, and its rules, with aliases, by name with what their readers use them for."""
    settings = GatewaySettings(
        daemon=DaemonSection(socket="/unused"),
        gateway=NetworkTopicsSection(
            alias=tuple(
                AliasSection(name=name, link_file="/unused", purpose=use or None)
                for name, use in aliases.items()
            ),
            map=tuple(MapSection(from_=wanted, to=alias) for wanted, alias in maps.items()),
        ),
        purposes=section,
    )
    may = PurposesOfUser(purposes=("operations", "marketing", "research"), reserve=("#", "hush/#"))
    ways = NetworkWays(settings.gateway, {name: LINKS[name] for name in aliases})
    rules = Purposes(section, dict.fromkeys(USERS, may), VOCABULARY, lambda: 0.0, ways)
    network = AtOnce(settings, ways, simulated_environment(1), GatewayCounters(), rules)
    world = World(network, rules=rules)
    rules.attach(world.broker, random.randbytes)
    return world, rules


def answered(client: Client, packet: Publish) -> int:
    """Publish, and return the reason of the answer; messages that came stay to be seen."""
    client.send(packet)
    packets = client.got_keeping()
    client.got()
    (reason,) = [one.reason for one in packets if isinstance(one, PubAck)]
    client.outlet.data = b"".join(encode(one, client.version) for one in packets if isinstance(one, Publish))
    return reason


class Judged:
    """A broker with one client of each user, and the oracle beside it."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.drawn = drawn = self._draw()
        self.wrong: Counter[str] = Counter()
        self.compared = self.got = 0
        section = PurposesSection(
            mode=random.choice(["publish", "hybrid"]),
            store=random.choice(["cached", "tree", "flat"]),
            strict=drawn.strict,
        )
        self.world, self.rules = joined(drawn.aliases, drawn.maps, section, random)
        self.clients = {user: self._client(user) for user in USERS}

    def _client(self, user: str) -> Client:
        return self.world.connect(user, permissions=AccessPermissions(self.drawn.lists[user], user, user))

    def _draw(self) -> Drawn:
        random = self.random

        def some(most: int) -> tuple[str, ...]:
            return tuple(random.choices(FILTERS, k=random.randint(0, most)))

        aliases = {name: random.choice(("", "", "operations")) for name in ALIASES if random.random() < 0.9}
        maps = {one: to for one, to in MAPS.items() if to in aliases and random.random() < 0.7}
        wide = ("#", "hush/#")
        lists = {
            user: Access(
                random.choice((wide, wide, some(4))),
                random.choice((wide, wide, some(4))),
                random.choice(((), some(2))),
                random.choice(((), some(2))),
            )
            for user in USERS
        }
        return Drawn(aliases, maps, random.random() < 0.2, lists)

    def run(self) -> None:
        for _ in range(self.random.randint(0, 3)):
            self._reserve()
        wanted = {user: self._subscribe(user) for user in USERS}
        for number in range(12):
            if self.random.random() < 0.15:
                self._release()
            self._publish(wanted, f"{number}".encode())
        self._late()

    def _reserve(self) -> None:
        owner, wanted = self.random.choice(USERS), self.random.choice(FILTERS)
        aip = frozenset(self.random.choices(PURPOSES, k=self.random.randint(0, 3)))
        pip = frozenset(self.random.choices(PURPOSES, k=self.random.choice((0, 0, 1))))
        self.drawn.reserved[owner, wanted] = aip, pip
        given = [("aip", ",".join(aip)), ("pip", ",".join(pip))]
        self._command(owner, wanted, given)

    def _release(self) -> None:
        if self.drawn.reserved:
            owner, wanted = self.random.choice(list(self.drawn.reserved))
            del self.drawn.reserved[owner, wanted]
            self._command(owner, wanted, [("reserve", "remove")])

    def _command(self, owner: str, wanted: str, given: list[tuple[str, str]]) -> None:
        spelled = "/".join({"#": "HASH", "+": "PLUS"}.get(level, level) for level in wanted.split("/"))
        packet = Publish(f"!RESERVE/{spelled}", b"", 1, packet_id=7, properties={"user_property": given})
        assert answered(self.clients[owner], packet) == Reason.SUCCESS

    def _subscribe(self, user: str) -> list[tuple[str, str]]:
        """Subscribe to some filters; return those that stand, with their purposes."""
        found = []
        wide = self.random.choices(("#", "hush/#", "hush/home/#", "z/#"), k=2)
        for wanted in {*self.random.choices(FILTERS, k=self.random.randint(0, 3)), *wide}:
            purpose = self.random.choice(("", *PURPOSES))
            given = {"user_property": [("ap", purpose)]} if purpose else {}
            (reason,) = self.clients[user].subscribe(wanted, properties=given, qos=0)
            if reason < Reason.UNSPECIFIED_ERROR:
                found.append((wanted, purpose))
                if not any(grants(one, wanted) for one in self.drawn.lists[user].subscribe):
                    self.wrong["a subscription was let in"] += 1
            elif any(grants(one, wanted) for one in self.drawn.lists[user].subscribe):
                shown = [one for one in TOPICS if covers(wanted, one) and self.drawn.may_receive(user, one)]
                shown = [one for one in shown if one in (self.drawn.handed_out_as(one) or [])]
                self.wrong["a subscription was refused"] += reason not in (
                    Reason.TOPIC_FILTER_INVALID,
                    Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED,
                ) and any(self.drawn.allowed(one, purpose) for one in shown)
        return found

    def _publish(self, wanted: dict[str, list[tuple[str, str]]], payload: bytes) -> None:
        topic, sender = self.random.choice(TOPICS), self.random.choice(USERS)
        drawn, how = self.drawn, self.random.choice(("publish", "publish", "will", "arrives"))
        out = drawn.handed_out_as(topic)
        if how == "arrives":
            if out is None or not (topic.startswith("hush/") or len(out) > 1):
                return
            for one in out:
                self.world.broker.arrived(one, payload, 0, False, {}, self.world.now)
            is_out = True
        elif how == "will":
            if not drawn.may_publish(sender, topic):
                return
            self._client_with_will(sender, topic, payload).lose()
            is_out = out is not None
        else:
            self.clients[sender].publish(topic, payload)
            is_out = drawn.may_publish(sender, topic) and drawn.is_spread(topic)
        for user in USERS:
            right = Counter(
                one
                for one in (out or ())
                if is_out
                if drawn.may_receive(user, one)
                and any(covers(each, one) and drawn.allowed(one, use) for each, use in wanted[user])
            )
            self._compare(user, how, right, Counter(one.topic for one in self.clients[user].published()))

    def _client_with_will(self, user: str, topic: str, payload: bytes) -> Client:
        permissions = AccessPermissions(self.drawn.lists[user], user, "mortal")
        return self.world.connect("mortal", permissions=permissions, will=Will(topic, payload, 0, False))

    def _late(self) -> None:
        """Compare what is handed out of what is retained, after reservations have changed."""
        topic, sender, user = self.random.choice(TOPICS), self.random.choice(USERS), self.random.choice(USERS)
        drawn = self.drawn
        is_out = drawn.may_publish(sender, topic) and drawn.is_spread(topic)
        self.clients[sender].publish(topic, b"kept", retain=True)
        self._reserve()
        late = self.world.connect("late", permissions=AccessPermissions(drawn.lists[user], user, "late"))
        wanted, purpose = self.random.choice(FILTERS), self.random.choice(PURPOSES)
        given = {"user_property": [("ap", purpose)]}
        (reason,) = late.subscribe(wanted, properties=given, qos=0)
        right = Counter(
            one
            for one in drawn.handed_out_as(topic) or ()
            if is_out
            and reason < Reason.UNSPECIFIED_ERROR
            and covers(wanted, one)
            and drawn.may_receive(user, one)
            and drawn.allowed(one, purpose)
        )
        self._compare(user, "retained", right, Counter(one.topic for one in late.published()))

    def _compare(self, user: str, how: str, right: Counter[str], found: Counter[str]) -> None:
        self.compared += 1
        self.got += right.total()
        for one, other, what in ((found, right, "let in"), (right, found, "lost")):
            if one - other:
                self.wrong[f"{how}: {what}"] += 1


def judged(worlds: int, seed: int) -> tuple[Counter[str], int, int]:
    """Return what was wrong in drawn worlds, how many comparisons there were, and how many messages came."""
    wrong: Counter[str] = Counter()
    compared = got = 0
    for number in range(worlds):
        one = Judged(Random(f"{seed} {number}"))
        one.run()
        wrong += +one.wrong
        compared, got = compared + one.compared, got + one.got
    return wrong, compared, got


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.perf_counter()
    wrong, compared, got = judged(options.worlds, options.seed)
    print(
        f"{options.worlds:,} worlds, {compared:,} comparisons, {got:,} messages: {dict(wrong) or '0 wrong'}"
    )
    print(f"({time.perf_counter() - began:.0f} s)")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
