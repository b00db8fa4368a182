"""A learner in twenty lines: what somebody outside the package would write."""

import hedgerow as hr


class Greedy:
    """Optimism by linear programs: a new plan whenever the visits of some pair have doubled."""

    def __init__(self, view, episodes, delta, seed=0):
        self.view, self.seen = view, hr.learners.Statistics(view, episodes, delta, sets="sharp")
        self.policy = hr.Policy.uniform(view)

    def plan(self):
        if self.seen.doubled():
            self.policy = self.seen.optimistic_plan()
        return hr.Plan(self.policy)

    def observe(self, episode):
        self.seen.add(episode)
