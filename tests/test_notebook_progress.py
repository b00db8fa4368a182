"""A real kernel: progress of a simulation in a notebook is one output, which moves and ends in one line."""

from __future__ import annotations

import re
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs nbformat, nbclient and ipykernel")
nbclient = pytest.importorskip("nbclient", reason="needs nbformat, nbclient and ipykernel")
pytest.importorskip("ipykernel", reason="needs nbformat, nbclient and ipykernel")

pytestmark = pytest.mark.nightly  # it starts a kernel of Jupyter; what is shown there: test_output.py

SETUP = """
import time
import numpy as np
import hedgerow as hr

class Slow:
    "An adversary that takes its time: ten milliseconds an episode."
    def start(self, layout):
        self.rows = layout.num_rows
    def loss(self, episode):
        time.sleep(0.01)
        return np.full(self.rows, 0.5)
    def observe(self, episode, policy, trajectory):
        pass

world = hr.worlds.make("lower-bound-1").cmdp
hr.simulate(world, hr.SVOPS(world.view(), 5, 0.05), hr.losses.IID(), step_wise=True)
"""
LONG = "run = hr.simulate(world, hr.SVOPS(world.view(), 250, 0.05), Slow())"
QUICK = "run = hr.simulate(world, hr.SVOPS(world.view(), 50, 0.05), hr.losses.IID())"
SHOWN = "run"
STOPPED = """
class Broken(Slow):
    def loss(self, episode):
        if episode == 150:
            raise RuntimeError("enough")
        return super().loss(episode)
try:
    hr.simulate(world, hr.SVOPS(world.view(), 250, 0.05), Broken())
except RuntimeError:
    pass
"""


class Notebook:
    """The cells after they were run, and every message that changed what they show."""

    def __init__(self, *cells: str) -> None:
        self.moves: list[str] = []
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        client = nbclient.NotebookClient(made, timeout=120, kernel_name="python3")
        process = client.process_message

        def watched(message: Any, cell: Any, place: int) -> Any:
            if message["msg_type"] in ("display_data", "update_display_data"):
                self.moves.append(message["content"]["data"].get("text/plain", ""))
            return process(message, cell, place)

        client.process_message = watched
        client.execute()
        self.outputs = [cell.outputs for cell in made.cells]


@pytest.fixture(scope="module")
def notebook() -> Notebook:
    # What jupyter_client and zmq warn of is their own affair.
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Notebook(SETUP, LONG, QUICK, SHOWN, STOPPED)


def test_progress_moves_with_rate_and_time_left(notebook: Notebook) -> None:
    moving = [re.fullmatch(r"episodes: (\d+) %, ([\d,]+)/s, [\d.]+ s left", words) for words in notebook.moves]
    shares = [int(found[1]) for found in moving if found]
    assert len(shares) >= 3
    assert len(notebook.moves) <= 50
    assert all(int(found[2]) <= 100 for found in moving if found)


def test_one_clean_line_is_left(notebook: Notebook) -> None:
    (output,) = notebook.outputs[1]
    assert output.output_type == "display_data"
    assert re.fullmatch(r"episodes: done after [\d.]+ s, \d+/s", output.data["text/plain"])
    assert output.data["text/html"] == output.data["text/plain"]
    assert not any("widget" in kind for kind in output.data)


def test_a_quick_simulation_shows_nothing(notebook: Notebook) -> None:
    assert notebook.outputs[2] == []


def test_a_run_shows_itself(notebook: Notebook) -> None:
    (output,) = notebook.outputs[3]
    assert output.data["text/plain"].startswith("Run(SVOPS, episodes=50, ")
    assert output.data["text/html"].startswith("<div ")


def test_what_was_stopped_says_so(notebook: Notebook) -> None:
    (output,) = notebook.outputs[4]
    assert re.fullmatch(r"episodes: stopped at \d+ % after [\d.]+ s, \d+/s", output.data["text/plain"])
