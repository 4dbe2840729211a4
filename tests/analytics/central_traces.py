"""Traces of a central system that never ran: what server, proxies and users would write, by the protocol."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

from hushcast_protocol.base.trace import Observation, Truth, to_line


class Central:
    """A server, a proxy of each role, and users; what they do is written down as it is done."""

    def __init__(self, directory: Path, profile: str, users: int, seed: int = 1) -> None:
        self.profile, self.random = profile, random.Random(seed)
        self.users = [f"client-{n}" for n in range(users)]
        self._directory = directory
        self._lines: dict[str, list[str]] = defaultdict(list)
        self._time = 0.0
        self._one: dict[tuple[str, str], str] = {}
        self._wanting: dict[str, list[tuple[str, str]]] = defaultdict(list)  # users, pseudonyms by topic
        self._serials: dict[str, int] = defaultdict(int)
        roles = {"server": "server", "publications": "publications", "deliveries": "deliveries"}
        for name, role in {**roles, **dict.fromkeys(self.users, "client")}.items():
            self._tell(name, "started", role=role, profile=profile)

    def subscribe(self, user: str, topic: str, condition: str = "") -> None:
        """Ask for all of a topic, or for what meets a condition: nothing here does."""
        pseudonym = self._pseudonym(user, "subscribe", topic)
        self._tell(user, "subscribed", topic=topic, mailbox=pseudonym)
        self._serials[pseudonym] += 1
        serial = self._serials[pseudonym]
        self._tell(user, "registered", topic=topic, pseudonym=pseudonym, serial=serial)
        for node in ("deliveries", "server"):
            self._see(
                node,
                "registered",
                pseudonym=pseudonym,
                serial=serial,
                tokens=(self._token(topic + condition),),
            )
        if not condition:
            self._wanting[topic].append((user, pseudonym))

    def publish(self, user: str, topic: str) -> str:
        """Publish a message, deliver it, and return its id."""
        message, payload = self._new(), self._new(16)
        self._time += 1.0  # it takes a tenth of a second: not before the last subscription
        pseudonym = self._pseudonym(user, "publish", topic)
        tokens = (self._token(topic), *(self._new() for _ in range(7)))
        self._tell(user, "handed", message=message, pseudonym=pseudonym, payload=payload)
        self._tell(user, "published", topic=topic, message=message, origins=("server",), took=0.1)
        came = {"pseudonym": pseudonym, "tokens": tokens, "payload": payload, "size": 1024}
        self._see("publications", "handed", **came)
        self._see("server", "handed", message=message, readable=self.profile == "paper", **came)
        for subscriber, wanting in self._wanting[topic]:
            sent = payload if self.profile == "paper" else self._new(16)
            went = {"pseudonym": wanting, "payload": sent, "size": 1024}
            self._see("server", "dispatched", message=message, **went)
            self._see("deliveries", "dispatched", **went)
            self._tell(subscriber, "delivered", topic=topic, message=message)
        return message

    def write(self) -> Path:
        """Write the files, and return their directory."""
        self._directory.mkdir(parents=True)
        for name in ("server", "publications", "deliveries", *self.users):
            for kind in ("observations", "truth"):
                lines = self._lines.get(f"{name}.{kind}", [])
                (self._directory / f"{name}.{kind}.jsonl").write_text("".join(f"{x}\n" for x in lines))
        return self._directory

    def _pseudonym(self, user: str, use: str, topic: str) -> str:
        if self.profile == "paper" and (user, use) in self._one:
            return self._one[user, use]
        pseudonym = self._one[user, use] = self._new()
        told = None if self.profile == "paper" else topic
        self._tell(user, "introduced", pseudonym=pseudonym, use=use, topic=told)
        for node in ("publications" if use == "publish" else "deliveries", "server"):
            self._see(node, "introduced", pseudonym=pseudonym, use=use)
        return pseudonym

    def _token(self, topic: str) -> str:
        return hashlib.sha256(f"{self.profile} {topic}".encode()).hexdigest()

    def _new(self, size: int = 32) -> str:
        return self.random.randbytes(size).hex()

    def _see(self, node: str, kind: Any, **fields: Any) -> None:
        self._add(f"{node}.observations", Observation(node, self._time, 0, kind, **fields))

    def _tell(self, node: str, kind: Any, **fields: Any) -> None:
        self._add(f"{node}.truth", Truth(node, self._time, 0, kind, **fields))

    def _add(self, file: str, record: Observation | Truth) -> None:
        self._time += 0.001
        self._lines[file].append(to_line(record))
