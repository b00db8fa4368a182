"""The watcher of the learners of the field, episode by episode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.learners.field.watch import Counters, Sums, look_at_rows, make_watch, watch_close, watch_plan
from hedgerow.learners.watching import Nobody, Stage
from hedgerow.model.index import index_of

if TYPE_CHECKING:
    from hedgerow.learners.field.base import FieldLearner

KINDS = {"branch": np.int32, "clean_now": np.bool_, "unclean": np.int64}
"""The columns that are kept of the counters, and their types"""


class FieldWatcher(Nobody):
    """Watches one run of a learner: whether its sets hold the truth, and what it leaves to its baseline."""

    def __init__(self, learner: FieldLearner, stage: Stage) -> None:
        self.learner, self.stage = learner, stage
        self.watch = make_watch(learner.layout, len(stage.curves.marks))
        self._index, self._episode = index_of(learner.layout), learner.episode
        self._look(np.arange(learner.layout.num_rows, dtype=np.int64))

    def planned(self) -> None:
        self._episode = self.learner.episode
        watch_plan(self.learner.progress, self.learner.reals, self.stage.scores, self.watch)

    def learnt(self, rows: IntArray) -> bool:
        if self.learner.episode == self._episode:  # refused
            return False
        self._look(rows.copy())
        return True

    def closed(self, mark: int) -> None:
        watch_close(mark, self.watch)

    def _look(self, rows: IntArray) -> None:
        if self.learner.seen is not None:
            look_at_rows(self._index, self.stage.world, self.learner.seen.boxes, rows, self.watch)

    def columns(self, reached: int) -> dict[str, NDArray[Any]]:
        """The weight of the baseline, and whether the sets hold the truth; nothing for a learner without sets."""
        watch, kept = self.watch, {}
        if self.learner.baseline is not None:
            kept["mixing_weight"] = watch.mark_sums[:reached, Sums.place("now_mixing")]
            kept["mixing_total"] = watch.mark_sums[:reached, Sums.place("mixed")]
        if self.learner.seen is not None:
            for name, kind in KINDS.items():
                kept[name] = watch.mark_counters[:reached, Counters.place(name)].astype(kind)
        return kept

    def facts(self, comparator: FloatArray) -> dict[str, float | int | None]:
        """How often a learner with a baseline was unsafe although its sets held the truth: 0, if it is right."""
        if self.learner.baseline is None:
            return {}
        return {"refuted_safety": self.watch.counters.refuted_safety}
