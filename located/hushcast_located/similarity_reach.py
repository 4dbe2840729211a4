"""Whether similarities reach theta, of many pairs at once: floats decide, and integers at the border."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hushcast_located.crowd import Ints
from hushcast_protocol.spatial.similarity import WHOLE, WeightedSubscription

_DOUBT = 1e-12  # floats of 64 bits are off by a thousandth of it

Rows = tuple[Ints, Ints, Ints]
"""Alpha and threshold, in thousandths, and the weight of all words, of a subscription each."""


def reached(rows: Rows, most: int, common: Ints, squares: Ints) -> npt.NDArray[np.bool_]:
    """Tell of each pair what `WeightedSubscription.reaches` does; from the distance `most` on simS is 0."""
    alpha, threshold, whole = rows
    by_words, needed, by_place = alpha * common, threshold * whole, (WHOLE - alpha) * whole
    room = by_words + by_place - needed
    far, near = by_place * np.sqrt(squares), float(most) * room
    found: npt.NDArray[np.bool_] = (by_words >= needed) | ((room >= 0) & (far <= near))
    doubtful = (by_words < needed) & (room >= 0) & (np.abs(far - near) <= _DOUBT * (far + near))
    for at in np.flatnonzero(doubtful).tolist():
        one = WeightedSubscription((0, 0, 0), {"": int(whole[at])}, int(alpha[at]), int(threshold[at]), most)
        found[at] = one.reaches(int(common[at]), int(squares[at]))
    return found


def least_common(rows: Rows) -> Ints:
    """Return what a message must have in common at least, however near; where nothing is enough, too much.

    `WeightedSubscription.reaches` says yes at no distance if and only if the common words weigh so much.
    """
    alpha, threshold, whole = rows
    missing = threshold * whole - (WHOLE - alpha) * whole
    least = -(-missing // np.maximum(alpha, 1))
    found: Ints = np.where(missing <= 0, 0, np.where(alpha > 0, least, np.iinfo(np.int64).max))
    return found
