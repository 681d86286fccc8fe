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
from .model.additive import MISSING, AdditiveModel, Axis, Levels, Ordered
from .model.json_file import (
    claim_entries,
    classes_of,
    document,
    encoded,
    features_of,
    form_entries,
    form_of,
    needs,
    parsed,
    plain_number,
)
from .model.node import ModelFileError, Node
from .model.replace import replace_file
from .named import AdaBoostECC, AdaBoostMO, MultiBoostECC, MultiBoostHinge, MultiBoostMO
from .oracles import Column, Discriminant, Product, Stump
from .step_functions import Steps, additive_model, rules_of
from .words import in_places

__all__ = ["ModelFileError", "load", "save"]

_ESTIMATORS = {
    one.__name__: one
    for one in (
        *(TCBoostClassifier, AdaBoostMO, AdaBoostECC),
        *(MultiBoostMO, MultiBoostECC, MultiBoostHinge),
    )
}
_KINDS = {"stumps": Stump, "products": Product, "discriminants": Discriminant}
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
    content = encoded(_document(model, claim))
    _model(parsed(content, len(content)))  # what is written, can be read
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
            root = parsed(file.read(max_bytes + 1), max_bytes)
        return _model(root)
    except ModelFileError as e:
        raise ModelFileError(f"{str(e)[:1000]} (in {os.fsdecode(path)})") from None


# ---------------------------------------------------------------- from an estimator


def _document(model: Any, claim: bool) -> dict[str, Any]:
    """All of the file."""
    if isinstance(model, AdditiveModel):
        told = claim_entries(model.claim if claim else None)
        return document(vars(model), form_entries(model), needs(model), claim=told)
    name = type(model).__name__
    if getattr(model, "coding", "none") is None:
        raise ValueError(_OTHERS)
    if _ESTIMATORS.get(name) is not type(model):
        raise ValueError(f"model must be an estimator of this package, got {model!r}")
    check_is_fitted(model)
    about = model._about_form()
    form: Any = getattr(model, "additive_", None)
    about["kinds"] = form and form.kinds
    if form is not None:
        entries, requires = form_entries(form), needs(form)
    else:
        M = None if model._grown else model.coding_matrix_.tolist()
        scale, requires = about["probability_scale"], ["decode"] * (M is not None)
        entries = {"kind": "columns", "probability_scale": scale, "decode": M}
    others: dict[str, Any] = {}
    proof = asdict(model.certificate_).items()
    certificate = {k: plain_number(v) if isinstance(v, float) else v for k, v in proof}
    fitted = {"theta": model.theta_, "certificate": certificate}
    if isinstance(model, TCBoostClassifier):
        others = {"cv_results": _table_entries(model.cv_results_)}
        if not _told(form if claim else replace(form, claim=None), model):
            others["rules"] = _rules_entries(model)
        fitted |= {name: getattr(model, name + "_") for name in ("alpha", "l1_ratio", "n_iter")}
    else:
        kind, entries["columns"] = _columns_entries(model)
        requires += [kind] * (form is None)
    return document(
        about,
        entries,
        requires,
        {"name": name, "parameters": _parameters(model)},
        claim=claim_entries(form.claim if form and claim else None),
        fitted=fitted,
        history=_table_entries(model.history_),
        **others,
    )


_OTHERS = (
    "a model file holds stumps, their products or linear discriminants; a model whose "
    "weak_learner is another classifier can be pickled instead"
)


def _parameters(model: Any) -> dict[str, Any]:
    """Those with a plain form: numbers, strings, lists of them."""
    parameters = model.get_params(deep=False)
    for name in {"cv", "random_state"} & parameters.keys():
        if not isinstance(parameters[name], int | np.integer | None):  # a splitter, a generator
            parameters[name] = type(model)().get_params()[name]
    for name in {"categorical_features", "coding"} & parameters.keys():
        if not isinstance(parameters[name], str | None):
            parameters[name] = np.asarray(parameters[name]).tolist()
    if isinstance(parameters.get("class_weight"), dict):
        # Pairs: the keys of an object could only be strings.
        parameters["class_weight"] = [[*pair] for pair in parameters["class_weight"].items()]
    if not isinstance(parameters.get("weak_learner", ""), str):
        raise ValueError(_OTHERS)
    return parameters


