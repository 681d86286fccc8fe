"""Real data sets, read from their publishers' own files.

The files of the set ``name`` lie in the folder ``data_dir/name``; instead of the argument
`data_dir`, the environment variable TCBOOST_DATA can name the folder. Without that folder iris,
wine and digits come from scikit-learn, and the others from their publishers: `files.csv` has
the addresses and hashes, a cache keeps what was downloaded.
"""

from __future__ import annotations

import csv
import gzip
import os
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_iris, load_svmlight_file, load_wine

Data = tuple[NDArray[np.float64], NDArray[Any]]
_VARIABLE = "TCBOOST_DATA"
_REMEDY = (
    f"set {_VARIABLE}, or pass data_dir (on the command line --data-dir), to the folder that "
    "holds the data sets"
)
_DAMAGE = (ValueError, EOFError, zlib.error, gzip.BadGzipFile, UserWarning)


@dataclass(frozen=True)
class Dataset:
    """A data set: its files and how to read them, or where it comes from without them."""

    n_features: int
    n_classes: int
    files: Mapping[str, int] = field(default_factory=dict)  # and their rows, training first
    read: Callable[[Path, int], Data] | None = None
    bundled: Callable[..., Data] | None = None  # with scikit-learn

    @property
    def n_rows(self) -> int:
        """Rows of all files."""
        bundled = () if self.files or not self.bundled else self.bundled(return_X_y=True)[1]
        return sum(self.files.values()) + len(bundled)


def _table(*fields: str, delimiter: str | None = None) -> Callable[[Path, int], Data]:
    """A reader of text, a row a line: `x` stands for all features, `y` for the class."""

    def read(path: Path, n_features: int) -> Data:
        formats = {"x": (np.float64, (n_features,)), "y": np.dtype("U16")}
        dtype = [(name, formats.get(name, np.float64)) for name in fields]
        rows = np.loadtxt(path, dtype, delimiter=delimiter, ndmin=1)
        return rows["x"], np.char.strip(rows["y"])

    return read


def _sparse(path: Path, n_features: int) -> Data:
    """LIBSVM's format."""
    X, y = load_svmlight_file(path, n_features=n_features)
    return X.toarray(), y


def _images(path: Path, n_features: int) -> Data:
    """MNIST's format: the images, and the labels in a file of their own."""
    labels = _existing(path.with_name(path.name.replace("images-idx3", "labels-idx1")))
    X, y = (
        np.frombuffer(gzip.decompress(file.read_bytes()), np.uint8, offset=header)
        for file, header in ((path, 16), (labels, 8))
    )
    if X.size != len(y) * n_features:
        raise ValueError(f"{labels} has labels for {len(y)} images, another number")
    return X.reshape(-1, n_features).astype(np.float64), y


_last, _csv_last = _table("x", "y"), _table("x", "y", delimiter=",")
_csv_first = _table("y", "x", delimiter=",")

DATASETS: Mapping[str, Dataset] = {
    "svmguide2": Dataset(20, 3, {"svmguide2": 391}, _sparse),
    "svmguide4": Dataset(10, 6, {"svmguide4": 300, "svmguide4.t": 312}, _sparse),
    "wine": Dataset(13, 3, {"wine.data": 178}, _csv_first, load_wine),
    "iris": Dataset(4, 3, {"iris.data": 150}, _csv_last, load_iris),
    "glass": Dataset(9, 6, {"glass.data": 214}, _table("id", "x", "y", delimiter=",")),
    "thyroid": Dataset(21, 3, {"ann-train.data": 3772, "ann-test.data": 3428}, _last),
    "dna": Dataset(180, 3, {"dna.scale": 2000, "dna.scale.t": 1186}, _sparse),
    "vehicle": Dataset(18, 4, {f"xa{i}.dat": 94 for i in "abcdefghi"}, _last),
    "digits": Dataset(64, 10, bundled=load_digits),
    "segment": Dataset(19, 7, {"segment.dat": 2310}, _last),
    "satimage": Dataset(36, 6, {"sat.trn": 4435, "sat.tst": 2000}, _last),
    "pendigits": Dataset(16, 10, {"pendigits.tra": 7494, "pendigits.tes": 3498}, _csv_last),
    "letter": Dataset(16, 26, {"letter-recognition.data": 20000}, _csv_first),
    "shuttle": Dataset(9, 7, {"shuttle.trn": 43500, "shuttle.tst": 14500}, _last),
    "covertype": Dataset(54, 7, {"covtype.data.gz": 581012}, _csv_last),
    "mnist": Dataset(
        784,
        10,
        {"train-images-idx3-ubyte.gz": 60000, "t10k-images-idx3-ubyte.gz": 10000},
        _images,
    ),
}


