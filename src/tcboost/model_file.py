"""Estimators in model files: what of them is beside the form, and how they are put together.

Beside the form of `model.json_file` a file has the parameters, what else `fit` has set, and of
the paper's estimators the columns. A model without tables is its columns alone.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .certificate import Certificate, SolvedCertificate
from .classifier import TCBoostClassifier
from .coding import check_coding_matrix
from .ensemble import Ensemble
from .features import Rule
from .frames import ORDER
from .losses import LOSSES
from .model import json_file
from .model.additive import MISSING, AdditiveModel, Axis, Levels, Ordered
from .model.json_file import about_of, document, form_of, needs, plain
from .model.node import ModelFileError, Node
from .model.replace import replace_file
from .named import AdaBoostECC, AdaBoostMO, MultiBoostECC, MultiBoostHinge, MultiBoostMO
from .oracles import Column, Discriminant, Product, Stump
from .step_functions import Steps, additive_model, rules_of
from .words import in_places

__all__ = ["ModelFileError", "load", "save"]

_CLASSES = AdaBoostMO, AdaBoostECC, MultiBoostMO, MultiBoostECC, MultiBoostHinge
_ESTIMATORS = {one.__name__: one for one in (TCBoostClassifier, *_CLASSES)}
_MOST = 1e300  # of the coefficients of columns: their sum is finite, too
_SCORES = 1e150  # of class vectors: the squares of their sums are finite, too


def save(model: Any, path: str | os.PathLike[str], *, claim: bool = True) -> None:
    """Write a fitted model to a file, as JSON.

    Parameters
    ----------
    model : estimator or AdditiveModel
        A fitted estimator of this package, with rules, stumps, products or discriminants, or a
        form alone. A parameter that is an object (a splitter, a generator) comes back as its
        default.
    path : path-like
        Where to. Text, compressed by gzip where the name ends in ``.json.gz``. An existing file
        is replaced in one piece or not at all, whoever else writes or reads it, and its mode
        stays. A link stays, too: the file it leads to is replaced.
    claim : bool, default=True
        Whether to write what `verify` needs: what is claimed of the fit.

    Notes
    -----
    The new file is made in the same folder. On Linux it has no name until it is whole;
    elsewhere, and on some file systems, a process that is killed may leave a file
    ``.tcboost-*.partial``, which can be deleted.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> import tcboost
    >>> X, y = load_iris(return_X_y=True)
    >>> model = tcboost.AdaBoostMO(max_iter=5).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "iris.json"
    ...     tcboost.save(model, path)
    ...     again = tcboost.load(path)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    content = json_file.encoded(_document(model, claim))
    _model(json_file.parsed(content, len(content)))  # what is written, can be read
    if os.fsdecode(path).endswith(".json.gz"):
        content = zlib.compress(content, 9, 31)  # gzip, its time stamp zero
    replace_file(path, content)


def load(path: str | os.PathLike[str], *, max_bytes: int = 64 << 20) -> Any:
    """Read a model written by `save`.

    Nothing in the file is executed, and nothing is used before it is checked.

    Parameters
    ----------
    path : path-like
        The file, of whatever name.
    max_bytes : int, default=67108864
        The most to read of the file, and the most that may come out of it, decompressed. Up to
        the default, 64 MiB, it takes less than 1 GB and a few seconds, whatever the file holds.

    Returns
    -------
    estimator or AdditiveModel
        A fitted estimator of the class that was saved; see `save` for an example.

    Raises
    ------
    ModelFileError
        If the file is no model, is damaged, is too long, or is of a later version: what is
        wrong, after the place of it as a JSON pointer. It is a ValueError.
    """
    try:
        with open(path, "rb") as file:
            root = json_file.parsed(file.read(max_bytes + 1), max_bytes)
        return _model(root)
    except ModelFileError as e:
        raise ModelFileError(f"{str(e)[:1000]} (in {os.fsdecode(path)})") from None


# ---------------------------------------------------------------- from an estimator


