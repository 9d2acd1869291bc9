"""What `jahs demo` shows: a config, its cell, and what its network costs, all of it exact."""

from __future__ import annotations

from dataclasses import dataclass

from jahs.cell import Cell
from jahs.configs import Config
from jahs.cost import cost
from jahs.spaces import space
from jahs.tasks import Task, task

__all__ = ["Demo", "demo", "format_config"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """A sampled config and what can be said about it without training it.

    Attributes:
        seed: the config is the first one that `jahs.space().sample` draws with it.
        task: the costs are those of this task's network.
        config: the config.
        cell: its cell.
        n_params: trainable parameters.
        n_macs: multiply-adds of one image, forward.
    """

    seed: int
    task: Task
    config: Config
    cell: Cell
    n_params: int
    n_macs: int

    def to_dict(self) -> dict[str, object]:
        """Return builtins only, for JSON."""
        return {
            "cell": self.cell.nb201_string,
            "config": dict(self.config),
            "n_macs": self.n_macs,
            "n_params": self.n_params,
            "seed": self.seed,
            "task": self.task.name,
        }

    def __str__(self) -> str:
        side = self.task.image_side(self.config["Resolution"])
        return "\n".join(
            [
                f"A config of the joint space (seed {self.seed}):",
                "",
                format_config(self.config),
                "",
                "Its cell, from input (1) to output (4):",
                "",
                *(f"  {line}".rstrip() for line in self.cell.draw().splitlines()),
                "",
                f"Its network for {self.task.title}, seen at {side} x {side} pixels, costs exactly",
                "",
                f"  {self.n_params:>12,} trainable parameters",
                f"  {self.n_macs:>12,} multiply-adds per image",
            ]
        )


def demo(*, seed: int, task_name: str) -> Demo:
    """Sample a config and compute what its network costs.

    Raises:
        InvalidArgument: if `seed` is not an integer in 0..2**64-1.
        UnknownName: if there is no such task.

    Example:
        >>> demo(seed=0, task_name="cifar10").n_params > 0
        True
    """
    chosen = task(task_name)
    config = space().sample(seed=seed)
    return Demo(seed=seed, task=chosen, config=config, cell=Cell.from_config(config), **cost(config, chosen))


def format_config(config: Config) -> str:
    """Return one line per key, the operations of the cell on one."""
    ops = [str(value) for key, value in config.items() if key.startswith("Op") and key != "Optimizer"]
    rows = [(key, f"{value:.6g}" if isinstance(value, float) else str(value)) for key, value in config.items()]
    shown = [row for row in rows if not row[0].startswith("Op") or row[0] == "Optimizer"]
    return "\n".join(f"  {key:<15} {value}" for key, value in [*shown, ("Op1 .. Op6", " ".join(ops))])
