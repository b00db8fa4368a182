"""A twin of the learners' arithmetic, in plain Python: from the episodes that were seen to intervals, U and lambda.

It shares no code with what it checks: only `watcher.py`, which hands the episodes over, and `learners.py` import from
`learners`, and nothing imports from `estimates`. Everything is computed in the plainest way, by bisection and by loops,
from the formulas of the paper and of docs/aggregate.md.

    given.py         what a learner was told before its first episode, and the shares of delta
    formulas.py      radii, intervals, balls: one mean or one row at a time
    sets.py          counts, and the confidence sets that follow from them
    robust.py        best and worst transitions in the sets, by backward passes
    certificate.py   the aggregate certificate
    search.py        the search of CV-OPS
    mixing.py        lambda, and the rates eta and gamma
    watcher.py       compares with what the learner states, at a sample of episodes
"""
