"""eclipse's interoperability tests: classes of `unittest` in a checkout, called one by one.

Their own command line does not hand host and port on to the classes. Some tests wait for the wrong client's
SUBACK, and so for nothing, and fail at random; one that fails is tried again, which is told.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import signal
import sys
import time
import unittest
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from outcomes import Outcome

MODULES = {"3.1.1": "client_test", "5": "client_test5"}
TRIES = 3
TOO_LONG = "not over after"  # and so not tried again: it would take as long
_TOPICS = ("TopicA", "TopicA/B", "Topic/C", "TopicA/C", "/TopicA")
_WILD = ("TopicA/+", "+/C", "#", "/#", "/+", "+/+", "TopicA/#")


class TooLongError(BaseException):
    """A test took too long. Not an `Exception`: the tests catch those."""


def run(
    checkout: Path, version: str, server: tuple[str, int], only: str, limit: float, under: str = ""
) -> Iterator[Outcome]:
    """Run all tests of one version, each within `limit` seconds, on topics that begin with `under`."""
    folder = str(checkout / "interoperability")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(MODULES[version])
    except ImportError as error:
        yield Outcome("files", f"this is no checkout of paho.mqtt.testing: {error}")
        return
    # What the module's own `main` would set; the class sets some of it again.
    names: dict[str, Any] = {"topics": _TOPICS, "wildtopics": _WILD, "topic_prefix": "client_test5/"}
    vars(module).update(names, nosubscribe_topics=("test/nosubscribe",), host=server[0], port=server[1])
    if under:
        _move(module, under)
    ready = False
    for name in unittest.TestLoader().getTestCaseNames(module.Test):
        if only not in name:
            continue
        attempts = 0
        while True:
            attempts += 1
            failure = _attempt(module, name, limit, ready)
            ready = failure is None
            if failure is None or failure.startswith(TOO_LONG) or attempts == TRIES:
                break
        yield Outcome(
            f"{version} {name}", failure, f"passed at attempt {attempts}" if ready and attempts > 1 else ""
        )


def _move(module: ModuleType, under: str) -> None:
    """Make the clients of a module put this before every topic that they send, and take it off again."""
    client, callbacks = module.mqtt_client.Client, module.Callbacks
    connect, publish, subscribe, unsubscribe = (
        client.connect,
        client.publish,
        client.subscribe,
        client.unsubscribe,
    )
    arrived = callbacks.publishArrived

    def moved(topic: str) -> str:
        if topic.startswith("$share/"):
            group, _, inside = topic.removeprefix("$share/").partition("/")
            return f"$share/{group}/{under}{inside}"
        return (
            under + topic if topic and not topic.startswith("$") else topic
        )  # empty: an alias stands for it

    def connect_moved(self: Any, *given: Any, willTopic: str | None = None, **named: Any) -> Any:
        return connect(self, *given, willTopic=willTopic and moved(willTopic), **named)

    client.connect = connect_moved
    client.publish = lambda self, topic, *given, **named: publish(self, moved(topic), *given, **named)
    client.subscribe = lambda self, topics, *given, **named: subscribe(
        self, [*map(moved, topics)], *given, **named
    )
    client.unsubscribe = lambda self, topics: unsubscribe(self, [*map(moved, topics)])
    callbacks.publishArrived = lambda self, topic, *given, **named: arrived(
        self, topic.removeprefix(under), *given, **named
    )


def _attempt(module: ModuleType, name: str, limit: float, ready: bool) -> str | None:
    """Run one test, with clients made anew after a failure; return what was wrong."""
    said = io.StringIO()
    began = time.monotonic()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), _limited(limit):
            if not ready:
                module.Test.setUpClass()
            if getattr(module.Test(name), name)() is False:  # some tell it so, and do not raise
                return f"it says that it failed: {_last_line(said)}"
    except TooLongError:
        return f"{TOO_LONG} {limit:.0f} s"
    except Exception as error:
        return f"{type(error).__name__} after {time.monotonic() - began:.0f} s: {error}"
    return None


def _last_line(said: io.StringIO) -> str:
    lines = said.getvalue().strip().splitlines()
    return lines[-1] if lines else "without a word"


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def too_long(signum: int, frame: FrameType | None) -> None:
        raise TooLongError

    old = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
