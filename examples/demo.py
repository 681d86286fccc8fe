"""The main job in a minute: five algorithms on three data sets, a table and a figure.

Stage-wise boosting stands beside its totally corrective counterpart, which re-solves all
coefficients in every round under the budget that the stage-wise run used. Last comes
TCBoostClassifier, whose rules have class vectors, and which chooses its penalty itself.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split

import tcboost

DATA = {"iris": load_iris, "wine": load_wine, "digits": load_digits}
ALGORITHMS = {
    "AdaBoost.MO": tcboost.AdaBoostMO,
    "MultiBoost.MO": tcboost.MultiBoostMO,
    "AdaBoost.ECC": tcboost.AdaBoostECC,
    "MultiBoost.ECC": tcboost.MultiBoostECC,
    "TCBoost": tcboost.TCBoostClassifier,
}
PAPER = [name for name in ALGORITHMS if name != "TCBoost"]
COLORS = {"MO": "tab:blue", "ECC": "tab:orange"}
HEADER = (
    f"{'data':8}{'algorithm':16}{'train err':>10}{'test err':>10}{'rounds':>8}{'active':>8}"
    f"{'theta':>9}{'min margin':>12}{'gap':>10}{'seconds':>9}"
)


def run(rounds: int, seed: int) -> dict[tuple[str, str], Any]:
    """Fit everything; print a row of the table as soon as it is known."""
    print(HEADER)
    models, n_fits = {}, len(DATA) * len(ALGORITHMS)
    for data, load in DATA.items():
        X, y = load(return_X_y=True)
        X, X_test, y, y_test = train_test_split(
            X, y, test_size=0.3, random_state=seed, stratify=y
        )
        for name, algorithm in ALGORITHMS.items():
            progress(f"fit {len(models) + 1} of {n_fits}: {name} on {data} ...")
            start = time.perf_counter()
            chooses = algorithm is tcboost.TCBoostClassifier
            given = {} if chooses else {"max_iter": rounds, "random_state": seed}
            model = algorithm(**given).fit(X, y)
            seconds = time.perf_counter() - start
            progress("")
            history, gap = model.history_, model.certificate_.gap
            active = history["n_rules" if chooses else "n_active"][-1]
            print(
                f"{data:8}{name:16}{1 - model.score(X, y):10.4f}"
                f"{1 - model.score(X_test, y_test):10.4f}{model.n_iter_:8d}"
                f"{active:8.0f}{model.theta_:9.2f}"
                f"{history['min_margin'][-1]:12.4f}{gap:10.2g}{seconds:9.2f}"
            )
            models[data, name] = model
    return models


def progress(text: str) -> None:
    """A status line on a terminal, nothing in a file."""
    if sys.stdout.isatty():
        print(f"\r\033[K{text}", end="", flush=True)


def plot(models: dict[tuple[str, str], Any], path: Path) -> None:
    """Training error and minimum margin against rounds, as in Figs. 2 and 3 of the paper.

    Of the paper's algorithms: TCBoostClassifier does not grow by a hypothesis a round.
    """
    figure, axes = plt.subplots(
        2, len(DATA), figsize=(11, 6.5), sharex="col", layout="constrained"
    )
    for (data, name), model in models.items():
        if name not in PAPER:
            continue
        column = list(DATA).index(data)
        style = {
            "color": COLORS[name.split(".")[-1]],
            "linestyle": "--" if name.startswith("Ada") else "-",
            "label": name,
        }
        stumps = [len(w) for w in model.history_["weights"]]  # a round may add several
        for axis, quantity in zip(axes[:, column], ("train_error", "min_margin"), strict=True):
            axis.plot(stumps, model.history_[quantity], **style)
            # A full dot where it stopped, proved optimal, an empty one at the last round else.
            filled = style["color"] if model.n_iter_ < model.max_iter else "white"
            if "--" not in style["linestyle"]:
                dot = {"color": style["color"], "markerfacecolor": filled}
                axis.plot(model.n_iter_, model.history_[quantity][-1], "o", **dot)
        axes[0, column].set_title(data)
        axes[1, column].set_xlabel("hypotheses")
    axes[0, 0].set_ylabel("training error")
    axes[1, 0].set_ylabel("minimum margin")
    for axis in axes.flat:
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.grid(alpha=0.3)
    lines, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.suptitle(
        "Stage-wise (dashed) and totally corrective (solid) boosting; full dot: proved optimal"
    )
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100, help="of the paper's algorithms")
    parser.add_argument("--seed", type=int, default=0, help="of the split and the codes")
    parser.add_argument("--figure", type=Path, default=Path("demo.png"))
    options = parser.parse_args()
    models = run(options.rounds, options.seed)
    plot(models, options.figure)
    print("\nThe gap is a proof. For MultiBoost.MO on wine it says:")
    print(models["wine", "MultiBoost.MO"].certificate_)
    print(f"\nFigure: {options.figure.resolve()}")


if __name__ == "__main__":
    main()
