"""The map of a batch: everything on it stands where it is, and red is what does not hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

from hushcast_cli.main import run

WORDS = ["shoe", "discount", "fish", "tram", "boot", "<b>"]


class Files:
    """A batch of so many messages around a place, four subscriptions, and their answers."""

    def __init__(self, folder: Path, messages: int, east: float) -> None:
        random = Random(1)
        self.folder = folder

        def line(at: int) -> dict[str, object]:
            here = 60 + random.gauss(0, 0.1), (east + random.gauss(0, 0.2) + 180) % 360 - 180
            return {"id": f"m{at}", "lat": here[0], "lon": here[1]}

        with (folder / "messages.jsonl").open("w") as file:
            for at in range(messages):
                file.write(json.dumps(line(at) | {"text": " ".join(random.sample(WORDS, 2))}) + "\n")
        with (folder / "subs.jsonl").open("w") as file:
            for at in range(4):
                taste = {"keywords": random.sample(WORDS[:5], 2), "alpha": 0.5, "threshold": 0.7}
                file.write(json.dumps(line(at) | taste | {"id": f"s{at}"}) + "\n")
        self.do("key", "new", folder / "key")
        self.do("batch", "--key", folder / "key", "--in", folder / "messages.jsonl", "--out", folder / "b")
        self.do("match", "--batch", folder / "b", *self.asked, "--out", folder / "a")

    @property
    def asked(self) -> tuple[object, ...]:
        return "--subscriptions", self.folder / "subs.jsonl"

    def do(self, *arguments: object) -> None:
        assert run(["located", *map(str, arguments)]) == 0

    def page(self) -> str:
        out = self.folder / "map.html"
        self.do(
            "map", "--batch", self.folder / "b", *self.asked, "--answers", self.folder / "a", "--out", out
        )
        return out.read_text()


@pytest.mark.parametrize("east", [24.9, 179.99])
def test_a_map_of_answers_that_hold(tmp_path: Path, east: float) -> None:
    page = Files(tmp_path, 60, east).page()
    svg = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    wide, high = map(float, svg.attrib["viewBox"].split()[2:])
    dots = [one for one in svg.iter() if one.tag.endswith("circle")]
    assert len(dots) == 60
    across = [float(one.attrib["cx"]) for one in dots]
    assert 0 < min(across) < wide / 4 < 3 * wide / 4 < max(across) < wide, "also over the seam"
    assert all(0 < float(one.attrib["cy"]) < high for one in dots)
    assert "4 answers hold" in page
    assert 'class="wrong"' not in page
    assert "&lt;b&gt;" not in page or "<b>" not in page.replace('<b style="color:#d1495b">', "")
    assert "http" not in page.replace("http://www.w3.org/2000/svg", ""), "it needs no other file"


def test_what_does_not_hold_is_red_with_its_name(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    files = Files(tmp_path, 30, 24.9)
    answers = tmp_path / "a"
    (answers / "s0.answer").unlink()
    (answers / "s1.answer").write_bytes((answers / "s2.answer").read_bytes())
    page = files.page()
    assert "2 of 4 answers do not hold" in capfd.readouterr().err
    assert page.count('<g class="wrong">') == page.count('<tr class="wrong">') == 2
    assert ">s0: no answer</text>" in page
    assert ">s1: other subscription</text>" in page
    files.do("batch", "--key", tmp_path / "key", "--in", tmp_path / "messages.jsonl", "--out", tmp_path / "b")
    assert page.count("old root") == 0
    assert files.page().count(": old root</text>") == 2


@pytest.mark.slow
def test_two_thousand_messages_are_a_page_that_a_browser_shows_at_once(tmp_path: Path) -> None:
    page = Files(tmp_path, 2000, 24.9).page()
    assert len(re.findall("<circle", page)) == 2000
    assert len(page) < 1_000_000


def test_a_batch_of_nothing(tmp_path: Path) -> None:
    assert "0 messages" in Files(tmp_path, 0, 24.9).page()
