"""The page of a comparison: the paper's three figures under both profiles, what was assumed, what they say.

Pure: text out of measurements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from hushcast_runtime.web_page import document
from hushcast_runtime.wording import counted
from hushcast_testnet.compare.curves import FIGURES, STEADY, Measurement, curves_of, profiles_of
from hushcast_testnet.compare.line_chart import figure
from hushcast_testnet.compare.phrases import said

TITLES = {
    3: ("Subscription cost", "Number of subscribers"),
    4: ("Publication cost", "Number of subscribers"),
    5: ("Publication cost in active system", "Number of publishers"),
}
_ABOUT = {
    3: "All subscribe at the same moment; the time is until the last one's request is complete. In the paper"
    " the central server's line is straight, and the trees, slower for few, are faster for many.",
    4: "One subscriber publishes a small text; the time is until the last subscriber has reported it. In the"
    " paper both lines are straight, and the trees' is a constant above.",
    5: "So many publish at the same moment, while {steady} subscribe; the time is until one that publishes"
    " and subscribes has its own message, the mean of all such. In the paper the trees' line is flatter.",
}
_CAPTIONS = {"paper": "Profile paper: as published", "hardened": "Profile hardened"}
_WARM = (
    "Relays have theirs to each other; participants have a spare mailbox, where trees lead to mailboxes, or"
    " something else that they subscribe to at their edge broker."
)
_COLD = (
    "Nobody has subscribed before, in any figure's network: relays open their links as they need them, and"
    " participants have no spare mailbox and no link to an edge broker."
)
_STYLE = """
li { margin: .2rem 0 }
td:first-child, th:first-child { text-align: left }
"""


def files(measurements: Sequence[Measurement], model: Mapping[str, Any]) -> dict[str, str]:
    """Return the files by their names: each figure under each profile as SVG, and `index.html`."""
    drawn: dict[str, str] = {}
    parts = ["<h1>A central server, spanning trees and brokers, side by side</h1>", _intro(model)]
    profiles = profiles_of(measurements)
    for number in FIGURES:
        title, x_label = TITLES[number]
        about = _ABOUT[number].format(steady=min(STEADY, model["settings"]["nodes"]))
        parts.append(f"<h2>Figure {number}: {title}</h2><p>{about}</p>")
        parts.append('<div class="pair">')
        for profile in profiles:
            curves = curves_of(measurements, profile, number)
            condition = _condition(model["settings"])
            name = f"figure{number}-{profile}.svg"
            drawn[name] = figure(f"Figure {number}, {profile}{condition}", x_label, curves)
            words = "".join(
                f"<li>{escape(each)}</li>" for each in said(measurements, profile, number, model["networks"])
            )
            parts.append(
                f"<figure>{drawn[name]}<figcaption>{_CAPTIONS[profile]}{condition}</figcaption><ul>{words}</ul></figure>"
            )
        parts.append("</div>")
    parts.append(_assumed(model))
    drawn["index.html"] = document("Hushcast: figures 3, 4 and 5", parts, _STYLE)
    return drawn


def _condition(settings: Mapping[str, Any]) -> str:
    """Return what a caption adds: how used the network is, and what else was asked for."""
    said = ["links open" if settings["links"] == "warm" else "links that nobody has opened"]
    if settings["distance"]:
        said.append(f"tors {settings['distance']} ms apart")
    return "; " + ", ".join(said)


def _intro(model: Mapping[str, Any]) -> str:
    settings = model["settings"]
    nodes, seeds = counted(settings["nodes"], "participant"), counted(settings["seeds"], "seed")
    return (
        "<p>Figures 3, 4 and 5 of Vo and Bellovin, <i>Anonymous Publish-Subscribe Systems</i>, §5, measured"
        f" with the daemons of this program: {nodes}, {seeds}."
        " Marks are means over seeds, whiskers the least and the largest of them.</p>"
    )


def _assumed(model: Mapping[str, Any]) -> str:
    tor, settings = model["tor"], model["settings"]
    apart = settings["distance"]
    points = [
        "Every daemon has a machine of its own: one processor for the daemon, one for its tor, a line of"
        f" {model['bits_a_second'] / 1e6:g} Mbit/s up and as much down. All are queues: what comes while they"
        " are busy waits.",
        "What a daemon's work takes is measured while it does it, on the processor that this ran on: CPU time"
        " of each step of each of its tasks. Work that the simulation does once for all, such as deriving a"
        " topic's key, is laid upon each that would have done it. The garbage collector is left out, for it"
        " walks over the objects of all daemons. Records are kept in memory: no daemon waits for a disk.",
        "The central system is one server and two proxies, one for publications and one for deliveries. All"
        " participants of the trees are relays, and of them some subscribe; under hardened each to"
        " a box at a relay. Brokers are a root, edge brokers of up to 25 participants, an inner broker for"
        " each five of them; they have no profiles: their line is the same under both. Proxies have their"
        " links to the server, and brokers those to each other."
        f" {_WARM if settings['links'] == 'warm' else _COLD}"
        " There are no probes, and no stamps are asked for. Topics are open ones.",
        f"Through Tor, as measured on a private Tor on one machine: an onion service is found"
        f" {tor['publish_median']:.2f} s after it began, a connection to one takes"
        f" {1000 * tor['connect_median']:.0f} ms, a way over it {1000 * tor['one_way_median']:.1f} ms"
        " (medians; each is drawn from all that were measured"
        f"{f', with tors apart, made to fit {apart} ms' if apart else ''})."
        " Between relays around the world all of them are longer.",
        f"A tor works {1000 * tor['open_cpu']:.2f} ms to open a connection to an onion service, and"
        f" {1e6 * tor['open_cpu_for_each_circuit_held']:.1f} µs more for each it has opened and holds;"
        f" {1000 * tor['accept_cpu']:.2f} ms to accept one; {1000 * tor['publish_cpu']:.0f} ms to publish a"
        f" service; {1e6 * tor['send_cpu_a_write']:.0f} µs and {1e6 * tor['send_cpu_a_cell']:.1f} µs a cell"
        f" to send what was written at once, {1e6 * tor['receive_cpu_a_write']:.0f} µs and"
        f" {1e6 * tor['receive_cpu_a_cell']:.1f} µs to receive it.",
    ]
    return "<h2>What was assumed</h2><ul>" + "".join(f"<li>{point}</li>" for point in points) + "</ul>"
