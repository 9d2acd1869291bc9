"""The study `strong`: optimisers that fit models or believe in priors, under the terms of `baselines`."""

from __future__ import annotations

from typing import Final

from experiments.studies.baselines import MAIN
from experiments.studies.study import Study, arm_of
from jahs.optimizers import QUALITIES

_BLACK_BOX: Final = (
    *("random_search", "local_search", "regularized_evolution", "differential_evolution"),
    *("optuna_tpe", "smac_black_box", "bananas"),
)
_MULTI_FIDELITY: Final = ("hyperband", "dehb", "smac_multi_fidelity", "syne_tune_bohb")

STRONG: Final = Study(
    name="strong",
    title="Strong optimisers",
    question="How much better than random search and evolution are optimisers that fit models or believe in priors?",
    protocol=(
        "As in the study baselines, with 10 seeds, because fitting models takes time, and 2 of them on every refit. "
        "Settings are the defaults of each tool, and of the paper for BANANAS. PriorBand believes in one config with "
        "medium confidence. Priors follow a rule: of 1,000 random configs, ranked by the release's means, the good "
        "prior is the 10th, the medium one the 500th and the bad one the 991st."
    ),
    n_seeds=10,
    n_refit_seeds=2,
    arms=(
        *(arm_of(optimizer, chapter=MAIN) for optimizer in (*_BLACK_BOX, *_MULTI_FIDELITY)),
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
