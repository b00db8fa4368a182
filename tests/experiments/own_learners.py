"""Learners of others, in a module that processes apart import in no time: it needs the package alone."""

from __future__ import annotations

from typing import Any

import hedgerow as hr


class Still(hr.SVOPS):
    """A class in a module."""


class Failing(hr.SVOPS):
    """A learner that ends in the first episode."""

    def observe(self, episode: Any) -> None:
        raise ArithmeticError("on purpose")
