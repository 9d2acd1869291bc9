"""The names that a client uses for the space: the real ones, or blind ones that make prior knowledge useless."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, TypeVar, cast

from jahs.adapters.values import shown_parameters, to_config
from jahs.errors import InvalidConfig, InvalidFidelity, JahsError, first_of
from jahs.optimizers.moves import log_uniform
from jahs.schema import OPS
from jahs.simulate import Visible
from jahs.spaces.parameters import Parameter, Value, is_integer, is_number, show, show_key

T = TypeVar("T")


class Spelling:
    """Keys, values, fidelities and metrics under their real names.

    Attributes:
        metrics, fidelities: the client's names for them, by our name.
        levels: the legal values of each fidelity as the client writes them, ascending, by name.
    """

    def __init__(self, view: Visible) -> None:
        self._view: Final = view
        self.metrics: Mapping[str, str] = {name: name for name in view.metrics}
        self.fidelities: Mapping[str, str] = {name: name for name in view.fidelities}
        self.levels: Mapping[str, Sequence[float]] = dict(view.fidelities)

    def parameters(self) -> dict[str, dict[str, object]]:
        """Return the kind and the legal values of each key with more than one value."""
        return {
            name: {"kind": each.kind, "choices": list(each.choices)}
            if each.choices
            else {"kind": each.kind, "lower": each.lower, "upper": each.upper, "log": each.is_log}
            for name, each in shown_parameters(self._view.space).items()
        }

    def read_config(self, config: Mapping[str, object]) -> Mapping[str, object]:
        """Return a client's config under real names; InvalidConfig has one line for every fault."""
        return to_config(config, self._view.space)

    def read_at(self, at: object) -> Any:  # Any: the simulation checks it
        """Return a client's fidelity under real names; InvalidFidelity if its epoch is not a whole number.

        The simulation checks the rest.
        """
        epoch = at.get("epoch") if isinstance(at, Mapping) else at
        if is_number(epoch) and epoch != int(cast("float", epoch)):
            raise InvalidFidelity(f"epoch={show(epoch)} is not a whole number")
        return at

    def explain(self, err: JahsError) -> str:
        """Return the text of a simulation's error as the client may read it."""
        return str(err)

    def show_fidelity(self, fidelity: Mapping[str, float]) -> dict[str, float]:
        """Return a fidelity as the client writes it; the last epoch is left out where the epoch is not a choice."""
        return {
            alias: self.levels[name][self._view.fidelities[name].index(fidelity[name])]
            for name, alias in self.fidelities.items()
        }


class BlindSpelling(Spelling):
    """Neutral names in a random order: x1, x2 ... for keys, f1 ... for fidelities, y1 ... for metrics.

    Choices are letters in a random order, which is the same for Op1 to Op6. Ordinals and fidelities are numbered from 1
    in their order. Floats are positions from 0 to 1 on their log scale.

    Args:
        view: the view that the client may see.
        seed: seed of names and orders.
    """

    def __init__(self, view: Visible, *, seed: int) -> None:
        super().__init__(view)
        parameters = shown_parameters(view.space)
        keys = enumerate(_shuffled(parameters, seed, "keys"), start=1)
        self._keys = {f"x{i}": _Key.blinded(parameters[name], seed) for i, name in keys}
        self.metrics = {name: f"y{i}" for i, name in enumerate(_shuffled(view.metrics, seed, "metrics"), start=1)}
        self.fidelities = {name: f"f{i}" for i, name in enumerate(view.fidelities, start=1)}
        self.levels = {name: range(1, len(values) + 1) for name, values in view.fidelities.items()}

    def parameters(self) -> dict[str, dict[str, object]]:
        """Return the kind and the legal values of each key, blinded."""
        return {name: key.described() for name, key in self._keys.items()}

    def read_config(self, config: Mapping[str, object]) -> Mapping[str, object]:
        """Return a client's config under real names; raises as above."""
        unknown = [name for name in config if name not in self._keys]
        faults = first_of([f"{show_key(name)} is not a key; the keys are x1 to x{len(self._keys)}" for name in unknown])
        values: dict[str, object] = {}
        for name, key in self._keys.items():
            values[key.parameter.name] = value = key.read(config.get(name))
            if value is None:
                problem = f"={show(config[name])} is not" if name in config else " is missing; it is"
                faults.append(f"{name}{problem} {key.allowed}")
        if faults:
            raise InvalidConfig(faults)
        return to_config(values, self._view.space)

    def read_at(self, at: object) -> Any:  # Any: as above
        """Return a client's fidelity under real names; raises as above."""
        if at is None:
            return None
        names = {alias: name for name, alias in self.fidelities.items()}
        fidelity, faults = {}, []
        for alias, value in (at if isinstance(at, Mapping) else {"f1": at}).items():
            name = names.get(alias, "")
            if is_integer(value) and value in self.levels.get(name, ()):
                fidelity[name] = self._view.fidelities[name][int(value) - 1]
            else:
                allowed = ", ".join(f"{alias} in 1..{len(self.levels[name])}" for alias, name in names.items())
                faults.append(f"at: {show_key(alias)}={show(value)} is not legal; give {allowed}")
        if faults:
            raise InvalidFidelity("\n".join(first_of(faults)))
        return fidelity

    def explain(self, err: JahsError) -> str:  # noqa: ARG002  # it has real names
        """Return the text that the client may read; here only its reports can be at fault."""
        return "reports must be increasing integers, at least 1 and below the requested f1"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    """A blinded key: the client's name for each choice; no choices for a float."""

    parameter: Parameter
    choices: Mapping[str | int, Value]

    @classmethod
    def blinded(cls, parameter: Parameter, seed: int) -> _Key:
        if parameter.kind == "ordinal":
            return cls(parameter=parameter, choices=dict(enumerate(parameter.choices, start=1)))
        group = OPS[0] if parameter.name in OPS else parameter.name
        order = _shuffled(parameter.choices, seed, group)
        return cls(parameter=parameter, choices=dict(zip(string.ascii_lowercase, order, strict=False)))

    def described(self) -> dict[str, object]:
        if not self.choices:
            return {"kind": "float", "lower": 0.0, "upper": 1.0, "log": False}
        return {"kind": self.parameter.kind, "choices": list(self.choices)}

    @property
    def allowed(self) -> str:
        return f"one of {', '.join(map(str, self.choices))}" if self.choices else "a number in [0, 1]"

    def read(self, value: object) -> Value | None:
        """Return the real value for a client's value, or None if it is not legal."""
        if self.choices:
            return self.choices.get(value) if type(value) in {str, int} else None  # type: ignore[call-overload]  # as here
        if not is_number(value) or not 0 <= (position := float(cast("float", value))) <= 1:
            return None
        return log_uniform(self.parameter, position)


def _shuffled(items: Iterable[T], seed: int, what: str) -> list[T]:
    """Return the items in an order that only depends on the seed, not on package versions."""
    digests = {item: blake2b(f"{seed} {what} {item}".encode(), person=b"jahs-blind-1").digest() for item in items}
    return sorted(digests, key=lambda item: digests[item])
