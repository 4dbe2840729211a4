"""The summary of a daemon's status for people; pure. What a starting daemon does not say yet is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hushcast_node.counters import COUNTERS
from hushcast_runtime.wording import counted, listed

Status = Mapping[str, Any]

TROUBLES = (
    "internal_errors",
    "messages_lost_detour",
    "messages_over_share",
    "messages_expired",
    "messages_lost_inbox",
    "publications_given_up",
    "gaps_found",
    "answers_forged",
    "deliveries_refused",
    "roster_mismatches",
    "heads_refused",
    "rosters_held",
    "rosters_late",
    "refused_quota",
)
"""The counters that say that something is wrong, worst first."""


def summary(status: Status) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of each line."""
    yield "ready", "yes" if status.get("ready") else f"no: {waits_for(status)}"
    yield "role", _role(status)
    if "network" in status:
        yield "network", f"{status['network']}, {_transport(status)}"
    if status.get("address"):
        yield "address", status["address"]
    if status.get("tor") is not None:
        yield "tor", _tor(status["tor"])
    if "clock" in status:
        yield "clock", _clock(status["clock"])
    if "proxies" in status:
        yield "proxies", _proxies(status)
    elif "tree" in status:
        yield "brokers", _brokers(status)
        if status["edge"] is not None:
            yield "edge broker", _edge(status["edge"])
        if (community := status.get("community")) is not None:
            epoch = community["epoch"]
            yield "community", f"a member, epoch {epoch}" if epoch is not None else community["missing"]
    else:
        yield "roster", _roster(status)
        if (directories := status.get("directories")) is not None and directories["directories"] > 1:
            yield "directories", _directories(directories)
    if (told := _wire(status)) is not None:
        yield "wire", f"{told}: `hushcast doctor` says more"
    if status.get("role") == "relay":
        yield "relay", _relay(status)
    if (cover := status.get("cover")) is not None:
        yield "cover", _cover(cover)
    if "subscriptions" in status:
        planned = status.get("planned", 0)
        yield "subscriptions", f"{status['subscriptions']}{f', {planned} to begin' if planned else ''}"
    if "outbox" in status:
        yield "outbox", _outbox(status["outbox"])
    if "counters" in status:
        yield from _troubles(status)


def _wire(status: Status) -> str | None:
    """Say which wire there is that this program does not speak, the network's first."""
    wire = status.get("wire")
    if wire is not None:
        lowest, highest = wire["speaks"]
        if not lowest <= wire["now"] <= highest:
            return f"this network speaks wire {wire['now']}, which this program does not"
        if wire["coming"] is not None and not lowest <= wire["coming"] <= highest:
            when = f"from {wire['begins']} on"
            return f"this network speaks wire {wire['coming']} {when}, which this program does not"
    other = status.get("other_wire")
    return None if other is None else f"a peer speaks {other}, which this program does not"


def waits_for(status: Status) -> str:
    """Say why a daemon is not ready."""
    tor = status.get("tor")
    if tor is not None and (waiting := _tor_begins(tor)) is not None:
        return f"waiting for tor, {waiting}"
    if "epoch" not in status:
        return "starting"
    if tor is not None and not tor["connected"]:
        return _tor_away(tor)
    if status.get("cut_off"):
        return str(status["cut_off"])
    if proxies := status.get("proxies"):
        return (
            f"waiting for a proxy for {proxies['silent'][0]} to answer" if proxies["silent"] else "starting"
        )
    if "tree" in status:
        return "starting" if status["tree"] else "waiting for the root of the brokers to answer"
    if status.get("roster") is None:
        return "waiting for a roster from the directory"
    if status.get("registration"):
        return f"not registered: {status['registration']}"
    return "waiting for the directory to reach this relay" if status.get("role") == "relay" else "starting"


def _role(status: Status) -> str:
    role = str(status.get("role", "unknown"))
    return f"{role}, profile {status['profile']}" if "profile" in status else role


def _transport(status: Status) -> str:
    transport = status.get("transport", "unknown")
    return "over Tor" if transport == "tor" else f"over {transport}, without Tor: it protects nobody"


def _tor_begins(tor: Mapping[str, Any]) -> str | None:
    """Say how far the bootstrap is; `None` when it is done, or nobody tells."""
    percent = tor["percent"]
    return f"{percent} % ({tor['summary']})" if percent is not None and percent < 100 else None


def _tor_away(tor: Mapping[str, Any]) -> str:
    if tor["percent"] is None:
        return tor["problem"] or "tor does not answer at its SOCKS port"
    return "the control connection to tor is lost"


def _tor(tor: Mapping[str, Any]) -> str:
    if (beginning := _tor_begins(tor)) is not None:
        return beginning
    if not tor["connected"]:
        return f"away: {_tor_away(tor)}"
    if tor["percent"] is None and not tor["circuits"]:
        return f"a SOCKS port alone: {tor['summary']}"
    parts = ["connected" if tor["circuits"] else "connected, no circuits at the moment"]
    if not tor.get("circuits_apart", True):
        parts.append("circuits end together")
    if tor["services"]:
        services = counted(tor["services"], "onion service")
        parts.append(
            services if tor["published"] >= tor["services"] else f"{services}, {tor['published']} published"
        )
    if tor["clock_skew"]:
        side = "ahead" if tor["clock_skew"] > 0 else "behind"
        parts.append(f"this machine's clock is {counted(abs(tor['clock_skew']), 'second')} {side}")
    return "; ".join(parts)


