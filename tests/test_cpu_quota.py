"""Limits on processor time, read from made-up control groups, and the threads that follow from them."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from svmkit import parallel
from svmkit.cpu_quota import cpu_quota


def quota(folder: Path, groups: str, files: dict[str, str]) -> float:
    """That of a process whose groups are the text ``groups``, where their ``files`` below the root have such contents."""
    (folder / "groups").write_text(groups)
    for name, text in files.items():
        path = folder / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return cpu_quota(str(folder / "groups"), str(folder / "root"))


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),  # a container with a name space of its own
        ("0::/\n", {"cpu.max": "max 100000\n"}, inf),
        ("0::/a/b\n", {"a/cpu.max": "400000 100000\n", "a/b/cpu.max": "max 100000\n"}, 4.0),  # the group above
        ("0::/a/b\n", {"a/cpu.max": "400000 100000\n", "a/b/cpu.max": "50000 100000\n"}, 0.5),
        ("0::/a\n", {"b/cpu.max": "100000 100000\n"}, inf),  # somebody else's
        ("0::/a:b\n", {"a:b/cpu.max": "50000 100000\n"}, 0.5),  # colons are part of a name
        ("3:cpu,cpuacct:/x\n0::/\n", {"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2.0),
        ("3:cpu:/x\n", {"cpu/x/cpu.cfs_quota_us": "300000\n", "cpu/x/cpu.cfs_period_us": "100000\n"}, 3.0),
        ("3:cpu:/x\n", {"cpu/x/cpu.cfs_quota_us": "-1\n", "cpu/x/cpu.cfs_period_us": "100000\n"}, inf),
        ("3:cpu:/x\n", {"cpu/x/cpu.cfs_quota_us": "200000\n"}, inf),  # of no period
        ("4:cpuset,memory:/x\n", {"cpu/x/cpu.cfs_quota_us": "1\n", "cpu/x/cpu.cfs_period_us": "100000\n"}, inf),
        ("1:name=systemd:/\n", {}, inf),
    ],
)
def test_least_limit_of_the_groups_counts(tmp_path: Path, groups: str, files: dict[str, str], expected: float) -> None:
    assert quota(tmp_path, groups, files) == expected


@pytest.mark.parametrize("name", [b"caf\xe9", b"a\rb", b"a\x0cb", "a\u2028b".encode()])
def test_groups_have_names_of_any_bytes(tmp_path: Path, name: bytes) -> None:
    (tmp_path / "groups").write_bytes(b"0::/" + name + b"\n")
    assert cpu_quota(str(tmp_path / "groups"), str(tmp_path)) == inf


def test_system_without_control_groups_has_no_limit(tmp_path: Path) -> None:
    assert cpu_quota(str(tmp_path / "none"), str(tmp_path)) == inf


@pytest.mark.parametrize(("granted", "expected"), [(0.5, 1), (1.0, 1), (2.5, 3), (inf, 4), (64.0, 4)])
def test_threads_are_as_many_as_the_limit_can_feed(monkeypatch: pytest.MonkeyPatch, granted: float, expected: int) -> None:
    monkeypatch.setattr(parallel, "cpu_quota", lambda: granted)
    monkeypatch.setattr(parallel.os, "sched_getaffinity", lambda pid: set(range(4)), raising=False)
    assert parallel.cores.__wrapped__() == expected
