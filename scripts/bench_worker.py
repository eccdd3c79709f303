"""What scripts/bench.py runs in processes of its own: judging models, fits inside Python, parsing speed. Prints JSON.

The fits need only NumPy and the library that they time, so that any interpreter which has that library can run them.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

# --- judging ----------------------------------------------------------------------------------------------------------------


def judge(request: str) -> Any:
    """Each model's objectives and violation in float64, its test error, and how often it agrees with the first model."""
    from svmkit.io.libsvm_data import read_dataset
    from svmkit.model import decision_values, predict

    asked = json.loads(request)
    train, test = read_dataset(asked["train"]), read_dataset(asked["test"])
    truth = np.trunc(test.y)
    verdicts, first = [], None
    for path in asked["models"]:
        model = model_of(path)
        verdict = certified(model, train, asked["C"], free=not asked["linear"])
        labels = predict(model, decision_values(model, test.rows))
        first = labels if first is None else first
        verdict |= {
            "n_support": model.n_support,
            "test_error": float(np.mean(labels != truth)),
            "agreement": float(np.mean(labels == first)),
        }
        verdicts.append(verdict)
    return {"n": train.n, "n_features": train.n_features, "verdicts": verdicts}


def model_of(path: str) -> Any:
    """A model file of LIBSVM or LIBLINEAR (two classes), the latter as a linear kernel with w as its only basis row."""
    from svmkit.io.model_libsvm import read_model

    text = Path(path).read_text("ascii") if Path(path).stat().st_size < 1 << 26 else ""
    if not text.startswith("solver_type"):
        return read_model(path)
    head, _, weights = text.partition("\nw\n")
    label = next(line for line in head.splitlines() if line.startswith("label "))
    w = " ".join(f"{i}:{value}" for i, value in enumerate(weights.split(), 1) if float(value))
    converted = Path(path + ".libsvm")
    converted.write_text(
        f"svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0\n{label}\nnr_sv 1 0\nSV\n1 {w}\n", "ascii"
    )
    return read_model(str(converted))


def certified(model: Any, train: Any, C: float, free: bool) -> dict[str, Any]:
    """Primal, dual and violation of all machines together; the primal alone for a model of rows that are not the data's."""
    from svmkit.config import TrainConfig
    from svmkit.pairs import group_classes, pair_of

    labels, groups = group_classes(train.y, np.arange(train.n))
    members = [groups[labels.tolist().index(label)] for label in model.labels.tolist()]
    place = training_rows(model, train, members)
    if place is None:
        return {"primal": primal(model, train, C)}
    config, ones = TrainConfig(C=C, bias="free" if free else "none"), np.ones(len(labels))
    found = []
    for (i, j), machine in zip(model.pairs, model.machines, strict=True):
        pair = pair_of(train, config, members, ones, i, j)
        position = np.full(train.n, -1)
        position[pair.examples] = np.arange(len(pair.examples))
        found.append(
            certificate(pair.problem(train, config, model.kernel), position[place[machine.index]], machine.coef, machine.rho)
        )
    return {
        "primal": sum(f[0] for f in found),
        "dual": sum(f[1] for f in found),
        "violation": float(np.max([f[2] for f in found])),
    }


def certificate(problem: Any, origin: Any, coef: Any, rho: float) -> tuple[float, float, float]:
    """Primal, dual, violation. Coefficients kept in single precision hardly balance: they do for the violation, as they stand.

    Those within 1e-6 of C are at C: a tool that works in single precision means them to be.
    """
    from svmkit.certificate import certify, kkt_violation
    from svmkit.engine.kernels import cross_apply
    from svmkit.problem import Solution

    bound = problem.upper[origin]
    coef = np.where(np.abs(np.abs(coef) - bound) <= 1e-6 * bound, np.copysign(bound, coef), coef)
    beta = np.bincount(origin, coef, problem.n)
    responses = cross_apply(problem.rows, problem.rows, problem.kernel, beta[:, None])[:, 0]
    whole = certify(problem, Solution(origin, coef, rho, responses=responses))
    violation = kkt_violation(problem.y - responses, beta, problem.y, problem.upper, problem.bias)
    return whole.primal, whole.dual, violation


def training_rows(model: Any, train: Any, members: Any) -> Any:
    """The training row that each row of the model is, or None where some are none.

    LIBSVM cuts values to eight digits, ThunderSVM to single precision first.
    """
    from svmkit.matching import find_rows

    single = train.rows._replace(data=train.rows.data.astype(np.float32).astype(np.float64))
    for kept in (train, replace(train, rows=single)):
        place = find_rows(model, kept, members).place
        if -1 not in place:
            return place
    return None


def primal(model: Any, train: Any, C: float) -> float:
    """½‖w‖² + C Σ max(0, 1 − y f(x)) over all machines, in float64."""
    from svmkit.engine.kernels import cross_apply
    from svmkit.model import decision_values

    decisions, total = decision_values(model, train.rows), 0.0
    label = np.trunc(train.y)
    for column, ((i, j), machine) in enumerate(zip(model.pairs, model.machines, strict=True)):
        basis = model.rows.take(machine.index)
        response = cross_apply(basis, basis, model.kernel, machine.coef[:, None])[:, 0]
        own = (label == model.labels[i]) | (label == model.labels[j])
        y = np.where(label[own] == model.labels[i], 1.0, -1.0)
        total += 0.5 * float(machine.coef @ response) + C * float(np.maximum(0.0, 1.0 - y * decisions[own, column]).sum())
    return total


