"""The contract of learners: what `hedgerow check-learner` and `hr.check_learner` look at."""
