import copy

import numpy as np
import pytest

from jahs.errors import CorruptFile, InvalidArgument, UnknownFormat
from jahs.models.forest import forest_from_xgboost, open_engine
from tests.jahs.models.forest.examples import as_json, fit

xgboost = pytest.importorskip("xgboost")

KINDS = ["numpy", "compiled"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.random((600, 6), dtype=np.float32)
    X[:, 4] = rng.integers(0, 2, 600)
    X[:, 5] = rng.integers(1, 51, 600)
    y = 3 * X[:, 0] + np.sin(9 * X[:, 1]) * X[:, 4] + np.log(X[:, 5]) + rng.normal(0, 0.1, 600)
    return X, y.astype(np.float32)


@pytest.fixture(scope="module")
def boosters(table):
    """Models of the kinds that a fit may end in."""
    X, y = table
    return {
        "plain": fit(X, y),
        "given base score": fit(X, y, base_score=0.5),
        "deep": fit(X, y, max_depth=12, min_child_weight=0, eta=0.05),
        "leafwise": fit(X, y, grow_policy="lossguide", max_leaves=9, max_depth=0),
        "exact": fit(X, y, tree_method="exact", colsample_bytree=0.5, subsample=0.5),
        "pruned": fit(X, y, tree_method="exact", gamma=2.0, max_depth=6),
        "random forest": fit(X, y, n_rounds=3, num_parallel_tree=5, colsample_bynode=0.5, subsample=0.6),
        "absolute error": fit(X, y, objective="reg:absoluteerror"),
        "no tree": fit(X, y, n_rounds=0),
        "constant": fit(X, np.zeros(600)),
    }


@pytest.fixture(scope="module")
def forest(boosters):
    return forest_from_xgboost([as_json(booster) for booster in boosters.values()])


def as_version_1_5(model):
    """The same model as XGBoost 1.5 writes it."""
    model = copy.deepcopy(model)
    model["version"] = [1, 5, 2]
    learner = model["learner"]
    base_score = learner["learner_model_param"]["base_score"].strip("[]")
    learner["learner_model_param"] = {"base_score": base_score, "num_class": "0", "num_feature": "6"}
    booster = learner["gradient_booster"]["model"]
    booster["gbtree_model_param"] = {"num_trees": str(len(booster["trees"])), "size_leaf_vector": "0"}
    for name in ("cats", "iteration_indptr"):
        booster.pop(name, None)
    for tree in booster["trees"]:
        tree["default_left"] = [bool(side) for side in tree["default_left"]]
        tree["tree_param"]["size_leaf_vector"] = "0"
    return model


def edge_rows(forest, X):
    """Rows that stand on thresholds and one float beside them."""
    rng = np.random.default_rng(1)
    rows = np.repeat(X, 2, axis=0)
    for feature in range(forest.n_features):
        thresholds = forest.split_threshold[forest.split_feature == feature]
        chosen = rng.choice(thresholds, len(rows))
        beside = np.nextafter(chosen, rng.choice([-np.inf, np.inf], len(rows)).astype(np.float32))
        rows[:, feature] = np.where(rng.random(len(rows)) < 0.5, chosen, beside)
    return rows


@pytest.mark.parametrize("kind", KINDS)
def test_answers_equal_those_of_xgboost_bit_for_bit(kind, boosters, forest, table):
    engine = open_engine(forest, kind)
    for X in (table[0], edge_rows(forest, table[0])):
        answers = engine.predict(X)
        for k, (name, booster) in enumerate(boosters.items()):
            np.testing.assert_array_equal(answers[:, k], booster.inplace_predict(X), err_msg=name)
            np.testing.assert_array_equal(answers[:, k], booster.predict(xgboost.DMatrix(X)), err_msg=name)
            alone = [booster.inplace_predict(X[i : i + 1])[0] for i in range(20)]
            np.testing.assert_array_equal(answers[:20, k], alone, err_msg=name)


def test_the_layout_of_version_1_5_gives_the_same_forest(boosters, forest):
    old = forest_from_xgboost([as_version_1_5(as_json(booster)) for booster in boosters.values()])
    for name in ("split_feature", "split_threshold", "node_split", "node_value", "tree_start", "base_score"):
        np.testing.assert_array_equal(getattr(old, name), getattr(forest, name))


def test_equal_splits_are_stored_once(forest):
    pairs = np.stack([forest.split_feature, forest.split_threshold], axis=1)
    assert len(np.unique(pairs, axis=0)) == len(pairs) < (forest.node_split < forest.n_splits).sum()


def test_a_model_that_stopped_early_must_be_sliced(table):
    X, y = table
    rounds = {"evals": [(xgboost.DMatrix(X[:50], -y[:50]), "valid")], "early_stopping_rounds": 2, "verbose_eval": False}
    booster = xgboost.train({"max_depth": 3, "nthread": 1}, xgboost.DMatrix(X, y), 20, **rounds)
    n = booster.best_iteration + 1
    with pytest.raises(UnknownFormat, match=rf"slice the booster first: booster\[: {n}\]"):
        forest_from_xgboost([as_json(booster)])
    answers = open_engine(forest_from_xgboost([as_json(booster[:n])]), "numpy").predict(X)
    np.testing.assert_array_equal(answers[:, 0], booster.inplace_predict(X, iteration_range=(0, n)))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"booster": "dart"}, "booster 'dart'; only 'gbtree'"),
        ({"booster": "gblinear", "tree_method": None, "max_depth": None}, "booster 'gblinear'"),
        ({"objective": "reg:gamma"}, "objective 'reg:gamma'; only reg:absoluteerror, "),
        ({"objective": "binary:logistic"}, "objective 'binary:logistic'"),
    ],
)
def test_models_that_do_more_than_sum_leaves_are_refused(parameters, message, table):
    X, y = table
    parameters = {key: value for key, value in {"max_depth": 2, **parameters}.items() if value is not None}
    booster = xgboost.train({"nthread": 1, **parameters}, xgboost.DMatrix(X, np.where(y > 2, 1.0, 0.5)), 2)
    with pytest.raises(UnknownFormat, match=message):
        forest_from_xgboost([as_json(booster)])


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_models_of_several_outputs_are_refused(strategy, table):
    X, y = table
    booster = fit(X, np.column_stack([y, y]), n_rounds=2, multi_strategy=strategy)
    with pytest.raises(UnknownFormat, match="several outputs; fit one model for each metric"):
        forest_from_xgboost([as_json(booster)])


