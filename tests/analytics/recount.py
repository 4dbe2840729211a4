"""The network's figures counted again from trace files, in plain Python: nothing shared with the jobs."""

import json
import math
from collections import Counter, defaultdict

SCHEMA = 4


def lines(directory, kind):
    for file in sorted(directory.rglob(f"*.{kind}.jsonl")):
        for line in file.read_text().splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if record["schema"] == SCHEMA:
                yield record


def recount(directory):
    seen, told = list(lines(directory, "observations")), list(lines(directory, "truth"))
    return {
        **_deliveries(seen, told),
        **_lengths(seen, told),
        **_relays(seen, told),
    }


def _deliveries(seen, told):
    published = [one for one in told if one["kind"] == "published" and one["origins"]]
    until = {(one["topic"], one["mailbox"]): one["time"] for one in told if one["kind"] == "unsubscribed"}
    subscribed = [one for one in told if one["kind"] == "subscribed"]
    trees = [one for one in told if one["kind"] == "installed"]
    conditional = {one["mailbox"] for one in trees if set(one["tokens"]) != {one["tokens"][0]}}
    at = {}
    for one in told:
        if one["kind"] == "delivered":
            key = one["node"], one["message"]
            at[key] = min(one["time"], at.get(key, math.inf))
    asked = {}
    for message in published:
        began = message["time"] - message["took"]
        for one in subscribed:
            whole = one["mailbox"] not in conditional
            if (
                whole
                and one["topic"] == message["topic"]
                and one["time"] <= began <= until.get((one["topic"], one["mailbox"]), began)
            ):
                asked[one["node"], message["message"]] = began
    latencies = sorted(at[key] - began for key, began in asked.items() if key in at)
    kept = sum(one["kind"] == "delivered" for one in told)
    messages = _messages(told)
    arrivals = sum(one["kind"] == "delivered" and one["message"] in messages for one in seen)
    return {
        "publications": len(published),
        "subscriptions": len(subscribed),
        "conditional": len(conditional),
        "pairs": len(asked),
        "delivered": len(latencies),
        "completeness": len(latencies) / len(asked),
        "arrivals": arrivals,
        "excess": (arrivals - kept) / arrivals,
        "latencies": {q: latencies[math.ceil(q * len(latencies)) - 1] for q in (0.5, 0.9, 0.99, 1.0)},
    }


def _messages(told):
    return {one["message"] for one in told if one["kind"] in ("published", "delivered")}  # no probes


def _lengths(seen, told):
    until = {one["mailbox"]: one["time"] for one in told if one["kind"] == "unsubscribed"}
    messages, trees = _messages(told), defaultdict(list)
    for one in told:
        if one["kind"] == "installed":
            trees[one["tokens"][0]].append(one)
    lengths = Counter()
    for drop in seen:
        if drop["kind"] != "drop" or drop["message"] not in messages:
            continue
        latest = {}
        for tree in trees[drop["tokens"][0]]:
            mailbox = tree["mailbox"]
            known = latest.get(mailbox, tree)
            over = tree["time"] > drop["time"] or drop["time"] >= until.get(mailbox, math.inf)
            if drop["node"] in tree["tree"] and not over and known["time"] <= tree["time"]:
                latest[mailbox] = tree
        for tree in latest.values():
            length, at = 1, tree["tree"][drop["node"]]
            while at is not None:
                length, at = length + 1, tree["tree"][at]
            lengths[length] += 1
    return {"lengths": dict(lengths), "ideal": sum(length * count for length, count in lengths.items())}


def _relays(seen, told):
    relays = {one["node"] for one in told if one["kind"] == "started" and one["role"] == "relay"}
    sent, links = Counter(dict.fromkeys(relays, 0)), defaultdict(set)
    leases, ended, probes, messages = {}, {}, 0, _messages(told)
    for one in sorted(seen, key=lambda one: one["time"]):
        node = one["node"]
        if one["kind"] == "sent":
            sent[node] += 1
            probes += one["message"] not in messages
        if one["kind"] in ("sent", "received", "drop") and (peer := one.get("previous") or one.get("next")):
            links[node, one["epoch"]].add(peer)
        if one["kind"] == "installed":
            begin = leases.get((node, one["lease"]), (one["epoch"],))[0]
            leases[node, one["lease"]] = begin, one["elements"], one["day"]
        if one["kind"] == "withdrawn":
            ended.setdefault((node, one["lease"]), one["epoch"])
    elements = defaultdict(Counter)
    for (node, lease), (begin, count, day) in leases.items():
        last = min((day + 1) * 24, ended.get((node, lease), math.inf))
        for epoch in range(begin, int(last) + 1):
            elements[node][epoch] += count
    most = [max(elements[node].values(), default=0) for node in relays]
    most_links = [
        max((len(peers) for (at, _), peers in links.items() if at == node), default=0) for node in relays
    ]
    ordered, count = sorted(sent.values()), len(relays)
    return {
        "transmissions": sum(ordered) - probes,
        "probes": probes,
        "relays": count,
        "gini": sum((2 * i - count - 1) * x for i, x in enumerate(ordered, 1)) / (count * sum(ordered)),
        "mean_sent": sum(ordered) / count,
        "mean_links": sum(most_links) / count,
        "most_links": max(most_links),
        "mean_elements": sum(most) / count,
        "most_elements": max(most),
    }
