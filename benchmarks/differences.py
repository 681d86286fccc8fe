"""Why errors differ from the published ones: each cause beside what it changes.

The stage-wise ECC (a prefix is the fit of fewer rounds, so it is quick) on the splits of the
protocol, as published, as the protocol has it, and with one thing changed:

- `all codes`: code columns drawn from all codes instead of runs of half the classes;
- `other order`: runs of the classes of vehicle in alphabetical order, not LIBSVM's;
- `raw ridge`: LDA with 1e-6 added to the scatter of the attributes as they are.
"""

import argparse

import numpy as np
import pandas as pd
from scipy.linalg import solve
from sklearn.base import BaseEstimator, ClassifierMixin

import tcboost.paper
from tcboost import AdaBoostECC
from tcboost.oracles.fitted import best_cut
from tcboost.paper import protocol

SETS = ("svmguide2", "svmguide4", "glass", "vehicle")
RAW_RIDGE = 1e-6


class RawDiscriminant(ClassifierMixin, BaseEstimator):
    """Fisher's discriminant of -1 and +1, its ridge in the units of the attributes."""

    def fit(self, X, y, sample_weight):
        self.classes_, positive, v = np.array([-1, 1]), y > 0, y * sample_weight
        means = [
            np.average(X[p], axis=0, weights=sample_weight[p]) for p in (positive, ~positive)
        ]
        centred = X - np.where(positive[:, None], *means)
        scatter = centred.T @ (centred * sample_weight[:, None]) / sample_weight.sum()
        scatter[np.diag_indices_from(scatter)] += RAW_RIDGE
        self.coef_ = solve(scatter, means[0] - means[1], assume_a="pos")
        size = np.abs(X) @ np.abs(self.coef_)
        resolution = (len(self.coef_) + 8) * np.finfo(float).eps * size.max()
        self.threshold_, self.sign_ = best_cut(X @ self.coef_, v, resolution)
        return self

    def predict(self, X):
        return np.where(X @ self.coef_ > self.threshold_, self.sign_, -self.sign_)


def alphabetical(y):
    """From LIBSVM's opel, saab, bus, van."""
    return np.array([1, 2, 0, 3])[y]


def errors(name, learner, repetition, coding="runs", order=lambda y: y):
    """Training and test error after each number of rounds."""
    X, X_test, y, y_test = protocol.split(name, repetition)
    y, y_test = order(y), order(y_test)
    model = AdaBoostECC(
        coding, max(protocol.ROUNDS), weak_learner=learner, random_state=repetition
    )
    model.fit(X, y)
    stages = [protocol.stage(model, T) for T in protocol.ROUNDS]
    pairs = ((X, y), (X_test, y_test))
    return [[np.mean(stage.predict(A) != b) for stage in stages] for A, b in pairs]


def variants(name, learner):
    """Names and what is changed."""
    yield "protocol", learner, {}
    yield "all codes", learner, {"coding": "random"}
    if name == "vehicle":
        yield "other order", learner, {"order": alphabetical}
    if learner == "lda":
        yield "raw ridge", RawDiscriminant(), {}


def published(name, learner):
    """Means, by split and rounds."""
    path = f"{tcboost.paper.__path__[0]}/published_errors.csv"
    table = pd.read_csv(path).set_index(
        ["weak_learner", "dataset", "algorithm", "split", "rounds"]
    )
    part = table.loc[learner, name, "AdaBoost.ECC"]["mean"]
    return [[part[split, T] for T in protocol.ROUNDS] for split in ("train", "test")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    args = parser.parse_args()
    columns = [f"{split} {T}" for split in ("train", "test") for T in protocol.ROUNDS]
    print(f"AdaBoost.ECC, means of {args.repetitions} repetitions")
    print("| set | weak learner | what |", " | ".join(columns), "|")
    print("|---|---|---|" + "---:|" * len(columns))
    for name in args.sets:
        for learner in ("stump", "lda"):
            rows = [("published", published(name, learner))]
            for what, weak_learner, changed in variants(name, learner):
                runs = [
                    errors(name, weak_learner, repetition, **changed)
                    for repetition in range(args.repetitions)
                ]
                rows.append((what, np.mean(runs, axis=0)))
            for what, table in rows:
                values = " | ".join(f"{value:.3f}" for value in np.ravel(table))
                print(f"| {name} | {learner} | {what} | {values} |", flush=True)


if __name__ == "__main__":
    main()
