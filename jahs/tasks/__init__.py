"""Tasks, their metrics and objectives, and fronts.

>>> import jahs
>>> jahs.tasks.task("cifar10").max_epoch
200
"""

from jahs.tasks.definitions import TASKS, Task, task
from jahs.tasks.metrics import METRICS, Metric, metric
from jahs.tasks.own import register

__all__ = ["METRICS", "TASKS", "Metric", "Task", "metric", "register", "task"]
