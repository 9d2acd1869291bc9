"""Trial logs written by hand, so that every answer can be worked out on paper."""

from __future__ import annotations

from jahs.comparison.logs import TrialLog, trial_log
from jahs.simulate import Trial

FULL = {"epoch": 10}
CONFIG = {"N": 5, "W": 16, "Resolution": 1.0}


def trial(number, start, end, valid_acc, *, epoch=10, worker=0, status="finished", sizes=None, **metrics) -> Trial:
    return Trial(
        trial=number,
        config={**CONFIG, "Op1": number % 5},
        fidelity={"epoch": epoch, **(sizes or {})},
        seed=None,
        metrics={} if valid_acc is None else {"valid_acc": valid_acc, **metrics},
        start=start,
        end=end,
        worker=worker,
        status=status,
    )


def log(*trials, full=None) -> TrialLog:
    return trial_log({"format": 1, "view": {"fidelities": full or FULL}}, trials)
