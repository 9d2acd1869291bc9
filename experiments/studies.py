"""The declarations of the studies: optimisers, views, tasks, seeds and budgets.

Over 300 lines: they are one table, in which studies refer to one another.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from experiments.optimizers import OPTIMIZERS
from experiments.study import Study, arm_of
from jahs.comparison.terms import ViewChoice
from jahs.errors import UnknownName
from jahs.optimizers import QUALITIES

_JOINT_VIEWS: Final = (
    ("jahs", "JAHS", ViewChoice(search="all")),
    ("nas_default", "NAS only, default hyperparameters", ViewChoice(search="nas")),
    ("nas_tuned", "NAS only, tuned hyperparameters", ViewChoice(search="nas", fixed_part="tuned")),
    ("nas_random", "NAS only, random hyperparameters", ViewChoice(search="nas", fixed_part="random")),
    ("hpo_default", "HPO only, default cell", ViewChoice(search="hpo")),
    ("hpo_reference", "HPO only, reference cell", ViewChoice(search="hpo", fixed_part="reference")),
    ("hpo_resnet", "HPO only, ResNet-like cell", ViewChoice(search="hpo", fixed_part="resnet")),
    ("hpo_nasbench201", "HPO only, best cell of NAS-Bench-201", ViewChoice(search="hpo", fixed_part="nasbench201")),
    ("hpo_random", "HPO only, random cell", ViewChoice(search="hpo", fixed_part="random")),
)

JOINT: Final = Study(
    name="joint",
    title="Joint search against architecture or hyperparameters alone",
    question="How much sooner does joint search reach the final result of searching only one part?",
    protocol=(
        "JAHS searches architecture and hyperparameters jointly, NAS only the architecture, and HPO only the "
        "hyperparameters. N=5, W=16 and Resolution=1.0 are fixed, and the budget is 100 mean full evaluations. The "
        "part that is not searched is the default of the space or a random sample for each seed, as in the scripts of "
        "JAHS-Bench-201. The default cell consists of six skip connections, so HPO is also run in three good cells: "
        "the cell of the reference config, NAS-Bench-201's residual block, and NAS-Bench-201's best cell on "
        "CIFAR-10. Tuned hyperparameters are the best for the residual block by the mean of the refits, which "
        "the search does not query; the cost of tuning is not counted."
    ),
    arms=tuple(
        arm_of(optimizer, view, title=title, view=choice, chapter=OPTIMIZERS[optimizer].title)
        for optimizer in ("random_search", "regularized_evolution", "optuna_tpe")
        for view, title, choice in _JOINT_VIEWS
    ),
)
"""JAHS-Bench-201, Tables 9 and 10."""

_FIDELITY_VIEWS: Final = (
    ("epoch", "epochs", ("epoch",)),
    ("N", "N (cells)", ("N",)),
    ("W", "W (channels)", ("W",)),
    ("Resolution", "Resolution", ("Resolution",)),
    ("diagonal", "all four, diagonal", ("epoch", "N", "W", "Resolution")),
)
"""Name, title and fidelities of each view. Without the epoch as a fidelity, trainings run to the last epoch."""

FIDELITY: Final = Study(
    name="fidelity",
    title="Black-box against multi-fidelity search",
    question="With which fidelities, alone or combined, does a search find good networks sooner?",
    protocol=(
        "Only results at the highest value of every fidelity can become incumbents. Continuing a training costs the "
        "difference of its cumulative runtimes. A network of another size is trained from the first epoch. (On the "
        "diagonal, JAHS-Bench-201 subtracts the cost of the smaller network as well.)"
    ),
    arms=(
        arm_of("random_search", chapter="black box"),
        *(
            arm_of(
                optimizer,
                view,
                title=f"{(chapter := OPTIMIZERS[optimizer].title)}, {view_title}",
                view=ViewChoice(fidelities=fidelities),
                chapter=chapter,
            )
            for optimizer in ("successive_halving", "hyperband", "dehb")
            for view, view_title, fidelities in _FIDELITY_VIEWS
        ),
    ),
)

COMBINATIONS: Final = MappingProxyType(
    {
        ("valid_acc", "latency"): "latency",
        ("valid_acc", "n_macs"): "multiply-adds",
        ("valid_acc", "n_params"): "parameters",
        ("valid_acc", "runtime"): "runtime",
    }
)
"""Metrics whose trade-offs are searched, and the title of the second one."""

MULTIOBJECTIVE: Final = Study(
    name="multiobjective",
    title="Accuracy against cost",
    question="Which optimisers find the trade-offs of accuracy with latency, multiply-adds, parameters and runtime?",
    protocol=(
        "Hypervolume and IGD+ of all evaluations at the highest fidelity, with the reference points and fronts that "
        "are frozen in the release. (JAHS-Bench-201 uses the worst values of each method's own runs as the reference "
        "point, so its numbers are not comparable between methods.) N, W and Resolution are searched, because they "
        "determine most of the cost. Most sizes are cheap: the budget, 25 mean full evaluations, is many trials. "
        "The last chapter is the leaderboard of JAHS-Bench-201 by fidelity: N, W and Resolution are fidelities or at "
        "their highest values."
    ),
    n_evaluations=25,
    combinations=tuple(COMBINATIONS),
    n_seeds=14,
    n_refit_seeds=2,
    arms=(
        *(
            arm_of(
                optimizer,
                names[1].replace("_", "-"),
                view=ViewChoice(search="sizes"),
                objectives=names,
                chapter=f"Accuracy and {title}",
            )
            for names, title in COMBINATIONS.items()
            for optimizer in ("random_search", "nsga2", "hyperband", "asha", "optuna_tpe", "smac_black_box")
        ),
        *(
            arm_of(
                optimizer,
                f"full-size-{name}",
                title=f"{OPTIMIZERS[optimizer].title}, {title}",
                view=ViewChoice(fidelities=fidelities),
                objectives=("valid_acc", "latency"),
                chapter="Accuracy and latency at full size, by fidelity",
            )
            for optimizer, views in (("random_search", _FIDELITY_VIEWS[:1]), ("hyperband", _FIDELITY_VIEWS))
            for name, title, fidelities in views
        ),
    ),
)

MAIN: Final = "optimisers"  # the chapter of optimisers with their default settings
_QUICK_TOOLS: Final = ("optuna_tpe", "differential_evolution", "dehb")  # strong ones that take a second for a run
_OPTIMIZERS_OF_BASELINES: Final = (
    *("random_search", "local_search", "regularized_evolution", "evolution", "reinforce"),
    *("successive_halving", "hyperband", "asha"),
)

_SENSITIVITY: Final[tuple[tuple[str, str, tuple[Any, ...]], ...]] = (
    ("regularized_evolution", "population_size", (10, 20, 50, 100)),
    ("regularized_evolution", "tournament_size", (2, 5, 10)),
    ("successive_halving", "eta", (2.0, 3.0, 4.0)),
    ("local_search", "n_initial", (1, 10, 50)),
    ("hyperband", "eta", (2.0, 3.0, 4.0)),
    ("reinforce", "learning_rate", (0.1, 0.3, 0.5, 0.9)),
)
"""Optimiser, name of the setting, and its values."""

BASELINES: Final = Study(
    name="baselines",
    title="Baselines over many rollouts",
    question="Which optimisers are good, which are robust, and how much do their settings matter?",
    protocol=(
        "As in NAS-Bench-101: the incumbent is selected by validation accuracy, and its test regret is the best known "
        "mean test accuracy minus its own. Optimisers never see a test accuracy. Every rollout draws its own training "
        "noise, and a config that is proposed again is trained again, with another draw."
    ),
    n_seeds=100,
    arms=(
        *(arm_of(optimizer, chapter=MAIN) for optimizer in _OPTIMIZERS_OF_BASELINES),
        *(
            arm_of(
                optimizer,
                setting.replace("_", "-"),
                str(value),
                title=f"{setting}={value}",
                settings=((setting, value),),
                chapter=f"{OPTIMIZERS[optimizer].title}: {setting}",
            )
            for optimizer, setting, values in _SENSITIVITY
            for value in values
        ),
    ),
)

_STRONG_OPTIMIZERS: Final = (
    *("random_search", "local_search", "regularized_evolution", "differential_evolution"),
    *("optuna_tpe", "smac_black_box", "bananas"),
    *("hyperband", "dehb", "smac_multi_fidelity", "syne_tune_bohb"),
)

STRONG: Final = Study(
    name="strong",
    title="Strong optimisers",
    question="How much better than random search and evolution are optimisers that fit models or use priors?",
    protocol=(
        "As in the study baselines, with 15 seeds, two of them also on every refit, because fitting models takes time. "
        "Settings are the defaults of each tool, and those of its paper for BANANAS. Black-box SMAC has the settings "
        "of NAS-Bench-101 (S2.2: 5 trees, one evaluation a config, 33 % of the proposals random), and every Hyperband "
        "its eta of 3. BOHB runs with its defaults (33 % of the proposals random, 64 candidates, a bandwidth of at "
        "least 0.001) and with those settings (none, 4 and 0.3). Two are not followed: regularized evolution has a "
        "population of 20 and tournaments of 5, because a run has about a hundred evaluations, instead of 100 and 10 "
        "(as in the study long); TPE is Optuna's instead of Hyperopt's. Multi-fidelity "
        "SMAC, which the paper does not have, keeps its defaults. PriorBand believes in one config with medium "
        "confidence. Priors follow a rule: of 1,000 random configs, ranked by the release's means, the good prior is "
        "the 10th, the medium one the 500th and the bad one the 991st."
    ),
    n_seeds=15,
    n_refit_seeds=2,
    arms=(
        *(arm_of(optimizer, chapter=MAIN) for optimizer in _STRONG_OPTIMIZERS),
        arm_of(
            "syne_tune_bohb",
            "nasbench101",
            title="BOHB, settings of NAS-Bench-101",
            settings=(("random_fraction", 0.0), ("n_candidates", 4), ("min_bandwidth", 0.3)),
            chapter=MAIN,
        ),
        *(
            arm_of(
                "neps_priorband",
                quality,
                title=f"PriorBand, {quality} prior",
                settings=(("prior", quality),),
                chapter=MAIN,
            )
            for quality in QUALITIES
        ),
    ),
)

TRUTH: Final = Study(
    name="truth",
    title="Recorded trainings against the surrogate",
    question="Do optimisers have the same curves and final ranking on recorded trainings and on the surrogate?",
    protocol=(
        "Both worlds know the recorded configs only, and both answer with one training. In one world, answers are "
        "recorded trainings. In the other, they are predictions for held-out configs with a draw of the release's "
        "training noise: the configs are divided into folds, and a surrogate fitted on the other folds predicts each. "
        "Optimisers propose recorded configs: random configs are drawn from them, and any other proposal becomes the "
        "nearest one that the run has not trained yet. Optimisers, settings and budget are those of `baselines`; a "
        "full evaluation, the unit of time, takes the mean runtime of the recorded configs. N, W and Resolution are "
        "searched as well, because too few recorded configs have one size. Most configs were trained once, so they "
        "have one result for all seeds, in both worlds: with many evaluations, optimisers find the luckiest config of "
        "each. Errors are those that the optimisers observed."
    ),
    n_refit_seeds=0,  # its worlds have surrogates of their own
    arms=tuple(
        arm_of(
            optimizer,
            name=f"{world.replace('_', '-')}-{optimizer}",
            view=ViewChoice(search="sizes"),
            chapter=title,
            world=world,
        )
        for world, title in (("table", "recorded trainings"), ("left_out", "surrogate fitted without them"))
        for optimizer in (*_OPTIMIZERS_OF_BASELINES, *_QUICK_TOOLS)
    ),
)

FAMILIES: Final = Study(
    name="families",
    title="Two families of models",
    question="Do optimisers have the same curves and final ranking on another model family fitted to the same runs?",
    protocol=(
        "NAS-Bench-301 recommends checking conclusions on another class of surrogates. The release answers from "
        "XGBoost; its second family, LightGBM, was fitted to the same trainings, and `Benchmark(model='lightgbm')` "
        "answers from it. Optimisers, settings, space and budget are those of `baselines`; the models of runtime, "
        "latency and training noise are the release's own. Incumbents are reported by the means of the family that "
        "answered."
    ),
    n_refit_seeds=0,  # the second family has none
    arms=tuple(
        arm_of(optimizer, *more, chapter=title, world=world)
        for world, title, more in (("release", "XGBoost", ()), ("lightgbm", "LightGBM", ("lightgbm",)))
        for optimizer in (*_OPTIMIZERS_OF_BASELINES, *_QUICK_TOOLS)
    ),
)

LONG: Final = Study(
    name="long",
    title="A budget of ten thousand evaluations",
    question="Which optimisers still improve in long runs?",
    protocol=(
        "As in the case study of NAS-Bench-301 on local search: the budget is the time of 10,000 mean full "
        "evaluations, in which optimisers that choose slow configs train fewer. Incumbents are reported by their "
        "means. Regularized evolution has a population of 20 and tournaments of 5, and those of NAS-Bench-101, 100 and "
        "10. Optimisers that fit models would take days."
    ),
    n_evaluations=10_000,
    n_seeds=10,
    n_refit_seeds=2,
    arms=(
        *(arm_of(name, chapter=MAIN) for name in _OPTIMIZERS_OF_BASELINES[:4]),
        arm_of(
            "regularized_evolution",
            "population-100",
            title="regularized evolution, population 100",
            settings=(("population_size", 100), ("tournament_size", 10)),
            chapter=MAIN,
        ),
    ),
)

WORKERS: Final = Study(
    name="workers",
    title="Many workers",
    question="How do 1, 4, 16 and 64 asynchronous workers change the final error for the same worker time?",
    protocol=(
        "All runs have the same worker time: with w workers, the simulated time is that of 400 mean full evaluations "
        "divided by w. A free worker gets the next proposal as soon as the optimiser has one, so an optimiser proposes "
        "before it knows the results of the other workers. Local search has none while all neighbours of its best "
        "config are in training, so workers are idle. Successive halving promotes once a rung is complete, and begins "
        "another bracket meanwhile; ASHA promotes at once. Trials that run at the end of the budget are lost."
    ),
    n_evaluations=400,
    n_seeds=12,
    n_refit_seeds=2,
    arms=tuple(
        arm_of(
            name,
            f"workers-{workers}",
            title=f"{workers} worker{'s' * (workers > 1)}",
            chapter=OPTIMIZERS[name].title,
            workers=workers,
        )
        for name in (
            *("random_search", "local_search", "regularized_evolution", "differential_evolution", "optuna_tpe"),
            *("successive_halving", "asha"),
        )
        for workers in (1, 4, 16, 64)
    ),
)

_ALL: Final = (JOINT, FIDELITY, MULTIOBJECTIVE, BASELINES, STRONG, TRUTH, FAMILIES, LONG, WORKERS)
STUDIES: Final[Mapping[str, Study]] = MappingProxyType({study.name: study for study in _ALL})  # every study by name


def find_study(name: str) -> Study:
    """Return the study of this name; refuse an unknown one."""
    if name not in STUDIES:
        raise UnknownName.of("study", name, STUDIES)
    return STUDIES[name]
