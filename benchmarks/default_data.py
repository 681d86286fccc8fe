"""The data of `default.py`: tables of the project's folder, and draws whose law is known."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from common import Parts
from tcboost.paper import datasets
from timing import permuted

ROWS = {"covertype": 100_000, "shuttle": 5000}
N_TRAIN, N_TEST = 3000, 20_000  # rows of a draw
RARE = 0.02  # share of the rare class
Data = tuple[NDArray[np.float64], NDArray[Any]]


@functools.cache
def table(name: str, rows: int | None = None) -> Data:
    """A data set, or a random part of it without the classes of fewer than ten rows."""
    if name == "breast_cancer":
        return load_breast_cancer(return_X_y=True)
    X, y = datasets.load(name)
    rows = rows or ROWS.get(name, len(y))
    if rows < len(y):
        X, y = (values[:rows] for values in permuted(0, X, y))
        kept = np.bincount(y)[y] >= 10
        X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
    return X, y


def parts(X: NDArray[np.float64], y: NDArray[Any], split: int) -> Parts:
    """X, X_test, y, y_test."""
    return train_test_split(X, y, test_size=0.3, stratify=y, random_state=split)


def _frame(name: str) -> pd.DataFrame:
    path = Path(os.environ["TCBOOST_DATA"], "tables", f"{name}.csv")
    return pd.read_csv(path, keep_default_na=False)


@functools.cache
def diamonds() -> Data:
    """All columns, categories one-hot; the class is the cut."""
    frame = _frame("diamonds")
    y = frame.pop("cut").factorize()[0]
    return pd.get_dummies(frame).to_numpy(np.float64), y


@functools.cache
def agents() -> Data:
    """hotel_rates: the agent's code alone; the class is the market segment."""
    frame = _frame("hotel_rates")
    codes, y = (frame[column].factorize()[0] for column in ("agent", "market_segment"))
    return codes[:, None].astype(np.float64), y


def drawn(levels: int, classes: int, rare: bool, number: bool, draw: int) -> Parts:
    """A category of unequal levels, coded as 0, 1, ..., and a number beside it.

    Scores are normal by level and linear in the number, so that logistic regression has the
    right model and about the right penalty. Of a rare class there are 2 % of the rows.
    """
    rng = np.random.default_rng([levels, classes, rare, number, draw])
    n = N_TRAIN + N_TEST
    level = rng.choice(levels, n, p=rng.dirichlet(np.full(levels, 2.0)))
    scores = 1.5 * rng.normal(size=(levels, classes))[level]
    columns = [level.astype(np.float64)]
    if number:
        columns.append(rng.normal(size=n))
        scores += columns[1][:, None] * rng.normal(size=classes)
    if rare:
        last = np.arange(classes) == classes - 1
        scores += last * brentq(
            lambda b: softmax(scores + b * last, axis=1)[:, -1].mean() - RARE, -50, 50
        )
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    X = np.column_stack(columns)
    return X[:N_TRAIN], X[N_TRAIN:], y[:N_TRAIN], y[N_TRAIN:]


def one_hot(X: NDArray[np.float64], levels: int) -> NDArray[np.float64]:
    """The first column, a category, as a column a level."""
    return np.hstack([np.eye(levels)[X[:, 0].astype(int)], X[:, 1:]])


def blobs(n_classes: int, rows: int, n_features: int) -> Data:
    """So many rows of each class, normal around a centre of its own."""
    rng, y = np.random.default_rng(n_classes), np.repeat(np.arange(n_classes), rows)
    centres = 2.0 * rng.normal(size=(n_classes, n_features))
    return rng.normal(size=(len(y), n_features)) + centres[y], y
