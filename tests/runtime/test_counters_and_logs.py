"""Counters are declared, and neither they nor the logs tell of peers, topics, keys or addresses."""

from __future__ import annotations

import ast
import functools
import importlib
import json
import logging
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import stem.util.log

from hushcast_directory.server.counters import DIRECTORY_COUNTERS
from hushcast_gateway.counters import OWN_COUNTERS, PURPOSE_COUNTERS
from hushcast_node.counters import COUNTERS
from hushcast_protocol.base.addresses import onion_address
from hushcast_protocol.base.crypto.secrets import FilterKey, LeaseSecret, ParcelKey, Seed, TopicKey
from hushcast_protocol.content.topics import parse_topic
from hushcast_runtime.counters import COMMON_COUNTERS, Counters
from hushcast_runtime.logs import QUIET_FOR, configure_logs, log

ROOT = Path(__file__).parents[2]
PACKAGES = ["protocol", "runtime", "directory", "client", "local"]
PACKAGES += ["overlay", "central", "brokers", "node", "gateway", "located"]


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


@functools.cache  # to read all takes two seconds
def all_calls() -> list[tuple[Path, str, ast.Call]]:
    """Every `….method(…)` of the product, with the method's name."""
    return [
        (path, node.func.attr, node)
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]


def calls(method: str) -> Iterator[tuple[Path, ast.Call]]:
    yield from ((path, call) for path, name, call in all_calls() if name == method)


# Counters


def test_counters_start_at_nothing_and_count() -> None:
    counters = Counters(COUNTERS)
    assert set(counters.as_dict().values()) == {0}
    counters.add("messages_sent")
    counters.add("messages_sent", 3)
    assert counters["messages_sent"] == 4
    assert counters.as_dict() == dict.fromkeys(COUNTERS, 0) | {"messages_sent": 4}
    counters.as_dict()["messages_sent"] = 0
    assert counters["messages_sent"] == 4


def test_a_counter_that_is_not_declared_is_an_error() -> None:
    for name in ("messages", "messages_sent_to_alice", ""):
        with pytest.raises(KeyError):
            Counters(COUNTERS).add(name)
    with pytest.raises(KeyError):
        Counters(COUNTERS)["messages"]


def test_every_counter_has_a_name_and_a_meaning() -> None:
    for name, meaning in [*COUNTERS.items(), *DIRECTORY_COUNTERS.items()]:
        assert re.fullmatch(r"[a-z_]+", name)
        assert meaning
        assert len(set(COUNTERS.values())) == len(COUNTERS)


HANDED = re.compile(r'counters\.add, "(\w+)"')
"""Counting that is handed to somebody who calls it with what stands behind it."""


def counted() -> set[str]:
    """The names that the product counts under; a name that is computed is looked up by its beginning."""
    names: set[str] = set()
    for path, call in calls("add"):
        target = ast.unparse(call.func)
        if "counters" not in target:
            continue
        (first, *_) = call.args
        texts = [node.value for node in ast.walk(first) if isinstance(node, ast.Constant)]
        names |= {str(text) for text in texts} or {f"{path.name}:{first.lineno}"}
    return names | {name for path in sources() for name in HANDED.findall(path.read_text())}


def test_what_is_counted_is_declared_and_what_is_declared_is_counted() -> None:
    """Computed names (`refused_…`, and those by outcome of a decision) are looked at where they are made."""
    assert counted() >= DIRECTORY_COUNTERS.keys()
    assert counted() >= OWN_COUNTERS.keys() - COMMON_COUNTERS.keys()
    assert counted() >= PURPOSE_COUNTERS.keys()
    literal = {name for name in counted() if name in COUNTERS}
    outcomes = {"messages_duplicate", "messages_looped", "messages_unrouted"}
    text = "".join(path.read_text() for path in sources())
    for name in COUNTERS.keys() - literal:
        assert name in outcomes or name.startswith("refused_"), f"{name} is never counted"
        assert f'"{name}"' in text.replace('f"refused_', '"refused_')


# Logs


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    logging.getLogger("trio.serve_listeners").handlers = []
    logging.getLogger("trio.serve_listeners").propagate = True
    logging.getLogger("stem").disabled = False


