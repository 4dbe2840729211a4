"""A provider that cheats: one function for each means, which gives an answer that must not hold, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from msgspec.structs import replace
from spatial_world import OWNER, STRANGER, World, place

from hushcast_protocol.base.signatures import Purpose, Signed, sign
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.answer import Answer
from hushcast_protocol.spatial.batch import Batch
from hushcast_protocol.spatial.pages import ShownPages
from hushcast_protocol.spatial.problems import Problem
from hushcast_protocol.spatial.proof import Apart, Closed, Opened, Shown, Wanted
from hushcast_protocol.spatial.proof import _shown as show
from hushcast_protocol.spatial.subscription import Subscription
from hushcast_protocol.spatial.table import sign_table
from hushcast_protocol.spatial.tree import Entry, Node, Part

Way = tuple[int, ...]
"""Which child at each node, from the root of a proof."""


@dataclass
class Cheat:
    """What is sent in place of an honest answer, to whom, and what must be said of it."""

    subscription: Subscription
    answer: Answer | bytes
    problems: set[Problem]
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
    def subscription(self) -> Subscription:
        return self.world.subscriptions[self.number]

    @property
    def answer(self) -> Answer:
        return self.world.answers[self.interval][self.number]

    def batch(self, interval: int) -> Batch:
        return self.world.feeds[interval].batch

    def cheat(self, answer: Answer | bytes, *problems: Problem) -> Cheat:
        return Cheat(self.subscription, answer, set(problems))

    def with_proof(self, proof: Shown | None, *problems: Problem) -> Cheat:
        return self.cheat(replace(self.answer, proof=proof), *problems)

    def pick(self, *kinds: type) -> tuple[Way, Shown] | None:
        """One of the parts of these kinds."""
        found = [(way, one) for way, one in parts(self.answer.proof) if isinstance(one, kinds)]
        return self.random.choice(found) if found else None

    def part(self, way: Way) -> Part:
        """The part of the tree that stands at a way."""
        part: Part | None = self.world.feeds[self.interval].root
        for at in way:
            assert isinstance(part, Node)
            part = part.children[at]
        assert part is not None
        return part


def parts(shown: Shown | None, way: Way = ()) -> Iterator[tuple[Way, Shown]]:
    if shown is not None:
        yield way, shown
    if isinstance(shown, Opened):
        for at, child in enumerate(shown.children):
            yield from parts(child, (*way, at))


def changed(shown: Shown | None, way: Way, fresh: Shown | None) -> Shown:
    """A proof with another part at a way; `None` takes it out."""
    if not way:
        assert fresh is not None
        return fresh
    assert isinstance(shown, Opened)
    children = list(shown.children)
    at = way[0]
    if len(way) == 1:
        children[at : at + 1] = [] if fresh is None else [fresh]
    else:
        children[at] = changed(children[at], way[1:], fresh)
    return replace(shown, children=tuple(children))


def beside(scene: Scene, extra: Shown) -> Shown | None:
    """The proof with one more part at one of its nodes."""
    if (found := scene.pick(Opened)) is None:
        return None
    way, node = found
    assert isinstance(node, Opened)
    return changed(scene.answer.proof, way, replace(node, children=(*node.children, extra)))


def alone(scene: Scene, way: Way) -> bool:
    """Whether a part is the only child of its node: without it, the node would be of no form."""
    return (
        not way or sum(1 for other, _ in parts(scene.answer.proof) if other[:-1] == way[:-1] and other) == 1
    )


def left_out(scene: Scene) -> Cheat | None:
    found = scene.pick(Wanted, Closed, Apart)
    if found is None or alone(scene, found[0]):
        return None
    return scene.with_proof(changed(scene.answer.proof, found[0], None), Problem.LEFT_OUT)


def all_left_out(scene: Scene) -> Cheat | None:
    return scene.with_proof(None, Problem.LEFT_OUT) if scene.answer.proof is not None else None


def said_to_be_unwanted(scene: Scene) -> Cheat | None:
    if (found := scene.pick(Wanted)) is None:
        return None
    entry = scene.part(found[0])
    words = scene.random.choice((entry.paged.root, some_pages(scene.random, entry)))
    hidden = Apart(entry.box[0], words, entry.below)
    return scene.with_proof(changed(scene.answer.proof, found[0], hidden), Problem.LEFT_OUT)


def closed_over(scene: Scene) -> Cheat | None:
    """A node that is closed though its bound reaches, most often over something that is wanted."""
    if (found := scene.pick(Opened)) is None:
        return None
    node = scene.part(found[0])
    words = scene.random.choice((node.paged.root, some_pages(scene.random, node)))
    closed = Closed(node.count, *node.box, words, node.below)
    return scene.with_proof(changed(scene.answer.proof, found[0], closed), Problem.LEFT_OUT)


def some_pages(random: Random, part: Part) -> ShownPages:
    count = len(part.paged.pages)
    return part.paged.shown(random.sample(range(count), random.randint(1, min(count, 3))))


def changed_in_what_is_shown(scene: Scene) -> Cheat | None:
    if (found := scene.pick(Opened, Closed, Apart, Wanted)) is None:
        return None
    way, one = found
    random = scene.random
    if isinstance(one.words, ShownPages) and random.random() < 0.5:
        fresh: Shown = replace(one, words=pages_changed(random, one.words))
    elif isinstance(one, Wanted):
        fresh = random.choice(
            (
                replace(one, payload=one.payload + b"!"),
                replace(one, payload=b"" if one.payload else b"-"),
                replace(one, id=one.id + "1"),
                replace(one, place=place(random)),
            )
        )
    elif isinstance(one, Apart):
        other = random.choice((replace(one, content=random.randbytes(32)), replace(one, place=place(random))))
        fresh = other
    elif isinstance(one, Closed):
        at = place(random)
        low = tuple(map(min, one.low, at))
        fresh = random.choice(
            (
                replace(one, below=random.randbytes(32)),
                replace(one, low=low),
                replace(one, low=one.high) if one.low != one.high else replace(one, high=at),
                replace(one, words=random.randbytes(32)),
            )
        )
    else:
        fresh = replace(one, words=random.randbytes(32))
    if fresh == one:
        return None
    return scene.with_proof(changed(scene.answer.proof, way, fresh), Problem.CHANGED)


def pages_changed(random: Random, shown: ShownPages) -> ShownPages:
    """Pages that lack a word, or hashes that lead elsewhere."""
    at = random.randrange(len(shown.pages))
    page = shown.pages[at]
    if page.words and random.random() < 0.7:
        less = list(page.words)
        del less[random.randrange(len(less))]
        fresh = replace(page, words=tuple(less))
    else:
        fresh = replace(page, after=page.after + "a")
    return replace(shown, pages=(*shown.pages[:at], fresh, *shown.pages[at + 1 :]))


def invented(scene: Scene) -> Cheat | None:
    made = made_up(scene)
    fresh = beside(scene, made)
    return None if fresh is None else scene.with_proof(fresh, Problem.INVENTED)


def made_up(scene: Scene) -> Wanted:
    number = scene.answer.number
    return Wanted(number, "new", scene.subscription.place, scene.random.randbytes(32), b"buy this")


def invented_in_the_place_of_another(scene: Scene) -> Cheat | None:
    if (found := scene.pick(Wanted, Apart)) is None:
        return None
    return scene.with_proof(changed(scene.answer.proof, found[0], made_up(scene)), Problem.CHANGED)


def invented_where_nothing_is(scene: Scene) -> Cheat | None:
    if scene.answer.proof is not None:
        return None
    proof = Opened(scene.random.randbytes(32), (made_up(scene),))
    return scene.with_proof(proof, Problem.INVENTED)


def moved(scene: Scene) -> Cheat | None:
    """A message of another interval, beside those of this one or in the place of one."""
    other = scene.world.answers[scene.random.choice([at for at in range(3) if at != scene.interval])]
    whole = [one for answer in other for _, one in parts(answer.proof) if isinstance(one, Wanted)]
    if not whole:
        return None
    one = scene.random.choice(whole)
    found = scene.pick(Wanted, Apart) if scene.random.random() < 0.5 else None
    if found is not None:
        return scene.with_proof(changed(scene.answer.proof, found[0], one), Problem.OTHER_INTERVAL)
    fresh = beside(scene, one)
    return None if fresh is None else scene.with_proof(fresh, Problem.OTHER_INTERVAL)


def whole_proof_moved(scene: Scene) -> Cheat | None:
    other = scene.random.choice([at for at in range(3) if at != scene.interval])
    proof = scene.world.answers[other][scene.number].proof
    if not any(isinstance(one, Wanted) for _, one in parts(proof)):
        return None
    if scene.world.feeds[other].table is not scene.world.feeds[scene.interval].table:
        return None
    return scene.with_proof(proof, Problem.OTHER_INTERVAL)


def said_to_be_of_another_interval(scene: Scene) -> Cheat | None:
    return scene.cheat(replace(scene.answer, number=scene.answer.number + 1), Problem.OTHER_INTERVAL)


def batch_left_out(scene: Scene) -> Cheat | None:
    if scene.interval < 2:
        return None
    cheat = scene.cheat(scene.answer, Problem.MISSING_INTERVAL)
    cheat.before = scene.batch(0)
    return cheat


def old_root(scene: Scene) -> Cheat | None:
    cheat = scene.cheat(scene.answer, Problem.OLD_ROOT)
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
    return scene.cheat(replace(scene.answer, weights=fresh), Problem.WEIGHTS)


def weights_hidden(scene: Scene) -> Cheat | None:
    """Pages of the table that do not have a word of the subscription."""
    paged = scene.world.feeds[scene.interval].table.paged
    needed = {paged.page_of(word) for word in scene.subscription.words}
    others = sorted(set(range(len(paged.pages))) - needed)
    if not others:
        return None
    fresh = paged.shown([*sorted(needed)[1:], scene.random.choice(others)])
    return scene.cheat(replace(scene.answer, weights=fresh), Problem.WEIGHTS)


def table_changed(scene: Scene) -> Cheat | None:
    """A greatest distance, or a weight of other words, that the owner did not sign."""
    table = scene.world.feeds[scene.interval].table
    body = table.body
    fresh = scene.random.choice((replace(body, most=body.most // 2 + 1), replace(body, other=body.other + 1)))
    signed = table.whole.signed
    forged = scene.random.choice(
        (Signed(encode(fresh), signed.signature), sign(STRANGER, Purpose.LOCATED_TABLE, fresh))
    )
    return scene.cheat(replace(scene.answer, table=forged), Problem.WEIGHTS)


def table_of_another_version(scene: Scene) -> Cheat | None:
    table = scene.world.feeds[scene.interval].table
    other = sign_table(OWNER, table.body.version + 1, {"a": 1}, 5, table.body.most)
    excerpt = other.excerpt(scene.subscription)
    answer = replace(scene.answer, table=other.whole.signed, weights=excerpt)
    return scene.cheat(answer, Problem.WEIGHTS)


def cut_off(scene: Scene) -> Cheat | None:
    data = encode(scene.answer)
    return scene.cheat(data[: scene.random.randrange(len(data))], Problem.FORM)


def longer(scene: Scene) -> Cheat | None:
    return scene.cheat(
        encode(scene.answer) + scene.random.randbytes(scene.random.randint(1, 9)), Problem.FORM
    )


def wanted_though_it_is_not(scene: Scene) -> Cheat | None:
    if (found := scene.pick(Apart)) is None:
        return None
    entry = scene.part(found[0])
    assert isinstance(entry, Entry)
    one = entry.message
    words = scene.random.choice((entry.paged.root, some_pages(scene.random, entry)))
    shown = Wanted(one.number, one.id, one.place, words, one.payload)
    return scene.with_proof(changed(scene.answer.proof, found[0], shown), Problem.PADDED)


def opened_for_nothing(scene: Scene) -> Cheat | None:
    """A node that need not be opened, and below it perhaps another one."""
    if (found := scene.pick(Closed)) is None:
        return None
    node = scene.part(found[0])
    assert isinstance(node, Node)
    return scene.with_proof(changed(scene.answer.proof, found[0], opened(scene, node)), Problem.PADDED)


def opened(scene: Scene, node: Node) -> Opened:
    asked = scene.world.feeds[scene.interval].table.asked(scene.subscription)
    children: list[Shown] = []
    for child in node.children:
        if isinstance(child, Node) and scene.random.random() < 0.3:
            children.append(opened(scene, child))
        else:
            children += show(child, [asked])
    words = scene.random.choice((node.paged.root, some_pages(scene.random, node)))
    return Opened(words, tuple(children))


def more_pages(scene: Scene) -> Cheat | None:
    """Words that nobody asked about, beside those that somebody did."""
    found = scene.pick(Closed, Apart)
    if found is None or isinstance(found[1], Opened):
        return None
    part = scene.part(found[0])
    asked = {part.paged.page_of(word) for word in scene.subscription.words}
    others = sorted(set(range(len(part.paged.pages))) - asked)
    if not others:
        return None
    shown = found[1].words.at if isinstance(found[1].words, ShownPages) else ()
    pages = part.paged.shown([*shown, scene.random.choice(others)])
    fresh = replace(found[1], words=pages)
    return scene.with_proof(changed(scene.answer.proof, found[0], fresh), Problem.PADDED)


def of_another_subscription(scene: Scene) -> Cheat | None:
    other = scene.random.choice(scene.world.answers[scene.interval])
    if other.subscription == scene.answer.subscription:
        return None
    return scene.cheat(other, Problem.OTHER_SUBSCRIPTION)


def of_another_subscription_under_this_name(scene: Scene) -> Cheat | None:
    other = scene.random.choice(scene.world.answers[scene.interval])
    answer = replace(scene.answer, proof=other.proof)
    if outline(other.proof) == outline(scene.answer.proof):
        return None  # what is opened and what is closed is right for this one, too
    return scene.cheat(answer, Problem.LEFT_OUT, Problem.PADDED)


def outline(proof: Shown | None) -> list[tuple[Way, str]]:
    """Which parts are opened, closed, apart and wanted."""
    return [(way, type(one).__name__) for way, one in parts(proof)]


def signed_by_another(scene: Scene) -> Cheat | None:
    body = scene.batch(scene.interval).body
    forged = scene.random.choice(
        (
            sign(STRANGER, Purpose.LOCATED_BATCH, body),
            Signed(encode(replace(body, count=body.count + 1)), scene.answer.batch.signature),
            Signed(scene.answer.batch.body, scene.random.randbytes(64)),
        )
    )
    return scene.cheat(replace(scene.answer, batch=forged), Problem.SIGNATURE)


Means = Callable[[Scene], Cheat | None]
MEANS: list[Means] = [
    left_out,
    all_left_out,
    said_to_be_unwanted,
    closed_over,
    changed_in_what_is_shown,
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
    opened_for_nothing,
    more_pages,
    of_another_subscription,
    of_another_subscription_under_this_name,
    signed_by_another,
]
