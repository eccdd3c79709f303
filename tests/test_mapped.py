"""Training on a feature map: the linear problem of the features, pulled back or kept with its map, through files and tools."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from data_files import write_dataset, write_points
from golden_data import TOOLS, needs_tools
from oracle import dense_kernel
from shell import strict_json, svmkit
from zoo import in_bands, points

from svmkit import maps
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Floats, Rows, dense_rows
from svmkit.errors import DataError, ModelError, UsageError
from svmkit.fit import FitResult, fit
from svmkit.folds import cross_validate, folds
from svmkit.io.model_libsvm import model_text, parse_model, read_model, write_model
from svmkit.maps.nystroem import NystroemMap
from svmkit.model import answers, decision_values, predict
from svmkit.pairs import kernel_of
from svmkit.problem import LINEAR, Kernel, Problem
from svmkit.recertify import certificates
from svmkit.solvers import LINEAR_FORM, NAMES, sdca, solver
from svmkit.solvers.base import run
from svmkit.warm import join

CONFIG = TrainConfig(map="nystroem", dim=40, solver="sdca", bias="none", gamma=0.3, C=2.0, eps=1e-6, seed=3)
FOURIER = replace(CONFIG, map="fourier", dim=64)
REDUCED = replace(CONFIG, landmarks="reduced", solver="newton", bias="free")


def made_map(dataset: Dataset, config: TrainConfig) -> maps.FeatureMap:
    return maps.fit(dataset.rows, kernel_of(config, dataset.n_features), config, dataset.y)


def linear_fit(dataset: Dataset, config: TrainConfig, rows: Rows) -> FitResult:
    """The same training with the features as data."""
    linear = replace(config, map=None, kernel="linear")
    return fit(replace(dataset, rows=rows), linear)


@pytest.mark.parametrize("name", LINEAR_FORM)
@pytest.mark.parametrize("n_class", [2, 4])
@pytest.mark.parametrize("config", [CONFIG, FOURIER, replace(CONFIG, multiclass="ovr")], ids=["nystroem", "fourier", "ovr"])
def test_it_is_the_linear_problem_of_the_features(config: TrainConfig, n_class: int, name: str) -> None:
    """Decision values at new rows, to 1e-5 of their scale; and the certificates."""
    config = replace(config, solver=name)
    dataset, new = in_bands(n_class), in_bands(n_class, seed=9)
    feature_map = made_map(dataset, config)
    plain = linear_fit(dataset, config, Rows.from_dense(feature_map.transform(dataset.rows).astype(np.float64)))
    found = fit(dataset, config)
    expected = decision_values(plain.model, dense_rows(feature_map.transform(new.rows)))
    np.testing.assert_allclose(decision_values(found.model, new.rows), expected, atol=1e-5 * np.abs(expected).max())
    for one, other in zip(found.machines, plain.machines, strict=True):
        assert one.status is other.status
        assert np.isclose(one.certificate.primal, other.certificate.primal, rtol=1e-6)
        assert np.isclose(one.certificate.dual, other.certificate.dual, rtol=1e-6)
    if config.map == "nystroem" and (n_class == 2 or config.multiclass == "ovr"):
        assert found.model.n_support == 40  # all machines share the landmarks


def test_pegasos_takes_its_bias_as_a_feature_of_mapped_rows_too() -> None:
    config = replace(CONFIG, solver="pegasos", bias="free")
    dataset = in_bands()
    features = made_map(dataset, config).transform(dataset.rows)
    plain = linear_fit(dataset, config, Rows.from_dense(features.astype(np.float64)))
    found = fit(dataset, config)
    assert plain.model.machines[0].rho != 0
    assert np.isclose(found.model.machines[0].rho, plain.model.machines[0].rho, rtol=1e-9)


@pytest.mark.parametrize("config", [CONFIG, FOURIER], ids=["nystroem", "fourier"])
@pytest.mark.parametrize("n_class", [2, 4])
def test_a_constant_feature_becomes_a_threshold(config: TrainConfig, n_class: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the linear problem with a column more; mapped in parts, held-out rows too."""
    monkeypatch.setattr("svmkit.mapped._PART_ROWS", 70)
    dataset, new, said = in_bands(n_class), in_bands(n_class, seed=9), list[str]()
    feature_map = made_map(dataset, config)

    def with_column(rows: Rows) -> Rows:
        return Rows.from_dense(np.insert(feature_map.transform(rows).astype(np.float64), feature_map.dim, 0.5, axis=1))

    plain = linear_fit(dataset, config, with_column(dataset.rows))
    rows: list[float] = []
    found = fit(
        dataset,
        replace(config, constant=0.5, bias=None),
        holdout=new,
        on_trace=lambda row: rows.append(row.holdout_error),
        on_warning=said.append,
    )
    expected = decision_values(plain.model, with_column(new.rows))
    np.testing.assert_allclose(decision_values(found.model, new.rows), expected, atol=1e-5 * np.abs(expected).max())
    assert np.isclose(found.certificate.primal, plain.certificate.primal, rtol=1e-6)
    assert all(machine.rho != 0 for machine in found.model.machines)
    assert n_class > 2 or np.isclose(rows[-1], np.mean(answers(found.model, new.rows) != new.y))
    assert said == []