def _read_files() -> dict[str, dict[str, tuple[str, str]]]:
    """Of each set and file the sha256 and the canonical address, empty if there is none."""
    table: dict[str, dict[str, tuple[str, str]]] = {name: {} for name in DATASETS}
    with open(Path(__file__).with_name("files.csv"), encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            table[row["dataset"]][row["file"]] = row["sha256"], row["address"]
    return table


FILES = _read_files()


@dataclass(frozen=True)
class Place:
    """Where a data set comes from, and whether it is at hand; a folder if it has files."""

    origin: str
    at_hand: bool
    folder: Path | None = None


def locate(name: str, data_dir: str | os.PathLike[str] | None = None) -> Place:
    """Where `load` would take a data set from: a folder, scikit-learn, cache or publisher.

    A folder that holds only a part of the files counts: what is missing in it is an error.
    """
    if name not in DATASETS:
        raise ValueError(f"name must be one of {', '.join(DATASETS)}; got {name!r}")
    root = data_dir or os.environ.get(_VARIABLE)
    if root and not Path(root).is_dir():
        raise FileNotFoundError(f"there is no folder {root}: {_REMEDY}")
    files = FILES[name]
    if root and files and (folder := Path(root, name)).is_dir():
        return Place(str(folder), all((folder / file).is_file() for file in files), folder)
    if DATASETS[name].bundled:
        return Place("scikit-learn", True)
    if not all(address for _, address in files.values()):
        return Place("a folder only", False)
    try:
        import pooch
    except ImportError:
        return Place("download (needs tcboost[paper])", False)
    cache = Path(pooch.os_cache("tcboost"), name)
    if all((cache / file).is_file() for file in files):
        return Place(str(cache), True, cache)
    return Place(next(iter(files.values()))[1].rpartition("/")[0], False, cache)


def load(name: str, data_dir: str | os.PathLike[str] | None = None) -> Data:
    """Features and classes of a data set, the training file's rows before the test file's.

    Parameters
    ----------
    name : str
        One of `DATASETS`.
    data_dir : path-like, optional
        The folder that holds a folder for each set; by default the one TCBOOST_DATA names.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The features; none is missing.
    y : ndarray of shape (n_samples,)
        The classes 0, 1, ..., in the order of the publisher's labels.

    Examples
    --------
    >>> from tcboost.paper.datasets import load
    >>> X, y = load("digits")
    >>> X.shape
    (1797, 64)
    """
    place, data = locate(name, data_dir), DATASETS[name]
    if place.folder is None and data.bundled:
        X, y = data.bundled(return_X_y=True)
    elif place.folder is None:
        wanted = f"{name} ({', '.join(FILES[name])})"
        raise FileNotFoundError(f"{wanted} would come from {place.origin}: {_REMEDY}")
    else:
        if place.origin.startswith("http"):
            _download(name, place.folder)
        paths = [place.folder / file for file in data.files]
        parts = [_part(data, _existing(path), data.files[path.name]) for path in paths]
        X, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    classes, y = np.unique(y, return_inverse=True)
    if len(classes) != data.n_classes:
        found = f"{len(classes)} classes instead of {data.n_classes}"
        raise ValueError(f"{place.origin}, {', '.join(data.files)}: damaged, {found}")
    return X, y


def _download(name: str, folder: Path) -> None:
    """All files of a set, each checked before it is kept."""
    import pooch

    for file, (sha256, address) in FILES[name].items():
        try:
            pooch.retrieve(address, f"sha256:{sha256}", file, folder)
        except OSError as e:  # those of requests are OSErrors
            reason = f"{address} did not answer as it should ({type(e).__name__}: {e})"
            # The reason is told; where it came from would be pages of other people's code.
            raise FileNotFoundError(f"{file} of {name}: {reason}; {_REMEDY}") from None
        except ValueError as e:
            reason = f"{address} is not the file it should be ({e})"
            raise ValueError(f"{file} of {name}: {reason}; {_REMEDY}") from None


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}: {_REMEDY}")
    return path


def _part(data: Dataset, path: Path, n_rows: int) -> Data:
    """What one file holds, if it is as it should be."""
    assert data.read is not None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # NumPy only warns of an empty file
            X, y = data.read(path, data.n_features)
        if X.shape != (n_rows, data.n_features):
            raise ValueError(f"{X.shape[0]} rows instead of {n_rows}")
        if not np.isfinite(X).all():
            raise ValueError("values that are not numbers")
    except _DAMAGE as e:
        raise ValueError(f"{path} is damaged or another file: {e}") from e
    return X, y
