"""What scripts/bench.py runs in processes of its own: judging models, scikit-learn's fits, parsing speed. Prints JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def judge(request: str) -> Any:
    """Each model's objective and violation in float64, its test error, and how often it agrees with the first model."""
    from svmkit.certificate import certify
    from svmkit.config import TrainConfig
    from svmkit.engine.kernels import cross_apply
    from svmkit.io.libsvm_data import read_dataset
    from svmkit.io.model_libsvm import read_model
    from svmkit.model import decision_values, predict
    from svmkit.problem import RBF, Kernel, Problem, Solution
    from svmkit.recertify import certificates

    asked = json.loads(request)
    train, test = read_dataset(asked["train"]), read_dataset(asked["test"])
    kernel = Kernel(RBF, asked["gamma"])
    verdicts, first = [], None
    for path in asked["models"]:
        if path.endswith(".npz"):
            fitted = np.load(path)
            origin, coef, rho = fitted["support"].astype(np.int64), fitted["coef"], float(fitted["rho"])
            problem = Problem(train.rows, train.y, np.full(train.n, asked["C"]), kernel)
            certificate = certify(problem, Solution(train.rows.take(origin), origin, coef, rho))
            decisions = cross_apply(test.rows, train.rows.take(origin), kernel, coef[:, None])[:, 0] - rho
            labels, n_support = np.where(decisions > 0, 1.0, -1.0), len(coef)
        else:
            model = read_model(path)
            (certificate,) = certificates(model, train, TrainConfig(C=asked["C"]))
            labels, n_support = predict(model, decision_values(model, test.rows)), model.n_support
        first = labels if first is None else first
        verdicts.append(
            {
                "primal": certificate.primal,
                "dual": certificate.dual,
                "violation": certificate.violation,
                "n_support": n_support,
                "test_error": float(np.mean(labels != test.y)),
                "agreement": float(np.mean(labels == first)),
            }
        )
    return {"n": train.n, "n_features": train.n_features, "n_test": test.n, "verdicts": verdicts}


def sklearn(train: str, C: str, gamma: str, model: str, accelerated: str) -> Any:
    """Fits scikit-learn's SVC (or Intel's) and keeps what it found; the fit alone is timed too."""
    if accelerated == "intelex":
        from sklearnex import patch_sklearn

        patch_sklearn(verbose=False)
    from sklearn.datasets import load_svmlight_file
    from sklearn.svm import SVC

    x, y = load_svmlight_file(train)
    if x.nnz > 0.1 * x.shape[0] * x.shape[1]:
        x = x.toarray()
    began = time.perf_counter()
    fitted = SVC(C=float(C), gamma=float(gamma), cache_size=1000).fit(x, y)
    seconds = time.perf_counter() - began
    coef = fitted.dual_coef_.toarray() if hasattr(fitted.dual_coef_, "toarray") else fitted.dual_coef_
    np.savez(model, support=fitted.support_, coef=np.asarray(coef, dtype=float)[0], rho=-float(fitted.intercept_[0]))
    return {"seconds": seconds, "iterations": int(np.max(fitted.n_iter_))}


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
    print(json.dumps({"judge": judge, "sklearn": sklearn, "read": read}[sys.argv[1]](*sys.argv[2:])))