def _document(model: Any, claim: bool) -> dict[str, Any]:
    """All of the file."""
    if isinstance(model, AdditiveModel):
        told = plain(model.claim if claim else None)
        return document(vars(model), requires=needs(model), model=plain(model), claim=told)
    name = type(model).__name__
    if getattr(model, "coding", "none") is None:
        raise ValueError(_OTHERS)
    if _ESTIMATORS.get(name) is not type(model):
        raise ValueError(f"model must be an estimator of this package, got {model!r}")
    check_is_fitted(model)
    form: Any = getattr(model, "additive_", None)
    form = form if claim or form is None else replace(form, claim=None)
    about = model._about_form() | {"kinds": form and form.kinds}
    if form is not None:
        entries, requires = plain(form), needs(form)
    else:
        M = None if model._grown else model.coding_matrix_.tolist()
        scale, requires = about["probability_scale"], ["decode"] * (M is not None)
        entries = {"kind": "columns", "probability_scale": scale, "decode": M}
    proof = asdict(model.certificate_).items()
    fitted = {
        "theta": model.theta_,
        "certificate": {k: json_file.plain_number(v) for k, v in proof},
    }
    others: dict[str, Any] = {"history": _table_entries(model.history_)}
    if isinstance(model, TCBoostClassifier):
        fitted |= {name: getattr(model, name + "_") for name in ("alpha", "l1_ratio", "n_iter")}
        others["cv_results"] = _table_entries(model.cv_results_)
        if not _told(form, model):
            others["rules"] = {
                "rules": [_rule_entries(rule) for rule in model.rules_],
                "coef": model.coef_.tolist(),
                "intercept": model.intercept_.tolist(),
            }
    else:
        kind, entries["columns"] = _columns_entries(model)
        requires += [kind] * (form is None)
    return document(
        about,
        requires=requires,
        estimator={"name": name, "parameters": _parameters(model)},
        model=entries,
        claim=plain(form and form.claim),
        fitted=fitted,
        **others,
    )


_OTHERS = (
    "a model file holds stumps, their products or linear discriminants; a model whose "
    "weak_learner is another classifier can be pickled instead"
)


def _parameters(model: Any) -> dict[str, Any]:
    """Those with a plain form: numbers, strings, lists of them."""
    parameters, default = model.get_params(deep=False), type(model)().get_params()
    for name, value in parameters.items():
        if name in ("cv", "random_state") and not isinstance(value, int | np.integer | None):
            parameters[name] = default[name]  # of a splitter, a generator
        elif name in ("categorical_features", "coding") and not isinstance(value, str | None):
            parameters[name] = np.asarray(value).tolist()
        elif name == "class_weight" and isinstance(value, dict):
            # Pairs: the keys of an object could only be strings.
            parameters[name] = [[*pair] for pair in value.items()]
        elif name == "weak_learner" and not isinstance(value, str):
            raise ValueError(_OTHERS)
    return parameters


def _columns_entries(model: Any) -> tuple[str, list[dict[str, Any]]]:
    """Which kind of hypotheses, and the columns."""
    kinds = {type(h) for column in model.estimators_ for h in column.hypotheses}
    found = next((name for name, (kind, _) in _KINDS.items() if kinds <= {kind}), None)
    if found is None:
        raise ValueError(_OTHERS)
    columns = []
    for column, weight in zip(model.estimators_, model.estimator_weights_, strict=True):
        code = {} if column.code is None else {"code": column.code.tolist()}
        hypotheses = [_hypothesis_entries(h) for h in column.hypotheses]
        columns.append({"weight": float(weight), **code, found: hypotheses})
    return found, columns


def _hypothesis_entries(h: Any) -> list[Any]:
    """A stump is [feature, threshold, sign, missing_right], a product is stumps."""
    if isinstance(h, Product):
        return [_hypothesis_entries(factor) for factor in h.factors]
    threshold, sign = json_file.plain_number(float(h.threshold)), int(h.sign)
    if isinstance(h, Discriminant):
        return [h.coef.tolist(), threshold, sign]
    return [int(h.feature), threshold, sign, bool(h.missing_right)]


