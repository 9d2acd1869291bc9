"""Optimisers in simulated time: workers, a clock, a budget and a log of every trial, without training anything."""

from jahs.simulate.answers import Visible, visible
from jahs.simulate.driver import Callback, Optimizer
from jahs.simulate.log import Log, read_log, read_trials
from jahs.simulate.simulation import Simulation
from jahs.simulate.table import to_pandas
from jahs.simulate.trial import Proposal, Trial

__all__ = [
    "Callback",
    "Log",
    "Optimizer",
    "Proposal",
    "Simulation",
    "Trial",
    "Visible",
    "read_log",
    "read_trials",
    "to_pandas",
    "visible",
]