def test_categorical_splits_are_refused(table):
    X, y = table
    data = xgboost.DMatrix(X, y, feature_types=["q"] * 5 + ["c"], enable_categorical=True)
    booster = xgboost.train({"nthread": 1, "max_cat_to_onehot": 99}, data, 2)
    with pytest.raises(UnknownFormat, match="tree 0: categorical splits"):
        forest_from_xgboost([as_json(booster)])


def test_models_over_different_features_are_refused(boosters, table):
    X, y = table
    models = [as_json(boosters["plain"]), as_json(fit(X[:, :4], y, n_rounds=1))]
    with pytest.raises(InvalidArgument, match=r"different numbers of features: \[6, 4\]"):
        forest_from_xgboost(models)
    with pytest.raises(InvalidArgument, match="models is empty"):
        forest_from_xgboost([])


def tree_of(model):
    return model["learner"]["gradient_booster"]["model"]["trees"][0]


def damage(column, node, value):
    def change(model):
        tree_of(model)[column][node] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (damage("left_children", 0, 10**6), "tree 0: a child that does not exist"),
        (damage("right_children", 0, -1), "tree 0: a child that does not exist"),
        (damage("left_children", 0, 0), "two parents"),
        (damage("right_children", 0, 1), "two parents"),
        (damage("split_indices", 0, 6), "a feature that does not exist; there are 6"),
        (damage("split_conditions", 0, float("nan")), "split_threshold: not finite"),
        (damage("split_conditions", -1, 1e39), "node_value: not finite"),
        (damage("split_conditions", 0, "x"), "not the JSON of an XGBoost model"),
        (lambda model: tree_of(model)["split_indices"].pop(), "columns of"),
        (lambda model: tree_of(model).pop("left_children"), "KeyError: 'left_children'"),
        (lambda model: model.pop("learner"), "XGBoost model 0: not the JSON of an XGBoost model"),
        (lambda model: model.update(learner=[1]), "not the JSON of an XGBoost model"),
        (lambda model: model["learner"]["learner_model_param"].update(base_score="[1E0,2E0]"), "ValueError"),
        (lambda model: model["learner"]["learner_model_param"].update(base_score="nan"), "base_score: not finite"),
    ],
)
def test_models_that_contradict_themselves_are_refused(change, message, boosters):
    model = as_json(boosters["plain"])
    change(model)
    with pytest.raises(CorruptFile, match=message):
        forest_from_xgboost([model])