def _table_entries(table: dict[str, Any]) -> dict[str, Any]:
    """Columns of numbers; lists of arrays, which a file does not hold, are left out."""
    columns = {k: v.tolist() for k, v in table.items() if isinstance(v, np.ndarray)}
    return {name: [*map(json_file.plain_number, column)] for name, column in columns.items()}


def _rule_entries(rule: Rule) -> list[Any]:
    """Feature, whether it is a level, threshold or level, missing_right, threshold in words."""
    is_level = rule.threshold is None
    asked: Any = rule.level if is_level else rule.threshold
    asked = asked if isinstance(asked, str) else json_file.plain_number(float(asked))
    words = [] if rule.shown is None else [rule.shown]
    return [rule.feature, is_level, asked, rule.missing_right, *words]


def _told(form: AdditiveModel, model: TCBoostClassifier) -> bool:
    """Whether the tables tell the rules: all have an effect, coefficients are as fitted."""
    rules, *vectors = rules_of(form) or ([], np.zeros(0), np.zeros(0))
    same = map(np.array_equal, vectors, (model.coef_, model.intercept_))
    return repr(rules) == repr(model.rules_) and all(same)  # NaN may be a level


# ---------------------------------------------------------------- to an estimator


def _model(root: Node) -> Any:
    """What a document is of."""
    form = form_of(root)
    if root["estimator"].value is None:
        if form is None:
            raise root["model"].fail("without tables it must be that of an estimator")
        return form
    name, about = root["estimator"]["name"], about_of(root)
    model = _unfitted(_ESTIMATORS[name.text(*_ESTIMATORS)], root["estimator"]["parameters"])
    fitted, names = root["fitted"], about["feature_names"]
    model.n_features_in_, model.classes_ = about["n_features"], about["classes"]
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    model.theta_, model.history_ = fitted["theta"].number(0.0), _table(root["history"])
    if isinstance(model, TCBoostClassifier):
        model.certificate_ = _certificate(fitted["certificate"], SolvedCertificate, names)
        _set_rules(model, root, form)
    else:
        model.certificate_ = _certificate(fitted["certificate"], Certificate, names)
        _set_columns(model, root["model"], form)
    return model


def _unfitted(estimator: Any, node: Node) -> Any:
    """An estimator with these parameters; those that it does not know are of a later one."""
    known = estimator().get_params(deep=False)
    given = {name: one.value for name, one in node.entries() if name in known}
    if isinstance(given.get("cv"), list | str):
        raise node["cv"].fail("must be an integer or null")
    for name in ("categorical_features", "coding"):
        with node[name].blamed(ValueError):  # a list that is ragged, or of several types
            if np.asarray(value := given.get(name)).tolist() != value:
                raise ValueError("must be an array")
    with node.blamed(Exception):  # whatever odd values do to scikit-learn
        if isinstance(given.get("class_weight"), list):
            given["class_weight"] = dict(given["class_weight"])
        model = estimator(**given)
        model._validate_params()
    return model


_READ: dict[str, Any] = {"float": Node.real, "int": Node.whole, "str": Node.text}


def _certificate(node: Node, kind: Any, names: tuple[str, ...] | None) -> Any:
    """Of features, by number or by name, and of numbers that may be infinite."""
    values: dict[str, Any] = {}
    for name, called in kind.__annotations__.items():
        if called in _READ:
            values[name] = _READ[called](node[name])
            continue
        values[name] = found = tuple(node[name].values(int, str))
        if not all(d in (names or ()) if isinstance(d, str) else d >= 0 for d in found):
            raise node[name].fail("must be features")
    return kind(**values)


def _table(node: Node) -> dict[str, NDArray[Any]]:
    """Columns of numbers, of truth values, or of integers."""
    table = {}
    for name, column in node.entries():
        kinds = {*map(type, column.value)} if isinstance(column.value, list) else set()
        plain = kinds in ({bool}, {int})
        table[name] = np.array(column.values(*kinds)) if plain else column.reals()
    return table


