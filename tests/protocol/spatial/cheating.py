"""A provider that cheats: one function for each means, which gives an answer that must not hold, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from msgspec.structs import replace
from spatial_world import OWNER, STRANGER, World, place

from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, sign
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.answer_problems import AnswerProblem
from hushcast_protocol.spatial.batch import Batch
from hushcast_protocol.spatial.located_answer import LocatedAnswer
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.postings import common_weights, pack, unpack
from hushcast_protocol.spatial.tmr_tree import TreeEntry, TreeNode, TreePart
from hushcast_protocol.spatial.verification_object import (
    ClosedNode,
    HiddenPart,
    OpenedNode,
    ShownPart,
    UnwantedMessage,
    WantedMessage,
    shown_whole,
)
from hushcast_protocol.spatial.verification_object import _shown as show
from hushcast_protocol.spatial.verification_object import closed as show_closed
from hushcast_protocol.spatial.verification_object import hidden as show_hidden
from hushcast_protocol.spatial.verification_object import opened as show_opened
from hushcast_protocol.spatial.weight_table import sign_table
from hushcast_protocol.spatial.word_pages import Page

Way = tuple[int, ...]
"""Which child at each node, from the root of a proof."""


@dataclass
class Cheat:
    """What is sent in place of an honest answer, to whom, and what must be said of it."""

    subscription: LocatedSubscription
    answer: LocatedAnswer | bytes
    problems: set[AnswerProblem]
    before: Batch | None = None

    @property
    def data(self) -> bytes:
        return self.answer if isinstance(self.answer, bytes) else encode(self.answer)


@dataclass
class Scene:
    """One honest answer, in its world."""

    world: World
    interval: int
    number: int

    @property
    def random(self) -> Random:
        return self.world.random

    @property
    def subscription(self) -> LocatedSubscription:
        return self.world.subscriptions[self.number]

    @property
    def answer(self) -> LocatedAnswer:
        return self.world.answers[self.interval][self.number]

    def batch(self, interval: int) -> Batch:
        return self.world.feeds[interval].batch

    def cheat(self, answer: LocatedAnswer | bytes, *problems: AnswerProblem) -> Cheat:
        return Cheat(self.subscription, answer, set(problems))

    def with_proof(self, proof: ShownPart | None, *problems: AnswerProblem) -> Cheat:
        return self.cheat(replace(self.answer, proof=proof), *problems)

    def pick(self, *kinds: type) -> tuple[Way, ShownPart] | None:
        """One of the parts of these kinds."""
        found = [(way, one) for way, one in parts(self.answer.proof) if isinstance(one, kinds)]
        return self.random.choice(found) if found else None

    def part(self, way: Way) -> TreePart:
        """The part of the tree that stands at a way."""
        part: TreePart | None = self.world.feeds[self.interval].root
        for at in way:
            assert isinstance(part, TreeNode)
            part = part.children[at]
        assert part is not None
        return part


def parts(shown: ShownPart | None, way: Way = ()) -> Iterator[tuple[Way, ShownPart]]:
    if shown is not None:
        yield way, shown
    if isinstance(shown, OpenedNode):
        for at, child in enumerate(shown.children):
            yield from parts(child, (*way, at))


def changed(shown: ShownPart | None, way: Way, fresh: ShownPart | None) -> ShownPart:
    """A proof with another part at a way; `None` takes it out."""
    if not way:
        assert fresh is not None
        return fresh
    assert isinstance(shown, OpenedNode)
    children = list(shown.children)
    at = way[0]
    if len(way) == 1:
        children[at : at + 1] = [] if fresh is None else [fresh]
    else:
        children[at] = changed(children[at], way[1:], fresh)
    return replace(shown, children=tuple(children))


def swapped(scene: Scene, way: Way, fresh: ShownPart) -> ShownPart:
    """The proof with another part at a way, in a node that shows its box where it must."""
    proof = changed(scene.answer.proof, way, fresh)
    if not way:
        return proof
    node: ShownPart = proof
    for at in way[:-1]:
        assert isinstance(node, OpenedNode)
        node = node.children[at]
    assert isinstance(node, OpenedNode)
    of_tree = scene.part(way[:-1])
    assert isinstance(of_tree, TreeNode)
    return changed(proof, way[:-1], show_opened(of_tree, node.children))


def beside(scene: Scene, extra: ShownPart) -> ShownPart | None:
    """The proof with one more part at one of its nodes."""
    if (found := scene.pick(OpenedNode)) is None:
        return None
    way, node = found
    assert isinstance(node, OpenedNode)
    return changed(scene.answer.proof, way, replace(node, children=(*node.children, extra)))


def alone(scene: Scene, way: Way) -> bool:
    """Whether a part is the only child of its node: without it, the node would be of no form."""
    return (
        not way or sum(1 for other, _ in parts(scene.answer.proof) if other[:-1] == way[:-1] and other) == 1
    )


def left_out(scene: Scene) -> Cheat | None:
    found = scene.pick(WantedMessage, ClosedNode, UnwantedMessage, HiddenPart)
    if found is None or alone(scene, found[0]):
        return None
    return scene.with_proof(changed(scene.answer.proof, found[0], None), AnswerProblem.LEFT_OUT)


def all_left_out(scene: Scene) -> Cheat | None:
    return scene.with_proof(None, AnswerProblem.LEFT_OUT) if scene.answer.proof is not None else None


def said_to_be_unwanted(scene: Scene) -> Cheat | None:
    if (found := scene.pick(WantedMessage)) is None:
        return None
    entry = scene.part(found[0])
    fresh = scene.random.choice((show_hidden, show_closed))(entry)
    return scene.with_proof(swapped(scene, found[0], fresh), AnswerProblem.LEFT_OUT)


def closed_over(scene: Scene) -> Cheat | None:
    """A node that is closed though its bound reaches, most often over something that is wanted."""
    if (found := scene.pick(OpenedNode)) is None:
        return None
    fresh = scene.random.choice((show_hidden, show_closed))(scene.part(found[0]))
    return scene.with_proof(swapped(scene, found[0], fresh), AnswerProblem.LEFT_OUT)


def hidden_though_it_is_only_far(scene: Scene) -> Cheat | None:
    if (found := scene.pick(ClosedNode, UnwantedMessage)) is None:
        return None
    fresh = show_hidden(scene.part(found[0]))
    return scene.with_proof(swapped(scene, found[0], fresh), AnswerProblem.LEFT_OUT)


def changed_in_what_is_shown(scene: Scene) -> Cheat | None:
    if (found := scene.pick(OpenedNode, HiddenPart, ClosedNode, UnwantedMessage, WantedMessage)) is None:
        return None
    way, one = found
    random = scene.random
    fresh: ShownPart
    if isinstance(one, WantedMessage):
        fresh = random.choice(
            (
                replace(one, payload=one.payload + b"!"),
                replace(one, payload=b"" if one.payload else b"-"),
                replace(one, id=one.id + "1"),
                replace(one, place=place(random)),
            )
        )
    elif isinstance(one, UnwantedMessage):
        fresh = random.choice((replace(one, content=random.randbytes(32)), replace(one, place=place(random))))
    elif isinstance(one, HiddenPart):
        fresh = replace(one, hash=random.randbytes(32))
    elif isinstance(one, ClosedNode):
        at = place(random)
        low, high = one.box
        fresh = random.choice(
            (
                replace(one, below=random.randbytes(32)),
                replace(one, box=(tuple(map(min, low, at)), high)),
                replace(one, box=(high, high) if low != high else (low, at)),
            )
        )
    elif one.box is not None:
        fresh = replace(one, box=(place(random), one.box[1]))
    else:
        return None
    if fresh == one:
        return None
    return scene.with_proof(changed(scene.answer.proof, way, fresh), AnswerProblem.CHANGED)


def numbers_moved(scene: Scene) -> Cheat | None:
    """Two parts side by side that have as many messages as before, together: words would be another's."""
    if (found := scene.pick(OpenedNode)) is None:
        return None
    way, node = found
    assert isinstance(node, OpenedNode)
    some = [at for at, one in enumerate(node.children) if isinstance(one, HiddenPart | ClosedNode)]
    if len(some) < 2:
        return None
    one, other = scene.random.sample(some, 2)
    children = list(node.children)
    if children[one].count == 1:  # type: ignore[union-attr]
        return None
    children[one] = replace(children[one], count=children[one].count - 1)  # type: ignore[union-attr]
    children[other] = replace(children[other], count=children[other].count + 1)  # type: ignore[union-attr]
    fresh = replace(node, children=tuple(children))
    return scene.with_proof(changed(scene.answer.proof, way, fresh), AnswerProblem.CHANGED)


