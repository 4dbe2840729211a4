"""Words of every script: found by whoever asks for them, and the answers hold."""

from __future__ import annotations

import json
import shutil
import unicodedata
from pathlib import Path
from random import Random

import pytest
import trio
from feeding import House, Subscriber
from languages import KEYWORDS, SENTENCES, TEXTS
from owning import Estate
from spark_same import asking, feed

from hushcast_located.batch_folder import BatchFolder
from hushcast_located.keys import read_owner
from hushcast_located.owner import BatchOptions, add_batch
from hushcast_located.subscriber.subscription_files import SubscriptionFiles
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.keywords import MAX_WORD, MAX_WORDS, WordRule, asked_words, words_of
from hushcast_protocol.spatial.located_answer import LocatedAnswer
from hushcast_protocol.spatial.located_subscription import read_subscription
from hushcast_protocol.spatial.verifier import rule_of, verify
from hushcast_protocol.spatial.word_classes import UNICODE

DATA = Path(__file__).parents[1] / "data" / "feed-1"


def test_ten_languages_find_what_stands_in_their_sentences():
    assert {len(some) for some in SENTENCES.values()} == {10}
    assert len(SENTENCES) == 10
    owner, of = feed()
    rows = [read_subscription(json.dumps(one).encode()) for one in asking()]
    for (name, asked), answer in zip(rows, of.answers([one for _, one in rows]), strict=True):
        said = verify(owner, asked, encode(answer))
        found = {one.id for one in said.messages}
        assert said.rule is WordRule.SCRIPTS
        assert name in found, KEYWORDS[int(name[1:])]
        # Nobody hears of a text without all of what was asked for.
        for one in found:
            assert set(asked.words) <= set(words_of(TEXTS[int(one[1:])]))


@pytest.mark.slow
async def test_ten_languages_find_it_from_a_folder_over_a_network(tmp_path):
    """Through an owner that runs, a provider, and a subscription for each keyword, as its user types it."""
    estate = Estate(tmp_path / "estate")
    async with trio.open_nursery() as nursery:
        await estate.daemon.start(nursery)
        link = (estate.folder / "feed.link").read_text().strip()
        house = House(tmp_path / "house", estate.daemon, link, owner=estate.seed)
        said = [{"id": f"k{at}", "lat": 60.17, "lon": 24.94, "text": text} for at, text in enumerate(TEXTS)]
        estate.put("all.jsonl", "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in said))
        async with estate.running() as owner, house.running():
            rows = [read_subscription(json.dumps(one).encode()) for one in asking()]
            readers = {name: Subscriber(estate.daemon, house.offer, asked) for name, asked in rows}
            for one in readers.values():
                await nursery.start(one.listen)
                await one.ask(one.subscribe())
            await house.until("requests_taken", len(readers))
            await estate.until(lambda: len(owner.pool) == len(TEXTS))
            await estate.next_batch()
            for one in readers.values():
                await one.until(LocatedAnswer)
        for name, one in readers.items():
            (held,) = one.verified()
            assert name in {each.id for each in held.messages}, KEYWORDS[int(name[1:])]
        nursery.cancel_scope.cancel()
    assert len(readers) == 100


def test_what_stands_in_a_text_without_spaces_is_found_wherever_it_stands():
    random = Random(54)
    for language in ("japanese", "chinese", "thai"):
        for _, text in SENTENCES[language]:
            said = set(words_of(text))
            for _ in range(20):
                first = random.randrange(len(text))
                part = text[first : first + random.randint(1, 6)]
                if unicodedata.category(part[0])[0] != "M" and not _is_cut(text, first + len(part)):
                    assert set(asked_words(part)) <= said, part


def _is_cut(text: str, at: int) -> bool:
    """Tell whether a letter is cut off from its mark there; Thai am is a mark and a letter."""
    return at < len(text) and (unicodedata.category(text[at])[0] == "M" or text[at] == "ำ")


@pytest.mark.parametrize(
    "text",
    [
        "é" * 30_000,
        "雨" * 21_000,
        "\u200d" * 20_000,
        "\ufdfa" * 21_000,
        "ก" + "\u0e31" * 20_000,
        "🔥" * 16_000,
        "\u0301",
    ],
)
def test_no_text_keeps_a_message_from_having_words(text):
    said = words_of(text)
    assert len(said) <= MAX_WORDS
    assert all(len(one) <= MAX_WORD for one in said)


def test_characters_that_this_unicode_does_not_know_are_no_words():
    """Else a machine with a later one would cut otherwise."""
    assert words_of("rain\U0001fae8\u0cf3\U00031350") == words_of("rain")
    assert UNICODE == "14.0.0"


@pytest.mark.skipif(unicodedata.unidata_version != UNICODE, reason="this Python knows another Unicode")
def test_the_classes_of_characters_are_those_of_the_pinned_unicode():
    import word_classes as tool

    from hushcast_protocol.spatial.word_classes import RUNS

    assert tool.classes() == RUNS


def test_a_feed_of_before_holds_and_goes_on_by_its_own_rule(tmp_path):
    owner, line = bytes.fromhex((DATA / "owner").read_text()), (DATA / "subscription.json").read_bytes()
    answer = (DATA / "answers" / "a.answer").read_bytes()
    rule = rule_of(owner, answer)
    _, asked = read_subscription(line, rule)
    assert rule is WordRule.RUNS
    assert [one.id for one in verify(owner, asked, answer).messages] == ["1", "2"]

    shutil.copytree(DATA / "batches", tmp_path / "batches")
    shutil.copy(DATA / "owner.key", tmp_path / "key")
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "lines").write_text('{"id": "1", "lat": 60, "lon": 25, "text": "大雨 %s"}\n' % ("x" * 93))
    folder = BatchFolder(tmp_path / "batches")
    for again, expected in ((False, WordRule.RUNS), (True, WordRule.SCRIPTS)):
        wanted = BatchOptions(300, new_weights=again)
        _, batch = add_batch(read_owner(tmp_path / "key"), folder, tmp_path / "lines", wanted, 10_000)
        _, of = folder.read(batch.body.number)
        assert of.table.body.rule is expected
        assert ("大" in of.said.numbers) is again


def test_a_subscription_kept_before_is_cut_anew(tmp_path):
    shutil.copy(DATA / "kept.subscription", tmp_path / "old.subscription")
    keeping = SubscriptionFiles(tmp_path, "old")
    kept = keeping.load()
    keeping.close()
    assert kept is not None
    assert (kept.rule, kept.wanted.words) == (WordRule.RUNS, ("tavara", "大雨警報"))
    assert kept.cut_by(WordRule.SCRIPTS).wanted.words == ("tavara", "大雨", "警報", "雨警")
