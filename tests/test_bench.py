"""The benchmark judges models as their definitions say, whoever wrote them and with however many digits; tools that fail keep
their rows; tables say what the records say. No timing is asked about."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import bench_data
import bench_report
import bench_tools
import bench_worker
import numpy as np
import oracle
import pytest
import zoo
from data_files import write_points

import bench
from svmkit.config import TrainConfig
from svmkit.data import Dataset
from svmkit.fit import fit
from svmkit.io.libsvm_data import read_dataset
from svmkit.io.model_libsvm import read_model, write_model
from svmkit.model import Model, decision_values, with_machines
from svmkit.problem import Problem

C, GAMMA = 2.0, 0.5


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 rows, some of them twice."""
    X, y = zoo.points(110, 4, seed=3)
    path = tmp_path_factory.mktemp("bench") / "data"
    write_points(path, np.vstack([X, X[:10]]), np.concatenate([y, y[:10]]))
    return path


def trained(data: Path, **options: object) -> tuple[Dataset, Model]:
    dataset = read_dataset(str(data))
    return dataset, fit(dataset, TrainConfig(C=C, gamma=GAMMA, **options)).model  # type: ignore[arg-type]


def judged(data: Path, *models: Path, linear: bool = False) -> list[dict[str, float]]:
    request = {"train": str(data), "test": str(data), "C": C, "linear": linear, "models": [str(path) for path in models]}
    return bench_worker.judge(json.dumps(request))["verdicts"]  # type: ignore[no-any-return]


def by_definition(dataset: Dataset, model: Model) -> dict[str, float]:
    """Objectives and violation of a binary model, from a dense Q."""
    assert model.labels is not None
    y = np.where(np.trunc(dataset.y) == model.labels[0], 1.0, -1.0)
    problem = Problem(dataset.rows, y, np.full(dataset.n, C), model.kernel)
    rows, beta = dataset.rows.to_dense(), np.zeros(dataset.n)
    (machine,) = model.machines
    for row, coef in zip(model.rows.take(machine.index).to_dense(), machine.coef, strict=True):
        free = [i for i in range(dataset.n) if (rows[i] == row).all() and beta[i] == 0 and y[i] * coef > 0]
        beta[free[0]] = coef
    K = oracle.kernel_matrix(problem)
    F = y - K @ beta
    violation = F[beta < np.maximum(0, C * y)].max() - F[beta > np.minimum(0, C * y)].min()
    return {
        "primal": oracle.primal_objective(K, problem, beta, machine.rho),
        "dual": oracle.dual_objective(K, y, beta),
        "violation": float(violation),
    }


def test_judges_as_defined(data: Path, tmp_path: Path) -> None:
    dataset, model = trained(data, eps=0.1)
    write_model(str(tmp_path / "m"), model)
    (verdict,) = judged(data, tmp_path / "m")
    for key, value in by_definition(dataset, model).items():
        assert verdict[key] == pytest.approx(value, rel=1e-9, abs=1e-9), key
    decisions = decision_values(model, dataset.rows)[:, 0]
    assert model.labels is not None
    assert verdict["test_error"] == np.mean(np.where(decisions > 0, *model.labels) != dataset.y)
    assert verdict["n_support"] == model.n_support


@pytest.mark.parametrize("single", [False, True], ids=["8 digits", "single precision, 8 digits"])
def test_support_vectors_with_few_digits_are_the_training_rows(data: Path, tmp_path: Path, single: bool) -> None:
    """LIBSVM writes %.8g, ThunderSVM %.8g of single precision: both mean the exact training rows."""
    model = trained(data)[1]
    write_model(str(tmp_path / "exact"), model)
    head, _, support = (tmp_path / "exact").read_text().partition("SV\n")
    lines = []
    for line in support.splitlines():
        coef, *pairs = line.split()
        numbers = [(i, float(v)) for i, _, v in (pair.partition(":") for pair in pairs)]
        lines.append(" ".join([coef, *(f"{i}:{float(np.float32(v)) if single else v:.8g}" for i, v in numbers)]))
    (tmp_path / "cut").write_text(head + "SV\n" + "\n".join(lines) + "\n")
    exact, cut = judged(data, tmp_path / "exact", tmp_path / "cut")
    assert [cut[key] for key in ("primal", "dual", "violation")] == [exact[key] for key in ("primal", "dual", "violation")]


