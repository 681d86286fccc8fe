"""How close to the best possible learned codes come: the gap over all stumps and all codes.

Whole data sets, logistic loss, at most 500 rounds. There is no peer: no other booster knows.

    python benchmarks/certificate.py [--data-dir FOLDER]
"""

from __future__ import annotations

import argparse

from common import alone, timed_fit
from tcboost import MultiBoostECC
from tcboost.paper import datasets

CASES = {"glass": 20.0, "vehicle": 20.0, "digits": 5.0}
TOL = 1e-3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="folder of the data; default: TCBOOST_DATA")
    data_dir = parser.parse_args().data_dir
    alone()
    print(f"{'data':10}{'theta':>7}{'rounds':>8}{'loss':>9}{'gap':>10}{'seconds':>9}")
    for name, theta in CASES.items():
        X, y = datasets.load(name, data_dir)
        model = MultiBoostECC("learned", theta, 500, loss="logistic", tol=TOL, round_tol=0.03)
        model, seconds = timed_fit(model, X, y)
        proof = model.certificate_
        print(
            f"{name:10}{theta:7g}{model.n_iter_:8d}{proof.primal:9.4f}{proof.gap:10.1e}"
            f"{seconds:9.1f}{'' if proof.gap < TOL else '  not below 1e-3'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