def words_changed(scene: Scene) -> Cheat | None:
    """Pages of the batch's words that lack a word, or say of other messages that they have it."""
    shown = scene.answer.words
    at = scene.random.randrange(len(shown.pages))
    page = page_changed(scene.random, shown.pages[at], scene.batch(scene.interval).body.count)
    if page == shown.pages[at]:
        return None
    fresh = replace(shown, pages=(*shown.pages[:at], page, *shown.pages[at + 1 :]))
    return scene.cheat(replace(scene.answer, words=fresh), AnswerProblem.CHANGED)


def page_changed(random: Random, page: Page, count: int) -> Page:
    if not page.words or random.random() < 0.2:
        return replace(page, after=page.after + "a")
    at = random.randrange(len(page.words))
    if random.random() < 0.3:
        words, postings = list(page.words), list(page.postings)
        del words[at], postings[at]
        return replace(page, words=tuple(words), postings=tuple(postings))
    numbers = set(unpack(page.postings[at])) ^ {random.randrange(count)}
    if not numbers:
        return page
    said = pack(sorted(numbers))
    return replace(page, postings=(*page.postings[:at], said, *page.postings[at + 1 :]))


def words_hidden(scene: Scene) -> Cheat | None:
    """Pages of the batch's words without that of a word of the subscription."""
    paged = scene.world.feeds[scene.interval].said.paged
    needed = {paged.page_of(word) for word in scene.subscription.words}
    others = sorted(set(range(len(paged.pages))) - needed)
    if not others:
        return None
    fresh = paged.shown([*sorted(needed)[1:], scene.random.choice(others)])
    return scene.cheat(replace(scene.answer, words=fresh), AnswerProblem.LEFT_OUT)


