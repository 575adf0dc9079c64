"""Files that appear whole or not at all."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside `path`; it takes its place if the block ends well, else vanishes."""
    final = Path(path)
    if not final.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(final.parent))
    handle, name = tempfile.mkstemp(prefix=f".{final.name}.", suffix=final.suffix, dir=final.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)  # mkstemp makes files that only their owner can read
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        temporary.replace(final)
    finally:
        temporary.unlink(missing_ok=True)
