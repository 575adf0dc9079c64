"""Files and folders that appear whole or not at all."""

import contextlib
import ctypes
import errno
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from isingkit.formats import FilePath

try:
    import fcntl
except ImportError:  # no Unix: nothing is locked, and nothing that was left behind is cleared away
    fcntl = None  # type: ignore[assignment]

_MARK = "isingkit-"  # in names of what is not finished
_YOUNG = 10.0  # seconds within which a new file may not be locked yet
_PATIENCE = 10.0  # seconds to wait for another's lock, which is held for moments
_TO_DELETE = 4  # open files that deleting a folder takes: one for each level, and a list
_ASKING = threading.Lock()
_MOST_LINKS = 40  # from one to the next, as in Linux
_CURRENT_FOLDER = -100  # AT_FDCWD of Linux
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux


@contextmanager
def replacing(path: FilePath) -> Iterator[Path]:
    """A temporary path beside `path`; it takes its place if the block ends well, else vanishes.

    What a killed process has left of an earlier attempt vanishes, too. A link stays one: what it
    leads to is replaced. A stream (a pipe, a device) stays what it is, and gets the bytes.
    """
    final = Path(path)
    if _is_stream(final):
        with _poured(final) as temporary:
            yield temporary
        return
    if final.is_symlink():
        final = final.resolve()
    if not final.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(final.parent))
    _clear_strays(final)
    handle, name = tempfile.mkstemp(final.suffix, _prefix(final), final.parent)
    temporary = Path(name)
    try:
        _lock(handle)
        yield temporary
        temporary.chmod(_mode(final))  # mkstemp makes files that only their owner can read
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        temporary.replace(final)
    finally:
        temporary.unlink(missing_ok=True)
        os.close(handle)


@contextmanager
def _poured(stream: Path) -> Iterator[Path]:
    """A temporary file, whose bytes go into a stream if the block ends well."""
    with private_folder("isingkit-stream") as folder:
        temporary = folder / stream.name
        temporary.touch()
        yield temporary
        with open(temporary, "rb") as written, open(stream, "ab") as out:
            shutil.copyfileobj(written, out)


def _is_stream(path: Path) -> bool:
    """Whether bytes go somewhere else than into a file of this name: it is a pipe or a device, or
    stands for what a process has open, as /dev/stdout does.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        return True
    place = path
    for _ in range(_MOST_LINKS):
        folder = Path(os.path.realpath(place.parent))
        if folder.is_relative_to("/proc"):
            return True
        if not place.is_symlink():
            return False
        place = folder / place.readlink()
    return False


def _mode(final: Path) -> int:
    """Who may read and write: as before, of a file that is there."""
    if final.is_file():
        return stat.S_IMODE(final.stat().st_mode)
    return 0o666 & ~_umask()


@contextmanager
def new_folder(final: Path) -> Iterator[Path]:
    """A temporary folder beside `final`, which is to take its place; it vanishes in the end."""
    with _locked_folder(final) as temporary:
        temporary.chmod(0o777 & ~_umask())
        yield temporary


@contextmanager
def private_folder(name: str) -> Iterator[Path]:
    """A folder among the system's temporary ones that only its owner can look into; it vanishes in
    the end, and so does what killed processes have left of folders of this name.
    """
    owner = os.getuid() if hasattr(os, "getuid") else "own"
    with _locked_folder(Path(tempfile.gettempdir(), f"{name}-{owner}")) as temporary:
        yield temporary


@contextmanager
def _locked_folder(final: Path) -> Iterator[Path]:
    """A folder beside `final` that nobody else takes for abandoned, for its owner alone; it
    vanishes in the end, also where the process has run out of open files: a few are kept for that.
    """
    _clear_strays(final)
    with contextlib.ExitStack() as kept:
        for _ in range(_TO_DELETE):
            kept.enter_context(open(os.devnull, "rb"))
        temporary = Path(tempfile.mkdtemp(prefix=_prefix(final), dir=final.parent))
        try:
            with locked(temporary):
                yield temporary
        finally:
            kept.close()
            shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Within, whoever else locks the folder waits, some seconds, where the system can do so."""
    handle = os.open(folder, os.O_RDONLY)
    deadline = time.monotonic() + _PATIENCE
    try:
        while not _lock(handle) and time.monotonic() < deadline:
            time.sleep(0.02)
        yield
    finally:
        os.close(handle)


def exchange(one: Path, other: Path) -> bool:
    """Whether two folders have changed places, in one step; Linux can do so, on most of its file
    systems.
    """
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    here = ctypes.c_int(_CURRENT_FOLDER)
    failed: int = rename(here, os.fsencode(one), here, os.fsencode(other), _EXCHANGE)
    return failed == 0


def _prefix(final: Path) -> str:
    return f".{final.name}.{_MARK}"


def _umask() -> int:
    """Of this process, which can be asked for only by setting another for a moment."""
    with _ASKING:
        umask = os.umask(0)
        os.umask(umask)
        return umask


def _lock(handle: int) -> bool:
    """Whether what is open is locked by this process from now on."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another has it, or the file system knows no locks
        return False
    return True


def _clear_strays(final: Path) -> None:
    """Delete what killed processes have left of attempts at this name."""
    with contextlib.suppress(OSError):  # of a folder that cannot be looked into, say
        for stray in final.parent.iterdir():
            if stray.name.startswith(_prefix(final)) and _is_abandoned(stray):
                is_folder = stray.is_dir() and not stray.is_symlink()
                shutil.rmtree(stray) if is_folder else stray.unlink()


def _is_abandoned(stray: Path) -> bool:
    """Whether no process holds it: a lock ends with its process."""
    if time.time() - stray.stat().st_mtime < _YOUNG:
        return False
    handle = os.open(stray, os.O_RDONLY)
    try:
        return _lock(handle)
    finally:
        os.close(handle)
