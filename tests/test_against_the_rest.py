"""One machine a class, against the rest: each is the binary machine of the relabelled data, and the largest value answers."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from golden_data import TOOLS, needs_tools
from numpy.testing import assert_allclose, assert_array_equal

from svmkit.config import TrainConfig
from svmkit.data import Dataset, Rows
from svmkit.errors import ModelError
from svmkit.fit import fit
from svmkit.folds import cross_validate, folds
from svmkit.io.model_libsvm import model_text, parse_model, write_model
from svmkit.metrics import auc, rest_auc
from svmkit.model import decision_values, predict
from svmkit.recertify import certificates

LABELS = [4, -2, 7]
OVR = TrainConfig(C=3.0, gamma=0.4, multiclass="ovr", class_weight=((4, 2.0), (7, 0.5)))


def three_classes(n: int = 90, seed: int = 3) -> Dataset:
    rng = np.random.default_rng(seed)
    y = np.array(LABELS, dtype=np.float64)[rng.integers(0, 3, n)]
    y[:3] = LABELS
    X = rng.normal(size=(n, 3)) + np.stack([np.cos(y), np.sin(y), 0.3 * y], axis=1)
    return Dataset(Rows.from_dense(X), y, weight=rng.uniform(0.5, 2.0, n))


@pytest.mark.parametrize("solver", ["smo", "sdca"])
def test_each_machine_is_that_of_the_relabelled_data(solver: str) -> None:
    dataset = three_classes()
    config = replace(OVR, solver=solver, bias="none" if solver == "sdca" else None)
    found = fit(dataset, config)
    decisions = decision_values(found.model, dataset.rows)
    factor = {4: 2.0, 7: 0.5}
    weights = dataset.weights * [factor.get(int(label), 1.0) for label in dataset.y]
    assert decisions.shape == (dataset.n, 3)
    for column, label in enumerate(LABELS):
        relabelled = Dataset(dataset.rows, np.where(dataset.y == label, 1.0, -1.0), weights)
        binary = TrainConfig(C=3.0, gamma=0.4, solver=solver, bias=config.bias)
        alone = fit(relabelled, binary).model
        assert_allclose(decisions[:, column], decision_values(alone, dataset.rows)[:, 0], atol=1e-9)
    assert_array_equal(predict(found.model, decisions), np.array(LABELS)[decisions.argmax(axis=1)])


def test_two_classes_have_one_machine_and_libsvms_model() -> None:
    dataset = three_classes()
    two = dataset.take(np.flatnonzero(dataset.y > 0))
    pairwise = replace(OVR, multiclass="ovo")
    assert model_text(fit(two, OVR).model) == model_text(fit(two, pairwise).model)


def test_the_model_file_comes_back() -> None:
    dataset = three_classes()
    model = fit(dataset, OVR).model
    text = model_text(model)
    back = parse_model(text, "m")
    assert model_text(back) == text
    assert back.multiclass == "ovr"
    assert decision_values(back, dataset.rows).tobytes() == decision_values(model, dataset.rows).tobytes()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("multiclass ovr", "multiclass eco", "unknown way to tell classes apart"),
        ("multiclass ovr", "multiclass ovr\nprobA 1 1 1\nprobB 0 0 0", "without probabilities"),
        ("svm_type c_svc", "svm_type nu_svc", "belongs to a c_svc model"),
        ("multiclass ovr\n", "", "column"),  # a coefficient too many
    ],
)
def test_what_breaks_its_model_file_is_named(old: str, new: str, why: str) -> None:
    text = model_text(fit(three_classes(), OVR).model).decode()
    with pytest.raises(ModelError, match=why):
        parse_model(text.replace(old, new, 1).encode(), "m")


@needs_tools
def test_svm_predict_refuses_it(tmp_path: Path) -> None:
    write_model(str(tmp_path / "m"), fit(three_classes(), OVR).model)
    (tmp_path / "data").write_text("4 1:1\n")
    done = subprocess.run(
        [TOOLS / "svm-predict", "data", "m", "out"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "unknown text in model file: [multiclass]" in done.stderr


def test_the_certificate_is_found_again() -> None:
    dataset = three_classes()
    found = fit(dataset, OVR)
    again = certificates(found.model, dataset, OVR)
    for machine, certificate in zip(found.machines, again, strict=True):
        assert_allclose(certificate.primal, machine.certificate.primal, rtol=1e-12)
        assert_allclose(certificate.violation, machine.certificate.violation, atol=1e-9)


def test_held_out_errors_count_every_class() -> None:
    dataset, held_out = three_classes(), three_classes(60, seed=4)
    rows = []
    found = fit(dataset, OVR, holdout=held_out, on_trace=rows.append)
    last = [row for row in rows if row.seconds > 0][-1]
    expected = np.mean((decision_values(found.model, held_out.rows)[:, 2] > 0) != (held_out.y == LABELS[2]))
    assert last.holdout_error == expected


def test_cross_validation_answers_with_every_class() -> None:
    dataset = three_classes()
    split = folds(dataset.y, 5, iter(range(10**6)).__next__)
    expected = np.empty(dataset.n)
    for first, last in pairwise(split.starts):
        held_out, others = split.order[first:last], np.delete(split.order, slice(first, last))
        model = fit(dataset.take(others), OVR).model
        expected[held_out] = predict(model, decision_values(model, dataset.rows.take(held_out)))
    assert_array_equal(cross_validate(dataset, OVR, split), expected)
    assert set(expected) == set(LABELS)


def test_auc_is_the_mean_over_the_classes() -> None:
    rng = np.random.default_rng(0)
    truth, decisions = rng.choice(LABELS, 50).astype(float), rng.normal(size=(50, 3))
    expected = np.mean([auc(truth == label, decisions[:, c]) for c, label in enumerate(LABELS)])
    assert rest_auc(truth, np.array(LABELS), decisions) == expected