def invented(scene: Scene) -> Cheat | None:
    made = made_up(scene)
    fresh = beside(scene, made)
    return None if fresh is None else scene.with_proof(fresh, AnswerProblem.INVENTED)


def made_up(scene: Scene) -> WantedMessage:
    number = scene.answer.number
    return WantedMessage(number, "new", scene.subscription.place, b"buy this")


def invented_in_the_place_of_another(scene: Scene) -> Cheat | None:
    if (found := scene.pick(WantedMessage, UnwantedMessage)) is None:
        return None
    return scene.with_proof(changed(scene.answer.proof, found[0], made_up(scene)), AnswerProblem.CHANGED)


def invented_where_nothing_is(scene: Scene) -> Cheat | None:
    if scene.answer.proof is not None:
        return None
    proof = OpenedNode(None, (made_up(scene),))
    return scene.with_proof(proof, AnswerProblem.INVENTED)


def moved(scene: Scene) -> Cheat | None:
    """A message of another interval, beside those of this one or in the place of one."""
    other = scene.world.answers[scene.random.choice([at for at in range(3) if at != scene.interval])]
    whole = [one for answer in other for _, one in parts(answer.proof) if isinstance(one, WantedMessage)]
    if not whole:
        return None
    one = scene.random.choice(whole)
    found = scene.pick(WantedMessage, UnwantedMessage) if scene.random.random() < 0.5 else None
    if found is not None:
        return scene.with_proof(changed(scene.answer.proof, found[0], one), AnswerProblem.OTHER_INTERVAL)
    fresh = beside(scene, one)
    return None if fresh is None else scene.with_proof(fresh, AnswerProblem.OTHER_INTERVAL)


def whole_proof_moved(scene: Scene) -> Cheat | None:
    other = scene.random.choice([at for at in range(3) if at != scene.interval])
    proof = scene.world.answers[other][scene.number].proof
    if not any(isinstance(one, WantedMessage) for _, one in parts(proof)):
        return None
    if scene.world.feeds[other].table is not scene.world.feeds[scene.interval].table:
        return None
    words = scene.random.choice((scene.answer.words, scene.world.answers[other][scene.number].words))
    return scene.cheat(replace(scene.answer, proof=proof, words=words), AnswerProblem.OTHER_INTERVAL)


