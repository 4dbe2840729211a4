"""The picture of what subscriptions cost is drawn from its rows, each of which has a source."""

import csv
import xml.etree.ElementTree as ET

import pytest

from benchmarks.shard_costs import FIGURES, ROWS, curve, draw, read
from hushcast_protocol.base.shard_count import SHARD_SIZE, bits_for

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.slow
def test_the_rows_that_are_kept_are_read_and_drawn(tmp_path):
    rows = read()
    assert {row.figure for row in rows} == set(FIGURES)
    assert {row.kind for row in rows} == {"measured", "simulated"}
    file = tmp_path / "costs.svg"
    draw(rows, file)
    root = ET.fromstring(file.read_text())
    assert root.tag == f"{SVG}svg"
    panels = [group for group in root.iter(f"{SVG}g") if group.get("id", "").startswith("axes_")]
    assert len(panels) == len(FIGURES)
    before = file.read_bytes()
    draw(rows, file)
    assert file.read_bytes() == before
    draw(rows[1:], file)
    assert file.read_bytes() != before


@pytest.mark.parametrize(
    "change",
    [{"figure": "beauty"}, {"kind": "guessed"}, {"source": ""}, {"value": "0"}, {"relays": "many"}],
    ids=lambda change: next(iter(change)),
)
def test_a_row_that_no_panel_can_show_is_an_error(tmp_path, change):
    with ROWS.open(newline="") as lines:
        first = next(csv.DictReader(lines))
    file = tmp_path / "rows.csv"
    with file.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, first.keys())
        writer.writeheader()
        writer.writerow(first | change)
    with pytest.raises(ValueError):
        read(file)


@pytest.mark.parametrize("figure", FIGURES)
def test_with_shards_no_figure_grows_with_the_network_and_without_each_does(figure):
    cut = dict(zip(*curve(figure, SHARD_SIZE), strict=True))
    whole = dict(zip(*curve(figure, 0), strict=True))
    assert (min(cut), max(cut)) == (min(whole), max(whole)) == (100, 1_000_000)
    uncut = [relays for relays in cut if not bits_for(relays)]
    assert max(uncut) == 707
    assert all(cut[relays] == whole[relays] for relays in uncut if relays in whole)
    assert max(cut.values()) <= 1.3 * cut[707]
    assert cut[708] < 0.6 * cut[707]
    assert whole[1_000_000] > 1000 * cut[1_000_000]


def test_what_ran_is_near_what_is_calculated():
    for row in read():
        if row.shard_size != 50:
            bits = bits_for(row.relays, row.shard_size) if row.shard_size else 0
            assert row.value == pytest.approx(FIGURES[row.figure][1](row.relays, bits), rel=0.25), row