def test_lines_are_json_objects(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", as_json=True)
    log.info("something happened", relays=3)
    log.debug("too small to tell")
    (line,) = capsys.readouterr().err.splitlines()
    record = json.loads(line)
    assert (record["event"], record["relays"], record["level"]) == ("something happened", 3, "info")
    assert record["timestamp"].endswith("Z")


@pytest.mark.parametrize(("level", "lines"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_lines_below_the_level_are_not_told(
    capsys: pytest.CaptureFixture[str], level: str, lines: int
) -> None:
    configure_logs(level, as_json=False)  # type: ignore[arg-type]
    for method in (log.debug, log.info, log.warning, log.error):
        method("x")
    assert len(capsys.readouterr().err.splitlines()) == lines


@pytest.mark.parametrize("as_json", [True, False])
def test_secrets_hide_themselves(capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    configure_logs("debug", as_json)
    value = b"0123456789abcdef0123456789abcdef"
    for kind in (Seed, TopicKey, ParcelKey, FilterKey, LeaseSecret):
        log.info("a secret", it=kind(value))
    log.info("a topic", it=parse_topic("secret topic"))
    written = capsys.readouterr().err
    assert "0123456789abcdef" not in written
    assert value.hex() not in written
    assert "secret topic" not in written


@pytest.mark.parametrize("as_json", [True, False])
def test_an_error_of_ours_is_told_without_the_values_it_met(
    capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    """It names its kind and lines of the program; its text and variables may be payloads and addresses."""
    configure_logs("info", as_json)

    def meets_an_error(payload: bytes, address: str) -> None:
        try:
            raise ExceptionGroup(address, [ValueError(payload)])
        except ExceptionGroup:
            {}[address]

    payload = b" ".join((b"secret", b"payload"))
    address = onion_address(Seed(bytes(32)).public())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            meets_an_error(payload, address)
        except KeyError:
            log.exception("met an error of this program")
    written = capsys.readouterr().err
    assert "met an error of this program" in written
    assert "meets_an_error" in written
    for kind in ("ExceptionGroup", "ValueError", "KeyError"):
        assert kind in written
    assert "secret payload" not in written
    assert address.split(".")[0] not in written


def test_errors_that_come_from_each_other_are_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", False)
    one, other = KeyError(), ValueError()
    one.__cause__, other.__cause__ = other, one
    try:
        raise one
    except KeyError:
        log.exception("met an error of this program")
    written = capsys.readouterr().err
    assert (written.count("KeyError\n"), written.count("ValueError\n")) == (1, 1)


def test_a_line_that_cannot_be_written_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full that a daemon's lines go to, its terminal was closed, or who read them has ended."""
    is_said = False
    with suppress(OSError), Path("/dev/full").open("w") as full:  # what is left is written as it is closed
        monkeypatch.setattr(sys, "stderr", full)
        log.error("the disk of the log is full")
        is_said = True
    assert is_said


def test_stem_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    """It logs addresses of services at low levels, and sets its level as it is loaded."""
    configure_logs("debug", as_json=False)
    importlib.reload(stem.util.log)
    assert not logging.getLogger("stem").isEnabledFor(logging.ERROR)


def test_whoever_fills_the_table_of_files_does_not_fill_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    """trio tells of each try, ten a second, with a traceback."""
    configure_logs("info", as_json=False)
    for _ in range(QUIET_FOR):
        logging.getLogger("trio.serve_listeners").error("accept returned EMFILE", exc_info=True)
    (line,) = capsys.readouterr().err.splitlines()
    assert "too many files are open" in line
    logging.getLogger("trio.serve_listeners").error("accept returned EMFILE", exc_info=True)
    assert len(capsys.readouterr().err.splitlines()) == 1


MAY_BE_LOGGED = {
    *("reason", "again_in", "epoch", "relays", "role", "percent", "phase", "error"),
    "line",  # of a configuration: it names a program of ours
    *("exc_info", "state", "summary", "level", "pid", "count", "seconds", "before", "meaning"),
    "place",  # in the program
    "bits",  # of the work that all relays of a network show
    "kind",  # of damaged records; a word of the program
    *("forbidden", "full", "unknown", "unsupported", "purposes"),  # how many subscriptions, of all users
    *("retained", "taken_over", "too_large", "unspoken"),  # how many clients and messages were refused so
    "settings",  # their keys, which are the program's; no values, and no names of users or topics
}


def test_only_harmless_fields_are_ever_logged() -> None:
    """Every field that any line of the daemons carries is on a list that somebody looked at."""
    found = set()
    for method in ("debug", "info", "warning", "error", "exception", "critical"):
        for path, call in calls(method):
            if not ast.unparse(call.func).startswith(("log.", "_log.")):
                continue
            assert call.args, path
            assert isinstance(call.args[0], ast.Constant), f"{path}: a line's text is fixed"
            found |= {keyword.arg or "**" for keyword in call.keywords}
    assert found <= MAY_BE_LOGGED, found - MAY_BE_LOGGED