def said_to_be_of_another_interval(scene: Scene) -> Cheat | None:
    return scene.cheat(replace(scene.answer, number=scene.answer.number + 1), AnswerProblem.OTHER_INTERVAL)


def batch_left_out(scene: Scene) -> Cheat | None:
    if scene.interval < 2:
        return None
    cheat = scene.cheat(scene.answer, AnswerProblem.MISSING_INTERVAL)
    cheat.before = scene.batch(0)
    return cheat


def old_root(scene: Scene) -> Cheat | None:
    cheat = scene.cheat(scene.answer, AnswerProblem.OLD_ROOT)
    cheat.before = scene.batch(scene.random.randrange(scene.interval, 3))
    return cheat


def weights_changed(scene: Scene) -> Cheat | None:
    shown = scene.answer.weights
    at = scene.random.randrange(len(shown.pages))
    page = shown.pages[at]
    if not page.words:
        return None
    weights = list(page.weights)
    weights[scene.random.randrange(len(weights))] += scene.random.randint(1, 1000)
    fresh = replace(
        shown, pages=(*shown.pages[:at], replace(page, weights=tuple(weights)), *shown.pages[at + 1 :])
    )
    return scene.cheat(replace(scene.answer, weights=fresh), AnswerProblem.WEIGHTS)


def weights_hidden(scene: Scene) -> Cheat | None:
    """Pages of the table that do not have a word of the subscription."""
    paged = scene.world.feeds[scene.interval].table.paged
    needed = {paged.page_of(word) for word in scene.subscription.words}
    others = sorted(set(range(len(paged.pages))) - needed)
    if not others:
        return None
    fresh = paged.shown([*sorted(needed)[1:], scene.random.choice(others)])
    return scene.cheat(replace(scene.answer, weights=fresh), AnswerProblem.WEIGHTS)


