"""Saved models are the same to the last bit, run no code, and only whole files are accepted."""

import contextlib
import functools
import hashlib
import io
import json
import os
import pickle
import platform
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import kernels
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from entangled_kernels import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    EvidenceFeatures,
    MultipleKernelRidge,
    MultiViewKernelClassifier,
    MultiViewKernelRidge,
    OperatorFourierFeatures,
    OperatorFourierRidge,
    OperatorKernelVAR,
    OperatorValuedKernelRidge,
    OutputKernelRidge,
    OutputKernelRidgeCV,
)
from entangled_kernels.files import DIGEST, read_sealed, write_sealed
from entangled_kernels.io import (
    ModelFileError,
    load_model,
    open_model,
    save_model,
    software_versions,
)
from entangled_kernels.io.models import FORMAT, list_arrays
from entangled_kernels.kernels import SeparableKernel

MAGIC = b"entangled-kernels model\n"
SMALL_GRID = {"param_grid": {"shrinkage": (0.5,)}, "alphas": [0.1, 1.0, 10.0], "random_state": 0}
RBF = make_pipeline(StandardScaler(), Nystroem(n_components=12, random_state=0))

MODELS = {
    "linear": EntangledKernelRidge(),
    "partial trace": EntangledKernelRidge(StandardScaler(), prediction="partial_trace"),
    "kernel ridge": EntangledKernelRidge(shrinkage=1.0),
    "reduced rank": EntangledKernelRidge(StandardScaler(), prediction="reduced_rank", rank=2),
    "no intercept": EntangledKernelRidge(fit_intercept=False, alignment_mix=0.3),
    "ascent": EntangledKernelRidge(RBF, solver="ascent", rank=3, solver_params={"max_iter": 20}),
    "rbf": EntangledKernelRidge(RBF),
    "fourier": EntangledKernelRidge(make_pipeline(StandardScaler(), RBFSampler(random_state=0))),
    "random state": EntangledKernelRidge(RBFSampler(random_state=np.random.RandomState(1))),
    "polynomial": EntangledKernelRidge(PolynomialFeatures(2)),
    "function": EntangledKernelRidge(FunctionTransformer(np.tanh)),
    "selected": EntangledKernelRidgeCV([StandardScaler(), RBF], **SMALL_GRID),
    "evidence": EntangledKernelRidge(EvidenceFeatures(random_state=0)),
    "automatic": EntangledKernelRidgeCV(**SMALL_GRID),
    "average": EntangledKernelRidgeCV(StandardScaler(), selection="average", **SMALL_GRID),
    "output kernel": OutputKernelRidge(kernel="rbf"),
    "output kernel CV": OutputKernelRidgeCV(alphas=[0.1, 1.0, 10.0]),
    "trace ball": OutputKernelRidge(penalty="trace", constraint=True),
    "penalties CV": OutputKernelRidgeCV(
        penalty=["trace", "cluster"], alphas=[0.1, 1.0], constraint=True
    ),
    "feature groups": MultipleKernelRidge({"a": [0, 1], "b": [2, 3, 4]}, output_kernel="diagonal"),
    "kernels": MultipleKernelRidge(
        ["rbf", ("t", Nystroem(n_components=9, random_state=0), [0, 1])]
    ),
    "views": MultiViewKernelRidge({"a": [0, 1], "b": [2, 3, 4]}, sparse=True),
    "operator features": OperatorFourierRidge(OperatorFourierFeatures(random_state=0)),
    "any kernel": OperatorValuedKernelRidge(SeparableKernel("rbf", np.eye(3) + 1.0)),
}


@functools.cache
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 5))
    return (
        X,
        np.sin(X @ rng.normal(size=(5, 3))) + 0.1 * rng.normal(size=(40, 3)),
        rng.normal(size=(7, 5)),
    )


def outcomes(model, X):
    """Everything a model can be asked, as bytes."""
    results = {"predict": model.predict(X)}
    if hasattr(model, "best_estimator_") or isinstance(model, EntangledKernelRidge):
        results["std"] = model.predict(X, return_std=True)[1]
    if hasattr(model, "kraus_") and model.kraus_.size:
        results |= {"project": model.project(X), "kernel": model.kernel_.blocks(X, X)}
    return {name: np.ascontiguousarray(value).tobytes() for name, value in results.items()}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings(
    "ignore:the (smallest|largest) of the alphas", "ignore:alpha.*still rises"
)
def test_loaded_model_is_the_same_to_the_last_bit(name, tmp_path):
    X, Y, new = rows()
    model = MODELS[name].fit(X, Y)
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is type(model)
    assert outcomes(loaded, new) == outcomes(model, new)
    assert list(tmp_path.iterdir()) == [tmp_path / "model"]