def test_coefficients_in_single_precision_keep_their_violation(data: Path, tmp_path: Path) -> None:
    """Rounding neither unbalances them nor takes them off their bound, where the violation would be of order 1."""
    model = trained(data)[1]
    (machine,) = model.machines
    rounded = replace(machine, coef=(machine.coef * (1 - 3e-8)).astype(np.float32).astype(np.float64))
    for name, machines in (("double", model.machines), ("single", (rounded,))):
        write_model(str(tmp_path / name), with_machines(model, machines))
    double, single = judged(data, tmp_path / "double", tmp_path / "single")
    assert 0 < double["violation"] <= 1e-3
    assert single["violation"] == pytest.approx(double["violation"], abs=1e-5)
    assert single["dual"] == pytest.approx(double["dual"], rel=1e-6)


def test_rows_of_other_data_leave_the_primal(data: Path, tmp_path: Path) -> None:
    dataset, model = trained(data)
    moved = model.rows._replace(data=model.rows.data + 0.01)
    write_model(str(tmp_path / "m"), replace(model, rows=moved))
    (verdict,) = judged(data, tmp_path / "m")
    assert "dual" not in verdict
    assert "violation" not in verdict
    (machine,) = model.machines
    basis = moved.take(machine.index)
    assert model.labels is not None
    y = np.where(dataset.y == model.labels[0], 1.0, -1.0)
    f = oracle.dense_kernel(dataset.rows, basis, model.kernel) @ machine.coef - machine.rho
    norm2 = machine.coef @ oracle.dense_kernel(basis, basis, model.kernel) @ machine.coef
    assert verdict["primal"] == pytest.approx(0.5 * norm2 + C * np.maximum(0, 1 - y * f).sum(), rel=1e-12)


@pytest.mark.parametrize("labels", ["1 -1", "-1 1"])
def test_liblinear_model(data: Path, tmp_path: Path, labels: str) -> None:
    dataset, w = read_dataset(str(data)), np.array([0.5, -0.25, 0.0, 2.0])
    weights = "".join(f"{value:g} \n" for value in w)
    text = f"solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel {labels}\nnr_feature 4\nbias -1\nw\n{weights}"
    (tmp_path / "m").write_text(text)
    (verdict,) = judged(data, tmp_path / "m", linear=True)
    sign = float(labels.split()[0])
    f = sign * (dataset.rows.to_dense()[:, 1:] @ w)
    assert verdict["primal"] == pytest.approx(0.5 * w @ w + C * np.maximum(0, 1 - dataset.y * f).sum(), rel=1e-12)
    assert verdict["test_error"] == np.mean(np.where(f > 0, 1, -1) != dataset.y)


@pytest.mark.parametrize("n_class", [2, 4])
def test_scikit_learn_model_is_written_as_libsvm_does(tmp_path: Path, n_class: int) -> None:
    svm = pytest.importorskip("sklearn.svm")
    X, _ = zoo.points(120, 4, seed=5)
    y = np.random.default_rng(0).integers(3, 3 + n_class, 120).astype(float)
    path = tmp_path / "data"
    write_points(path, X, y)
    worker_saw = bench_worker.sklearn(str(path), str(tmp_path / "m"), str(C), str(GAMMA), "1e-5")
    assert worker_saw["iterations"] > 0
    reference = svm.SVC(C=C, gamma=GAMMA, tol=1e-5, decision_function_shape="ovo").fit(X, y)
    model = read_model(str(tmp_path / "m"))
    ours = decision_values(model, read_dataset(str(path)).rows)
    theirs = reference.decision_function(X).reshape(120, -1)
    assert model.labels is not None
    assert model.labels.tolist() == list(range(3, 3 + n_class))
    np.testing.assert_allclose(ours, theirs if n_class > 2 else -theirs, atol=1e-9)
    (verdict,) = judged(path, tmp_path / "m")
    assert verdict["violation"] <= 2e-5


