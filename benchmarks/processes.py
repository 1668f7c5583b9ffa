"""What the kernel counts of a process: CPU time and resident memory. Linux only."""

import os
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads of a process and its children so far: far steadier on a busy machine than what a clock
    shows."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
        own = sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
        return own + sum(map(cpu_seconds, children))
    except OSError:  # a kernel without these statistics
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK


def resident_mib(pid: int) -> float:
    """Resident memory, in mebibytes."""
    return _status_mib(str(pid), "VmRSS:")


def peak_mib() -> float:
    """The most that this process held at a time, in mebibytes. (`getrusage` tells of the program that was there before
    it, too.)"""
    return _status_mib("self", "VmHWM:")


def _status_mib(process: str, name: str) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise ValueError(f"process {process} has no resident memory")
