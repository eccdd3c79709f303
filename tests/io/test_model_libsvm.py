"""Model files: svm-train's own come back byte for byte, ours bit for bit, and damaged ones are refused with the line."""

from __future__ import annotations

import random
import re
import subprocess
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_data import GOLDEN, MODELS, TOOLS, needs_tools
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from models import model_of

from svmkit.config import SVM_TYPES
from svmkit.data import Rows
from svmkit.errors import ModelError, OutputError
from svmkit.io.model_libsvm import model_text, parse_model, read_model, write_model
from svmkit.model import Machine, Model, class_pairs
from svmkit.problem import Kernel


@pytest.mark.parametrize("name", MODELS)
def test_svm_trains_files_come_back_byte_for_byte(name: str, tmp_path: Path) -> None:
    path = GOLDEN / f"{name}.model"
    model = read_model(str(path))
    write_model(str(tmp_path / "m"), model, style="libsvm")
    assert (tmp_path / "m").read_bytes() == path.read_bytes()
    same(model, parse_model(model_text(model), "native"))


def same(a: Model, b: Model) -> None:
    """Equal bit for bit."""
    assert (a.svm_type, a.kernel) == (b.svm_type, b.kernel)
    for x, y in zip(a.rows, b.rows, strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()
        assert np.asarray(x).dtype == np.asarray(y).dtype
    for field in ("coef", "rho", "labels", "class_counts", "prob_a", "prob_b", "density_marks"):
        x, y = getattr(a, field), getattr(b, field)
        assert (x is None) == (y is None)
        assert x is None or x.tobytes() == y.tobytes()


numbers = st.floats(allow_nan=False, allow_infinity=False)
gammas = st.floats(min_value=0.0, allow_infinity=False)
coefs = numbers.filter(lambda v: v != 0)


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Any model that a file can hold."""
    svm_type = draw(st.sampled_from(SVM_TYPES))
    classify = svm_type in ("c_svc", "nu_svc")
    k = draw(st.integers(1, 4)) if classify else 2
    sizes = draw(st.lists(st.integers(0, 3), min_size=k, max_size=k)) if classify else [draw(st.integers(0, 5))]
    sizes = [0] if k == 1 else sizes
    ends = np.cumsum(sizes).tolist()
    n, pairs = ends[-1], class_pairs(k, "ovo").T.tolist()
    machines = []
    for i, j in pairs:
        either = [r for c in (i, j) for r in range(ends[c] - sizes[c], ends[c])] if classify else list(range(n))
        index = [r for r in either if draw(st.booleans())]
        values = draw(st.lists(coefs, min_size=len(index), max_size=len(index)))
        machines.append(Machine(np.array(index, dtype=np.int64), np.array(values, dtype=np.float64), draw(numbers)))
    kernel = draw(kernels)
    vector = st.lists(numbers, min_size=len(pairs), max_size=len(pairs)).map(np.array)
    platt = classify and draw(st.booleans())
    labels = st.lists(st.integers(-(2**31), 2**31 - 1), min_size=k, max_size=k, unique=True)
    return model_of(
        svm_type,
        kernel,
        draw(support_rows(n, kernel)),
        machines,
        labels=np.array(draw(labels), dtype=np.int64) if classify else None,
        class_counts=np.array(sizes, dtype=np.int64) if classify else None,
        prob_a=draw(vector).astype(np.float64) if platt or svm_type.endswith("svr") else None,
        prob_b=draw(vector).astype(np.float64) if platt else None,
        density_marks=np.array(draw(st.lists(numbers, min_size=10, max_size=10))) if svm_type == "one_class" else None,
    )


kernels = st.one_of(
    st.just(Kernel(0)),
    st.tuples(st.just(1), gammas, numbers, st.integers(0, 2**31 - 1)).map(lambda fields: Kernel(*fields)),
    gammas.map(lambda gamma: Kernel(2, gamma)),
    st.tuples(st.just(3), gammas, numbers).map(lambda fields: Kernel(*fields)),
    st.just(Kernel(4)),
)


@st.composite
def support_rows(draw: st.DrawFn, n: int, kernel: Kernel) -> Rows:
    if kernel.name == "precomputed":
        serial = draw(st.lists(st.integers(1, 2**31 - 1), min_size=n, max_size=n))
        nothing = np.zeros(n + 1, dtype=np.int64)
        return Rows(np.empty(0), np.empty(0, dtype=np.int32), nothing, 0, serial=np.array(serial, dtype=np.int64))
    index = st.one_of(st.integers(0, 9), st.integers(0, 2**31 - 1))
    rows = [sorted(draw(st.dictionaries(index, numbers, max_size=4)).items()) for _ in range(n)]
    flat = [pair for row in rows for pair in row]
    return Rows(
        data=np.array([v for _, v in flat], dtype=np.float64),
        indices=np.array([i for i, _ in flat], dtype=np.int32),
        indptr=np.cumsum([0, *map(len, rows)]).astype(np.int64),
        n_features=max((i for i, _ in flat), default=0),
    )


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(models())
def test_any_model_written_and_read_is_equal_bit_for_bit(model: Model) -> None:
    same(model, parse_model(model_text(model), "m"))


def test_zeros_against_the_rest_come_back_with_their_signs() -> None:
    head = (
        "svm_type c_svc\nmulticlass ovr\nkernel_type linear\nnr_class 3\ntotal_sv 2\nrho 0 -0 1\nlabel 1 2 3\nnr_sv 1 1 0\nSV\n"
    )
    text = f"{head}1 -0 0 1:2 \n-0 0 -1 2:1 \n".encode()
    assert model_text(parse_model(text, "m")) == text


THREE = (GOLDEN / "three.s0t1.model").read_text()
BODY = "0.5 1:1 2:1 \n-0.5 1:2 \n"
HEAD = "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.1\nlabel 1 -1\nnr_sv 1 1\nSV\n"


def test_of_many_classes_few_texts_are_held(tmp_path: Path) -> None:
    """There are 125,000 machines with a number each, and twice as many coefficients."""
    k = 500
    values = np.random.default_rng(0).standard_normal(k * (k - 1) // 2 + k * (k - 1))
    model = Model(
        svm_type="c_svc",
        kernel=Kernel(0),
        rows=Rows.from_dense(np.ones((k, 1))),
        coef=values[: k * (k - 1)].reshape(k, k - 1),
        rho=values[k * (k - 1) :],
        labels=np.arange(k),
        class_counts=np.ones(k, np.int64),
    )
    path = tmp_path / "m"
    tracemalloc.start()
    write_model(str(path), model)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8e6
    same(model, read_model(str(path)))


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(reversed(HEAD.splitlines()[:-1])) + "\nSV\n" + BODY,
        (HEAD + BODY).replace("\n", "\r\n"),
        HEAD.replace("rho 0.1", "  rho\t0.1  \n") + BODY,
        HEAD.replace("gamma", "coef0 3\ngamma") + BODY,  # a number that this kernel does not use
        HEAD + BODY + "\n \r\n",
        HEAD.replace("rho 0.1", "rho\n0.1").replace("label 1 -1", "label 1\n -1") + BODY,
    ],
    ids=["keys in another order", "CRLF", "blanks and an empty line", "unused key", "empty lines at the end", "wrapped lists"],
)
def test_other_ways_to_write_the_same_header(text: str) -> None:
    same(parse_model((HEAD + BODY).encode(), "m"), parse_model(text.encode(), "m"))


def test_empty_lines_behind_no_support_vectors_are_none() -> None:
    head = re.sub(r"total_sv .*", "total_sv 0", re.sub(r"nr_sv .*", "nr_sv 0 0", HEAD))
    assert parse_model((head + "\n \n").encode(), "m").n_support == 0


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("svm_type c_svc", "svm_type d_svc", r"m, line 1: unknown svm type\. `svm_type` is 'd_svc'"),
        ("kernel_type rbf", "kernel_type laplace", r"m, line 2: unknown kernel function\. "),
        ("gamma 0.5", "gama 0.5", r"m, line 3: unknown text in model file: \[gama\]"),
        ("gamma 0.5\n", "", "m: the key `gamma` is missing"),
        ("gamma 0.5", "gamma", "m, line 3: `gamma` must have 1 value, not 0"),
        ("gamma 0.5", "gamma 1_0", "m, line 3: `gamma`: '1_0' is not a finite number"),
        ("gamma 0.5", "gamma nan", "m, line 3: `gamma`: 'nan' is not a finite number"),
        ("gamma 0.5", "gamma 1e999", "m, line 3: `gamma`: '1e999' is not a finite number"),
        ("gamma 0.5", "gamma -0.5", "m, line 3: `gamma` is -0.5, it must not be negative"),
        ("gamma 0.5", "gamma 0.5\ngamma 1", "m, line 4: `gamma` stands here a second time"),
        ("nr_class 2", "nr_class 0", "m, line 4: `nr_class`: 0 must be at least 1"),
        ("nr_class 2", "nr_class two", "m, line 4: `nr_class`: 'two' is not an integer"),
        ("nr_class 2", "nr_class 3", "m, line 7: `label` must have 3 values, not 2"),
        ("nr_class 2", "nr_class 2147483647", "m, line 7: `label` must have 2147483647 values, not 2"),  # at once
        ("total_sv 2", "total_sv 3", "m, line 8: `nr_sv` adds up to 2, `total_sv` is 3"),
        ("total_sv 2", "total_sv 1", "m, line 8: `nr_sv` adds up to 2, `total_sv` is 1"),
        ("rho 0.1", "rho 0.1 0.2", "m, line 6: `rho` must have 1 value, not 2"),
        ("rho 0.1", "rho 0.1\n0.2 nan", "m, line 6: `rho` must have 1 value, not 3"),
        ("gamma", "coef0 3\n4\ngamma", "m, line 3: `coef0` must have 1 value, not 2"),
        ("c_svc", "c_svc\n5", r"m, line 2: unknown text in model file: \[5\]"),
        ("rho 0.1", "rho infty", "m, line 6: `rho`: 'infty' is not a finite number"),
        ("label 1 -1", "label 1 1", "m, line 7: `label` names a class twice"),
        ("label 1 -1", "label 1 2147483648", "m, line 7: `label`: '2147483648' is not an integer below"),
        ("nr_sv 1 1", "nr_sv 3 -1", "m, line 8: `nr_sv`: -1 must be at least 0"),
        ("label", "probA 1 2\nlabel", "m, line 7: `probA` must have 1 value, not 2"),
        ("SV\n0.5", "SV 2\n0.5", "m, line 9: `SV` must have 0 values, not 1"),
        ("SV\n0.5", "0.5", r"m, line 9: unknown text in model file: \[0\.5\]"),
        ("c_svc", "epsilon_svr\nx", r"m, line 2: unknown text in model file: \[x\]"),
        (
            "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2",
            "svm_type nu_svr\nkernel_type linear\nnr_class 3",
            "must be 2",
        ),
        ("-0.5 1:2 \n", "", "m, line 11: `total_sv` is 2, but the file ends after 1 support vectors: it was cut short"),
        ("1:2 \n", "1:2 \n1 1:1\n", "m, line 12: `total_sv` is 2, but more lines follow, 3 in all"),
        ("1:2 \n", "1:2", "m, line 11: the file ends within this line: it was cut short"),
        ("1:1 2:1", "2:1 1:1", "m, line 10: column 9: '1:1': feature indices must ascend"),
        ("1:1 2:1", "1:1 1:1", "m, line 10: column 9: '1:1': this feature index is given twice"),
        ("1:1 2:1", "-1:1", "m, line 10: column 5: '-1:1': a feature index must not be negative"),
        ("1:1 2:1", "1:nan", "m, line 10: column 7: 'nan': not a finite number$"),
        ("1:1 2:1", "# note", "m, line 10: column 5: '#'"),
        ("-0.5 1:2", "inf 1:2", "m, line 11: column 1: 'inf': not a finite number$"),
        ("0.5 1:1", "\n0.5 1:1", "m, line 10: column 1: "),
        ("0.5 1:1", "0.5x 1:1", "m, line 10: column 1: '0.5x': not a number"),
    ],
)
def test_what_breaks_a_model_is_named(old: str, new: str, why: str) -> None:
    assert old in HEAD + BODY
    with pytest.raises(ModelError, match=f"^{why}" if why.startswith("m") and "must be 2" not in why else why):
        parse_model((HEAD + BODY).replace(old, new, 1).encode(), "m")


@pytest.mark.parametrize("rho", ["inf", "-inf", "nan", "-nan"])
def test_numbers_that_libsvm_computes_as_no_numbers_are_read(rho: str) -> None:
    """svm-train writes an infinite rho with ``-s 2 -n 1``, and one that is none where kernel values overflow."""
    model = parse_model((HEAD + BODY).replace("rho 0.1", f"rho {rho}\nprobA {rho}\nprobB 0").encode(), "m")
    assert model.prob_a is not None
    for number in (model.machines[0].rho, model.prob_a[0]):
        assert np.array_equal(number, float(rho), equal_nan=True)


@pytest.mark.parametrize(
    ("line", "good"),
    [
        ("1 0:7 ", True),
        *((line, False) for line in ("1 ", "1 0:0 ", "1 0:1.5 ", "1 0:2147483648 ", "1 1:1 ", "1 0:1 1:2 ")),
    ],
)
def test_support_vectors_of_a_precomputed_kernel_are_serials(line: str, good: bool) -> None:
    head = "svm_type nu_svr\nkernel_type precomputed\nnr_class 2\ntotal_sv 1\nrho 0\nSV\n"
    if good:
        assert parse_model(f"{head}{line}\n".encode(), "m").rows.serial.tolist() == [7]
    else:
        with pytest.raises(ModelError, match=r"^m, line 7: "):
            parse_model(f"{head}{line}\n".encode(), "m")


def test_empty_and_foreign_files() -> None:
    for text in (b"", b"\n\n", b"svm_type c_svc\n", b"\x1f\x8b\x08\x00", b"1 1:0.5 2:1\n-1 1:3\n", bytes(range(256)) * 4):
        with pytest.raises(ModelError, match="m"):
            parse_model(text, "m")


@pytest.mark.parametrize("name", ["three.s0t1", "two.s0t2.b1", "value.s3t2.b1", "gram-two.s2t4", "one.s0t2"])
def test_a_file_cut_anywhere_is_refused(name: str) -> None:
    text = (GOLDEN / f"{name}.model").read_bytes()
    for length in range(len(text) - 1):
        with pytest.raises(ModelError, match=r"^m(, line \d+)?: "):
            parse_model(text[:length], "m")


@pytest.mark.parametrize("name", ["three.s0t1", "two.s1t2.b1", "value.s4t3", "gram-three.s0t4"])
def test_a_damaged_file_is_read_or_refused(name: str) -> None:
    """Nothing but ModelError, whatever is changed, inserted or left out; and what is read can be written."""
    text = (GOLDEN / f"{name}.model").read_bytes()
    draw = random.Random(name)
    alphabet = b"0123456789.:-+eE \n\t\rnaxif#_?\0\xff\xc2SV"
    refused = 0
    for _ in range(1500):
        broken = bytearray(text)
        for _ in range(draw.choice([1, 1, 2, 5])):
            at = draw.randrange(len(broken))
            what = draw.randrange(4)
            if what == 0:
                broken[at] = draw.choice(alphabet)
            elif what == 1:
                broken[at:at] = bytes([draw.choice(alphabet)])
            elif what == 2:
                del broken[at : at + draw.choice([1, 1, 30])]
            else:
                broken[at] ^= 1 << draw.randrange(8)
        try:
            model_text(parse_model(bytes(broken), "m"))
        except ModelError:
            refused += 1
    assert 500 < refused < 1500


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"^can't open model file .*/none: No such file or directory$"):
        read_model(str(tmp_path / "none"))


def test_where_it_cannot_be_written_nothing_is(tmp_path: Path) -> None:
    model = parse_model((HEAD + BODY).encode(), "m")
    with pytest.raises(OutputError):
        write_model(str(tmp_path / "no" / "such"), model)
    assert list(tmp_path.iterdir()) == []


def test_numbers_of_the_two_styles() -> None:
    model = parse_model((HEAD + BODY).replace("1:1 ", "1:0.1 2:1e-320 ", 1).replace(" 2:1 ", " 3:-0 ").encode(), "m")
    native, libsvm = model_text(model).decode(), model_text(model, style="libsvm").decode()
    assert "0.5 1:0.1 2:1e-320 3:-0 \n" in native
    assert "rho 0.1\n" in native
    assert "0.5 1:0.1 2:9.9998887e-321 3:-0 \n" in libsvm
    assert "rho 0.10000000000000001\n" in libsvm


@needs_tools
def test_svm_predict_takes_the_hypothetical_too(tmp_path: Path) -> None:
    """Subnormal values, signed zeros, labels at the ends of int32."""
    text = (HEAD + BODY).replace("1:1 ", "1:5e-324 ", 1).replace("label 1 -1", "label -2147483648 2147483647")
    write_model(str(tmp_path / "m"), parse_model(text.encode(), "m"))
    (tmp_path / "t").write_text("1 1:0 2:1\n1 1:2\n")
    argv = [TOOLS / "svm-predict", tmp_path / "t", tmp_path / "m", tmp_path / "o"]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    assert (tmp_path / "o").read_text().split() == ["-2147483648", "2147483647"]


PARTS = b"svm_type c_svc\n%bkernel_type linear\nnr_class %d\ntotal_sv 1\nrho %b\nlabel %b\n%bnr_sv %b\nSV\n%b 1:1\n"


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ((b"", 1, b"", b"1", b"", b"1", b"1"), "a model of one class has no support vectors"),
        ((b"multiclass ovr\n", 2, b"0", b"1 2", b"", b"1 0", b"1"), "of three classes or more"),
        (
            (b"multiclass ovr\n", 3, b"0 0 0", b"1 2 3", b"probA 1 1 1\nprobB 0 0 0\n", b"1 0 0", b"1 1 1"),
            "without probabilities",
        ),
    ],
)
def test_models_that_cannot_be(parts: tuple[Any, ...], why: str) -> None:
    with pytest.raises(ModelError, match=why):
        parse_model(PARTS % parts, "m")