def _columns_entries(model: Any) -> tuple[str, list[dict[str, Any]]]:
    """Which kind of hypotheses, and the columns."""
    kinds = {type(h) for column in model.estimators_ for h in column.hypotheses}
    found = [name for name, kind in _KINDS.items() if kinds <= {kind}]
    if not found:
        raise ValueError(_OTHERS)
    columns = []
    for column, weight in zip(model.estimators_, model.estimator_weights_, strict=True):
        code = {} if column.code is None else {"code": column.code.tolist()}
        hypotheses = [_hypothesis_entries(h) for h in column.hypotheses]
        columns.append({"weight": float(weight), **code, found[0]: hypotheses})
    return found[0], columns


def _hypothesis_entries(h: Any) -> list[Any]:
    """A stump is [feature, threshold, sign, missing_right], a product is stumps."""
    if isinstance(h, Product):
        return [_hypothesis_entries(factor) for factor in h.factors]
    threshold, sign = plain_number(float(h.threshold)), int(h.sign)
    if isinstance(h, Discriminant):
        return [h.coef.tolist(), threshold, sign]
    return [int(h.feature), threshold, sign, bool(h.missing_right)]


def _table_entries(table: dict[str, Any]) -> dict[str, Any]:
    """Columns of numbers; lists of arrays, which a file does not hold, are left out."""
    return {
        name: [plain_number(x) if isinstance(x, float) else x for x in column.tolist()]
        for name, column in table.items()
        if isinstance(column, np.ndarray)
    }


def _rules_entries(model: TCBoostClassifier) -> dict[str, Any]:
    """Rules that the form does not tell: some have no effect, or coefficients were changed."""
    return {
        "rules": [
            [r.feature, r.threshold is None, _asked(r), r.missing_right, *_shown(r)]
            for r in model.rules_
        ],
        "coef": model.coef_.tolist(),
        "intercept": model.intercept_.tolist(),
    }


def _asked(rule: Rule) -> Any:
    """The threshold or the level."""
    value = rule.level if rule.threshold is None else rule.threshold
    return value if isinstance(value, str) else plain_number(float(value))


def _shown(rule: Rule) -> list[str]:
    """The threshold as people write it, if that is not the number."""
    return [] if rule.shown is None else [rule.shown]


def _told(form: AdditiveModel, model: TCBoostClassifier) -> bool:
    """Whether the tables tell the rules."""
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
    name, features = root["estimator"]["name"], features_of(root)
    model = _unfitted(_ESTIMATORS[name.text(*_ESTIMATORS)], root["estimator"]["parameters"])
    fitted, names = root["fitted"], features["feature_names"]
    model.n_features_in_ = features["n_features"]
    model.classes_ = classes_of(root)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    model.theta_ = fitted["theta"].number(0.0)
    model.history_ = _table(root["history"])
    solved = isinstance(model, TCBoostClassifier)
    model.certificate_ = _certificate(
        fitted["certificate"], SolvedCertificate if solved else Certificate, names
    )
    if isinstance(model, TCBoostClassifier):
        _set_rules(model, root, form)
    else:
        _set_columns(model, root["model"], form)
    return model


def _unfitted(estimator: Any, node: Node) -> Any:
    """An estimator with these parameters; those that it does not know are of a later one."""
    known, pairs = estimator().get_params(deep=False), node["class_weight"]
    given = {k: v for k, v in node.value.items() if k in known}
    if "class_weight" in known and isinstance(pairs.value, list):
        entries = [tuple(pair.items(2)) for pair in pairs.items()]
        for key, _ in entries:
            if isinstance(key.value, list | dict):
                raise key.fail("must be a class")
        given["class_weight"] = {key.value: weight.number() for key, weight in entries}
    if isinstance(given.get("cv"), list | str):
        raise node["cv"].fail("must be an integer or null")
    model = estimator(**given)
    try:
        model._validate_params()
    except Exception as e:  # whatever odd values do to scikit-learn
        raise node.fail(str(e)) from None
    return model