def _clock(clock: Mapping[str, Any]) -> str:
    if clock["jump"]:
        return f"the machine's jumped by {clock['jump']:+} s: going on by the time before"
    if clock["certain"]:
        return "right"
    return (
        "wrong: it does not agree with the rosters or with Tor" if clock["disputed"] else "not confirmed yet"
    )


def _proxies(status: Status) -> str:
    """Return what a client of a central network knows of its proxies, and what they said of the server."""
    server = {
        True: "the server is there",
        False: "the server is away",
        None: "nothing heard of the server yet",
    }
    roles = (f"{status['proxies'][role]} for {role}" for role in ("publications", "deliveries"))
    return f"{listed(roles)}; {server[status['server']]}"


def _brokers(status: Status) -> str:
    """Return what a client knows of the tree."""
    tree = status["tree"]
    if tree is None:
        return "no tree yet"
    return f"{counted(tree['brokers'], 'broker')}, {tree['edges']} for clients, version {tree['version']}"


def _edge(edge: Mapping[str, Any]) -> str:
    """Return how a client stands at its edge broker."""
    if edge["refusal"] is not None:
        return f"does not serve this daemon: {edge['refusal']}"
    if not edge["asked"]:
        return "not needed: nothing is subscribed"
    return f"{'reached' if edge['reached'] else 'away'}, {edge['routed']} of {edge['asked']} routed"


def _directories(directories: Mapping[str, Any]) -> str:
    if directories["fork"] is not None:
        return f"two rosters for epoch {directories['fork']}: none is taken any more"
    return f"{directories['answered']} of {directories['directories']} answer"


def _roster(status: Status) -> str:
    roster = status.get("roster")
    if roster is None:
        return "none yet"
    relays = counted(roster["relays"], "relay")
    parts = [f"{relays} in {roster['shards']} shards" if "shards" in roster else relays]
    if "epoch" in status:
        age = max(0, status["epoch"] - roster["epoch"])
        parts.append(f"{counted(age, 'epoch')} old" if age else "of this epoch")
    if roster.get("held"):
        parts.append("not acted on: it lacks too many relays")
    return ", ".join(parts)


def _cover(cover: Mapping[str, Any]) -> str:
    """Return how letters go; whether this daemon subscribes under cover stands first."""
    parts = [_read(cover)]
    if cover["problem"] is not None:
        parts.append(f"nothing arrives now: {cover['problem']}")
    elif cover["begins_in"]:
        parts.append(f"letters begin in {_minutes(cover['begins_in'])}")
    missed = f", {cover['missed']:,} missed" if cover["missed"] else ""
    parts.append(f"porter {cover['porter']}, {counted(cover['rounds'], 'round')}{missed}")
    if cover["waiting"]:
        waits = counted(cover["waiting"], "message or part waits", "messages or parts wait")
        parts.append(
            f"{waits}, {cover['held']} held; the first is given up in {_minutes(cover['given_up_in'])}"
        )
    parts.append("messages are held for up to a day" if cover["holds"] else "messages go in the next round")
    parts.append("cover is new, measured in a lab and tried by nobody else: its page says what is open")
    return "; ".join(parts)


def _read(cover: Mapping[str, Any]) -> str:
    """Return whether a daemon under cover subscribes, of its lanes how many are silent, and what it shows."""
    if not cover["reads"]:
        return "on, so this daemon does not subscribe"
    silent = cover["lanes_silent"]
    begun = sum(rounds is not None for rounds in silent)
    parts = [f"on, and this daemon subscribes by {begun} of 3 lanes"]
    if longest := max((rounds for rounds in silent if rounds), default=0):
        parts.append(f"one silent for {counted(longest, 'round')}")
    shown = f"; {cover['presence']}" if cover["presence"] is not None else ""
    return ", ".join(parts) + shown


def _minutes(seconds: float) -> str:
    return counted(max(1, round(seconds / 60)), "minute")


def _relay(status: Status) -> str:
    parts = [counted(status.get("links", 0), "link"), counted(status.get("leases", 0), "lease")]
    if difficulty := status.get("difficulty"):
        parts.append(f"under load: strangers pay stamps of {counted(difficulty, 'bit')}")
    return ", ".join(parts)


def _outbox(waiting: int) -> str:
    return (
        f"{counted(waiting, 'message waits', 'messages wait')}: see `hushcast outbox`" if waiting else "empty"
    )


def _troubles(status: Status) -> Iterator[tuple[str, str]]:
    counters: Mapping[str, int] = status["counters"]
    found = [name for name in TROUBLES if counters.get(name)]
    for name in found:
        yield "trouble", f"{name} {counters[name]:,}: {COUNTERS[name]}"
    if not found and status.get("ready"):  # why it is not ready is trouble enough, and stands above
        yield "trouble", "none counted since the start"