# --- commands ---------------------------------------------------------------------------------------------------------------


def test_a_command_that_fails_says_so() -> None:
    with pytest.raises(bench_tools.Failed, match=r"^exit 3: at last$"):
        bench_tools.measure([sys.executable, "-c", "import sys; print('before\\nat last', file=sys.stderr); sys.exit(3)"], 60)
    with pytest.raises(bench_tools.Failed, match=r"^> 0.3 s$"):
        bench_tools.measure([sys.executable, "-c", "import time; time.sleep(60)"], 0.3)
    with pytest.raises(bench_tools.Failed, match="No such file"):
        bench_tools.measure(["/no/such/program"], 60)
    run = bench_tools.measure([sys.executable, "-c", "print('well', *bytearray(50_000_000)[:1])"], 60)
    assert run.output == "well 0\n"
    assert run.peak_mb > 50


def test_peers_are_found_where_they_are_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("svm-train", "svm-predict", "mine"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(bench_tools.BIN), str(tmp_path)]))
    peers = bench_tools.find_peers([f"new={tmp_path / 'mine'}"], [f"sklearnex={tmp_path / 'mine'}"])
    assert peers.programs == {
        **{name: str(tmp_path / name) for name in ("svm-train", "svm-predict")},
        "new": str(tmp_path / "mine"),
    }
    assert peers.pythons["sklearnex"] == str(tmp_path / "mine")
    names = [tool.name for tool in bench_tools.trainers(bench.BY_NAME["a9a"], peers, [])]
    assert names[:3] == ["svmkit", "svm-train", "new"]
    assert "scikit-learn-intelex" in names
    for tools, pythons, why in (
        (["new"], [], "give NAME=PATH"),
        (["new=/no/such/program"], [], "is no program"),
        ([], [f"numpy={sys.executable}"], "not one of sklearn"),
    ):
        with pytest.raises(ValueError, match=why):
            bench_tools.find_peers(tools, pythons)


def script(path: Path, text: str) -> str:
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return str(path)


def test_a_case_keeps_every_tool_in_turn(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "WORK", tmp_path)
    log = tmp_path / "log"
    write_model(str(tmp_path / "given"), trained(data)[1])
    note = f"import sys, shutil\nopen({str(log)!r}, 'a').write(sys.argv[0][-4:] + ' ')\n"
    programs = {
        "good": script(tmp_path / "good", note + f"shutil.copy({str(tmp_path / 'given')!r}, sys.argv[-1]); print('#iter = 7')"),
        "fail": script(tmp_path / "fail", note + "sys.exit('no memory')"),
    }
    case = bench_data.Case("small", C, GAMMA, lambda: (data, data))
    args = argparse.Namespace(runs=2, limit=300.0, only=[])
    record = bench.training(case, bench_tools.Peers(programs, {}), args)
    assert log.read_text().split() == ["good", "fail", "good"]
    ours, good, fail = record["tools"]
    assert [len(tool["seconds"]) for tool in record["tools"]] == [2, 2, 0]
    assert len(ours["fit_s"]) == 2
    assert ours["kernel_evaluations"] > 0
    assert ours["verdict"]["violation"] <= 1e-3
    assert good["iterations"] == 7
    assert good["verdict"] == {**ours["verdict"], "agreement": 1.0}
    assert fail["failed"] == "exit 1: no memory"
    assert fail["verdict"] is None
    assert any("exit 1" in row for row in bench_report.table_of(record))
    with pytest.raises(bench_data.Missing, match="none of absent"):
        bench.training(case, bench_tools.Peers(programs, {}), argparse.Namespace(runs=1, limit=300.0, only=["absent"]))


def test_only_takes_a_tools_name_or_its_modules() -> None:
    case = bench_data.Case("tiny", 1, 0.5, lambda: (Path("train"), Path("test")))
    peers = bench_tools.Peers({"svm-train": "/bin/svm-train"}, {"sklearnex": "python"})
    only = ["svmkit", "sklearnex", "thundersvm-train"]
    tools = bench_tools.trainers(case, peers, only)
    assert [tool.name for tool in tools] == ["svmkit", "scikit-learn-intelex", "scikit-learn-intelex-f64"]
    assert bench_tools.absent(tools, only) == ["thundersvm-train"]
    assert [tool.name for tool in bench_tools.trainers(case, peers, ["scikit-learn-intelex-f64"])] == [
        "scikit-learn-intelex-f64"
    ]


