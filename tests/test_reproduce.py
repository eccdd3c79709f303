"""The reproduction scripts judge as they say: on a set of the paper's size, every figure is recomputed from scratch."""

from __future__ import annotations

from pathlib import Path

import bench_data
import numpy as np
import pytest
import reproduce
from click.testing import CliRunner
from oracle import dense_kernel
from zoo import points

from svmkit.data import Floats, Rows
from svmkit.engine.rng import permutation
from svmkit.problem import RBF, Kernel


def write_set(folder: Path, n: int) -> tuple[Floats, Floats]:
    X, y = points(n, 9, seed=1)
    lines = [f"{label:g} " + " ".join(f"{j}:{v:.6f}" for j, v in enumerate(row, 1)) for row, label in zip(X, y, strict=True)]
    (folder / "breast-cancer-wisconsin").write_text("\n".join(lines) + "\n", "ascii")
    return np.round(X, 6), y


def table(text: str) -> list[dict[str, str]]:
    head, _, *body = [[cell.strip() for cell in row.strip("|").split("|")] for row in text.strip().splitlines()]
    return [dict(zip(head, row, strict=True)) for row in body]


def test_scs_table_says_what_is_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_data, "DATA", tmp_path)
    X, y = write_set(tmp_path, 683)
    argv = ["scs", "--set", "breast-cancer", "--seeds", "2", "--gamma", "0", "--gamma", "1"]
    done = CliRunner().invoke(reproduce.group, argv, catch_exceptions=False)
    assert done.exit_code == 0

    order = permutation(1, 0, 683)
    train, test = order[:500], order[500:]
    scaled = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    rows = table(done.stdout)
    assert [row["method"] for row in rows] == ["pegasos", "scs", "wolfe", "scs < pegasos"] * 2
    for row in rows:
        gamma = float(row["γ"]) if row["γ"] == "1" else 1 / 9
        K = dense_kernel(Rows.from_dense(scaled), Rows.from_dense(scaled[train]), Kernel(RBF, gamma))
        response = K @ y[train] / 500
        assert row["train/test"] == "500/183"
        assert float(row["f*"]) == pytest.approx(1 - np.mean(y[train] * response[train]) / 2, abs=1e-5)
        assert float(row["its accuracy"]) == pytest.approx(np.mean(response[test] * y[test] > 0), abs=1e-3)
        if row["method"] == "wolfe":
            assert float(row["ours ± sd"].split()[0]) == float(row["its accuracy"])
            assert abs(float(row["largest"])) < 1e-6
        if row["method"] in ("scs", "wolfe"):
            assert row["at most 1 %"] == ("holds" if float(row["largest"]) <= 0.01 else "does not hold")
        if row["method"] in ("pegasos", "scs", "wolfe"):
            short = float(row["ours ± sd"].split()[0]) - float(row["paper's accuracy"]) + 0.01
            assert abs(short) < 1e-3 or row["reached"] == ("holds" if short > 0 else "does not hold")
            assert float(row["(f − f*)/(1 − f*), mean"]) <= float(row["largest"])


def test_a_missing_set_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_data, "DATA", tmp_path)
    done = CliRunner().invoke(reproduce.group, ["scs", "--set", "heart", "--seeds", "1"])
    assert done.exit_code == 1
    assert "heart-cleveland" in done.stderr
    assert done.stdout == ""
