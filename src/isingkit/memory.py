"""Memory: what there is, and the refusal of what would need more."""

from isingkit.exceptions import NotEnoughMemoryError


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
    """Bytes that can be had without swapping; None where the system does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            found = dict(line.split(":", 1) for line in file)
        return 1024 * int(found["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return None
