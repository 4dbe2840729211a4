"""A word means one thing in the whole product: names of public classes, and of files."""

from __future__ import annotations

import ast
import re
from collections import Counter

from test_architecture import FILES, ROOT, name_of

FRAMES = "the word of each of several protocols, which never meet"
TRACES = "the kind of a line in a trace, which is named after its class"
LIBRARY = "a public name of `import hushcast`; the other is the wire's, or a trace's"
SHARED = {
    "Ack": FRAMES,
    "Attached": TRACES,
    "Delivered": TRACES,
    "Drop": TRACES,
    "Forward": FRAMES,
    "Gap": LIBRARY,
    "Handed": TRACES,
    "Installed": TRACES,
    "Introduced": TRACES,
    "Message": LIBRARY,
    "Parcel": TRACES,
    "Ping": FRAMES,
    "Pong": FRAMES,
    "Publish": FRAMES,
    "Receipt": FRAMES,
    "Registered": TRACES,
    "Roster": TRACES,
    "Subscribe": FRAMES,
    "Unsubscribe": FRAMES,
    "Withdrawn": LIBRARY,
}
"""Names that several public classes have, and why."""
TERMS = {
    # Files named by a participle or a gerund: the field's term, or an adjective before a noun.
    *("advertising", "decoding", "encoding", "forwarding", "greeting", "listing", "matching", "rerouting"),
    *("blocking", "clear_matching", "filter_spelling", "located", "parcel_forwarding", "roster_standing"),
    *("sharding", "tracing", "wording"),
}
NOUNS = re.compile(r"(openings|postings|meanings|settings?|findings?|holdings|feed|keyring|rings)$")
ADVERBS = {
    "after",
    "before",
    "lately",
    "once",
    "together",
    "told",
    "heard",
    "given",
    "kept",
    "held",
    "sent",
    "shelf",
}


def test_a_public_class_has_a_name_of_its_own() -> None:
    homes: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(name_of(path))
    shared = {name: found for name, found in homes.items() if len(found) > 1}
    assert set(shared) == set(SHARED), {name: shared.get(name) for name in set(shared) ^ set(SHARED)}


def test_a_file_is_named_by_a_noun() -> None:
    names = {path.stem for path in FILES if not path.stem.startswith("__")}
    verbal = {name for name in names if re.search(r"(ing|ings|ed)$", name) and not NOUNS.search(name)}
    assert verbal == TERMS
    assert len(TERMS) < 40
    assert not names & ADVERBS


def test_a_helper_of_tests_has_a_name_of_its_own() -> None:
    """All of them are on one path (`helper_folders.py`): of two with one name tests would find the first."""
    files = [path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith(("test_", "__"))]
    counts = Counter(path.stem for path in files if path.name != "conftest.py")
    assert len(counts) > 100
    assert not {name for name, count in counts.items() if count > 1}
