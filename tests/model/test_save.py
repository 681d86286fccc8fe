"""Saving: a file is the old model or the new one, whatever happens, whoever else is there."""

import json
import os
import re
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

import tcboost
from tcboost import (
    AdaBoostECC,
    AdaBoostMO,
    MultiBoostECC,
    MultiBoostHinge,
    MultiBoostMO,
)

ESTIMATORS = [AdaBoostMO, AdaBoostECC, MultiBoostMO, MultiBoostECC, MultiBoostHinge]


def iris():
    X, y = load_iris(return_X_y=True)
    return X[::2], y[::2]


@pytest.fixture(scope="module")
def model():
    return AdaBoostMO(max_iter=1).fit(*iris())


def names(folder):
    return sorted(p.name for p in folder.iterdir())


# ---------------------------------------------------------------- what cannot be saved


def test_not_fitted(tmp_path):
    for estimator in ESTIMATORS:
        with pytest.raises(NotFittedError):
            tcboost.save(estimator(), tmp_path / "model.json")
    assert names(tmp_path) == []


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_other_classifiers_are_refused(estimator, saved, tmp_path):
    weak_learner = DecisionTreeClassifier(max_depth=1)
    model = estimator(max_iter=2, weak_learner=weak_learner, random_state=0).fit(*iris())
    with pytest.raises(ValueError, match="weak_learner"):
        tcboost.save(model, tmp_path / "model.json")
    assert names(tmp_path) == []
    path = tmp_path / "model.json"
    path.write_bytes(saved)
    with pytest.raises(ValueError, match="weak_learner"):
        tcboost.save(model, path)
    assert path.read_bytes() == saved


def test_classes_that_are_neither_numbers_nor_strings(tmp_path):
    model = AdaBoostMO(max_iter=2).fit(*iris())
    model.classes_ = np.array([None, (1,), 2], dtype=object)
    with pytest.raises(ValueError, match="classes"):
        tcboost.save(model, tmp_path / "model.json")
    assert names(tmp_path) == []


def test_classes_that_only_objects_tell_apart(tmp_path):
    X, y = iris()
    classes = np.array(["a", "a\0", "b", "\ud800"], dtype=object)
    model = AdaBoostMO(max_iter=2).fit(X, classes[np.where(np.arange(len(y)) % 7, y, 3)])
    tcboost.save(model, tmp_path / "model.json")
    assert tcboost.load(tmp_path / "model.json").classes_.tolist() == classes.tolist()


def test_only_our_models_are_saved(tmp_path):
    with pytest.raises(ValueError, match="estimator of this package"):
        tcboost.save(DecisionTreeClassifier().fit(*iris()), tmp_path / "tree")
    assert names(tmp_path) == []


# ---------------------------------------------------------------- where to


def test_no_such_folder(model, tmp_path):
    with pytest.raises(FileNotFoundError):
        tcboost.save(model, tmp_path / "nowhere" / "model.json")


def test_what_is_no_file_is_left_alone(model, tmp_path):
    folder, pipe = tmp_path / "folder", tmp_path / "pipe"
    folder.mkdir()
    os.mkfifo(pipe)
    for path in (folder, pipe):
        with pytest.raises(ValueError, match=path.name):
            tcboost.save(model, path)
    assert folder.is_dir()
    assert pipe.is_fifo()
    assert names(tmp_path) == ["folder", "pipe"]


def test_a_name_may_be_as_long_as_the_system_allows(model, tmp_path):
    path = tmp_path / ("x" * 255)
    tcboost.save(model, path)
    assert tcboost.load(path).n_iter_ == 1


