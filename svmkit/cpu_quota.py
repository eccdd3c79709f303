"""How much processor time Linux's control groups allow: a container or a batch system may show all cores and grant a few.

More threads than that would be halted together, each time that the group has used up the time of a period.
"""

from __future__ import annotations

import os
from math import inf


def cpu_quota(groups: str = "/proc/self/cgroup", root: str = "/sys/fs/cgroup") -> float:
    """Seconds of processor time a second for this process's group and those above it; inf where nothing limits it.

    ``groups`` lists the groups, ``root`` is where their files are: ``cpu.max``, or in version 1 two files below ``cpu``.
    """
    allowed = inf
    for line in filter(None, _text(groups).split("\n")):  # a name may hold what else ends a line
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        folder = os.path.join(root, "cpu") if controllers else root
        allowed = min(allowed, _quota_of(folder))  # a container may see its own group here, whatever the path says
        for name in path.strip("/").split("/"):
            folder = os.path.join(folder, name)
            allowed = min(allowed, _quota_of(folder))
    return allowed


def _quota_of(folder: str) -> float:
    texts = [_text(os.path.join(folder, name)) for name in ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")]
    quota_us, *period_us = " ".join(texts).split() or ["max"]
    return int(quota_us) / int(period_us[0]) if quota_us.isdigit() and period_us else inf  # no limit: "max", or −1


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:  # groups have names of any bytes
            return file.read()
    except OSError:  # another system, or no such group
        return ""