def test_models_of_series_and_of_classes(tmp_path):
    X, Y, new = rows()
    for kernel in ("hadamard", "additive"):
        model = OperatorKernelVAR(kernel).fit(X)
        save_model(model, tmp_path / "model")
        np.testing.assert_array_equal(load_model(tmp_path / "model").forecast(5), model.forecast(5))
    classes = MultiViewKernelClassifier().fit(X, np.where(Y[:, 0] > 0, "up", "down"))
    save_model(classes, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(new), classes.predict(new))


def test_frames_and_encoded_text_keep_their_names(tmp_path):
    X, Y, _ = rows()
    frame = pd.DataFrame(X, columns=list("abcde")).assign(town=["Ulm", "Aix"] * 20)
    encode = make_column_transformer((OneHotEncoder(), ["town"]), remainder=StandardScaler())
    model = EntangledKernelRidge(encode).set_output(predict="pandas")
    model.fit(frame, pd.DataFrame(Y, columns=["one", "two words", "três"]))
    save_model(model, tmp_path / "model", info={"note": "naïve", "rows": 40})
    saved = open_model(tmp_path / "model")
    pd.testing.assert_frame_equal(
        saved.model.predict(frame), model.predict(frame), check_exact=True
    )
    assert list(saved.model.feature_names_in_) == list(frame.columns)
    assert saved.info == {"note": "naïve", "rows": 40}
    assert saved.software["numpy"] == np.__version__


def test_fresh_process_predicts_the_same(tmp_path):
    X, Y, new = rows()
    model = EntangledKernelRidge(RBF).fit(X, Y)
    save_model(model, tmp_path / "model")
    np.save(tmp_path / "new.npy", new)
    code = (
        "import sys, numpy as np\n"
        "from entangled_kernels.io import load_model\n"
        "model = load_model(sys.argv[1])\n"
        "mean, std = model.predict(np.load(sys.argv[2]), return_std=True)\n"
        "sys.stdout.buffer.write(mean.tobytes() + std.tobytes())"
    )
    arguments = [sys.executable, "-c", code, tmp_path / "model", tmp_path / "new.npy"]
    done = subprocess.run(arguments, capture_output=True, check=True)
    mean, std = model.predict(new, return_std=True)
    assert done.stdout == mean.tobytes() + std.tobytes()


@functools.cache
def saved_bytes():
    X, Y, _ = rows()
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "model")
        save_model(EntangledKernelRidge(RBF).fit(X, Y), path)
        with open(path, "rb") as file:
            return file.read()


@pytest.mark.parametrize(
    "damage", [slice(0, -1), slice(1, None), slice(0, 30), slice(0, 0)], ids=str
)
def test_a_damaged_file_is_refused(damage, tmp_path):
    """`test_sealed.py` has all kinds of damage."""
    (tmp_path / "model").write_bytes(saved_bytes()[damage])
    with pytest.raises(ModelFileError, match=r"is damaged|is empty|is not a model file"):
        load_model(tmp_path / "model")


def other_zip():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("schema.json", "{}")
    return buffer.getvalue()


