"""The contract of learners: what `hedgerow check-learner` and `hr.check_learner` look at.

`worlds` -> `trial` -> `plan_checks`, `run_checks` -> `checks` -> `checker`: small worlds, a learner that is watched
while it plays one, what is asked of it, and the table of the answers.
"""
