import builtins
import gzip
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

from tcboost.paper import datasets
from tcboost.paper.datasets import DATASETS, FILES, load, locate

LARGE = {"covertype", "mnist"}
LETTERS = [
    *(789, 766, 736, 805, 768, 775, 773, 734, 755, 747, 739, 761, 792),
    *(783, 753, 803, 783, 758, 748, 796, 813, 764, 752, 787, 786, 734),
]
SHAPES = {  # rows, features, and the rows of each class
    "svmguide2": (391, 20, [221, 117, 53]),
    "svmguide4": (612, 10, [86, 116, 119, 99, 110, 82]),
    "wine": (178, 13, [59, 71, 48]),
    "iris": (150, 4, [50, 50, 50]),
    "glass": (214, 9, [70, 76, 17, 13, 9, 29]),
    "thyroid": (7200, 21, [166, 368, 6666]),
    "dna": (3186, 180, [767, 765, 1654]),
    "vehicle": (846, 18, [218, 212, 217, 199]),
    "digits": (1797, 64, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]),
    "segment": (2310, 19, [330] * 7),
    "satimage": (6435, 36, [1533, 703, 1358, 626, 707, 1508]),
    "pendigits": (
        10992,
        16,
        [1143, 1143, 1144, 1055, 1144, 1055, 1056, 1142, 1055, 1055],
    ),
    "letter": (20000, 16, LETTERS),
    "shuttle": (58000, 9, [45586, 50, 171, 8903, 3267, 10, 13]),
    "covertype": (581012, 54, [211840, 283301, 35754, 2747, 9493, 17367, 20510]),
    "mnist": (
        70000,
        784,
        [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958],
    ),
}


def write(folder, name, file, content):
    (folder / name).mkdir(exist_ok=True)
    path = folder / name / file
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n in LARGE else n for n in DATASETS],
)
def test_the_original_files(name, data_dir):
    X, y = load(name, data_dir)
    n_rows, n_features, counts = SHAPES[name]
    assert X.shape == (n_rows, n_features)
    assert X.dtype == np.float64
    assert np.isfinite(X).all()
    assert np.bincount(y).tolist() == counts


def test_the_files_agree_with_scikit_learn(data_dir):
    for loader, name, differences in ((load_wine, "wine", 0), (load_iris, "iris", 3)):
        (X, y), (own_X, own_y) = load(name, data_dir), loader(return_X_y=True)
        assert (own_X != X).sum() == differences  # the publisher's known errors
        np.testing.assert_array_equal(y, own_y)


@pytest.mark.parametrize("name", ["iris", "wine", "digits"])
def test_scikit_learn_stands_in(name, tmp_path, monkeypatch):
    monkeypatch.delenv("TCBOOST_DATA", raising=False)
    for data_dir in (None, tmp_path):
        X, y = load(name, data_dir)
        assert (*X.shape, np.bincount(y).tolist()) == SHAPES[name]


def test_a_missing_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("TCBOOST_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere.*TCBOOST_DATA.*data-dir"):
        load("glass")
    write(tmp_path, "svmguide4", "svmguide4.t", b"")  # but not the other file
    with pytest.raises(FileNotFoundError, match=r"svmguide4: .*TCBOOST_DATA.*--data-dir"):
        load("svmguide4", tmp_path)
    write(tmp_path, "mnist", "train-images-idx3-ubyte.gz", b"")
    write(tmp_path, "mnist", "t10k-images-idx3-ubyte.gz", b"")
    with pytest.raises(FileNotFoundError, match=r"train-labels-idx1-ubyte.gz"):
        load("mnist", tmp_path)


def test_every_file_has_a_hash_and_those_at_hand_have_it(data_dir):
    """Of covertype the folder may hold another compression than the publisher's."""
    for name, data in DATASETS.items():
        assert set(data.files) <= set(FILES[name])
        for file, (sha256, address) in FILES[name].items():
            assert address == "" or address.endswith(f"/{file}")
            if name != "covertype":
                found = hashlib.sha256((data_dir / name / file).read_bytes()).hexdigest()
                assert found == sha256, file


GLASS = "\n".join(f"{i},{','.join(['1.5'] * 9)},{1 + i % 6}" for i in range(214)).encode()


@pytest.fixture
def publisher(tmp_path, monkeypatch):
    """A publisher of glass, at home: what it sends, and how often it was asked."""
    monkeypatch.delenv("TCBOOST_DATA", raising=False)
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / name)
    sent = {"body": GLASS, "length": len(GLASS), "requests": 0}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            sent["requests"] += 1
            self.send_response(200)
            self.send_header("Content-Length", str(sent["length"]))
            self.end_headers()
            self.wfile.write(sent["body"])

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/glass.data"
        files = {"glass.data": (hashlib.sha256(GLASS).hexdigest(), address)}
        monkeypatch.setitem(datasets.FILES, "glass", files)
        yield sent
        server.shutdown()


def test_a_download_is_kept(publisher, tmp_path):
    assert not locate("glass").at_hand
    assert locate("glass").origin.startswith("http://127.0.0.1")
    for _ in range(2):
        X, y = load("glass", tmp_path)  # a folder that does not have it
        assert X.shape == (214, 9)
        assert y[:3].tolist() == [0, 1, 2]
    assert publisher["requests"] == 1
    assert locate("glass").at_hand


