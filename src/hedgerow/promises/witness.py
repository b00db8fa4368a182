"""A simulation that keeps what the proofs speak of: the same run, bit for bit, with the notes of its watcher."""

from __future__ import annotations

from typing import Any

from hedgerow.learners.mirror.notes import Notes
from hedgerow.learners.mirror.watch import Watch
from hedgerow.learners.mirror.watcher import AtStop, MirrorWatcher
from hedgerow.simulation.run import Simulation


class Witness(Simulation):
    """`simulate` with notes; `estimator` also watches the loss estimator on all pairs."""

    watcher: MirrorWatcher

    def __init__(self, *arguments: Any, estimator: bool = False, **options: Any) -> None:
        super().__init__(*arguments, **options, watch={"notes": True, "estimator": estimator})

    @property
    def notes(self) -> Notes:
        assert self.watcher.notes is not None
        return self.watcher.notes

    @property
    def watch(self) -> Watch:
        return self.watcher.watch

    @property
    def at_stop(self) -> AtStop | None:
        return self.watcher.at_stop
