"""Checkpoints: trainings that can be continued, and the time that this saves."""

from __future__ import annotations

from dataclasses import dataclass, field

from jahs.simulate.answers import Job
from jahs.simulate.trial import Trial

__all__ = ["Checkpoints", "network_of"]


@dataclass(slots=True)
class Checkpoints:
    """The epochs that every network has reached; a training that reached `max_epoch` leaves nothing to take up.

    A training is taken up by the same config, as the same network (N, W and Resolution included) and with the same
    seed; a larger network of the same config begins at its first epoch. Two trainings may begin at one checkpoint.
    """

    max_epoch: int
    _reached: dict[tuple[object, ...], list[tuple[int, float]]] = field(default_factory=dict)

    def keep(self, job: Job, at: int) -> None:
        """Keep the checkpoint at the job's epoch number `at`."""
        epoch = job.epochs[at]
        if epoch < self.max_epoch:
            self._reached.setdefault(network_of(job), []).append((epoch, job.answers[at]["runtime"]))

    def best(self, job: Job) -> tuple[int, float]:
        """Return the last epoch before the job's last one that has been reached and its runtime, or (0, 0.0)."""
        if not self._reached:
            return (0, 0.0)
        before = job.epochs[-1]
        return max((found for found in self._reached.get(network_of(job), ()) if found[0] < before), default=(0, 0.0))


def network_of(trained: Job | Trial) -> tuple[object, ...]:
    """Return the identity of a network, which a training continues: config, N, W, Resolution and seed."""
    sizes = (value for name, value in trained.fidelity.items() if name != "epoch")
    return (*trained.config.values(), *sizes, trained.seed)