def test_commands_take_turns_and_failures_keep_their_rows(tmp_path: Path) -> None:
    log = tmp_path / "log"
    note = f"import sys\nopen({str(log)!r}, 'a').write(sys.argv[0][-4:] + ' ')\n"
    good, fail = script(tmp_path / "good", note), script(tmp_path / "fail", note + "sys.exit('no memory')")
    slow = script(tmp_path / "slow", note + "import time; time.sleep(60)")
    rows: list[bench.Command] = [("good", [good], None), ("fail", [fail], None), ("slow", [slow], None)]
    record, runs = bench.commands("some", "Some", rows, 2, 3.0)
    assert log.read_text().split() == ["good", "fail", "slow", "good"]
    assert [len(runs[title]) for title in ("good", "fail", "slow")] == [2, 0, 0]
    assert [row[0] for row in record["table"]] == ["command", "good", "fail", "slow"]
    assert [row[1] for row in record["table"][2:]] == ["exit 1", "> 3 s"]
    assert record["notes"] == ["some, fail: exit 1: no memory"]


# --- tables -----------------------------------------------------------------------------------------------------------------


def tool(name: str, seconds: list[float], fit_s: list[float], failed: str = "", dual: float = 10.0) -> dict[str, object]:
    verdict = {"primal": dual + 1, "dual": dual, "violation": 4e-4, "n_support": 1234, "test_error": 0.25, "agreement": 1.0}
    return {
        **{"name": name, "command": f"{name} data", "failed": failed, "verdict": verdict if seconds else None},
        **{"seconds": seconds, "fit_s": fit_s, "cpu_s": seconds, "peak_mb": 100.0},
    }


RECORD = {
    **{"name": "set", "machine": "a box", "C": 1.0, "gamma": 0.5, "eps": 1e-3, "linear": False, "n": 32561, "n_features": 123},
    "tools": [
        tool("svmkit", [0.5, 0.4, 0.9], [0.2, 0.25, 0.21]),
        tool("svm-train", [30.0, 50.0, 40.0], [], dual=9.9),
        tool("thundersvm-train", [], [], "> 60 s"),
        tool("scikit-learn-intelex", [8.0], [6.3]),
        tool("scikit-learn-intelex-f64", [9.0], [8.4]),
    ],
}


def test_tables_say_what_the_records_say() -> None:
    head, *rows = bench_report.table_of(RECORD)
    cells = [dict(zip(head, row, strict=True)) for row in rows]
    assert "iterations" not in head  # nobody told
    assert cells[0]["command s"] == "0.5 (0.4–0.9)"
    assert cells[0]["fit s"] == "0.21 (0.2–0.25)"
    assert cells[1]["command s"] == "40 (30–50)"
    assert rows[1][2] == "80"
    assert rows[3][4] == "30"
    assert cells[2]["command s"] == "> 60 s"
    assert cells[1]["test error %"] == "25"
    head, row = bench_report._against([RECORD])
    summary = dict(zip(head, row, strict=True))
    assert summary["svm-train s"] == "40"
    assert [row[head.index("÷ fit")], summary["÷ command"]] == ["190", "80"]
    single, double = head.index("intelex f32 fit s"), head.index("intelex f64 fit s")
    assert row[single : single + 3] == ["6.3", "30", "0.0004"]
    assert row[double : double + 3] == ["8.4", "40", "0.0004"]
    assert summary["objective − svm-train's, relative"] == "-1.0e-02"
    assert row[:2] == ["set, 32,561 × 123", "1, 0.5"]
    assert bench_report.formatted([head, row]) in bench_report.summary([RECORD])
    assert "Measured on a box." in bench_report.summary([RECORD])


