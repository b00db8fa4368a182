"""Pack the compiled kernels of this clone: whoever clones these sources and has this Python compiles nothing.

    python tools/ship_kernels.py            # compile all for x86-64-v3 and v4, write kernels/<python>-<system>.tar.xz
    python tools/ship_kernels.py --check    # compile again: is the archive what these sources give, byte for byte?

`pip install -e .` unpacks the archive (`hatch_build.py`). Compiled code is looked up by a hash of its sources and of
numba's version: after a change to a kernel, clones compile what the change concerns, until it is written again.
Nobody can read an archive, but compilation is deterministic: anybody can make it again and compare the machine code.
"""

from __future__ import annotations

import argparse
import hashlib
import pickle
import sys
import tarfile
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import hatch_build  # noqa: E402
from hedgerow.compiling import kernels  # noqa: E402 - what the files hold refers to it

CHECKSUM = hashlib.sha256().digest_size


def sources() -> str:
    """The folders that kernels of these sources are looked up in, one for each module that may have some."""
    package = ROOT / "src" / "hedgerow"
    home = package / "compiling" / "kernels.py"
    return "".join(
        f"{kernels.cache_name(path)}\n" for path in sorted(package.rglob("*.py")) if _has_kernels(path, home)
    )


def _has_kernels(path: Path, home: Path) -> bool:
    return path == home or home in kernels._imports(path)


def is_stale(archive: Path) -> bool:
    """Whether an archive was made of other sources, or with another numba."""
    with tarfile.open(archive, "r:xz") as packed:
        first = packed.next()
        content = packed.extractfile(first) if first is not None and first.name.endswith(hatch_build.SOURCES) else None
        return content is None or content.read() != sources().encode()


def pack(folder: Path, archive: Path) -> None:
    """Write all files of compiled code below `folder`, in order, without owners and times."""
    archive.parent.mkdir(exist_ok=True)
    (folder / hatch_build.SOURCES).write_text(sources(), encoding="utf-8", newline="\n")
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for file in [folder / hatch_build.SOURCES, *sorted(folder.rglob("*.nb[ci]"))]:
            entry = tarfile.TarInfo(f"hedgerow/{file.relative_to(folder).as_posix()}")
            entry.size, entry.mode = file.stat().st_size, 0o644
            with file.open("rb") as content:
                packed.addfile(entry, content)


def machine_code(folder: Path) -> dict[str, list[bytes]]:
    """The object code of every function, by the sources that it was compiled from and its name."""
    found: dict[str, list[bytes]] = defaultdict(list)
    for file in folder.rglob("*.nbc"):
        name = file.relative_to(folder).as_posix().rsplit(".", 2)[0]
        _, kind, (code, *_) = pickle.loads(file.read_bytes()[:-CHECKSUM])[0]
        if kind != "object":
            raise ValueError(f"{file} holds no object code")
        found[name].append(bytes(code))
    return {name: sorted(codes) for name, codes in found.items()}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, and compare")
    check = parser.parse_args(arguments).check
    archive = hatch_build.archive_in(ROOT)
    if not hatch_build.is_intel() or (check and not archive.is_file()):
        print(f"there is no {archive}" if check else "kernels are packed for x86-64 only", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="hedgerow-kernels-") as name:
        made = hatch_build.compile_into(Path(name), ROOT)
        if not check:
            pack(made, archive)
            print(f"{archive}: {archive.stat().st_size / 1e6:.1f} MB")
            return 0
        hatch_build.unpack(archive, Path(name, "packed"))
        ours, packed = machine_code(made), machine_code(Path(name, "packed"))
    wrong = sorted(name for name in ours.keys() | packed.keys() if ours.get(name) != packed.get(name))
    for each in wrong:
        print(f"{each}: {'missing' if each not in packed else 'superfluous' if each not in ours else 'different'}")
    print(f"{archive}: {len(ours)} functions, {len(wrong)} not the same")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