def _certificate(node: Node, kind: Any, names: Any) -> Any:
    """Of features, by number or by name, and of numbers that may be infinite."""
    values: dict[str, Any] = {}
    names = {*(names or ())}
    for name, default in kind.__annotations__.items():
        one = node[name]
        if default.startswith("tuple"):
            values[name] = tuple(one.values(int, str))
            if not all(d in names if isinstance(d, str) else d >= 0 for d in values[name]):
                raise one.fail("must be features")
        elif default == "str":
            values[name] = one.text()
        else:
            values[name] = one.real() if default == "float" else one.whole()
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
    fitted = root["fitted"]
    model.alpha_, model.l1_ratio_ = fitted["alpha"].number(0.0), fitted["l1_ratio"].number(0.0)
    model.n_iter_ = fitted["n_iter"].whole()
    if any(len(column) != model.n_iter_ for column in model.history_.values()):
        raise root["history"].fail(f"columns must have {model.n_iter_} entries, one a round")
    model.cv_results_ = _table(root["cv_results"])
    if len({len(column) for column in model.cv_results_.values()}) > 1:
        raise root["cv_results"].fail("columns must be as long as each other")
    by_places = _by_places(root["model"]["terms"], form)
    try:
        found = rules_of(form) if root["rules"].value is None else _rules(root["rules"], form)
    except OverflowError:
        raise root["model"]["terms"].fail("there are no such dates") from None
    if found is None:
        raise root["model"]["terms"].fail("terms of rules have one feature, and weights")
    model.rules_, model.coef_, model.intercept_ = rules, coef, intercept = found
    with np.errstate(all="ignore"):
        steps = Steps.of_rules(rules)
        compiled = additive_model(steps, coef, intercept, unit=form.unit, **_about(form))
    _check_same(root["model"], replace(compiled, size=form.size), by_places)
    model.n_rules_ = len(model.rules_)
    model._model = model.coef_, form


def _by_places(node: Node, form: AdditiveModel) -> AdditiveModel:
    """With levels in an order by their places, as rules have them."""
    terms = list(form.terms)
    for k, term in enumerate(terms):
        if form.kinds and form.kinds[term.inputs[0]] == ORDER:
            if isinstance(term.axes[0], Levels):
                if len(term.table) < 3 or (term.table[-1] != term.table[MISSING]).any():
                    why = (
                        "of levels in an order there is one, and any other is as a missing one"
                    )
                    raise node.child(k)["table"].fail(why)
                if len(term.inputs) == 1:
                    terms[k] = in_places(term)
    return replace(form, terms=tuple(terms))


def _rules(node: Node, form: AdditiveModel) -> tuple[list[Rule], Any, Any]:
    """Rules that are beside the form, and are the same function."""
    rules = []
    for one in node["rules"].items():
        feature, is_level, value, right, *shown = one.items(4, 5)
        j, words = feature.whole(0, form.n_features - 1), [text.text() for text in shown]
        if is_level.flag():
            missing, text = value.value is None, isinstance(value.value, str)
            level = np.nan if missing else value.text() if text else value.number()
            rules.append(Rule(j, level=level))
        else:
            rules.append(Rule(j, value.real(), right.flag(), None, *words))
            if not value.real() > -np.inf:
                raise value.fail("must be finite, or Infinity")
    cuts, levels = ({r.feature for r in rules if (r.level is None) == cut} for cut in (1, 0))
    if cuts & levels:
        raise node["rules"].fail("a feature has thresholds or levels, not both")
    limits = {"low": -_SCORES, "high": _SCORES}
    coef = node["coef"].numbers(len(rules), form.n_outputs, **limits)
    return rules, coef, node["intercept"].numbers(form.n_outputs, **limits)


