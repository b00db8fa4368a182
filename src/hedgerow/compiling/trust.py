"""Who else could put code where it is read from: the owners and modes of files, of folders and of all that leads there.

What is read from a cache is executed. Whoever can write to a file, or to its folder, or can exchange one of the folders
on the way there, can have their code executed by us. So

    a file or a folder of ours    belongs to us, and nobody else may write to it
    each folder on the way        belongs to us or to the system; if others may write to it, it is sticky, as /tmp is:
                                  there they can exchange nothing but their own
    each link on the way          belongs to us or to the system

The group that a system gives to one user alone counts as that user, but not for what we have made ourselves. The
system is root and whoever owns the root folder. Other systems than POSIX protect their users' folders otherwise.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

POSIX = os.name == "posix"
GROUP, OTHERS = 0o020, 0o002
MOST_LINKS = 40


def objection_to(path: Path) -> str:
    """Why the content of a file or a folder could be somebody else's; empty if it cannot."""
    if not POSIX:
        return ""
    if path.lstat().st_uid != os.geteuid():
        return f"{path} belongs to somebody else"
    return _objection(path, path.stat())


def objection_to_the_way(path: Path) -> str:
    """Why somebody else could exchange a folder on the way to `path`; empty if nobody can."""
    if not POSIX:
        return ""
    system = {os.geteuid(), 0, Path("/").stat().st_uid}
    at, names, links = Path("/"), list(path.absolute().parts[1:]), 0
    while names:
        if (found := at.stat()).st_uid not in system:
            return f"{at} belongs to somebody else"
        if _others_may_write(found) and not found.st_mode & stat.S_ISVTX:
            return f"{at} can be written by others, who could exchange what is in it"
        name = names.pop(0)
        entry = at.parent if name == ".." else at / name
        if not entry.is_symlink():
            at = entry
            continue
        links += 1
        if links > MOST_LINKS or entry.lstat().st_uid not in system:
            return f"{entry} is a link of somebody else, or one of too many"
        target = entry.readlink()
        at, parts = (Path("/"), target.parts[1:]) if target.is_absolute() else (at, target.parts)
        names = [*parts, *names]
    return ""


def content_of(path: str) -> bytes:
    """The bytes of a file of ours.

    Raises:
        PermissionError: If somebody else may have written them, or if it is a link or no file.
    """
    if not POSIX:
        return Path(path).read_bytes()
    # What is looked at is what is read. Opening a pipe must not wait for its writer.
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        found = os.fstat(file.fileno())
        objection = _objection(path, found) if stat.S_ISREG(found.st_mode) else f"{path} is no file"
        if objection:
            raise PermissionError(objection)
        return file.read()


def _objection(path: Path | str, found: os.stat_result) -> str:
    if found.st_uid != os.geteuid():
        return f"{path} belongs to somebody else"
    return f"{path} can be written by others" if found.st_mode & (GROUP | OTHERS) else ""


def _others_may_write(found: os.stat_result) -> bool:
    return bool(found.st_mode & OTHERS or (found.st_mode & GROUP and not _is_own_group(found.st_gid)))


def _is_own_group(number: int) -> bool:
    """Whether a group has the name of this user and no other member, as many systems make one for each user."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(number)
    except KeyError:
        return False
    return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
