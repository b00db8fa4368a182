"""Adaptive adversaries: they answer to the past, in turn, and only to the past."""

import numpy as np
import pytest

from hedgerow.errors import InvalidInput
from hedgerow.losses import oblivious as ls
from hedgerow.losses.adaptive import AdaptiveLosses, CheckedAdaptive, Pursuit
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import uniform_policy

LAYOUT = Layout((1, 2, 1), 4)
TRAJECTORY = np.array([0, 4])


def concentrated(action: int) -> np.ndarray:
    """The policy that takes the same action everywhere."""
    return np.tile(np.eye(4)[action], LAYOUT.num_decision_states)


def play(adversary: AdaptiveLosses, policies: list[np.ndarray]) -> np.ndarray:
    """(episodes, rows): the losses that a learner with these policies meets."""
    adversary.start(LAYOUT)
    met = []
    for episode, policy in enumerate(policies):
        met.append(adversary.loss(episode))
        adversary.observe(episode, policy, TRAJECTORY)
    return np.array(met)


def random_policies(seed: int, number: int = 30) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.ones(4), size=LAYOUT.num_decision_states).ravel() for _ in range(number)]


def test_pursuit_is_an_adaptive_adversary_with_losses_in_range() -> None:
    assert isinstance(Pursuit(), AdaptiveLosses)
    assert not isinstance(ls.IID(), AdaptiveLosses)
    met = play(Pursuit(rate=0.5), random_policies(0))
    assert met.shape == (30, LAYOUT.num_rows)
    assert met.min() >= 0.0
    assert met.max() <= 1.0


def test_pursuit_equals_its_closed_form() -> None:
    rate, policies = 0.3, random_policies(1)
    met = play(Pursuit(rate), policies)
    for t in range(30):
        weights = [rate * (1 - rate) ** (t - 1 - s) for s in range(t)]
        average = (1 - rate) ** t * uniform_policy(LAYOUT) + sum(
            (w * policy for w, policy in zip(weights, policies[:t], strict=True)), np.zeros(LAYOUT.num_rows)
        )
        np.testing.assert_allclose(met[t], np.minimum(1.0, 2.0 * average), atol=1e-14)


def test_pursuit_catches_a_learner_that_settles_and_follows_one_that_flees() -> None:
    met = play(Pursuit(rate=0.5), [concentrated(1)] * 30 + [concentrated(2)] * 30)
    np.testing.assert_allclose(met[0], 0.5)
    np.testing.assert_allclose(met[29], concentrated(1), atol=1e-6)
    np.testing.assert_allclose(met[59], concentrated(2), atol=1e-6)


def test_a_loss_depends_on_the_past_alone_and_repeats_itself() -> None:
    policies = random_policies(2)
    other = [*policies[:10], *random_policies(3)[10:]]
    adversary = Pursuit(rate=0.2)
    first, second, again = play(adversary, policies), play(adversary, other), play(adversary, policies)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first[:11], second[:11])
    assert not np.array_equal(first[11], second[11])


def test_asking_twice_does_not_change_the_answer() -> None:
    adversary = Pursuit()
    adversary.start(LAYOUT)
    np.testing.assert_array_equal(adversary.loss(0), adversary.loss(0))


def test_parameters_rebuild_it() -> None:
    twin = ls.from_params(Pursuit.kind, Pursuit(0.25).params())
    assert isinstance(twin, Pursuit)
    assert twin.rate == 0.25
    assert repr(twin) == "Pursuit(rate=0.25)"


class Custom:
    """A user-written adversary that answers whatever it is told to."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.seen: list[object] = []

    def start(self, layout: Layout) -> None:
        self.seen.append(layout)

    def loss(self, episode: int) -> object:
        return self.answer

    def observe(self, episode: int, policy: np.ndarray, trajectory: np.ndarray) -> None:
        self.seen.append((episode, policy, trajectory))


ROW5 = np.eye(LAYOUT.num_rows)[5]
WRONG = [
    (np.nan * ROW5, "the loss of episode 7 is nan at layer 0, state 0, action 0"),
    (1.5 * ROW5, "the loss of episode 7 is 1.5 at layer 1, state 0, action 1; every entry must lie in"),
    (-ROW5, "the loss of episode 7 is -1.0 at layer 1, state 0, action 1"),
    (ROW5[:3], r"the loss of episode 7 has shape \(3,\), expected \(12,\)"),
    (None, "the loss of episode 7 must be an array of numbers"),
    (["a"] * 12, "the loss of episode 7 must be an array of numbers"),
]


@pytest.mark.parametrize(("answer", "message"), WRONG)
def test_a_wrong_answer_is_located(answer: object, message: str) -> None:
    adversary = ls.checked(Custom(answer))
    adversary.start(LAYOUT)
    with pytest.raises(InvalidInput, match=message):
        adversary.loss(7)


def test_a_checked_adversary_hears_everything_and_cannot_change_its_mind() -> None:
    inner = Custom(ROW5.copy())
    adversary = ls.checked(inner)
    assert isinstance(adversary, CheckedAdaptive)
    assert isinstance(adversary, AdaptiveLosses)
    adversary.start(LAYOUT)
    loss = adversary.loss(0)
    inner.answer[:] = 0.5  # after the loss was handed out
    np.testing.assert_array_equal(loss, ROW5)
    policy = uniform_policy(LAYOUT)
    adversary.observe(0, policy, TRAJECTORY)
    assert inner.seen == [LAYOUT, (0, policy, TRAJECTORY)]
    met = play(ls.checked(Pursuit()), random_policies(4))
    np.testing.assert_array_equal(met, play(Pursuit(), random_policies(4)))


def started() -> Pursuit:
    adversary = Pursuit()
    adversary.start(LAYOUT)
    return adversary


BAD = [
    (lambda: Pursuit(rate=0.0), "the rate is 0.0; it must lie in"),
    (lambda: Pursuit(rate=1.5), "the rate is 1.5; it must lie in"),
    (lambda: Pursuit().loss(0), r"has not been started; call start\(layout\) first"),
    (lambda: ls.checked(Pursuit()).loss(0), r"has not been started; call start\(layout\) first"),
    (lambda: started().loss(1), "episode 1 is out of turn; the adversary expects episode 0"),
    (lambda: started().observe(3, uniform_policy(LAYOUT), TRAJECTORY), "episode 3 is out of turn"),
    (lambda: started().observe(0, np.ones(12), TRAJECTORY), "action probabilities of layer 0, state 0 sum to 4.0"),
    (lambda: ls.checked(started()).loss(-1), "the episode is -1; it must be at least 0"),
    (lambda: CheckedAdaptive(ls.IID()), "needs start, loss and observe; IID does not"),
    (lambda: ls.from_params("pursuit", {"speed": 1}), r"pursuit losses cannot be made of \['speed'\]"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input_is_refused(make, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()
