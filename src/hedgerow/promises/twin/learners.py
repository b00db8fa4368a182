"""The learners themselves, watched by the twin where a cell asks for it with `twin`."""

from __future__ import annotations

from hedgerow.learners.mirror.base import MirrorLearner
from hedgerow.learners.mirror.cvops import CVOPS
from hedgerow.learners.mirror.sops import SOPS
from hedgerow.learners.mirror.svops import SVOPS
from hedgerow.learners.mirror.watcher import MirrorWatcher
from hedgerow.learners.watching import Stage
from hedgerow.promises.twin.watcher import TwinWatcher


class Recomputed(MirrorLearner):
    """May be watched by the twin; learns as it always does."""

    def watch(self, stage: Stage, **options: bool) -> MirrorWatcher:
        """Watch as usual, or with the option `twin` recompute as well."""
        if options.pop("twin", False):
            return TwinWatcher(self, stage, **options)
        return super().watch(stage, **options)


class RecomputedSVOPS(Recomputed, SVOPS):
    """SV-OPS."""


class RecomputedSOPS(Recomputed, SOPS):
    """S-OPS."""


class RecomputedCVOPS(Recomputed, CVOPS):
    """CV-OPS."""