@needs_tools
@pytest.mark.parametrize("n_class", [2, 4])
def test_genuine_svm_predict_reads_a_nystroem_model_and_agrees(n_class: int, tmp_path: Path) -> None:
    model = fit(in_bands(n_class), CONFIG).model
    new = in_bands(n_class, seed=9)
    write_model(str(tmp_path / "m"), model)
    write_dataset(tmp_path / "t", new)
    subprocess.run([TOOLS / "svm-predict", "t", "m", "o"], cwd=tmp_path, check=True, capture_output=True)
    assert np.loadtxt(tmp_path / "o").tolist() == predict(model, decision_values(model, new.rows)).tolist()


@needs_tools
def test_genuine_svm_predict_refuses_a_fourier_model_loudly(tmp_path: Path) -> None:
    write_model(str(tmp_path / "m"), fit(in_bands(), FOURIER).model)
    (tmp_path / "t").write_text("1 1:1\n")
    done = subprocess.run([TOOLS / "svm-predict", "t", "m", "o"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "unknown text in model file: [feature_map]" in done.stderr


@pytest.mark.parametrize("config", [FOURIER, replace(FOURIER, orthogonal=True, multiclass="ovr")], ids=["plain", "orthogonal"])
@pytest.mark.parametrize("n_class", [2, 4])
def test_a_fourier_model_survives_its_file(config: TrainConfig, n_class: int) -> None:
    model = fit(in_bands(n_class), config).model
    text = model_text(model)
    again = parse_model(text, "again")
    new = in_bands(n_class, seed=9).rows
    assert np.array_equal(decision_values(again, new), decision_values(model, new))
    assert np.array_equal(answers(again, new), predict(model, decision_values(model, new)))
    assert model_text(again) == text


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("map=fourier", "map=nystroem", "stands for Fourier features"),
        ("version=1", "version=2", "not a feature map that this version"),
        ("dim=64", "dim=many", "`dim` is 'many', not a whole number from 1 to"),
        ("dim=64", "dim=1e300", "`dim` is 1e[+]300, not a whole number"),
        ("dim=64", "dim=63", "`feature_map` has 63 features, and there is a weight for feature 64"),
        ("gamma=0.3", "gamma=-0.3", "`gamma` is -0.3, not a finite number of 0 or more"),
        (" seed=3", "", "`seed` is missing"),
        (" seed=3", " seed=1.5", "`seed` is 1.5, not a whole number"),
        ("orthogonal=False", "orthogonal=x", "`orthogonal` is 'x', not a truth value"),
        ("kernel_type linear", "kernel_type rbf\ngamma 1", "stands for Fourier features"),
    ],
)
def test_a_damaged_map_is_refused_with_its_line(old: str, new: str, why: str) -> None:
    text = model_text(fit(in_bands(), FOURIER).model).decode()
    assert old in text
    with pytest.raises(ModelError, match=rf"m, line \d: .*{why}"):
        parse_model(text.replace(old, new, 1).encode(), "m")