@pytest.fixture(params=["nameless", "named"])
def way(request, monkeypatch):
    """New files without a name until they are whole, and systems that know no such files."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no files without a name")
    return request.param


def test_an_existing_file_is_replaced(way, model, saved, tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(saved)
    tcboost.save(model, path)
    again = tcboost.load(path)
    X, _ = iris()
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert names(tmp_path) == ["model.json"]


def test_files_of_the_user_are_left_alone(way, model, tmp_path):
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / "model.json.partial").symlink_to(other)
    (tmp_path / "next.json.partial").write_text("mine, too")
    for name in ("model.json", "next.json"):
        tcboost.save(model, tmp_path / name)
    assert other.read_text() == "mine"
    assert (tmp_path / "model.json.partial").is_symlink()
    assert (tmp_path / "next.json.partial").read_text() == "mine, too"
    assert len(names(tmp_path)) == 5


@contextmanager
def umask(mask):
    old = os.umask(mask)
    try:
        yield
    finally:
        os.umask(old)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o444])
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_the_mode_stays(mode, mask, way, model, tmp_path):
    path = tmp_path / "model.json"
    with umask(mask):
        tcboost.save(model, path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
        path.chmod(mode)
        tcboost.save(model, path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_links_stay(way, model, tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    old, new = there / "old.json", there / "new.json"
    old.write_bytes(b"old")
    for name, target in (("a", "there/old.json"), ("b", "there/new.json"), ("c", "a")):
        link = tmp_path / name
        link.symlink_to(target)
        tcboost.save(model, link)
        assert os.readlink(link) == target
        assert tcboost.load(link).n_iter_ == 1
    assert names(there) == ["new.json", "old.json"]
    assert tcboost.load(old).n_iter_ == tcboost.load(new).n_iter_ == 1


# ---------------------------------------------------------------- whatever happens


@pytest.mark.parametrize("error", [OSError, PermissionError, KeyboardInterrupt])
@pytest.mark.parametrize("where", [(os, "fsync"), (os, "replace"), (json, "dumps")])
def test_nothing_is_left_of_a_save_that_fails(
    where, error, way, model, saved, tmp_path, monkeypatch
):
    def fail(*arguments, **options):
        raise error("no more")

    path = tmp_path / "model.json"
    path.write_bytes(saved)
    monkeypatch.setattr(*where, fail)
    for target in (path, tmp_path / "new.json"):
        with pytest.raises(error, match="no more"):
            tcboost.save(model, target)
    assert path.read_bytes() == saved
    assert names(tmp_path) == ["model.json"]


def test_a_file_is_on_the_disk_before_it_takes_the_place(way, model, tmp_path, monkeypatch):
    done = []

    def fsync(file, really=os.fsync):
        really(file)
        done.append(os.fstat(file).st_size)

    def replace(source, target, really=os.replace):
        done.append(os.path.getsize(source))
        really(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    tcboost.save(model, tmp_path / "model.json")
    assert done == [(tmp_path / "model.json").stat().st_size] * 2


@contextmanager
def at_most(size):
    """No file may become longer than this, as with a quota."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_quota(way, model, saved, tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(saved)
    for target in (path, tmp_path / "new.json"):
        with at_most(1000), pytest.raises(OSError, match="too large"):
            tcboost.save(model, target)
    assert path.read_bytes() == saved
    assert names(tmp_path) == ["model.json"]


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 16 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a disk cannot be mounted here: {error}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(way, model, saved, small_disk):
    path = small_disk / "model.json"
    path.write_bytes(saved)
    with open(small_disk / "rest", "wb", buffering=0) as rest:
        assert rest.write(bytes(1 << 16)) < 1 << 16  # it is full
    for target in (path, small_disk / "new.json"):
        with pytest.raises(OSError, match="No space"):
            tcboost.save(model, target)
    assert path.read_bytes() == saved
    assert names(small_disk) == ["model.json", "rest"]
    (small_disk / "rest").unlink()
    tcboost.save(model, path)
    assert tcboost.load(path).n_iter_ == 1


# ---------------------------------------------------------------- whoever else is there

READ = "import os, sys, tcboost; models = [tcboost.load(p) for p in sys.argv[1:3]]\n"
WRITE = READ + "for i in range(100): tcboost.save(models[i % 2], sys.argv[3])"
# Children that save again and again, each killed at a moment of its own.
KILL = (
    READ
    + """
import random, signal, time
if sys.argv[5] == "named" and hasattr(os, "O_TMPFILE"):
    del os.O_TMPFILE
draw = random.Random(0)
for _ in range(int(sys.argv[4])):
    child = os.fork()
    if not child:
        try:
            while True:
                for model in models:
                    tcboost.save(model, sys.argv[3])
        finally:
            os._exit(1)
    time.sleep(draw.uniform(0, 0.05))
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL  # it did not end by itself
    print(tcboost.load(sys.argv[3]).n_iter_, *os.listdir(os.path.dirname(sys.argv[3])))
"""
)


@pytest.fixture
def paths(tmp_path):
    """Two models, of one and two rounds, and where to save them; the first is there."""
    (tmp_path / "there").mkdir()
    paths = [tmp_path / "one", tmp_path / "two", tmp_path / "there" / "model.json"]
    for path, rounds in zip(paths, (1, 2, 1), strict=True):
        tcboost.save(AdaBoostMO(max_iter=rounds).fit(*iris()), path)
    return [str(path) for path in paths]


def test_two_writers_and_a_reader(paths):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITE, *paths], stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    found = set()
    while any(writer.poll() is None for writer in writers):
        found.add(tcboost.load(paths[2]).n_iter_)
    for writer in writers:
        assert writer.communicate()[1] == b""
        assert writer.returncode == 0
    assert found == {1, 2}
    assert os.listdir(Path(paths[2]).parent) == ["model.json"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no children to kill")
@pytest.mark.parametrize("way", ["nameless", "named"])
@pytest.mark.parametrize("times", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_killed_at_any_moment(times, way, paths):
    run = [sys.executable, "-c", KILL, *paths, str(times), way]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.stderr == ""
    found = [line.split() for line in done.stdout.splitlines()]
    assert len(found) == times
    assert {rounds for rounds, *_ in found} <= {"1", "2"}
    for path in {name for _, *names in found for name in names} - {"model.json"}:
        assert re.fullmatch(r"\.tcboost-[0-9a-f]{16}\.partial", path)
        if way == "nameless" and hasattr(os, "O_TMPFILE"):  # it was about to be renamed
            assert tcboost.load(Path(paths[2]).with_name(path)).n_iter_ in (1, 2)
