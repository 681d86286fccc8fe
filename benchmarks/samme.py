"""Training loss of totally corrective SAMME less that of stage-wise SAMME, at equal rounds.

Both have the same weak learner, trees of depth 1 or 2, and the same sum of coefficients, that
of the stage-wise run. The loss is ``log mean exp(-margin)``; a difference below 0 is in favour
of the totally corrective one, whose rounds may be fewer. Errors are those of the training rows.

    python benchmarks/samme.py [--rounds T ...] [--seeds N]
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.tree import DecisionTreeClassifier

import tcboost

SETS = {"iris": load_iris, "wine": load_wine, "digits": load_digits}


def compare(name: str, depth: int, rounds: int, seed: int) -> list[float]:
    """Losses, errors, rounds of the totally corrective one."""
    X, y = SETS[name](return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=depth)
    stage = tcboost.AdaBoostSAMME(rounds, weak_learner=tree, random_state=seed).fit(X, y)
    total = tcboost.MultiBoostSAMME(max_iter=rounds, weak_learner=tree, random_state=seed)
    total.fit(X, y)
    return [
        stage.certificate_.primal,
        total.certificate_.primal,
        stage.history_["train_error"][-1],
        total.history_["train_error"][-1],
        total.n_iter_,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", nargs="+", type=int, default=[10, 50], metavar="T")
    parser.add_argument("--seeds", type=int, default=3, help="means over so many (default 3)")
    args = parser.parse_args()
    print(f"tcboost {tcboost.__version__}, means of {args.seeds} seeds")
    print(
        f"{'set':7} depth {'T':>4}  {'stage-wise':>10} {'corrective':>10} {'difference':>10}  "
        f"{'error':>6} {'error':>6} {'rounds':>6}"
    )
    differences = []
    for name in SETS:
        for depth in (1, 2):
            for rounds in args.rounds:
                runs = [compare(name, depth, rounds, seed) for seed in range(args.seeds)]
                stage, total, error, other, used = np.mean(runs, axis=0)
                differences += [run[1] - run[0] for run in runs]
                print(
                    f"{name:7} {depth:5} {rounds:4}  {stage:10.4f} {total:10.4f} "
                    f"{total - stage:10.4f}  {error:6.4f} {other:6.4f} {used:6.1f}",
                    flush=True,
                )
    below = sum(d < 0 for d in differences)
    print(f"totally corrective is below in {below} of {len(differences)} runs")


if __name__ == "__main__":
    main()