def test_large_data_are_mapped_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fit(in_bands(), FOURIER).model
    whole = decision_values(model, in_bands().rows)
    monkeypatch.setattr("svmkit.model._MAPPED_VALUES", 64 * 30)
    assert np.array_equal(decision_values(model, in_bands().rows), whole)
    assert decision_values(model, in_bands().rows.part(0, 0)).shape == (0, 1)


def kernel_problem(dataset: Dataset, C: float | Floats) -> Problem:
    return Problem(dataset.rows, dataset.y, np.broadcast_to(C, dataset.n).astype(np.float64), Kernel(2, 0.3), "none")


def test_the_certificate_of_the_kernels_own_problem() -> None:
    """Primal and dual from a dense kernel matrix; with all rows as landmarks it is the mapped problem's."""
    dataset = in_bands()
    K = dense_kernel(dataset.rows, dataset.rows, Kernel(2, 0.3))
    asked = replace(CONFIG, certificate_of="kernel")
    found, mapped = fit(dataset, asked), fit(dataset, CONFIG)
    alpha = mapped.machines[0].solution.alpha
    feature_map = made_map(dataset, CONFIG)
    assert isinstance(feature_map, NystroemMap)
    coef, own = found.model.machines[0].coef, feature_map.landmarks
    slack = np.maximum(0, 1 - dataset.y * (dense_kernel(dataset.rows, own, Kernel(2, 0.3)) @ coef))
    primal = 0.5 * coef @ dense_kernel(own, own, Kernel(2, 0.3)) @ coef + 2.0 * slack.sum()
    assert alpha is not None
    dual = alpha.sum() - 0.5 * (alpha * dataset.y) @ K @ (alpha * dataset.y)
    assert np.isclose(found.certificate.primal, primal, rtol=1e-9)
    assert np.isclose(found.certificate.dual, dual, rtol=1e-9)
    assert found.certificate.gap > 10 * mapped.certificate.gap
    every = replace(asked, dim=200, landmarks="uniform")
    assert np.isclose(
        fit(dataset, every).certificate.gap,
        fit(dataset, replace(every, certificate_of="map")).certificate.gap,
        atol=1e-3 * found.certificate.primal,
    )


def test_class_and_example_weights_reach_the_mapped_problem() -> None:
    dataset = replace(in_bands(), weight=np.where(np.arange(200) % 5 == 0, 0.0, 1.5))
    config = replace(CONFIG, class_weight=((1, 3.0),), landmarks="uniform")
    found = fit(dataset, config)
    used = np.flatnonzero(dataset.weights)
    feature_map = made_map(dataset.take(used), config)  # examples of weight 0 are no landmarks either
    features = dense_rows(feature_map.transform(dataset.rows.take(used)))
    y = dataset.y[used]
    problem = Problem(features, y, 2.0 * 1.5 * np.where(y > 0, 3.0, 1.0), Kernel(LINEAR), "none")
    expected = run(sdca, problem, sdca.Options(), eps=1e-6, seed=3)
    assert np.isclose(found.certificate.primal, expected.certificate.primal, rtol=1e-9)


def test_held_out_errors_and_folds_see_the_map() -> None:
    dataset, new = in_bands(), in_bands(seed=9)
    rows: list[float] = []
    result = fit(dataset, CONFIG, holdout=new, on_trace=lambda row: rows.append(row.holdout_error))
    assert np.isclose(rows[-1], np.mean(answers(result.model, new.rows) != new.y))
    split = folds(dataset.y, 4, iter(np.random.default_rng(1).integers(0, 2**31, 1000).tolist()).__next__)
    predicted = cross_validate(dataset, CONFIG, split)
    first = split.order[: split.starts[1]]
    rest = split.order[split.starts[1] :]
    assert np.array_equal(predicted[first], answers(fit(dataset.take(rest), CONFIG).model, dataset.rows.take(first)))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LINEAR_FORM])
def test_solvers_of_kernel_values_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"--map: solver {name} works on kernel values.*sdca"):
        fit(in_bands(), replace(CONFIG, solver=name, bias=solver(name).BIASES[0]))


