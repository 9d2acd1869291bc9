"""The target transform that keeps a surrogate inside its bounds: min-max, inverse sigmoid, slope.

A model is fitted on z = logit(s) / slope, where s = margin + (y - lower) (1 - 2 margin) / (upper - lower), and its
answers are mapped back into [lower, upper].
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt

from jahs.errors import InvalidArgument, refuse
from jahs.files.strict_json import check_format
from jahs.spaces.parameters import is_number, show

BOUNDS_FORMAT: Final = 1
"""Version of `BoundedTransform.to_dict`; a reader refuses any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedTransform:
    """A fitted, invertible map of [lower, upper] to the real line and of the whole real line back.

    Attributes:
        lower, upper: bounds of the inverse.
        slope: divides the logit. It only rescales the target of the model.
        margin: distance of the scaled bounds from 0 and 1, where the logit is infinite.
        published: whether to invert as JAHS-Bench-201 does, for models imported from there. That formula does not stop
            at the margin, so extreme answers leave [lower, upper] by up to margin / (1 - 2 margin) of its width.
    """

    lower: float
    upper: float
    slope: float = 1.0
    margin: float = 1e-6
    published: bool = False

    def __post_init__(self) -> None:
        """Refuse parameters that are not invertible, every fault at once."""
        faults = []
        for name in ("lower", "upper", "slope", "margin"):
            value = getattr(self, name)
            if not is_number(value):
                faults.append(f"{name}={show(value)} is not a finite number")
            else:
                object.__setattr__(self, name, float(value))
        if type(published := getattr(self, "published")) is not bool:  # noqa: B009  # from_dict gives anything
            faults.append(f"published={published!r} is not a bool")
        if not faults:
            if not 0 < self.upper - self.lower < math.inf:
                faults.append(f"lower={self.lower}, upper={self.upper}: upper must exceed lower by a finite number")
            if not 1e-100 <= self.slope <= 1e100:
                faults.append(f"slope={self.slope} is outside [1e-100, 1e+100]")
            if not 1e-12 <= self.margin <= 0.25:
                faults.append(f"margin={self.margin} is outside [1e-12, 0.25]")
        refuse(*faults)

    def forward(self, y: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the transformed values, which a model is fitted to; InvalidArgument if one is not in the bounds."""
        values = np.asarray(y, dtype=np.float64)
        is_bad = ~((values >= self.lower) & (values <= self.upper))
        if is_bad.any():
            n_bad = f"{int(is_bad.sum())} of {values.size} values, the first {values[is_bad].flat[0]}"
            raise InvalidArgument(f"y: {n_bad}, are NaN or outside [{self.lower}, {self.upper}]")
        s = self.margin + (values - self.lower) * (1 - 2 * self.margin) / (self.upper - self.lower)
        return np.asarray((np.log(s) - np.log1p(-s)) / self.slope)

    def inverse(self, z: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return a model's answers as metrics, also infinite ones, within [lower, upper]; InvalidArgument for NaN."""
        values = np.asarray(z, dtype=np.float64)
        if np.isnan(values).any():
            raise InvalidArgument(f"z: {int(np.isnan(values).sum())} of {values.size} values are NaN")
        with np.errstate(over="ignore", under="ignore"):
            x = self.slope * values
            small = np.exp(-np.abs(x))  # in [0, 1], so that neither tail overflows
            s = np.where(x < 0, small, 1.0) / (1.0 + small)
        y = self.lower + (s - self.margin) * (self.upper - self.lower) / (1 - 2 * self.margin)
        return np.asarray(y if self.published else np.clip(y, self.lower, self.upper))

    def to_dict(self) -> dict[str, float | int | bool]:
        """Return the transform as JSON can hold it; floats keep every bit."""
        return {"format": BOUNDS_FORMAT, **asdict(self)}

    @classmethod
    def from_dict(cls, state: Mapping[str, object]) -> BoundedTransform:
        """Return the transform that `to_dict` described; InvalidArgument names every missing or unknown key."""
        if not isinstance(state, Mapping):
            raise InvalidArgument(f"state is of type {type(state).__name__}, not a mapping as to_dict() returns")
        check_format(state.get("format"), BOUNDS_FORMAT, of="transform")
        names = {field.name for field in fields(cls)}
        if names != state.keys() - {"format"}:
            faults = [f"{name} is missing" for name in sorted(names - state.keys())]
            faults += [f"{name} is not a part of a transform" for name in state if name not in {*names, "format"}]
            raise InvalidArgument("\n".join(faults))
        return cls(**{name: state[name] for name in names})  # type: ignore[arg-type]  # __post_init__ checks them


def invert_row(transforms: Sequence[BoundedTransform | None], answers: Sequence[float]) -> list[float]:
    """Return the inverse of one answer of each transform: the bits of `BoundedTransform.inverse`, without its arrays.

    Without a transform the answer is the target. numpy's exponential, as for many rows; floats give the same bits for
    the rest, and faster.
    """
    logits = [answer if t is None else t.slope * answer for t, answer in zip(transforms, answers, strict=True)]
    exps = np.exp([-abs(logit) for logit in logits]).tolist()
    values = []
    for transform, logit, small in zip(transforms, logits, exps, strict=True):
        if transform is None:
            values.append(logit)
            continue
        lower, upper, margin = transform.lower, transform.upper, transform.margin
        y = lower + ((small if logit < 0 else 1.0) / (1.0 + small) - margin) * (upper - lower) / (1 - 2 * margin)
        values.append(y if transform.published or lower <= y <= upper else min(max(y, lower), upper))
    return values
