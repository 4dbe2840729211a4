"""How clients speak of purposes: each form, and what means nothing."""

from __future__ import annotations

import pytest

from hushcast_gateway.purposes import commands
from hushcast_gateway.purposes.commands import (
    MAX_COMMAND,
    ControlCommand,
    PresubscribeCommand,
    RegisterCommand,
    ReleaseCommand,
    ReserveCommand,
    connect_purpose,
    filter_of,
    is_command,
    read_command,
    read_subscription,
)
from hushcast_protocol.purposes.message_purposes import (
    MAX_NAMED,
    MessagePurposes,
    UnreadablePurposes,
    read_terms,
)


def properties(*pairs: tuple[str, str]) -> commands.Properties:
    return {"user_property": list(pairs)}


@pytest.mark.parametrize(
    ("topic", "command"),
    [
        ("!RESERVE/a/HASH{x,y/z|y}", ReserveCommand("a/#", ("x", "y/z"), ("y",))),
        ("!RESERVE/a/PLUS/b{x}", ReserveCommand("a/+/b", ("x",), ())),
        ("!RESERVE/a{}", ReserveCommand("a", (), ())),
        ("!RESERVE/a{|}", ReserveCommand("a", (), ())),
        ("!RESERVE/a{|x}", ReserveCommand("a", (), ("x",))),
        ("!RESERVE/a{!}", ReleaseCommand("a")),
        ("!RESERVE//{x}", ReserveCommand("/", ("x",), ())),
        ("!RESERVE/a{b}/c{x}", ReserveCommand("a{b}/c", ("x",), ())),
        ("!PBAC/PRESUB/me/a/HASH{x}", PresubscribeCommand("me", "a/#", "x")),
        ("!PBAC/PRESUB/me/a{!}", PresubscribeCommand("me", "a", "")),
        ("!PBAC/SET/strict", ControlCommand("SET", "strict", b"p")),
        ("!PBAC/WITHDRAW/a/b", ControlCommand("WITHDRAW", "a/b", b"p")),
        ("!PBAC/CLEAR", ControlCommand("CLEAR", "", b"p")),
        ("!PBAC/CRES/a/HASH", ControlCommand("CRES", "a/#", b"p")),
    ],
)
def test_the_published_topics(topic: str, command: object) -> None:
    assert is_command(topic)
    assert read_command(topic, b"p", {}) == command


def test_wildcards_are_whole_levels() -> None:
    """Fault 6 of the published program: `HASHRATE` became `#RATE`."""
    assert read_command("!RESERVE/HASHRATE/SURPLUS{x}", b"", {}) == ReserveCommand(
        "HASHRATE/SURPLUS", ("x",), ()
    )


@pytest.mark.parametrize(
    "topic",
    [
        "!RESERVE",
        "!RESERVE/a",
        "!RESERVE/{x}",
        "!RESERVE/HASH/a{x}",
        "!RESERVE/a{x",
        "!RESERVE/ax}",
        "!RESERVE/a{x,}",
        "!RESERVE/a{,}",
        "!RESERVE/$share/g/a{x}",
        "!AP/a{x}",
        "!AIP/a{x}",
        "!PBAC/PRESUB/me{x}",
        "!PBAC/WITHDRAW/a/HASH",
        "!PBAC/WITHDRAW",
        "!PBAC/PRESUB//a{x}",
        "!PBAC/PRESUB/me/a{x,y}",
        "!PBAC/PRESUB/me/a{}",
        "!PBAC/CRES/",
        "$DAP/purpose_management",
        "$DAP/other",
        "!RESERVE/" + "a" * MAX_COMMAND + "{x}",
        "!RESERVE/a{" + ",".join(["x"] * (MAX_NAMED + 1)) + "}",
    ],
)
def test_topics_that_mean_nothing(topic: str) -> None:
    assert is_command(topic)
    with pytest.raises(UnreadablePurposes):
        read_command(topic, b"", {})


@pytest.mark.parametrize("topic", ["a", "a/!RESERVE/b", "!RESERVED/a", "!other", "$SYS/a", "$DAPPER/a", ""])
def test_all_else_is_a_message(topic: str) -> None:
    assert not is_command(topic)


def test_reservations_by_properties() -> None:
    topic = "!RESERVE/a/HASH"
    given = properties(("aip", "x,y"), ("pip", "z"), ("aip", "w"), ("else", "kept"))
    assert read_command(topic, b"", given) == ReserveCommand("a/#", ("x", "y", "w"), ("z",))
    assert read_command(topic, b"", properties(("aip", ""))) == ReserveCommand("a/#", (), ())
    assert read_command(topic, b"", properties(("reserve", "remove"))) == ReleaseCommand("a/#")
    for wrong in ([("reserve", "add")], [("reserve", "remove"), ("reserve", "remove")], [("else", "x")]):
        with pytest.raises(UnreadablePurposes):
            read_command(topic, b"", properties(*wrong))
    with pytest.raises(UnreadablePurposes):
        read_command("!RESERVE/a{x}", b"", properties(("aip", "y")))


def test_mqtt_dap() -> None:
    topic = "$DAP/purpose_management"
    assert read_command(topic, b"", properties(("DAP-MP", "x,y:a/#"))) == RegisterCommand("a/#", ("x", "y"))
    for wrong in ("x", "x:", "x:a/#/b"):
        with pytest.raises(UnreadablePurposes):
            read_command(topic, b"", properties(("DAP-MP", wrong)))


def test_subscriptions() -> None:
    assert read_subscription("a/#", {}) == ("a/#", "")
    assert read_subscription("a/#", properties(("ap", "x"))) == ("a/#", "x")
    assert read_subscription("a/#", properties(("DAP-SP", "x"))) == ("a/#", "x")
    assert read_subscription("!AP/a/HASH{x/y}", {}) == ("a/#", "x/y")
    assert read_subscription("$share/g/!AP/a/PLUS{x}", {}) == ("$share/g/a/+", "x")
    assert read_subscription("!AP/$share/g/a/PLUS{x}", {}) == ("$share/g/a/+", "x")
    assert read_subscription("!AP/a{x}", properties(("ap", "x"))) == ("a", "x")
    for wanted, given in (("!AP/a{x}", [("ap", "y")]), ("a", [("ap", "x"), ("DAP-SP", "y")])):
        with pytest.raises(UnreadablePurposes):
            read_subscription(wanted, properties(*given))
    for wanted in ("!AP/a", "!AP/{x}", "!AP/a{}", "!AP/a{x|y}", "$share/g/!AP/a", "!AP/$share//a{x}"):
        with pytest.raises(UnreadablePurposes):
            read_subscription(wanted, {})


def test_unsubscribing() -> None:
    assert filter_of("!AP/a/HASH{x}") == filter_of("a/#") == "a/#"
    assert filter_of("$share/g/!AP/a{x}") == "$share/g/a"
    assert filter_of("!AP/a") == "!AP/a"


def test_connecting() -> None:
    assert connect_purpose(properties(("ap", "x"))) == "x"
    assert connect_purpose({}) == ""


def test_terms_of_a_message() -> None:
    assert read_terms(()) is None
    assert read_terms([("else", "x")]) is None
    assert read_terms([("aip", "x"), ("pip", "y,z")]) == MessagePurposes(("x",), ("y", "z"))
    assert read_terms([("pip", "y")]) == MessagePurposes(None, ("y",))
    assert read_terms([("aip", "")]) == MessagePurposes((), ())
    assert read_terms([("DAP-MP", "x")]) == MessagePurposes(("x",), ())
    with pytest.raises(UnreadablePurposes):
        read_terms([("reserve", "remove")])