def test_what_a_map_cannot_serve_is_refused() -> None:
    with pytest.raises(UsageError, match="--certificate-of kernel: a function of random Fourier features"):
        fit(in_bands(), replace(FOURIER, certificate_of="kernel"))
    with pytest.raises(UsageError, match="the kernel's own problem has no constant feature"):
        fit(in_bands(), replace(CONFIG, certificate_of="kernel", constant=1.0))
    with pytest.raises(UsageError, match="--constant: stands beside the features of a --map"):
        fit(in_bands(), TrainConfig(constant=1.0))
    told: list[str] = []  # nothing of how it would be trained
    with pytest.raises(UsageError, match="only the rbf kernel"):
        fit(in_bands(), replace(FOURIER, kernel="sigmoid", bias=None), on_warning=told.append)
    for config in (CONFIG, FOURIER):
        with pytest.raises(UsageError, match=f"--map {config.map}: a precomputed kernel .* train without --map"):
            fit(in_bands(), replace(config, kernel="precomputed", bias=None), on_warning=told.append)
    assert told == []
    for field, value in (
        ("map", "x"),
        ("dim", 0),
        ("landmarks", "x"),
        ("cut", 1.0),
        ("certificate_of", "x"),
        ("constant", -1.0),
    ):
        with pytest.raises(UsageError, match="--" + field.replace("_", "-")):
            fit(in_bands(), replace(CONFIG, **{field: value}))
    fourier = fit(in_bands(), FOURIER).model
    with pytest.raises(ModelError, match="weight vector over a feature map"):
        join(in_bands(), fourier)
    with pytest.raises(ModelError, match="certificate from its training"):
        certificates(fourier, in_bands(), CONFIG)


@pytest.mark.parametrize("constant", [0.0, 0.5])
def test_features_beyond_single_precision_are_refused_with_their_example(constant: float) -> None:
    """Of the training data and of held-out ones: row 150 is 1e20 times as large as the landmarks, the kernel cubic."""
    config = replace(CONFIG, kernel="polynomial", coef0=1.0, constant=constant, landmarks="uniform", dim=10)
    dataset, far = in_bands(), in_bands(seed=9)
    X = far.rows.to_dense()[:, 1:]
    X[150] *= 1e20
    far = replace(far, rows=Rows.from_dense(X), source="far")
    with pytest.raises(DataError, match=r"^far, example 151: a mapped feature is not finite: scale the data$"):
        fit(dataset, config, holdout=far)
    with pytest.raises(DataError, match=r"^far, example 151: a mapped feature is not finite"):
        fit(replace(far, weight=np.where(np.arange(200) == 150, 0.0, 1.0)), config)


def test_one_class_has_no_machine() -> None:
    for config in (CONFIG, FOURIER, REDUCED):
        model = fit(replace(in_bands(), y=np.ones(200)), config).model
        assert (model.n_support, model.machines) == (0, ())
        assert parse_model(model_text(model), "m").n_support == 0


@pytest.mark.parametrize("kind", ["nystroem", "fourier"])
def test_by_the_command_line(kind: str, tmp_path: Path) -> None:
    """The same bytes on one thread and on two, and what eval says of them."""
    X, y = points(300, 4, seed=1)
    write_points(tmp_path / "d", X, y)
    options = ("--map", kind, "--dim", "30", "--solver", "sdca", "-g", "0.3", "--json", "-q")
    report = strict_json(svmkit("train", *options, "-j", "1", "d", "m", cwd=tmp_path).stdout)
    again = svmkit("train", *options, "-j", "2", "d", "n", cwd=tmp_path)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "n").read_bytes()
    assert report["status"] == "CONVERGED"
    assert report["n_support"] == (30 if kind == "nystroem" else 1)
    assert "without a bias" in again.stderr
    model = read_model(str(tmp_path / "m"))
    score = strict_json(svmkit("eval", "--json", "-q", "d", "m", cwd=tmp_path).stdout)
    assert np.isclose(score["accuracy"], np.mean(answers(model, Rows.from_dense(X)) == y))
    refused = svmkit("train", "--map", kind, "d", "m", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--solver" in refused.stderr