FOREIGN = {
    "png": b"\x89PNG\r\n\x1a\n" + bytes(50),
    "text": b"a,b\n1,2\n",
    "pickle": pickle.dumps([1, 2]),
    "zip": other_zip(),
    "skops": skops.io.dumps(StandardScaler()),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_files_of_another_kind_are_refused(kind, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(FOREIGN[kind])
    with pytest.raises(ModelFileError, match="file is not a model file of entangled-kernels"):
        load_model(path)


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "nothing")


def sealed(header, payload):
    """A file with the right checksum, whatever is in it."""
    body = MAGIC + json.dumps(header).encode() + b"\n" + payload
    return body + hashlib.sha256(body).digest()


def header(**changes):
    line = saved_bytes()[len(MAGIC) :].partition(b"\n")[0]
    return json.loads(line) | changes


def payload():
    return saved_bytes()[len(MAGIC) : -DIGEST].partition(b"\n")[2]


UNTRUSTED = {
    "system": make_pipeline(FunctionTransformer(os.system)),
    "clone": FunctionTransformer(func=kernels.clone),
    "load_model": FunctionTransformer(func=load_model),
    "system inside a model": EntangledKernelRidge(FunctionTransformer(os.system)),
}


@pytest.mark.parametrize("name", UNTRUSTED)
def test_untrusted_functions_are_refused(name, tmp_path):
    (tmp_path / "file").write_bytes(sealed(header(), skops.io.dumps(UNTRUSTED[name])))
    words = f"not trusted, so nothing was loaded: .*{name.split()[0]}"
    with pytest.raises(ModelFileError, match=words):
        load_model(tmp_path / "file")


@pytest.mark.parametrize(
    ("thing", "words"),
    [(StandardScaler(), "holds a StandardScaler"), (EntangledKernelRidge(), "NotFittedError")],
)
def test_what_is_no_fitted_model_is_not_loaded(thing, words, tmp_path):
    (tmp_path / "file").write_bytes(sealed(header(), list_arrays(skops.io.dumps(thing))))
    with pytest.raises(ModelFileError, match=words):
        load_model(tmp_path / "file")


@pytest.mark.parametrize(
    ("software", "words"),
    [
        ({"numpy": "0.1"}, r"numpy 0\.1 \(here "),
        ({"numpy": {"a": [1]}}, "cannot be loaded with the software installed here"),
    ],
)
def test_archive_that_cannot_be_read_names_the_versions(software, words, tmp_path):
    (tmp_path / "file").write_bytes(sealed(header(software=software), b"no zip"))
    with pytest.raises(ModelFileError, match=words):
        load_model(tmp_path / "file")


@pytest.mark.parametrize(
    "changes",
    [
        {"info": [1]},
        {"info": "text"},
        {"software": 3},
        {"software": [["numpy", "1"]]},
        {"format": True},
    ],
    ids=str,
)
def test_a_header_of_wrong_types_is_refused(changes, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(sealed(header(**changes), payload()))
    with pytest.raises(ModelFileError, match="is not a model file"):
        load_model(path)


def rebuilt(change):
    """The archive of a model with its description changed."""
    content = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(payload())) as old, zipfile.ZipFile(content, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, change(json.loads(data)) if name == "schema.json" else data)
    return content.getvalue()


def nested(schema):
    deep = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": []}
    schema["content"] = json.loads(json.dumps(deep))
    text = json.dumps(deep)
    inner = json.dumps(deep | {"content": ["?"]})
    for _ in range(3000):
        text = inner.replace('"?"', text)
    return json.dumps(schema).replace(json.dumps(deep), text)


CRAFTED = {
    "a list": lambda schema: json.dumps([schema]),
    "class a number": lambda schema: json.dumps(schema | {"__class__": 3}),
    "no content": lambda schema: json.dumps({k: schema[k] for k in schema if k != "content"}),
    "content a number": lambda schema: json.dumps(schema | {"content": 7}),
    "nested without end": nested,
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_archive_is_refused(name, tmp_path):
    (tmp_path / "file").write_bytes(sealed(header(), rebuilt(CRAFTED[name])))
    with pytest.raises(ModelFileError):
        load_model(tmp_path / "file")


def test_an_archive_that_would_expand_without_limit_is_refused(tmp_path):
    path, content = tmp_path / "file", io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("zeros", bytes(2**28))
    assert len(content.getvalue()) < 2**19
    path.write_bytes(sealed(header(), content.getvalue()))
    with pytest.raises(ModelFileError, match=r"an archive of \d+ bytes would expand to 268435456"):
        load_model(path)


def test_a_model_that_compresses_too_well_is_stored_as_it_is(tmp_path, monkeypatch):
    from entangled_kernels import files as module

    monkeypatch.setattr(module, "LEAST_EXPANSION", 0)
    monkeypatch.setattr(module, "LARGEST_RATIO", 1)
    X, Y, new = rows()
    model = EntangledKernelRidge().fit(X, Y)
    save_model(model, tmp_path / "model")
    assert np.array_equal(load_model(tmp_path / "model").predict(new), model.predict(new))


def test_a_stream_is_solved_when_it_is_saved(tmp_path):
    X, Y, new = rows()
    model = EntangledKernelRidge(RBF).partial_fit(X, Y)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert np.array_equal(again.coef_, model.coef_)
    # More rows can be added to it.
    more = again.partial_fit(new, Y[: len(new)]).predict(new)
    assert np.array_equal(more, model.partial_fit(new, Y[: len(new)]).predict(new))


def double(X):
    return 2.0 * X


def test_own_functions_are_saved_only_when_trusted(tmp_path):
    X, Y, new = rows()
    model = EntangledKernelRidge(FunctionTransformer(double)).fit(X, Y)
    with pytest.raises(TypeError, match=r"would not be loaded again: .*double"):
        save_model(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())
    name = f"{double.__module__}.double"
    save_model(model, tmp_path / "model", trusted=[name])
    with pytest.raises(ModelFileError, match="not trusted"):
        load_model(tmp_path / "model")
    assert np.array_equal(
        load_model(tmp_path / "model", trusted=[name]).predict(new), model.predict(new)
    )


def test_what_is_no_fitted_model_is_not_saved(tmp_path):
    X, Y, _ = rows()
    with pytest.raises(NotFittedError):
        save_model(EntangledKernelRidge(), tmp_path / "model")
    with pytest.raises(TypeError, match=r"must be an estimator .* got LinearRegression"):
        save_model(LinearRegression().fit(X, Y), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_full_disk_keeps_the_old_file(tmp_path, monkeypatch):
    X, Y, new = rows()
    path = tmp_path / "model"
    model = EntangledKernelRidge().fit(X, Y)
    save_model(model, path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_model(EntangledKernelRidge(alpha=9.0).fit(X, Y), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    assert np.array_equal(load_model(path).predict(new), model.predict(new))


def test_without_skops_the_extra_is_named(tmp_path, monkeypatch):
    X, Y, _ = rows()
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"entangled-kernels\[persist\]"):
        save_model(EntangledKernelRidge().fit(X, Y), tmp_path / "model")


def test_versions_of_what_is_installed():
    versions = software_versions("skops", "a-package-that-is-not-there")
    assert versions["python"] == platform.python_version()
    assert versions["numpy"] == version("numpy")
    assert versions["skops"] == version("skops")
    assert "a-package-that-is-not-there" not in versions


# A validly sealed file whose arrays were edited.


@pytest.fixture(scope="module")
def default_file(tmp_path_factory):
    X, Y, _ = rows()
    path = tmp_path_factory.mktemp("default") / "model"
    save_model(EntangledKernelRidgeCV(random_state=0).fit(X[:25], Y[:25]), path)
    return path


def edited(path, target, name, values):
    """The file with another array in its archive, sealed again; its list of arrays stays."""
    header, payload = read_sealed(path, "model", FORMAT, ModelFileError)
    archive, array = io.BytesIO(), io.BytesIO()
    np.save(array, values)
    with zipfile.ZipFile(io.BytesIO(payload)) as old, zipfile.ZipFile(archive, "w") as new:
        for entry in old.namelist():
            new.writestr(entry, array.getvalue() if entry == name else old.read(entry))
    write_sealed(target, "model", header, archive.getvalue())
    return target


def test_every_edited_array_is_refused_with_a_sentence(default_file, tmp_path):
    _, payload = read_sealed(default_file, "model", FORMAT, ModelFileError)
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        arrays = {name: np.load(io.BytesIO(archive.read(name))) for name in names[::4]}
    assert len(arrays) > 20
    for number, (name, values) in enumerate(arrays.items()):
        edits = [values[None] if number % 2 else values[..., None]]
        if values.dtype.kind == "f" and values.size and np.isfinite(values.flat[0]):
            edits = [values.copy(), *edits[: number % 3 == 0]]
            edits[0].flat[0] = np.nan
        for edit in edits:
            with pytest.raises(
                ModelFileError, match=f"was edited after it was written: array {name}"
            ):
                load_model(edited(default_file, tmp_path / "model", name, edit))


def test_a_model_with_nan_is_neither_saved_nor_loaded(tmp_path):
    X, Y, _ = rows()
    model = OutputKernelRidge().fit(X, Y)
    save_model(model, tmp_path / "model")
    model.dual_coef_[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity in dual_coef_"):
        save_model(model, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_default_model_takes_little_room(default_file):
    assert default_file.stat().st_size < 500_000


def relisted(path, target, name, values):
    """The file with another array in its archive, and in the list of its arrays, sealed again."""
    header, payload = read_sealed(
        edited(path, target, name, values), "model", FORMAT, ModelFileError
    )
    archive = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(payload)) as old, zipfile.ZipFile(archive, "w") as new:
        for entry in old.namelist():
            if entry != "arrays.json":
                new.writestr(entry, old.read(entry))
    write_sealed(target, "model", header, list_arrays(archive.getvalue()))
    return target


def test_edited_arrays_whose_list_was_edited_too_never_predict_nan(default_file, tmp_path):
    """Such a file is refused, or predicts finite numbers."""
    _, payload = read_sealed(default_file, "model", FORMAT, ModelFileError)
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        arrays = {
            name: np.load(io.BytesIO(archive.read(name)))
            for name in archive.namelist()[::9]
            if ".npy" in name
        }
    refused = 0
    for name, values in arrays.items():
        if values.dtype.kind != "f" or values.size == 0 or values.ndim == 0:
            continue
        damaged = values.copy()
        damaged.flat[0] = np.nan
        for edit in (damaged, values[:-1]):
            try:
                model = load_model(relisted(default_file, tmp_path / "model", name, edit))
            except ModelFileError:
                refused += 1
                continue
            X = np.zeros((3, model.n_features_in_))
            with contextlib.suppress(ValueError, TypeError, IndexError):
                assert np.isfinite(model.predict(X)).all()
    assert refused > 1