# ---------------------------------------------------------------- rules


def _set_rules(model: TCBoostClassifier, root: Node, form: AdditiveModel | None) -> None:
    """What `fit` sets, but for what all estimators have."""
    if form is None or form.decode is not None:
        raise root["model"].fail("TCBoostClassifier has tables, and no code")
    fitted, terms = root["fitted"], root["model"]["terms"]
    model.alpha_, model.l1_ratio_ = fitted["alpha"].number(0.0), fitted["l1_ratio"].number(0.0)
    model.n_iter_ = fitted["n_iter"].whole()
    if any(len(column) != model.n_iter_ for column in model.history_.values()):
        raise root["history"].fail(f"columns must have {model.n_iter_} entries, one a round")
    model.cv_results_ = _table(root["cv_results"])
    if len({len(column) for column in model.cv_results_.values()}) > 1:
        raise root["cv_results"].fail("columns must be as long as each other")
    by_places = _by_places(terms, form)
    with terms.blamed(OverflowError):  # of dates that are none
        found = root["rules"].maybe(_rules, form) or rules_of(form)
    if found is None:
        raise terms.fail("terms of rules have one feature, and weights")
    model.rules_, model.coef_, model.intercept_ = rules, *vectors = found
    with np.errstate(all="ignore"):
        compiled = additive_model(Steps.of_rules(rules), *vectors, **_about(form))
    _check_same(root["model"], replace(compiled, size=form.size), by_places)
    model.n_rules_ = len(rules)
    model._model = model.coef_, form


def _by_places(node: Node, form: AdditiveModel) -> AdditiveModel:
    """With levels in an order by their places, as rules have them."""
    terms = []
    for k, term in enumerate(form.terms):
        ordered = form.kinds is not None and form.kinds[term.inputs[0]] == ORDER
        if len(term.inputs) == 1 and ordered and isinstance(term.axes[0], Levels):
            if not term.axes[0].levels or (term.table[-1] != term.table[MISSING]).any():
                why = "levels in an order are some, and any other is as a missing one"
                raise node.child(k)["table"].fail(why)
            term = in_places(term)
        terms.append(term)
    return replace(form, terms=tuple(terms))


def _rules(node: Node, form: AdditiveModel) -> tuple[list[Rule], Any, Any]:
    """Rules that are beside the form, and are the same function."""
    rules = [_rule(one, form.n_features) for one in node["rules"].items()]
    cuts, levels = ({r.feature for r in rules if (r.level is None) == cut} for cut in (1, 0))
    if cuts & levels:
        raise node["rules"].fail("a feature has thresholds or levels, not both")
    limits = {"low": -_SCORES, "high": _SCORES}
    coef = node["coef"].numbers(len(rules), form.n_outputs, **limits)
    return rules, coef, node["intercept"].numbers(form.n_outputs, **limits)


def _rule(node: Node, n_features: int) -> Rule:
    feature, is_level, value, right, *words = node.items(4, 5)
    j, shown = feature.whole(0, n_features - 1), [one.text() for one in words]
    if is_level.flag():
        level = value.maybe(Node.text if isinstance(value.value, str) else Node.number)
        return Rule(j, level=np.nan if level is None else level)
    if not value.real() > -np.inf:
        raise value.fail("must be finite, or Infinity")
    return Rule(j, value.real(), right.flag(), None, *shown)


# ---------------------------------------------------------------- columns