# --- fits -------------------------------------------------------------------------------------------------------------------


def sklearn(train: str, model: str, C: str, gamma: str, eps: str) -> Any:
    """Fits scikit-learn's SVC and writes its model file; the fit alone is timed too."""
    import sklearn

    return {**_svc(train, model, float(C), float(gamma), float(eps), np.float64), "version": sklearn.__version__}


def sklearnex(train: str, model: str, C: str, gamma: str, eps: str) -> Any:
    """The same with Intel's extension, on single precision, its quickest way; where it stops, eps is not met in float64."""
    return _sklearnex(train, model, float(C), float(gamma), float(eps), np.float32)


def sklearnex_double(train: str, model: str, C: str, gamma: str, eps: str) -> Any:
    """The same on double precision, as scikit-learn's reader gives the data: it meets eps."""
    return _sklearnex(train, model, float(C), float(gamma), float(eps), np.float64)


def _sklearnex(train: str, model: str, C: float, gamma: float, eps: float, dtype: Any) -> Any:
    from importlib.metadata import version

    from sklearnex import patch_sklearn

    patch_sklearn(verbose=False)
    return {**_svc(train, model, C, gamma, eps, dtype), "version": version("scikit-learn-intelex")}


def _svc(train: str, model: str, C: float, gamma: float, eps: float, dtype: Any) -> dict[str, Any]:
    from sklearn.datasets import load_svmlight_file
    from sklearn.svm import SVC

    exact, y = load_svmlight_file(train)
    x = exact.astype(dtype)
    if x.nnz > 0.1 * x.shape[0] * x.shape[1]:
        x = x.toarray()
    began = time.perf_counter()
    fitted = SVC(C=C, gamma=gamma, tol=eps, cache_size=1000).fit(x, y)
    seconds = time.perf_counter() - began
    write_svc(model, fitted, exact, y, gamma)
    return {"seconds": seconds, "iterations": int(np.sum(fitted.n_iter_))}


def write_svc(path: str, fitted: Any, x: Any, y: Any, gamma: float) -> None:
    """A fitted SVC with an RBF kernel as a LIBSVM model file; with two classes its signs are for the second one."""
    coef = fitted.dual_coef_.toarray() if hasattr(fitted.dual_coef_, "toarray") else np.asarray(fitted.dual_coef_)
    coef, rho = coef.astype(np.float64), -np.asarray(fitted.intercept_, dtype=np.float64)
    if len(fitted.classes_) == 2:
        coef, rho = -coef, -rho
    support = np.asarray(fitted.support_)
    of_class = np.searchsorted(fitted.classes_, y[support])
    order = np.lexsort((support, of_class))
    rows = x.tocsr()
    with open(path, "w", encoding="ascii") as out:
        out.write(f"svm_type c_svc\nkernel_type rbf\ngamma {float(gamma)!r}\nnr_class {len(fitted.classes_)}\n")
        out.write(f"total_sv {len(support)}\nrho {_spaced(rho)}\nlabel {_spaced(fitted.classes_.astype(int))}\n")
        out.write(f"nr_sv {_spaced(np.bincount(of_class, minlength=len(fitted.classes_)))}\nSV\n")
        for s in order:
            first, last = rows.indptr[support[s]], rows.indptr[support[s] + 1]
            pairs = zip(rows.indices[first:last].tolist(), rows.data[first:last].tolist(), strict=True)
            out.write(f"{_spaced(coef[:, s])} {' '.join(f'{i + 1}:{value!r}' for i, value in pairs)}\n")


def _spaced(numbers: Any) -> str:
    return " ".join(repr(number) for number in numbers.tolist())


def liblinear(train: str, model: str, C: str, gamma: str, eps: str) -> Any:
    """LIBLINEAR's dual coordinate descent (L1 loss, no bias) from its own Python package; the C call alone is timed."""
    from importlib.metadata import version

    from liblinear import liblinearutil
    from liblinear.liblinear import liblinear as library
    from liblinear.liblinear import parameter, problem, toPyModel

    y, x = liblinearutil.svm_read_problem(train)
    data, options = problem(y, x), parameter(f"-s 3 -c {C} -e {eps} -q")
    began = time.perf_counter()
    found = library.train(data, options)
    seconds = time.perf_counter() - began
    liblinearutil.save_model(model, toPyModel(found))
    return {"seconds": seconds, "version": version("liblinear-official")}


# --- reading ----------------------------------------------------------------------------------------------------------------


def read(path: str, reader: str) -> Any:
    """Megabytes of text a second through one core, the best of five."""
    if reader == "svmkit":
        from svmkit import parallel
        from svmkit.io.libsvm_data import read_dataset

        parallel.use_threads(1)
        parse: Any = read_dataset
    else:
        from sklearn.datasets import load_svmlight_file as parse
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        parse(path)
        seconds.append(time.perf_counter() - began)
    return {"megabytes": Path(path).stat().st_size / 1e6, "seconds": min(seconds)}


if __name__ == "__main__":
    JOBS = (judge, sklearn, sklearnex, sklearnex_double, liblinear, read)
    print(json.dumps({job.__name__: job for job in JOBS}[sys.argv[1]](*sys.argv[2:])))
