"""``svmkit train`` from the outside: streams, files, reports, exit codes."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from shell import TRAIN_KEYS, process, strict_json, svmkit, write_blobs

from svmkit.io.model_libsvm import read_model


def test_the_model_gets_svm_trains_default_name(data: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = svmkit("train", data, cwd=elsewhere)
    assert (done.returncode, done.stdout) == (0, "")
    assert [path.name for path in elsewhere.iterdir()] == ["blobs.model"]
    last = done.stderr.splitlines()[-1]
    model = read_model(str(elsewhere / "blobs.model"))
    assert "converged" in last
    assert f"{model.n_support} support vectors" in last
    assert last.endswith("blobs.model written")


def test_quiet_says_nothing(data: Path, tmp_path: Path) -> None:
    done = svmkit("train", "-q", data, tmp_path / "m")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_json_is_one_object_that_agrees_with_the_model(data: Path, tmp_path: Path) -> None:
    done = svmkit("train", "--json", "-c", "3", "-g", "0.3", data, tmp_path / "m")
    report = strict_json(done.stdout)
    assert report.keys() >= TRAIN_KEYS
    model = read_model(report["model"])
    assert report["status"] == "CONVERGED"
    assert report["n_support"] == model.n_support
    assert 0 <= report["violation"] <= 1e-3
    assert report["gap"] == pytest.approx(report["primal"] - report["dual"], abs=1e-9)
    (machine,) = report["machines"]
    assert machine["classes"] == [1, -1]
    assert machine["dual"] == report["dual"]


def test_several_classes_are_reported_one_by_one(tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "three", classes=(3, 5, 4))
    report = strict_json(svmkit("train", "--json", data, tmp_path / "m").stdout)
    assert [machine["classes"] for machine in report["machines"]] == [[3, 5], [3, 4], [5, 4]]
    for key in ("primal", "dual", "gap", "iterations", "kernel_evaluations"):
        assert report[key] == pytest.approx(sum(machine[key] for machine in report["machines"]))
    assert report["violation"] == max(machine["violation"] for machine in report["machines"])


def test_a_kernel_without_a_gap_gives_null(data: Path, tmp_path: Path) -> None:
    report = strict_json(svmkit("train", "--json", "-t", "3", "-g", "0.01", data, tmp_path / "m").stdout)
    assert report["gap"] is None
    done = svmkit("train", "-t", "3", "-g", "0.01", data, tmp_path / "m")
    assert "no gap (the kernel is not positive semidefinite)" in done.stderr


def test_kernel_values_that_overflow_are_named_as_the_reason(data: Path, tmp_path: Path) -> None:
    (tmp_path / "far").write_text("1 1:1e149\n-1 1:2e149\n")
    for args in (("-r", "1e300", data), ("--solver", "sdca", "-g", "1", tmp_path / "far")):
        assert "no gap (kernel values overflow)" in process("train", "-t", "1", *args, tmp_path / "m").stderr


def test_standard_input_and_output(data: Path, tmp_path: Path) -> None:
    straight = process("train", "-q", data, "-")
    piped = process("train", "-q", "-", tmp_path / "m", stdin=data.read_bytes())
    packed = process("train", "-q", "-", "-", stdin=gzip.compress(data.read_bytes()))
    assert [straight.returncode, piped.returncode, packed.returncode] == [0, 0, 0]
    assert straight.stdout.startswith("svm_type c_svc\n")
    assert straight.stdout == (tmp_path / "m").read_text() == packed.stdout


def test_lambda_is_c_over_n(data: Path) -> None:
    n = len(data.read_text().splitlines())
    by_lambda = svmkit("train", "-q", "--lambda", repr(1 / (4 * n)), data, "-")
    assert by_lambda.stdout == svmkit("train", "-q", "-c", "4", data, "-").stdout != svmkit("train", "-q", data, "-").stdout


def test_weights_and_bias_reach_the_problem(data: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    for options in (["-w1", "2", "-w-1", "0.5"], ["--class-weight", "balanced"], ["--no-bias"]):
        report = strict_json(svmkit("train", "--json", *options, data, model).stdout)
        plain = strict_json(svmkit("train", "--json", data, tmp_path / "plain").stdout)
        assert report["primal"] != plain["primal"]
    assert read_model(str(model)).machines[0].rho == 0


def test_balanced_weights_are_n_over_k_counts(tmp_path: Path) -> None:
    data = tmp_path / "d"  # half of the 2s are 2.5, which is the same class
    data.write_text("".join(f"{1 if i < 10 else 2 + i % 2 / 2} 1:{i % 7} 2:{i % 3}\n" for i in range(40)))
    balanced = svmkit("train", "-q", "--class-weight", "balanced", data, "-").stdout
    assert balanced == svmkit("train", "-q", "-w1", 2, "-w2", repr(40 / 60), data, "-").stdout


def test_balanced_weights_do_not_count_what_is_held_out(tmp_path: Path) -> None:
    """Of 40 lines 20 are held out; weights by all 40 would be other ones."""
    (tmp_path / "d").write_text("".join(f"{1 if i < 7 else 2} 1:{i % 7} 2:{i % 3}\n" for i in range(40)))
    svmkit("train", "-q", "--holdout", "0.5", "--class-weight", "balanced", "-c", "1e-6", tmp_path / "d", tmp_path / "m")
    alpha: dict[bool, set[float]] = {True: set(), False: set()}
    model = read_model(str(tmp_path / "m"))
    for coef in model.machines[0].coef.tolist():
        alpha[coef > 0].add(abs(coef))
    assert model.labels is not None
    bounds = sorted(max(each) for each in alpha.values())  # C times n/(2 n_class)
    n_of = [1e-6 * 20 / 2 / bound for bound in bounds]
    assert n_of == pytest.approx([round(n) for n in n_of], rel=1e-9)
    assert sum(round(n) for n in n_of) == 20


def test_balanced_weights_leave_out_what_takes_no_part(tmp_path: Path) -> None:
    lines = [f"{1 if i < 10 else 2} 1:{i % 7} 2:{i % 3}\n" for i in range(40)]
    (tmp_path / "few").write_text("".join(lines))
    (tmp_path / "more").write_text("".join([*lines, *["1 cost:0 1:3\n"] * 9, "3 cost:0 1:1\n"]))
    few, more = (svmkit("train", "-q", "--class-weight", "balanced", tmp_path / name, "-") for name in ("few", "more"))
    assert (more.stdout, more.stderr) == (few.stdout, "")


def test_the_trace_is_readable_and_ends_at_the_report(data: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    report = strict_json(svmkit("train", "--json", "--trace", trace, "--holdout", "0.2", data, tmp_path / "m").stdout)
    rows = [strict_json(line) for line in trace.read_text().splitlines()]
    assert {row["machine"] for row in rows} == {0}
    assert rows[-1]["steps"] == report["iterations"]
    assert rows[-1]["primal"] == report["primal"]
    assert rows[-1]["holdout_error"] == report["holdout_error"]
    assert np.all(np.diff([row["steps"] for row in rows]) >= 0)


@pytest.mark.parametrize(
    "how", [["--solver", "newton"], ["--solver", "lasvm", "--stream", "-g", "1"]], ids=["refused", "no such data"]
)
def test_an_old_trace_is_left_where_no_training_begins(how: list[str], data: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text("old\n")
    done = svmkit("train", *how, "--trace", trace, data if "newton" in how else tmp_path / "none", tmp_path / "m")
    assert done.returncode != 0
    assert trace.read_text() == "old\n"


def test_the_trace_may_go_to_standard_output(data: Path, tmp_path: Path) -> None:
    done = svmkit("train", "--trace", "-", data, tmp_path / "m", cwd=tmp_path)
    assert done.returncode == 0
    assert [strict_json(line)["machine"] for line in done.stdout.splitlines()][-1] == 0
    assert {path.name for path in tmp_path.iterdir()} == {"blobs", "m"}


def test_stopping_early_is_a_warning_and_strict_makes_it_a_code(tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "d", n=300)
    loose = svmkit("train", "-q", "--json", "--solver", "pair", "--max-iter", "2", data, tmp_path / "m")
    assert loose.returncode == 0
    assert strict_json(loose.stdout)["status"] == "MAX_ITER"
    assert "warning: stopped (MAX_ITER)" in loose.stderr
    strict = svmkit("train", "--strict", "--solver", "pair", "--max-iter", "2", data, tmp_path / "m2")
    assert strict.returncode == 3
    assert (tmp_path / "m").read_bytes() == (tmp_path / "m2").read_bytes()
    assert svmkit("train", "--strict", data, tmp_path / "m3").returncode == 0


def test_list_solvers_names_every_option() -> None:
    from dataclasses import fields

    from svmkit import solvers

    text = svmkit("train", "--list-solvers").stdout
    for name in solvers.NAMES:
        solver = solvers.solver(name)
        assert f"{name}: {solver.SUMMARY}\n" in text
        assert solver.PAPER in text
        for knob in fields(solver.Options):
            assert f"-O {knob.name}={knob.default}" in text


def test_labels_that_are_cut_are_told(data: Path, tmp_path: Path) -> None:
    """Two of 0.2 and 0.9 are one class, as in LIBSVM: whoever meant a regression should hear of it."""
    (tmp_path / "d").write_text("0.2 1:1\n0.9 1:2\n1.5 1:3\n2 1:4\n")
    for args in (["m"], ["-v", "2"]):
        done = svmkit("train", "d", *args, cwd=tmp_path)
        assert done.stderr.startswith("svmkit: warning: 3 of 4 labels are no whole numbers, such as 0.2: a class is what is")
    assert "whole numbers" not in svmkit("train", data, tmp_path / "m").stderr


@pytest.mark.parametrize("json", [(), ("--json",)], ids=["line", "json"])
def test_many_classes_do_not_take_as_many_copies_of_the_data(json: tuple[str, ...], tmp_path: Path) -> None:
    """Rows of 7 MB in all, of 60 classes: 1770 machines have 59 times as much in support vectors."""
    rng = np.random.default_rng(0)
    values = " ".join(f"{k}:1" for k in range(61, 1060))
    lines = (f"{k % 60} {k % 60 + 1}:{rng.random():.3f} {values}\n" for k in range(600))
    (tmp_path / "d").write_text("".join(lines))
    tracemalloc.start()
    done = svmkit("train", "-q", *json, tmp_path / "d", tmp_path / "m")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert done.returncode == 0
    assert peak < 150e6


def test_a_model_without_support_vectors_is_warned_of(tmp_path: Path) -> None:
    """Of one feature so large that no step of this method turns out a number other than 0."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.integers(1, 10, (100, 3)), 1e6 * rng.random(100)]
    lines = (f"{1 if x[0] > 5 else -1} 1:{x[0]:g} 2:{x[1]:g} 3:{x[2]:g} 4:{x[3]:g}\n" for x in X)
    (tmp_path / "d").write_text("".join(lines))
    done = svmkit("train", "-q", "-t", 0, "--solver", "sbp", tmp_path / "d", tmp_path / "m")
    assert done.returncode == 0
    assert "warning: w is 0, and the model has one answer to everything; scale the data, or try --solver smo" in done.stderr
    (tmp_path / "z").write_text("1 1:0\n-1 1:0\n" * 2)
    done = svmkit("train", "-q", "--map", "nystroem", "--dim", 2, "--solver", "newton", "z", "m", cwd=tmp_path)
    assert "warning: w is 0, and the model has one answer to everything" in done.stderr  # of landmarks
    done = svmkit("train", "-q", "-e", 2, "d", "m", cwd=tmp_path)
    assert "warning: w is 0, and the model has one answer to everything; lower -e\n" in done.stderr
    (tmp_path / "one").write_text("1 1:1\n1 1:2\n")
    for args in (("one",), ("-t", 1, "-d", 3000, "d")):  # which have warnings of their own
        done = svmkit("train", "-q", *args, "m", cwd=tmp_path)
        assert "one answer to everything" not in done.stderr
        assert "warning" in done.stderr
        assert "total_sv 0" in (tmp_path / "m").read_text()
