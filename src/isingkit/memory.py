"""Memory: what there is, and the refusal of what would need more."""

from pathlib import Path

from isingkit.exceptions import NotEnoughMemoryError

_GROUPS = Path("/sys/fs/cgroup")  # where Linux keeps the limits of containers
_NO_LIMIT = 1 << 60  # version 1 writes a number next to 2^63 where there is none


def require_memory(needed: float, *, n_spins: int, n_samples: float) -> None:
    """Refuse what needs more memory than can be had without swapping, where the system tells,
    before it starts.
    """
    there = memory_there()
    if there is not None and needed > there:
        raise NotEnoughMemoryError(
            needed=int(needed), there=there, n_spins=n_spins, n_samples=int(n_samples)
        )


def memory_there() -> int | None:
    """Bytes that can be had without swapping, on the machine and in this container; None where the
    system does not tell.
    """
    found = [_left_on_machine(), *_left_in_containers()]
    return min((left for left in found if left is not None), default=None)


def _left_on_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found = dict(line.split(":", 1) for line in lines)
        return 1024 * int(found["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return None


def _left_in_containers() -> list[int]:
    """What each control group around this process leaves of its limit."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    left = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            left += _left_above(_GROUPS, path, "memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            left += _left_above(_GROUPS / "memory", path, *names)
    return left


def _left_above(root: Path, path: str, limit_name: str, used_name: str) -> list[int]:
    """What a group and those it is part of leave. A container may see its own group as the root,
    under whatever path.
    """
    here = root / path.strip("/")
    groups = [group for group in (here, *here.parents) if group.is_relative_to(root)]
    left = []
    for group in groups:
        limit = _number_in(group / limit_name)
        if limit is None or limit >= _NO_LIMIT:
            continue
        used = _number_in(group / used_name) or 0
        left.append(max(0, limit - used + _cached(group / "memory.stat")))
    return left


def _number_in(path: Path) -> int | None:
    """A number; None for "max", or where there is no such file."""
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _cached(path: Path) -> int:
    """Bytes of files that Linux counts as used but gives back when asked."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
        found = dict(line.split() for line in lines)
        return int(found.get("inactive_file") or found.get("total_inactive_file") or 0)
    except (OSError, ValueError):
        return 0
