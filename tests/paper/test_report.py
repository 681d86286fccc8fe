import itertools
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu

from tcboost.paper import protocol, report, runner
from tcboost.paper.protocol import ROUNDS

PUBLISHED = report._HERE / "published_errors.csv"


def frame_like_the_paper(n=4):
    """Repetitions with just the published means and deviations."""
    published = pd.read_csv(PUBLISHED)
    wide = published.pivot(index=[*runner.KIND, "rounds"], columns="split")
    offsets = np.array([-1.0, 1.0] * (n // 2)) * np.sqrt((n - 1) / n)
    rows = []
    for (learner, name, algorithm, T), row in wide.iterrows():
        for k, z in enumerate(offsets):
            errors = {
                f"{s}_error": row["mean", s] + z * row["std", s] for s in ("train", "test")
            }
            stage_wise = algorithm.startswith("Ada")
            rows.append(
                {"weak_learner": learner, "dataset": name, "algorithm": algorithm, "rounds": T}
                | {"repetition": k, **errors, "theta": 9.0, "n_active": 5, "gap": 1e-5}
                | {"n_iter": T, "min_margin": 0.1 if stage_wise else 0.2, "r": 0.1}
                | {"zero_from": 90 if stage_wise else 40, "seconds": 1.0}
                | {"excess": 7.0 if stage_wise else 1e-6}
            )
    return pd.DataFrame(rows)[runner.COLUMNS].astype(runner._TYPES)


@pytest.fixture
def results(tmp_path):
    runner._write(tmp_path / "repetitions.csv", frame_like_the_paper())
    (tmp_path / "run.json").write_text('{"tcboost": "1.2.3"}')
    return tmp_path


def test_the_published_numbers_agree_with_themselves():
    both = report.compare(frame_like_the_paper())
    assert len(both) == 288
    assert (both.mark == "").all()
    assert (both["mean"] > 0.01).sum() == 191
    assert both.mean_ours.to_numpy() == pytest.approx(both["mean"].to_numpy())
    assert both.std_ours.to_numpy() == pytest.approx(both["std"].to_numpy())


@pytest.mark.parametrize(
    ("by", "mark"), [(0.0, ""), (0.009, ""), (0.0101, " ‡"), (-0.0101, " ‡"), (0.0004, "")]
)
def test_a_difference_is_marked(by, mark):
    frame = frame_like_the_paper()
    cell = frame.eval("dataset == 'svmguide2' and algorithm == 'AdaBoost.MO' and rounds == 50")
    frame.loc[cell, "train_error"] += by  # 0.016 +- 0.005: twice the pooled deviation is 0.01
    both = report.compare(frame)
    assert both.mark[0] == mark
    assert (both.mark[1:] == "").all()


def test_a_small_difference_has_one_dagger():
    frame = frame_like_the_paper()
    cell = frame.eval("dataset == 'wine' and algorithm == 'AdaBoost.MO' and rounds == 50")
    frame.loc[cell, "train_error"] += 0.004  # published as 0 +- 0
    assert report.compare(frame).mark.unique().tolist() == ["", " †"]


def test_at_a_glance():
    frame = frame_like_the_paper()
    cell = frame.eval("dataset == 'wine' and algorithm == 'AdaBoost.MO' and rounds == 50")
    frame.loc[cell, "train_error"] += 0.8
    table = report.glance(report.compare(frame))
    first = table.iloc[0]
    published = pd.read_csv(PUBLISHED).query("algorithm == 'AdaBoost.MO' and split == 'train'")
    mean = published[published.rounds == 50]["mean"].mean()
    assert first["train error, T = 50"] == f"{mean:.3f}, ours {mean + 0.1:.3f}"
    assert table["cells that agree"].tolist() == ["47 of 48"] + ["48 of 48"] * 5


def test_the_rank_sum_test_is_exact():
    rng = np.random.default_rng(0)
    for n in (2, 5, 8):
        a, b = rng.normal(size=(2, n))
        expected = mannwhitneyu(a, b, method="exact").pvalue
        assert report.rank_sum_probability(a, b) == pytest.approx(expected)
    assert report.rank_sum_probability([1, 1, 2], [1, 1, 2]) == 1.0


def test_table_iv_from_the_published_means():
    """Which are rounded: the probabilities are those of the means as they were."""
    published = pd.read_csv(report._HERE / "published_wilcoxon.csv").set_index(report._PAIR)
    found = report.wilcoxon(frame_like_the_paper())
    assert len(found) == 9
    difference = (found - published.probability).abs()
    assert difference.max() < 0.09
    assert (difference < 0.005).sum() >= 4


def test_claims_hold_where_the_numbers_say_so():
    claims = report.claims(frame_like_the_paper())
    assert len(claims) == 5
    assert all("**holds**" in claim for claim in claims)
    assert "svmguide2 MO 90 to 40" in claims[1]
    assert "50 fewer on average" in claims[1]
    assert "**agrees**" in claims[1]
    assert "1.0e-06" in claims[4]


def test_claims_fail_where_the_numbers_say_so():
    frame = frame_like_the_paper()
    swapped = frame.algorithm.str.replace("Ada", "X").str.replace("Multi", "Ada")
    frame["algorithm"] = swapped.str.replace("X", "Multi")
    claims = report.claims(frame)
    verdicts = [re.search(r"\*\*(.+?)\*\*", claim).group(1) for claim in claims]
    assert verdicts == ["does not hold", "does not hold", "holds", *["does not hold"] * 2]
    assert "**does not agree**" in claims[1]
    frame["test_error"] += np.where(frame.algorithm.str.startswith("Multi"), 0.5, 0.0)
    assert "**does not hold**" in report.claims(frame)[2]


def test_claims_tell_the_cells_whose_theta_was_chosen():
    frame = frame_like_the_paper()
    better = frame.algorithm.str.startswith("Multi")
    worse = better & frame.dataset.isin(["dna", "glass"]) & (frame.rounds == 50)
    frame.loc[better, "train_error"] -= 1.0
    frame.loc[worse, "train_error"] += 2.0
    frame.loc[worse, "min_margin"] = 0.05
    lower, _, _, larger, _ = report.claims(frame)
    assert "lower in 66, higher in 6, 3 of these where theta is cross-validated" in lower
    assert "66 of 72 cells; 3 of the 6 others are where theta is cross-validated" in larger


def test_a_claim_without_cases_is_not_judged():
    frame = frame_like_the_paper().query("dataset == 'wine'")
    lower, faster, *_ = report.claims(frame)
    assert "**not to be told from these data**" in lower
    assert "**not to be told from these data**" in faster


def test_the_report_has_every_table_and_figure(results):
    page, text = report.write(results)
    html, markdown = page.read_text(), text.read_text()
    for name in (
        "Table II:",
        "Table III:",
        "Table IV:",
        "Fig. 1",
        "Fig. 2",
        "Fig. 3",
        "Fig. 4",
    ):
        assert name in html
        assert name in markdown
    # At a glance, in Table II and in the last table.
    assert markdown.count("| AdaBoost.MO |") == 1 + 2 * 8
    assert "Of the 191 cells with a published mean above 0.01, **191** are within" in markdown
    assert (
        "Of the 97 cells with a published mean of at most 0.01, **97** are within" in markdown
    )
    assert "0.225 ± 0.031<br>0.225 ± 0.031 |" in markdown
    assert "tcboost 1.2.3" in markdown
    for figure in re.findall(r"\((figures/.*?)\)", markdown):
        assert (results / figure).read_text().count("<path") > 10


def test_the_page_is_all_there_is(results):
    html = report.write(results)[0].read_text()
    addresses = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"'\s)>]*)""", html)
    assert len(addresses) == 5  # four figures and no icon
    assert all(address.startswith("data:") for address in addresses)
    assert "<script" not in html


def test_the_report_is_the_same_each_time(results):
    first = [path.read_bytes() for path in report.write(results)]
    assert first == [path.read_bytes() for path in report.write(results)]


def test_text_is_escaped():
    assert report._html("a < b & **c**<br>d") == "a &lt; b &amp; <strong>c</strong><br>d"


def test_curves_come_from_the_history(tmp_path):
    cells = [protocol.Cell("stump", "wine", a, 0) for a in ("AdaBoost.MO", "MultiBoost.MO")]
    runner.reproduce(tmp_path, cells, (5, 9))
    products = report._history(tmp_path, "wine", "MultiBoost.MO", "inner_products")
    assert products.shape == (5, 5)
    for t, j in itertools.product(range(5), range(5)):
        assert np.isnan(products[t, j]) == (j > t)
    r = runner.read(tmp_path).query("algorithm == 'MultiBoost.MO' and rounds == 5").r.item()
    assert np.nanmax(products[-1]) == r
    assert len(report._history(tmp_path, "wine", "AdaBoost.MO", "train_error")) == 9
    assert np.isnan(report._history(tmp_path, "glass", "AdaBoost.MO", "train_error")).all()
    assert ROUNDS == (50, 100, 500)
