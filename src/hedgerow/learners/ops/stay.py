"""When to stay: keep the baseline while the forecast says that leaving it does not pay by the end of the run.

Who leaves the baseline pays for learning. Mirror descent on N pairs with the entropy D_0 loses about sqrt(2 D_0 N E) in
E episodes of its own policy, and gains at most what the baseline loses in as many. So the baseline is kept while

    E loss  <  sqrt(2 D_0 N E),     that is     loss  <  limit = sqrt(2 D_0 N / E),

where loss is the mean of what its episodes so far have lost (0 before the first), and E is a forecast of the episodes
in which the own policy would play by T. While it stays, lambda = 1, and losses do not enter mirror descent. The rule is
about regret alone: the baseline is safe. docs/stay.md bounds what staying adds to the regret.
"""

from __future__ import annotations

from math import sqrt

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import kernel
from hedgerow.learners.ops.state import Stay
from hedgerow.model.layout import Layout


def stay_limit(layout: Layout, entropy: float, own_episodes: float) -> float:
    """sqrt(2 D_0 N / E), at most L + 1, which no episode loses: then the baseline is never left."""
    never = layout.steps + 1.0
    squared = 2.0 * entropy * layout.num_rows
    return sqrt(squared / own_episodes) if own_episodes * never * never > squared else never


@kernel
def is_worth_staying(stay: Stay) -> bool:
    """Whether the baseline has lost less than the limit on average; never if the limit is 0."""
    return stay.losses < stay.limit * max(1.0, stay.episodes)


@kernel
def enter_losses(stay: Stay, losses: FloatArray, steps: int, whole: bool) -> None:
    """Count the losses of an episode of the baseline; one that is not whole has lost as much as it can, L."""
    lost = 0.0
    for k in range(len(losses)):
        lost += losses[k]
    stay.losses += lost if whole else float(steps)
    stay.episodes += 1.0
