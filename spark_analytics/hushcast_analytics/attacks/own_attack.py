"""An attack that is not of the catalogue: a function of the researcher's, found as `module:function`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from pyspark import cloudpickle
from pyspark.sql import DataFrame

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.attacks.catalogue import Attack, Subject, Target
from hushcast_analytics.errors import TracesError
from hushcast_analytics.posteriors import POSTERIOR, posterior

Rule = Callable[[AdversaryView], DataFrame]

_TARGETS: dict[Subject, Target] = {
    "message": "publisher",
    "author": "publisher",
    "topic": "subscriber",
    "link": "subscriber",
    "participant": "subscription",
}


def own_attack(subject: Subject) -> Callable[[Rule], Attack]:
    """Make an attack of the function below it, which is asked about each `subject` of the traces.

    The function takes an `AdversaryView` and returns a table with the columns of `posteriors.POSTERIOR`, as
    `shared_by` and `weighed_by` make it; one that lacks a column raises `TracesError` when it is played.
    """

    def made(rule: Rule) -> Attack:
        def checked(view: AdversaryView) -> DataFrame:
            found = rule(view)
            columns = found.columns if isinstance(found, DataFrame) else []
            if missing := [name for name in POSTERIOR.names if name not in columns]:
                raise TracesError(f"the attack {rule.__name__} returns a table without {missing[0]}")
            return posterior(found)

        return Attack(rule.__name__, _TARGETS[subject], subject, checked)

    return made


def load_attack(name: str) -> Attack:
    """Return the attack `module:function`; the module is looked for in the working directory first.

    What its functions do on Spark's workers travels there with them. Raises `TracesError`.
    """
    place, _, function = name.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        module = import_module(place)
    except (Exception, SystemExit) as error:  # whatever somebody's module does as it is loaded
        raise TracesError(
            f"--attack {name}: {place} is not loaded: {type(error).__name__}: {error}"
        ) from error
    by_value: Callable[..., None] = cloudpickle.register_pickle_by_value
    by_value(module)
    found = getattr(module, function, None)
    if not isinstance(found, Attack):
        raise TracesError(f"--attack {name}: {place} has no function {function} below an @own_attack(…)")
    return replace(found, name=name)