# ---------------------------------------------------------------- columns


def _set_columns(model: Any, node: Node, form: AdditiveModel | None) -> None:
    """What `fit` sets, but for what all estimators have."""
    C, decode, scale = len(model.classes_), node["decode"], node["probability_scale"]
    if model._grown != (decode.value is None):
        raise decode.fail("a code is given, or grown with the columns")
    M = None if model._grown else decode.signs(C, None)
    if M is not None:
        try:
            check_coding_matrix(M, C)
        except ValueError as e:
            raise decode.fail(str(e)) from None
    model.probability_scale_ = np.nan if scale.value is None else scale.number(0.0)
    if LOSSES[model.loss].log_odds is not None and scale.value is None:
        raise scale.fail(f"loss={model.loss!r} tells probabilities")
    weights = node["columns"].gathered("weight").numbers(None, low=-_MOST, high=_MOST)
    model.n_iter_, model.estimator_weights_ = len(weights), weights
    n_bits, codes = 1 if M is None else M.shape[1], None
    if M is None:
        codes = node["columns"].gathered("code").signs(len(weights), C)
    hypotheses = [_hypotheses(one, n_bits, model) for one in node["columns"].items()]
    each = [None] * len(weights) if codes is None else codes
    columns = [Column(*pair) for pair in zip(hypotheses, each, strict=True)]
    model.estimators_, model.coding_matrix_ = columns, M if codes is None else codes.T
    ensemble = Ensemble(columns, model.estimator_weights_, model._margin(C, M))
    if form is not None:
        with np.errstate(all="ignore"):
            compiled = ensemble.additive(unit=form.unit, **_about(form))
        if compiled is None:
            raise node["kind"].fail("columns of this kind have no tables")
        _check_same(node["columns"], compiled, form)
    model._model = replace(ensemble, form=form)


def _hypotheses(node: Node, n_hypotheses: int, model: Any) -> tuple[Any, ...]:
    """Those of a column: one, or one for each bit."""
    kinds = [name for name in _KINDS if node[name].value is not None]
    if len(kinds) != 1:
        raise node.fail(f"must have one of {', '.join(_KINDS)}")
    D, read = model.n_features_in_, {"products": _product, "discriminants": _discriminant}
    hypotheses = node[kinds[0]].items(n_hypotheses)
    return tuple(read.get(kinds[0], _stump)(h, D) for h in hypotheses)


def _stump(node: Node, n_features: int) -> Any:
    match node.value:
        case [int(feature), float() | int() | str() as threshold, 1 | -1 as sign, bool(right)]:
            asked = Node(threshold, f"{node.at}/1").real()
            if 0 <= feature < n_features and {bool}.isdisjoint(map(type, node.value[:3])):
                return Stump(feature, asked, int(sign), right)
    raise node.fail("must be [feature, threshold, -1 or 1, true or false]")


def _product(node: Node, n_features: int) -> Any:
    factors = tuple(_stump(factor, n_features) for factor in node.items())
    if not factors:
        raise node.fail("must have a factor")
    return Product(factors)


def _discriminant(node: Node, n_features: int) -> Any:
    coef, threshold, sign = node.items(3)
    if threshold.value is None:
        raise threshold.fail("not a number")
    return Discriminant(coef.numbers(n_features), threshold.real(), int(sign.signs()))


def _ends(axis: Axis) -> list[Any]:
    """Values of all of its cells but the first and the last, in their order."""
    return axis.cuts.tolist() if isinstance(axis, Ordered) else list(axis.levels)


def _about(form: AdditiveModel) -> dict[str, Any]:
    return {"n_features": form.n_features, "feature_names": None, "classes": form.classes}


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
            rows = other.table[[MISSING, *merged.cells(ends), merged.n_cells - 1]]
        constant = term.table - rows
        same &= bool((constant == constant[0]).all())
        intercept += constant[0]
    if not same or terms or (intercept != form.intercept).any():
        raise node.fail("the tables are not those of the rules or columns")
