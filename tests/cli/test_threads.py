"""``-j`` of every command that computes."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import svmkit

from svmkit import parallel


@pytest.mark.parametrize(
    "line",
    [
        "train {data} m",
        "train -v 2 {data}",
        "train --solver pegasos --stream {data} m",
        "train --solver lasvm --pool {data} --oracle cat --labels 1,-1 --max-labels 1 m",
        "predict {data} model",
        "eval {data} model",
        "scale {data}",
        "approx --report --dims 2 {data}",
        "approx --map fourier --dim 4 {data} mapped",
        "approx --model model --basis 4 small",
        "compare --solvers smo {data} out",
    ],
)
def test_as_many_threads_are_used_as_are_asked_for(
    line: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert svmkit("train", "-q", data, tmp_path / "model").returncode == 0
    used: list[int] = []
    monkeypatch.setattr(parallel, "use_threads", used.append)
    command, *rest = line.format(data=data).split()
    done = svmkit(command, "-j", "2", *rest, cwd=tmp_path)
    assert used == [2], done.stderr