def test_records_are_kept_and_the_last_counts(tmp_path: Path) -> None:
    other = {"name": "start", "machine": "a box", "about": "Start", "table": [["command", "s"], ["x", "1"]], "notes": ["note"]}
    lines = [json.dumps(record) for record in ({**RECORD, "n": 1}, other, RECORD)]
    (tmp_path / "kept").write_text("\n".join(lines) + "\n", "utf-8")
    assert bench_report.load(tmp_path / "kept") == [RECORD, other]
    assert "Start:\n\n| command | s |\n|---------|--:|\n| x       | 1 |\n\nnote." in bench_report.summary([other])
    (tmp_path / "kept").write_text(lines[0] + "\n[]\n", "utf-8")
    with pytest.raises(ValueError, match="line 2"):
        bench_report.load(tmp_path / "kept")


def test_linear_tables_compare_primals() -> None:
    tools = [tool("svmkit sdca", [1.0], [0.1], dual=99.0), tool("liblinear-train", [2.0], [], dual=99.1)]
    head, *rows = bench_report._linear([{**RECORD, "linear": True, "tools": tools}])
    assert [row[head.index("above the best")] for row in rows] == ["0.0e+00", "1.0e-03"]


# --- cases ------------------------------------------------------------------------------------------------------------------


def test_names_are_clear_and_groups_lead_somewhere() -> None:
    names = [*bench.BY_NAME, *bench_data.GROUPS, *bench.SECTIONS]
    assert len(set(names)) == len(names) == len(bench_data.CASES) + len(bench_data.GROUPS) + len(bench.SECTIONS)
    assert bench.wanted(["table", "read"])[-1] == "read"
    assert all(name in {*bench.BY_NAME, *bench.SECTIONS} for name in bench.wanted([*bench_data.GROUPS]))
    with pytest.raises(ValueError, match="no 'nothing'"):
        bench.wanted(["nothing"])


def test_covtype_splits_do_not_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Collection[int]] = {}

    def note(name: str, wanted: Collection[int]) -> Path:
        asked[name] = wanted
        return Path(name)

    monkeypatch.setattr(bench_data, "covtype", note)
    bench_data.covtype50k()
    bench_data.covtype_full()
    assert {name: len(set(wanted)) for name, wanted in asked.items()} == {
        **{"covtype50k": 50_000, "covtype50k.t": 20_000},
        **{"covtype-full": 522_911, "covtype-full.t": 58_101},
    }
    assert not set(asked["covtype50k"]) & set(asked["covtype50k.t"])
    assert set(asked["covtype-full"]) | set(asked["covtype-full.t"]) == set(range(581_012))


def test_files_are_prepared_from_the_published_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_data, "DATA", tmp_path)
    monkeypatch.setattr(bench_data, "WORK", tmp_path / "work")
    with pytest.raises(bench_data.Missing, match=r"fetch\.py mnist"):
        bench_data.mnist("mnist")
    (tmp_path / "mnist").write_text("8 1:255 3:51\n3 2:1\n8 2:7\n")
    (tmp_path / "20news").write_text("1 1:.5\n12 2:.5\n")
    (tmp_path / "covtype.libsvm.binary.scale").write_text("1 1:.5\n2 2:.5\n1 3:.5\n")
    assert bench_data.mnist("mnist", one="8").read_text() == "1 1:1 3:0.2\n-1 2:0.00392157\n1 2:0.027451\n"
    assert bench_data.mnist("mnist", rows=2).read_text() == "8 1:1 3:0.2\n3 2:0.00392157\n"
    assert bench_data.one_against_rest("20news").read_text() == "1 1:.5\n-1 2:.5\n"
    assert bench_data.covtype("two", {1, 2}).read_text() == "-1 2:.5\n1 3:.5\n"
    first = bench_data.digits17().read_text()
    assert len(first.splitlines()) == 20_000
    assert float(first.split()[1].partition(":")[2]) == random.Random(1).gauss(0, 1)


def test_a_set_that_its_maker_did_not_finish_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_data, "WORK", tmp_path)
    with pytest.raises(bench_data.Missing, match=r"bench/nothing-70-1 could not be made: .* ended with 2"):
        bench_data.artificial("nothing", 70, 1)
    assert not (tmp_path / "nothing-70-1").exists()
