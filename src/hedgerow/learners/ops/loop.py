"""Algorithm 1 of the paper for a block of episodes, in one compiled call.

    for each episode: draw which policy plays, score the plan, play it, learn, watch the promises

`observe` calls the same step. The loop leaves compiled code only when a projection needs the slow solver or a phase of
the learner is over; the caller does what is needed and calls it again.
"""

from __future__ import annotations

from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.premises import is_fresh, is_impossible
from hedgerow.environments.play import KernelWorld, Path, play
from hedgerow.environments.scores import Curves, Scores, add_scores, keep_mark
from hedgerow.learners.kernels import Losses, RandomStreams, draw_branch, mixture_occupancy, pursue, remember
from hedgerow.learners.ops.notes import Notes, note_close, note_episode, note_estimator, note_learning, note_plan
from hedgerow.learners.ops.search import keep_policy
from hedgerow.learners.ops.state import Core
from hedgerow.learners.ops.step import learn
from hedgerow.learners.ops.watch import Watch, watch_close, watch_learning, watch_plan
from hedgerow.projection.newton import SOLVED


@kernel
def run_block(
    core: Core,
    world: KernelWorld,
    scores: Scores,
    curves: Curves,
    watch: Watch,
    notes: Notes | None,
    path: Path,
    given: Losses,
    first: int,
    chance: RandomStreams,
) -> tuple[int, bool]:
    """Run the episodes first, ... of a block of losses; without `notes`, code for notes is not compiled.

    Returns how many of the block are done, and whether the last of them is closed: if its projection needs the slow
    solver, the learner has to `complete` it first. Also returns when a phase of the learner is over, when something
    that it was told has been refuted, and when it was told that an episode is impossible, which then stays pending.
    """
    index, numbers, policy, baselines = core.index, core.state.numbers, core.state.policy, core.baseline.policies
    rows, triples, losses, costs = path.rows, path.triples, path.losses, path.costs
    for i in range(first, len(given.pattern)):
        loss = given.patterns[given.pattern[i]]
        if given.rate > 0.0:
            loss = given.pursuit
            pursue(index.num_actions, given)
        numbers.branch = draw_branch(len(baselines), core.state.reals.mixing, chance.coin)
        numbers.pending = 1
        if core.search.active:
            searched = numbers.episode - core.state.search.broken.skipped
            keep_policy(core.search, core.state.search, policy, searched + 1, chance.coin)
        mixture_occupancy(index, world, policy, core.state.reals.mixing, watch.baseline, scores)
        add_scores(world, loss, scores)
        if notes is not None:
            note_plan(core, world, watch, notes)
        watch_plan(core, world, scores, curves, watch)
        if notes is not None and len(notes.optimism) > 0:
            note_estimator(core, world, loss, scores, notes)
        plays = policy if numbers.branch == 0 else baselines[numbers.branch - 1]
        play(index, world, plays, chance.streams, path)
        if given.rate > 0.0:
            remember(given, plays)
        if notes is not None:
            note_episode(core, costs, notes)
        for k in range(len(rows)):
            losses[k] = loss[rows[k]]
        if is_impossible(core.rule.premises, rows, triples, costs):
            return i, True
        code = learn(core, rows, triples, losses, costs)
        if notes is not None and len(notes.optimism) > 0:
            note_learning(core, rows, notes)
        watch_learning(core, world, rows, scores, watch)
        if code != SOLVED:
            return i + 1, False
        mark = keep_mark(scores, curves)
        watch_close(core, mark, watch)
        if notes is not None:
            note_close(core, mark, notes)
        if numbers.phase_over or is_fresh(core.state.premises):
            return i + 1, True
    return len(given.pattern), True
