"""Every kind that goes over links, or is signed, sealed or hashed, is among what the fuzzer mutates."""

from __future__ import annotations

from protocol_layouts import SECTIONS
from targets import TARGETS


def test_every_kind_is_in_the_corpus_of_the_target_that_takes_it() -> None:
    target = TARGETS["kind"]
    taken = {type(target.run(example)) for example in target.corpus}
    assert taken == {kind for kinds in SECTIONS.values() for kind in kinds}
