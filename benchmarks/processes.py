"""CPU time and resident memory of a process, from the kernel's statistics. Linux only."""

import os
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of all threads of a process and its children so far. On a busy machine this is far
    steadier than wall-clock time."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
        own = sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
        return own + sum(map(cpu_seconds, children))
    except OSError:  # the kernel lacks these statistics
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK


def resident_mib(pid: int) -> float:
    """Return the resident memory in mebibytes."""
    return _status_mib(str(pid), "VmRSS:")


def peak_mib() -> float:
    """Return this process's peak memory in mebibytes. (`getrusage` would include the program that ran before exec.)"""
    return _status_mib("self", "VmHWM:")


def _status_mib(process: str, name: str) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise ValueError(f"process {process} has no resident memory")