def table_changed(scene: Scene) -> Cheat | None:
    """A greatest distance, or a weight of other words, that the owner did not sign."""
    table = scene.world.feeds[scene.interval].table
    body = table.body
    fresh = scene.random.choice((replace(body, most=body.most // 2 + 1), replace(body, other=body.other + 1)))
    signed = table.whole.signed
    forged = scene.random.choice(
        (Signed(encode(fresh), signed.signature), sign(STRANGER, SignaturePurpose.LOCATED_TABLE, fresh))
    )
    return scene.cheat(replace(scene.answer, table=forged), AnswerProblem.WEIGHTS)


def table_of_another_version(scene: Scene) -> Cheat | None:
    table = scene.world.feeds[scene.interval].table
    other = sign_table(OWNER, table.body.version + 1, {"a": 1}, 5, table.body.most)
    excerpt = other.excerpt(scene.subscription)
    answer = replace(scene.answer, table=other.whole.signed, weights=excerpt)
    return scene.cheat(answer, AnswerProblem.WEIGHTS)


def cut_off(scene: Scene) -> Cheat | None:
    data = encode(scene.answer)
    return scene.cheat(data[: scene.random.randrange(len(data))], AnswerProblem.FORM)


def longer(scene: Scene) -> Cheat | None:
    return scene.cheat(
        encode(scene.answer) + scene.random.randbytes(scene.random.randint(1, 9)), AnswerProblem.FORM
    )


def wanted_though_it_is_not(scene: Scene) -> Cheat | None:
    if (found := scene.pick(UnwantedMessage, HiddenPart)) is None:
        return None
    entry = scene.part(found[0])
    if not isinstance(entry, TreeEntry):
        return None
    return scene.with_proof(swapped(scene, found[0], shown_whole(entry)), AnswerProblem.PADDED)


def shown_though_its_words_would_do(scene: Scene) -> Cheat | None:
    if (found := scene.pick(HiddenPart)) is None:
        return None
    return scene.with_proof(swapped(scene, found[0], show_closed(scene.part(found[0]))), AnswerProblem.PADDED)


def box_for_nothing(scene: Scene) -> Cheat | None:
    """A box that follows from those of the children."""
    if (found := scene.pick(OpenedNode)) is None:
        return None
    way, node = found
    assert isinstance(node, OpenedNode)
    if node.box is not None:
        return None
    fresh = replace(node, box=scene.part(way).box)
    return scene.with_proof(changed(scene.answer.proof, way, fresh), AnswerProblem.PADDED)


def opened_for_nothing(scene: Scene) -> Cheat | None:
    """A node that need not be opened, and below it perhaps another one."""
    if (found := scene.pick(ClosedNode, HiddenPart)) is None:
        return None
    node = scene.part(found[0])
    if not isinstance(node, TreeNode):
        return None
    return scene.with_proof(swapped(scene, found[0], opened(scene, node)), AnswerProblem.PADDED)


def opened(scene: Scene, node: TreeNode) -> OpenedNode:
    feed = scene.world.feeds[scene.interval]
    asked = feed.table.asked(scene.subscription)
    common = common_weights(asked.weights, feed.said.numbers, feed.batch.body.count)
    children: list[ShownPart] = []
    for child in node.children:
        if isinstance(child, TreeNode) and scene.random.random() < 0.3:
            children.append(opened(scene, child))
        else:
            children.append(show(child, asked, common))
    return show_opened(node, children)


def more_pages(scene: Scene) -> Cheat | None:
    """Words that nobody asked about, beside those that somebody did."""
    paged = scene.world.feeds[scene.interval].said.paged
    needed = {paged.page_of(word) for word in scene.subscription.words}
    others = sorted(set(range(len(paged.pages))) - needed)
    if not others:
        return None
    fresh = paged.shown([*needed, scene.random.choice(others)])
    return scene.cheat(replace(scene.answer, words=fresh), AnswerProblem.PADDED)


def of_another_subscription(scene: Scene) -> Cheat | None:
    other = scene.random.choice(scene.world.answers[scene.interval])
    if other.subscription == scene.answer.subscription:
        return None
    return scene.cheat(other, AnswerProblem.OTHER_SUBSCRIPTION)


def of_another_subscription_under_this_name(scene: Scene) -> Cheat | None:
    other = scene.random.choice(scene.world.answers[scene.interval])
    answer = replace(scene.answer, proof=other.proof)
    if outline(other.proof) == outline(scene.answer.proof):
        return None  # what is opened and what is closed is right for this one, too
    return scene.cheat(answer, AnswerProblem.LEFT_OUT, AnswerProblem.PADDED)


def outline(proof: ShownPart | None) -> list[tuple[Way, str]]:
    """Which parts are opened, hidden, closed, apart and wanted."""
    return [(way, type(one).__name__) for way, one in parts(proof)]


def signed_by_another(scene: Scene) -> Cheat | None:
    body = scene.batch(scene.interval).body
    forged = scene.random.choice(
        (
            sign(STRANGER, SignaturePurpose.LOCATED_BATCH, body),
            Signed(encode(replace(body, count=body.count + 1)), scene.answer.batch.signature),
            Signed(scene.answer.batch.body, scene.random.randbytes(64)),
        )
    )
    return scene.cheat(replace(scene.answer, batch=forged), AnswerProblem.SIGNATURE)


Means = Callable[[Scene], Cheat | None]
MEANS: list[Means] = [
    left_out,
    all_left_out,
    said_to_be_unwanted,
    closed_over,
    hidden_though_it_is_only_far,
    changed_in_what_is_shown,
    numbers_moved,
    words_changed,
    words_hidden,
    invented,
    invented_in_the_place_of_another,
    invented_where_nothing_is,
    moved,
    whole_proof_moved,
    said_to_be_of_another_interval,
    batch_left_out,
    old_root,
    weights_changed,
    weights_hidden,
    table_changed,
    table_of_another_version,
    cut_off,
    longer,
    wanted_though_it_is_not,
    shown_though_its_words_would_do,
    box_for_nothing,
    opened_for_nothing,
    more_pages,
    of_another_subscription,
    of_another_subscription_under_this_name,
    signed_by_another,
]
