"""Totally corrective against stage-wise: the training loss at equal rounds and equal budget.

For every member of the family (a margin, a code and a loss) the stage-wise algorithm runs for T
rounds; the sum of its coefficients is theta. Then, with the same theta:

- `same columns`: its own columns, all coefficients re-solved at once;
- `corrective`: T rounds of column generation, with columns of its own;
- `ahead to`: the last round at which its loss is lower than that of the stage-wise run;
- `* 1.05`: the same rounds with a theta 1.05 times as large;
- `from theta *`: the least of some multiples of theta with which T rounds of it are lower.

The exponential loss is the logarithm of its mean, the logistic loss a mean. With --why SET, one
more experiment on the MOs: the same rounds with a budget that grows from round to round.
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
from tcboost.paper import datasets

MEMBERS = {
    "MO": (AdaBoostMO, MultiBoostMO, {"coding": "ecoc"}),
    "ECC, random": (AdaBoostECC, MultiBoostECC, {"coding": "random"}),
    "ECC, learned": (AdaBoostECC, MultiBoostECC, {"coding": "learned"}),
    "mixture": (AdaBoostECC, MultiBoostECC, {"coding": "ecoc"}),
    **{
        f"SAMME, depth {depth}": (
            AdaBoostSAMME,
            MultiBoostSAMME,
            {"weak_learner": DecisionTreeClassifier(max_depth=depth)},
        )
        for depth in (1, 2)
    },
}
MULTIPLES = (1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0)
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
    if "SAMME" not in member:  # which has one loss only
        options["loss"] = loss
    other = stage_wise(**options).fit(X, y)
    P, theta = margins(other, X, y), other.theta_
    equal = np.full(len(P), 1 / len(P))
    same = solve_master(P, theta, other.estimator_weights_, equal, 1e-9, loss).log_loss

    def fit(multiple):
        return corrective(theta=multiple * theta, tol=TOL, **options).fit(X, y)

    model = fit(1.0)
    ours, theirs = model.history_["loss"], other.history_["loss"]
    at = np.minimum(np.arange(len(theirs)), len(ours) - 1)  # it may have ended, optimal
    ahead = 1 + int(np.flatnonzero(ours[at] < theirs).max(initial=-1))
    more = fit(MULTIPLES[1])
    known = {MULTIPLES[0]: model, MULTIPLES[1]: more}
    fits = ((m, known.get(m) or fit(m)) for m in MULTIPLES)
    lower = (m for m, f in fits if f.certificate_.primal < theirs[-1])
    larger = more.certificate_.primal
    return theta, theirs[-1], same, ours[-1], ahead, larger, next(lower, np.nan)


def why(name, n_rounds):
    """Whether it is the full budget from the first round on that costs the last rounds."""
    X, y = load(name)
    other = AdaBoostMO(max_iter=n_rounds).fit(X, y)
    theta, loss = other.theta_, other.certificate_.primal
    print(f"\n{name}, MO, {n_rounds} rounds, theta {theta:.4g}: stage-wise {loss:.4f}")
    for what, budgets in (
        ("full from the first round", np.full(n_rounds, theta)),
        ("growing in equal steps", theta * np.arange(1, n_rounds + 1) / n_rounds),
    ):
        model = MultiBoostMO(theta=1.0, tol=TOL)
        run = None
        for t, budget in enumerate(budgets):
            if run is None:
                rows = model._rows(X, y, None)
                run = model._start(rows, 0, model._budget(budget), TOL)
            run.corrector.set_budget(model._budget(budget))
            run.boost(t + 1)
        print(f"  totally corrective, budget {what}: {run.corrector.solution.log_loss:.4f}")
    model = MultiBoostMO(theta=theta, max_iter=n_rounds, tol=TOL).fit(X, y)
    spent = [w.sum() >= theta * (1 - 1e-6) for w in model.history_["weights"]]
    print(f"  the budget is spent from round {1 + int(np.argmax(spent))} on")
    for rounds in (n_rounds, 2 * n_rounds, 8 * n_rounds):
        model = MultiBoostMO(theta=theta, max_iter=rounds, tol=1e-6).fit(X, y)
        print(f"  {model.n_iter_} rounds: {model.certificate_.primal:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50)
    at_hand = ["svmguide4", "glass"] if os.environ.get("TCBOOST_DATA") else []
    parser.add_argument("--sets", nargs="+", default=["iris", "wine", "digits", *at_hand])
    parser.add_argument("--members", nargs="+", choices=MEMBERS, default=list(MEMBERS))
    parser.add_argument("--why", metavar="SET")
    args = parser.parse_args()
    if args.why:
        why(args.why, args.rounds)
        return
    print(f"{args.rounds} rounds; every third row of digits")
    print(
        "| set | member | loss | theta | stage-wise | same columns | corrective | ahead to "
        "| * 1.05 | ",
        end="",
    )
    print("from theta * |\n|---|---|---|---:|---:|---:|---:|---:|---:|---:|")
    lower = still = total = 0
    for name in args.sets:
        X, y = load(name)
        for member in args.members:
            for loss in ("exponential", "logistic")[: 1 if "SAMME" in member else 2]:
                theta, theirs, same, ours, ahead, larger, multiple = compare(
                    member, loss, X, y, args.rounds
                )
                lower, still, total = (
                    lower + (ours < theirs),
                    still + (larger < theirs),
                    total + 1,
                )
                print(
                    f"| {name} | {member} | {loss} | {theta:.4g} | {theirs:.5g} | {same:.5g} | "
                    f"{ours:.5g} | {ahead} | {larger:.5g} | {multiple:g} |",
                    flush=True,
                )
    print(f"\nlower at the same theta: {lower} of {total}; at 1.05 theta: {still}")


if __name__ == "__main__":
    main()
