"""The contract of every target transform: subclass `TransformContract` and define the fixture `transform`."""

import json
import pickle

import numpy as np
import pytest

from jahs.errors import InvalidArgument


class TransformContract:
    """A transform has `lower`, `upper`, `forward`, `inverse`, `to_dict` and `from_dict`."""

    tolerance = 1e-9  # of the width of the bounds

    @staticmethod
    def targets(transform):
        inside = np.random.default_rng(0).uniform(0, 1, 200)
        near_ends = np.geomspace(1e-12, 1e-3, 20)
        parts = np.sort(np.concatenate([[0, 1], inside, near_ends, 1 - near_ends]))
        return np.clip(transform.lower + parts * (transform.upper - transform.lower), transform.lower, transform.upper)

    @staticmethod
    def answers():
        return np.concatenate([[-np.inf, -1e300], np.linspace(-50, 50, 401), [1e300, np.inf]])

    def test_the_inverse_gives_the_target_back(self, transform):
        y = self.targets(transform)
        error = np.abs(transform.inverse(transform.forward(y)) - y)
        assert error.max() <= self.tolerance * (transform.upper - transform.lower)

    def test_every_target_becomes_a_finite_number(self, transform):
        assert np.isfinite(transform.forward(self.targets(transform))).all()

    def test_it_increases_both_ways(self, transform):
        assert (np.diff(transform.forward(self.targets(transform))) >= 0).all()
        assert (np.diff(transform.forward([transform.lower, transform.upper])) > 0).all()
        steps = np.diff(transform.inverse(self.answers()))
        assert steps.min() >= -1e-15 * max(abs(transform.lower), abs(transform.upper))
        assert steps.max() > 0

    def test_no_answer_leaves_the_bounds(self, transform):
        y = transform.inverse(self.answers())
        assert y.min() >= transform.lower
        assert y.max() <= transform.upper

    def test_infinite_answers_are_the_bounds(self, transform):
        assert transform.inverse([-np.inf, np.inf]).tolist() == [transform.lower, transform.upper]

    def test_json_and_pickle_bring_it_back(self, transform):
        restored = type(transform).from_dict(json.loads(json.dumps(transform.to_dict(), allow_nan=False)))
        assert restored == transform == pickle.loads(pickle.dumps(transform))
        y = self.targets(transform)
        assert restored.forward(y).tobytes() == transform.forward(y).tobytes()

    def test_shapes_are_kept_and_inputs_are_untouched(self, transform):
        y = self.targets(transform)[:12].reshape(3, 4)
        y_before = y.copy()
        z = transform.forward(y)
        z_before = z.copy()
        assert transform.inverse(z).shape == z.shape == (3, 4)
        assert transform.forward([]).shape == transform.inverse([]).shape == (0,)
        assert transform.inverse(0.0).shape == ()
        assert (y == y_before).all()
        assert (z == z_before).all()

    def test_one_value_and_a_batch_agree(self, transform):
        y = self.targets(transform)
        z = transform.forward(y)
        assert [float(transform.forward(value)) for value in y] == z.tolist()
        assert [float(transform.inverse(value)) for value in z] == transform.inverse(z).tolist()

    def test_float32_answers_are_taken(self, transform):
        z = self.answers()[1:-1].clip(-1e30, 1e30).astype(np.float32)
        assert transform.inverse(z).tolist() == transform.inverse(z.astype(np.float64)).tolist()

    @pytest.mark.parametrize("bad", [np.nan, [np.nan, 1.0]])
    def test_what_is_no_number_is_refused(self, transform, bad):
        with pytest.raises(InvalidArgument):
            transform.forward(bad)
        with pytest.raises(InvalidArgument):
            transform.inverse(bad)

    def test_targets_outside_the_bounds_are_refused(self, transform):
        for bad in (np.nextafter(transform.lower, -np.inf), np.nextafter(transform.upper, np.inf), np.inf, -np.inf):
            with pytest.raises(InvalidArgument, match="outside"):
                transform.forward([transform.lower, bad])
