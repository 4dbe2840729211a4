"""What is made of measurements: means, lines, crossings, words, pictures and files."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from hushcast_testnet.compare.comparison_page import files
from hushcast_testnet.compare.curves import (
    FIGURES,
    SYSTEMS,
    CurvePoint,
    Measurement,
    crossing,
    curve,
    fit,
    tabulated,
)
from hushcast_testnet.compare.line_chart import figure
from hushcast_testnet.compare.phrases import said
from hushcast_testnet.compare.tor_work import measured

LOAD = {"most": "relay-7", "seconds": 2.5, "mean": 0.4}
NETWORKS = {
    f"{system}, {profile}, {count} subscribers, seed 1": {"processor": LOAD, "tor": LOAD}
    for system in SYSTEMS
    for profile in ("paper", "hardened")
    for count in (100, 500)
}
MODEL: dict[str, Any] = {
    "settings": {"nodes": 500, "seeds": 2, "links": "warm", "distance": 0, "root": None},
    "tor": measured().describe(),
    "bits_a_second": 20e6,
    "networks": NETWORKS,
}


def places(*points: tuple[int, float]) -> tuple[CurvePoint, ...]:
    return tuple(CurvePoint(x, seconds, seconds, seconds) for x, seconds in points)


def measurements() -> list[Measurement]:
    """Of central, 10 ms for each; of the trees two seconds, and 2 ms for each."""
    return [
        Measurement(profile, number, system, x, seed, (x * 0.01 if system == "central" else 2 + x * 0.002))
        for profile in ("paper", "hardened")
        for number in FIGURES
        for system in SYSTEMS
        for x in (100, 200, 500)
        for seed in (1, 2)
    ]


def test_a_curve_is_of_means_and_spreads_over_seeds_not_over_repeats() -> None:
    given = [
        Measurement("paper", 4, "tree", x, seed, seconds)
        for x, seed, seconds in [(9, 1, 1.0), (9, 1, 3.0), (9, 2, 4.0), (5, 1, 0.5)]
    ]
    assert curve(given, "paper", 4, "tree") == (CurvePoint(5, 0.5, 0.5, 0.5), CurvePoint(9, 3.0, 2.0, 4.0))
    assert curve(given, "paper", 3, "tree") == ()


def test_the_line_of_least_squares() -> None:
    exact = fit(places((1, 3.0), (2, 5.0), (4, 9.0)))
    assert exact is not None
    assert (exact.start, exact.slope, exact.r2) == pytest.approx((1.0, 2.0, 1.0))
    bent = fit(places((0, 0.0), (1, 4.0), (2, 0.0)))
    assert bent is not None
    assert (bent.slope, bent.r2) == pytest.approx((0.0, 0.0))
    level = fit(places((1, 3.0), (2, 3.0), (4, 3.0)))
    assert level is not None
    assert level.r2 == 1.0
    assert fit(places((1, 1.0), (2, 2.0))) is None


def test_lines_cross_where_one_comes_above_for_good() -> None:
    low, high = places((0, 0.0), (10, 10.0)), places((0, 4.0), (10, 6.0))
    assert crossing(low, high) == pytest.approx(5.0)
    assert crossing(high, low) is None
    assert (
        crossing(places((0, 0.0), (1, 2.0), (2, 0.0), (3, 2.0)), places(*((x, 1.0) for x in range(4)))) == 2.5
    )
    assert crossing((), high) is None
    assert crossing(places((0, 9.0), (10, 9.0)), high) is None


def test_the_table_has_every_figure_of_every_profile() -> None:
    table = tabulated(measurements())
    assert list(table) == ["paper", "hardened"]
    for profile in table.values():
        assert list(profile) == ["figure3", "figure4", "figure5"]
        assert profile["figure3"]["central"] == [[100, 1.0], [200, 2.0], [500, 5.0]]
        assert profile["figure5"]["tree"] == [[100, 2.2], [200, 2.4], [500, 3.0]]


def test_words_say_what_was_measured() -> None:
    three = " ".join(said(measurements(), "paper", 3, NETWORKS))
    assert "The central server: 1.00 s at 100 subscribers, 5.00 s at 500; a line (R² 1.000)" in three
    assert "10.00 ms more for each" in three
    cross = "The lines of the central server and the trees cross at about 250 subscribers"
    assert f"{cross}: beyond, the trees take less time." in three
    assert "With 500 subscribers, the busiest processor of the spanning trees (relay-7) works 2.50 s" in three
    five = " ".join(said(measurements(), "paper", 5, NETWORKS))
    assert "Each more publisher costs 5.0 times as much with the central server." in five
    assert said([], "paper", 3, NETWORKS) == [
        "The central server: not measured.",
        "The spanning trees: not measured.",
    ]


def test_words_say_what_was_measured_of_one_and_that_the_other_was_not() -> None:
    falling = [Measurement("paper", 5, "central", x, 1, 2.0 - x / 100) for x in (1, 2, 3)]
    assert said(falling, "paper", 5, {}) == [
        "The central server: 1.99 s at 1 publisher, 1.97 s at 3; "
        "a line (R² 1.000) of 10.00 ms less for each.",
        "The spanning trees: not measured.",
    ]


def test_words_say_that_lines_do_not_cross() -> None:
    apart = [
        Measurement("paper", 3, system, x, 1, x * (0.01 if system == "central" else 0.02))
        for system in SYSTEMS
        for x in (1, 2, 3)
    ]
    text = " ".join(said(apart, "paper", 3, {}))
    assert "do not cross: the central server stays ahead throughout, 2.0 times as fast at 3" in text


def test_brokers_have_no_profiles_and_stand_beside_the_others_under_each() -> None:
    given = [*measurements(), *(Measurement("clear", 3, "brokers", x, 1, x / 1000) for x in (100, 200, 500))]
    loads = {**NETWORKS, "brokers, clear, 500 subscribers, seed 1": NETWORKS[next(iter(NETWORKS))]}
    table = tabulated(given)
    assert list(table) == ["paper", "hardened"]
    for profile, figures in table.items():
        assert figures["figure3"]["brokers"] == [[100, 0.1], [200, 0.2], [500, 0.5]]
        assert "brokers" not in figures["figure4"]
        text = " ".join(said(given, profile, 3, loads))
        assert "The brokers: 0.10 s at 100 subscribers, 0.50 s at 500; a line (R² 1.000) of 1.00 ms" in text
        assert "the busiest processor of the brokers" in text
    made = files(given, MODEL)
    assert made["figure3-paper.svg"].count("<polyline") == 3
    assert made["figure4-paper.svg"].count("<polyline") == 2
    ET.fromstring(made["figure3-hardened.svg"])


def test_a_picture_has_axes_both_lines_and_the_spread() -> None:
    curves = {
        "central": (CurvePoint(100, 1.0, 0.5, 1.5), CurvePoint(500, 5.0, 5.0, 5.0)),
        "tree": places((100, 2.0), (500, 2.5)),
    }
    text = figure("Figure 3", "Number of subscribers", curves)
    root = ET.fromstring(text)
    assert root.tag.endswith("svg")
    words = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {"Number of subscribers", "Time (s)", "Central server", "Spanning tree"} <= set(words)
    assert {"0", "500"} <= set(words)
    assert text.count("<polyline") == 2
    assert text.count("h6M") == 1  # one place has a spread
    coordinates = [
        float(number) for number in re.findall(r'points="([^"]*)"', text)[0].replace(",", " ").split()
    ]
    assert all(0 <= number <= 520 for number in coordinates)


def test_a_picture_of_nothing_is_one_of_axes() -> None:
    assert ET.fromstring(figure("Figure 3", "x", {"central": (), "tree": ()})) is not None


def test_the_page_has_all_figures_what_was_assumed_and_what_they_say() -> None:
    made = files(measurements(), MODEL)
    drawn = [f"figure{number}-{profile}.svg" for number in FIGURES for profile in ("paper", "hardened")]
    assert sorted(made) == sorted([*drawn, "index.html"])
    page = made["index.html"]
    assert page.count("<svg") == len(drawn)
    for words in ("500 participants, 2 seeds", "What was assumed", "20 Mbit/s", "trees cross at about 250"):
        assert words in page
    assert page.count("<figcaption>Profile hardened; links open</figcaption>") == len(FIGURES)
    conditions = {"links": "cold", "distance": 40}
    other = files(measurements(), MODEL | {"settings": {**MODEL["settings"], **conditions}})
    said_of = "; links that nobody has opened, tors 40 ms apart"
    assert f"Profile hardened{said_of}</figcaption>" in other["index.html"]
    assert f"Figure 3, hardened{said_of}" in other["figure3-hardened.svg"]
    assert f"Figure 3, paper{said_of}" in other["figure3-paper.svg"]
    assert "a box at a relay" in other["index.html"]
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")  # it needs nothing from elsewhere