@pytest.mark.parametrize("body", [GLASS[:-1] + b"7", GLASS[:-9], b"<html>"])
def test_a_wrong_download_is_refused_and_not_kept(body, publisher):
    publisher.update(body=body, length=len(body))
    with pytest.raises(ValueError, match=r"glass.data.*not the file.*TCBOOST_DATA.*--data-dir"):
        load("glass")
    publisher.update(body=GLASS, length=len(GLASS))
    assert load("glass")[0].shape == (214, 9)


def test_a_broken_off_download_is_refused(publisher):
    publisher["body"] = GLASS[:-100]
    with pytest.raises((FileNotFoundError, ValueError), match=r"glass.data.*--data-dir"):
        load("glass")


def test_without_a_network(publisher, monkeypatch):
    closed = {"glass.data": ("0" * 64, "http://127.0.0.1:9/glass.data")}
    monkeypatch.setitem(datasets.FILES, "glass", closed)
    told = r"did not answer.*TCBOOST_DATA.*--data-dir"
    with pytest.raises(FileNotFoundError, match=told) as caught:
        load("glass")
    assert caught.value.__suppress_context__  # a message, without the tracebacks behind it


def test_what_cannot_be_downloaded(publisher, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"shuttle.trn.*a folder only.*--data-dir"):
        load("shuttle")
    plain = builtins.__import__

    def without_pooch(name, *args, **kwargs):
        if name == "pooch":
            raise ImportError(name)
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pooch)
    with pytest.raises(FileNotFoundError, match=r"tcboost\[paper\].*--data-dir"):
        load("glass")


def test_the_argument_has_precedence(tmp_path, monkeypatch):
    monkeypatch.setenv("TCBOOST_DATA", str(tmp_path / "nowhere"))
    rows = [f"{i},{','.join(['1.5'] * 9)},{1 + i % 6}" for i in range(214)]
    write(tmp_path, "glass", "glass.data", "\n".join(rows))
    X, y = load("glass", tmp_path)
    assert X.shape == (214, 9)
    assert (X == 1.5).all()
    assert y[:7].tolist() == [0, 1, 2, 3, 4, 5, 0]


ROW = ",".join(["1"] * 11)
BAD_TABLES = {
    "empty": "",
    "blank": "\n\n",
    "fewer rows": f"{ROW}\n" * 213,
    "more rows": f"{ROW}\n" * 215,
    "a row cut short": f"{ROW}\n" * 213 + "1,1,1",
    "a longer row": f"{ROW}\n" * 213 + f"{ROW},1",
    "a word": f"{ROW}\n" * 213 + ROW.replace("1", "one", 3),
    "missing": f"{ROW}\n" * 213 + ROW.replace("1", "nan"),
    "one class": f"{ROW}\n" * 214,
    "bytes": b"\xff\xfe\x00\x9d" * 99,
    "a page": "<html><body>Not found</body></html>",
}


@pytest.mark.parametrize("content", BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_damaged_table_is_named(content, tmp_path):
    write(tmp_path, "glass", "glass.data", content)
    with pytest.raises(ValueError, match=r"glass.data"):
        load("glass", tmp_path)


@pytest.mark.parametrize(
    "content", ["", "1 1:0.5\n", "1 1:\n" * 391, "1 21:3\n" * 391, b"\x00\xff" * 99, "<html>"]
)
def test_a_damaged_sparse_file_is_named(content, tmp_path):
    write(tmp_path, "svmguide2", "svmguide2", content)
    with pytest.raises(ValueError, match="svmguide2"):
        load("svmguide2", tmp_path)


def test_the_damaged_one_of_several_files_is_named(tmp_path):
    row = " ".join(f"{i}:1" for i in range(1, 11))
    write(tmp_path, "svmguide4", "svmguide4", f"1 {row}\n" * 300)
    write(tmp_path, "svmguide4", "svmguide4.t", f"1 {row}\n" * 311)
    with pytest.raises(ValueError, match=r"svmguide4\.t .*311 rows instead of 312"):
        load("svmguide4", tmp_path)


@pytest.mark.parametrize("cut", [0, 5, -20, None])
def test_a_damaged_image_file_is_named(cut, tmp_path):
    images = gzip.compress(bytes(range(256)) * 500)
    write(tmp_path, "mnist", "train-images-idx3-ubyte.gz", images[:cut])
    write(tmp_path, "mnist", "t10k-images-idx3-ubyte.gz", images)
    write(tmp_path, "mnist", "train-labels-idx1-ubyte.gz", gzip.compress(bytes(68)))
    with pytest.raises(ValueError, match=r"train-images-idx3-ubyte.gz"):
        load("mnist", tmp_path)


def test_a_truncated_archive_is_named(tmp_path):
    archive = gzip.compress("\n".join(["1," * 54 + "1"] * 999).encode())
    for content in (archive[:-9], b"not gzip at all"):
        write(tmp_path, "covertype", "covtype.data.gz", content)
        with pytest.raises(ValueError, match=r"covtype.data.gz"):
            load("covertype", tmp_path)


def test_an_unknown_name_lists_those_there_are():
    with pytest.raises(ValueError, match=r"svmguide2.*mnist.*got 'mnits'"):
        load("mnits")
