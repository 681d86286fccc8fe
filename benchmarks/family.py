"""Totally corrective against stage-wise: the training loss at equal rounds and equal budget.

For every member of the family (a margin, a code, a weak learner and a loss) the stage-wise
algorithm runs for T rounds; the sum of its coefficients is theta. Then, with the same theta:

- `same columns`: its own columns, all coefficients re-solved at once;
- `full theta`: T rounds of column generation, with columns of its own (theta="stagewise");
- `growing`: the same, but in round t with what the stage-wise run has spent after t rounds
  (theta="growing").

The exponential loss is the logarithm of its mean, the others are means. Where all rows are
right by far, both can be zero to the tolerance: that is not lower, and counted apart.
"""

import argparse
import os

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from tcboost import (
    AdaBoostECC,
    AdaBoostMO,
    AdaBoostSAMME,
    MultiBoostECC,
    MultiBoostMO,
    MultiBoostSAMME,
    solve_master,
)
from tcboost.losses import SMOOTH
from tcboost.paper import datasets

TREE = DecisionTreeClassifier(max_depth=2)
MEMBERS = {
    "MO": (AdaBoostMO, MultiBoostMO, {"coding": "ecoc"}),
    "ECC, random": (AdaBoostECC, MultiBoostECC, {"coding": "random"}),
    "ECC, learned": (AdaBoostECC, MultiBoostECC, {"coding": "learned"}),
    "mixture": (AdaBoostECC, MultiBoostECC, {"coding": "ecoc"}),
    **{
        f"{name}, {learner}": (stage_wise, corrective, {"weak_learner": weak_learner})
        for name, stage_wise, corrective in (
            ("MO", AdaBoostMO, MultiBoostMO),
            ("ECC", AdaBoostECC, MultiBoostECC),
        )
        for learner, weak_learner in (("LDA", "lda"), ("products", "product"), ("trees", TREE))
    },
    **{
        f"SAMME, depth {depth}": (
            AdaBoostSAMME,
            MultiBoostSAMME,
            {"weak_learner": DecisionTreeClassifier(max_depth=depth)},
        )
        for depth in (1, 2)
    },
}
SEARCHED = ("MO", "ECC, random", "ECC, learned", "mixture")  # by stumps, with every loss
WAYS = ("same columns", "full theta", "growing")
TOL = 1e-10


def load(name):
    X, y = datasets.load(name)
    return (X[::3], y[::3]) if name == "digits" else (X, y)


def margins(model, X, y):
    """(margins, columns), from the columns alone."""
    margin, labels = model._ensemble().margin, np.searchsorted(model.classes_, y)
    return np.array([margin.apply(c.outputs(X), labels).ravel() for c in model.estimators_]).T


def compare(member, loss, X, y, n_rounds):
    stage_wise, corrective, options = MEMBERS[member]
    options = {**options, "max_iter": n_rounds, "random_state": 0}
    if member in SEARCHED:
        options["loss"] = loss
    other = stage_wise(**options).fit(X, y)
    P, theta = margins(other, X, y), other.theta_
    equal = np.full(len(P), 1 / len(P))
    same = solve_master(P, theta, other.estimator_weights_, equal, 1e-9, loss).log_loss

    fits = [
        corrective(theta=budget, tol=TOL, **options).fit(X, y).certificate_.primal
        for budget in ("stagewise", "growing")
    ]
    return theta, other.certificate_.primal, same, *fits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50)
    at_hand = ["svmguide4", "glass"] if os.environ.get("TCBOOST_DATA") else []
    parser.add_argument("--sets", nargs="+", default=["iris", "wine", "digits", *at_hand])
    parser.add_argument("--members", nargs="+", choices=MEMBERS, default=list(MEMBERS))
    args = parser.parse_args()
    print(f"{args.rounds} rounds; every third row of digits")
    print("| set | member | loss | theta | stage-wise | same columns | full theta | growing |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    lower, zeros, total = np.zeros(3, dtype=int), 0, 0
    for name in args.sets:
        X, y = load(name)
        for member in args.members:
            for loss in SMOOTH if member in SEARCHED else ["exponential"]:
                theta, theirs, *ours = compare(member, loss, X, y, args.rounds)
                zero = loss != "exponential" and max(theirs, *ours) <= TOL
                lower += (not zero) & (np.array(ours) < theirs)
                zeros, total = zeros + zero, total + 1
                values = " | ".join(f"{value:.5g}" for value in (theirs, *ours))
                print(f"| {name} | {member} | {loss} | {theta:.4g} | {values} |", flush=True)
    print(f"\nlower than stage-wise, of {total - zeros} ({zeros} more are zero):", end=" ")
    print(*(f"{n} ({what})" for n, what in zip(lower, WAYS, strict=True)), sep=", ")


if __name__ == "__main__":
    main()