def _set_columns(model: Any, node: Node, form: AdditiveModel | None) -> None:
    """What `fit` sets, but for what all estimators have."""
    C, decode, scale = len(model.classes_), node["decode"], node["probability_scale"]
    if model._grown != (decode.value is None):
        raise decode.fail("a code is given, or grown with the columns")
    M = decode.maybe(Node.signs, C, None)
    if M is not None:
        with decode.blamed(ValueError):
            check_coding_matrix(M, C)
    model.probability_scale_ = scale.number(0.0) if scale.value is not None else np.nan
    if LOSSES[model.loss].log_odds is not None and scale.value is None:
        raise scale.fail(f"loss={model.loss!r} tells probabilities")
    weights = node["columns"].gathered("weight").numbers(None, low=-_MOST, high=_MOST)
    model.n_iter_, model.estimator_weights_ = len(weights), weights
    codes = node["columns"].gathered("code").signs(len(weights), C) if M is None else None
    n_bits = 1 if M is None else M.shape[1]
    hypotheses = [_hypotheses(one, n_bits, model) for one in node["columns"].items()]
    columns = [*map(Column, hypotheses, [None] * len(weights) if codes is None else codes)]
    model.estimators_, model.coding_matrix_ = columns, M if codes is None else codes.T
    ensemble = Ensemble(columns, weights, model._margin(C, M))
    if form is not None:
        with np.errstate(all="ignore"):
            compiled = ensemble.additive(**_about(form))
        if compiled is None:
            raise node["kind"].fail("columns of this kind have no tables")
        _check_same(node["columns"], compiled, form)
    model._model = replace(ensemble, form=form)


def _hypotheses(node: Node, n_hypotheses: int, model: Any) -> tuple[Any, ...]:
    """Those of a column: one, or one for each bit."""
    kinds = [name for name in _KINDS if node[name].value is not None]
    if len(kinds) != 1:
        raise node.fail(f"must have one of {', '.join(_KINDS)}")
    read, hypotheses = _KINDS[kinds[0]][1], node[kinds[0]].items(n_hypotheses)
    return tuple(read(h, model.n_features_in_) for h in hypotheses)


def _stump(node: Node, n_features: int) -> Stump:
    match node.value:  # there may be many: nodes of each of the four would take long
        case [int(feature), float() | int() | str() as threshold, 1 | -1 as sign, bool(right)]:
            asked = Node(threshold, f"{node.at}/1").real()
            if 0 <= feature < n_features and {bool}.isdisjoint(map(type, node.value[:3])):
                return Stump(feature, asked, int(sign), right)
    raise node.fail("must be [feature, threshold, -1 or 1, true or false]")


def _product(node: Node, n_features: int) -> Product:
    factors = tuple(_stump(factor, n_features) for factor in node.items())
    if not factors:
        raise node.fail("must have a factor")
    return Product(factors)


def _discriminant(node: Node, n_features: int) -> Discriminant:
    coef, threshold, sign = node.items(3)
    if threshold.value is None:
        raise threshold.fail("not a threshold")
    return Discriminant(coef.numbers(n_features), threshold.real(), int(sign.signs()))


_KINDS: dict[str, tuple[type, Any]] = {
    "stumps": (Stump, _stump),
    "products": (Product, _product),
    "discriminants": (Discriminant, _discriminant),
}


def _ends(axis: Axis) -> list[Any]:
    """Values of all of its cells but the first and the last, in their order."""
    return axis.cuts.tolist() if isinstance(axis, Ordered) else list(axis.levels)


def _about(form: AdditiveModel) -> dict[str, Any]:
    about = {"n_features": form.n_features, "feature_names": None, "classes": form.classes}
    return {"unit": form.unit, **about}


def _check_same(node: Node, compiled: AdditiveModel, form: AdditiveModel) -> None:
    """Whether tables are the same functions, but for constants, which the intercept has."""
    intercept, terms = compiled.intercept.copy(), {t.inputs: t for t in form.terms}
    same = compiled.size == form.size
    for term in compiled.terms:
        axis, other = term.axes[0], terms.pop(term.inputs, None)
        rows = np.zeros_like(term.table)
        if other is not None:
            merged, ends = other.axes[0], _ends(axis)
            same &= type(merged) is type(axis) and {*_ends(merged)} <= {*ends}
            cells = merged.cells(np.array(ends, dtype=object))  # text and numbers, too
            rows = other.table[[MISSING, *cells, merged.n_cells - 1]]
        constant = term.table - rows
        same &= bool((constant == constant[0]).all())
        intercept += constant[0]
    if not same or terms or (intercept != form.intercept).any():
        raise node.fail("the tables are not those of the rules or columns")
