"""The bounded transform: the laws of any transform, and its own formula."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jahs.errors import InvalidArgument, UnknownFormat
from jahs.models.bounds import BOUNDS_FORMAT, BoundedTransform

finite = st.floats(-1e9, 1e9)
slopes = st.floats(0.01, 100)
margins = st.floats(1e-9, 0.25)


@pytest.fixture(
    params=[
        BoundedTransform(lower=0.0, upper=100.0),
        BoundedTransform(lower=-3.5, upper=1e6, slope=7.25, margin=1e-3),
        BoundedTransform(lower=1e-9, upper=1e-7, slope=0.01),
    ],
    ids=["accuracy", "steep", "tiny"],
)
def transform(request):
    return request.param


@pytest.fixture
def y(transform):
    """Targets up to both bounds, of which some are very near to them."""
    inside = np.random.default_rng(0).uniform(0, 1, 200)
    near_ends = np.geomspace(1e-12, 1e-3, 20)
    parts = np.sort(np.concatenate([[0, 1], inside, near_ends, 1 - near_ends]))
    return np.clip(transform.lower + parts * (transform.upper - transform.lower), transform.lower, transform.upper)


def test_every_target_becomes_a_finite_number_and_back(transform, y):
    z = transform.forward(y)
    assert np.isfinite(z).all()
    assert (np.diff(z) >= 0).all()
    assert np.abs(transform.inverse(z) - y).max() <= 1e-9 * (transform.upper - transform.lower)


def test_infinite_answers_are_the_bounds(transform):
    assert transform.inverse([-np.inf, np.inf]).tolist() == [transform.lower, transform.upper]


def test_json_and_pickle_bring_it_back(transform, y):
    restored = BoundedTransform.from_dict(json.loads(json.dumps(transform.to_dict(), allow_nan=False)))
    assert restored == transform == pickle.loads(pickle.dumps(transform))
    assert restored.forward(y).tobytes() == transform.forward(y).tobytes()


def test_shapes_are_kept_and_inputs_are_untouched(transform, y):
    y = y[:12].reshape(3, 4)
    y_before = y.copy()
    z = transform.forward(y)
    z_before = z.copy()
    assert transform.inverse(z).shape == z.shape == (3, 4)
    assert transform.forward([]).shape == transform.inverse([]).shape == (0,)
    assert transform.inverse(0.0).shape == ()
    assert (y == y_before).all()
    assert (z == z_before).all()


def test_one_value_and_a_batch_agree(transform, y):
    z = transform.forward(y)
    assert [float(transform.forward(value)) for value in y] == z.tolist()
    assert [float(transform.inverse(value)) for value in z] == transform.inverse(z).tolist()


def test_float32_answers_are_taken(transform):
    z = np.array([-1e30, *np.linspace(-50, 50, 401), 1e30], np.float32)
    assert transform.inverse(z).tolist() == transform.inverse(z.astype(np.float64)).tolist()


@pytest.mark.parametrize("bad", [np.nan, [np.nan, 1.0]])
def test_what_is_no_number_is_refused(transform, bad):
    with pytest.raises(InvalidArgument):
        transform.forward(bad)
    with pytest.raises(InvalidArgument):
        transform.inverse(bad)


def test_targets_just_outside_the_bounds_are_refused(transform):
    for bad in (np.nextafter(transform.lower, -np.inf), np.nextafter(transform.upper, np.inf), np.inf, -np.inf):
        with pytest.raises(InvalidArgument, match="outside"):
            transform.forward([transform.lower, bad])


@st.composite
def transforms(draw, **kwargs):
    lower, upper = sorted((draw(finite), draw(finite)))
    assume(upper - lower > 1e-3 * max(abs(lower), abs(upper), 1e-6))
    return BoundedTransform(lower=lower, upper=upper, slope=draw(slopes), margin=draw(margins), **kwargs)


@given(transforms(), st.lists(st.floats(0, 1), min_size=1))
def test_the_inverse_is_right_to_a_billionth_of_the_width(transform, parts):
    width = transform.upper - transform.lower
    y = np.clip(transform.lower + np.array(parts) * width, transform.lower, transform.upper)
    assert np.abs(transform.inverse(transform.forward(y)) - y).max() <= 1e-9 * width


@given(transforms(), st.lists(st.floats(allow_nan=False), min_size=1))
def test_no_answer_whatever_leaves_the_bounds(transform, z):
    y = transform.inverse(z)
    assert (y >= transform.lower).all()
    assert (y <= transform.upper).all()


@given(transforms(), finite, finite)
def test_a_larger_answer_is_never_a_smaller_metric(transform, a, b):
    low, high = transform.inverse(sorted((a, b)))
    assert low <= high + 1e-15 * max(abs(transform.lower), abs(transform.upper))


@given(transforms(), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_target_is_never_a_smaller_number(transform, a, b):
    parts = np.array(sorted((a, b)))
    y = np.clip(transform.lower + parts * (transform.upper - transform.lower), transform.lower, transform.upper)
    low, high = transform.forward(y)
    assert low <= high + 1e-12 * max(abs(low), 1 / transform.slope)


def test_the_formula_is_the_published_one():
    y, low, high, k, d = 37.5, 10.0, 90.0, 1.7, 1e-6
    s = d + (y - low) * (1 - 2 * d) / (high - low)
    z = math.log(s / (1 - s)) / k
    for published in (False, True):
        transform = BoundedTransform(lower=low, upper=high, slope=k, margin=d, published=published)
        assert transform.forward(y) == pytest.approx(z, rel=1e-12)
        assert transform.inverse(z) == pytest.approx(y, rel=1e-12)
        sigmoid = 1 / (1 + math.exp(-k * 2.0))
        assert transform.inverse(2.0) == pytest.approx(low + (sigmoid - d) * (high - low) / (1 - 2 * d), rel=1e-12)


def test_the_published_formula_leaves_the_bounds_by_a_millionth_and_ours_does_not():
    published = BoundedTransform(lower=0.0, upper=100.0, published=True)
    assert published.inverse([-np.inf, np.inf]).tolist() == pytest.approx([-1.000002e-4, 100.0001000002], rel=1e-9)
    assert BoundedTransform(lower=0.0, upper=100.0).inverse([-np.inf, np.inf]).tolist() == [0.0, 100.0]


@given(transforms(published=True), finite)
def test_published_and_ours_agree_inside(transform, z):
    ours = BoundedTransform(
        lower=transform.lower, upper=transform.upper, slope=transform.slope, margin=transform.margin
    )
    assert ours.inverse(z) == np.clip(transform.inverse(z), transform.lower, transform.upper)
    assert BoundedTransform.from_dict(transform.to_dict()) == transform


@pytest.mark.parametrize("y", [[1.0, 5.0, 2.0], [1.0, 2.0, math.nan], [math.inf, 1.0, 1.0]])
def test_a_target_outside_the_bounds_is_refused(y):
    outside = next(value for value in y if not value <= 4.0)
    with pytest.raises(InvalidArgument, match=rf"1 of 3 values, the first {outside}, are NaN or outside \[1.0, 4.0\]"):
        BoundedTransform(lower=1.0, upper=4.0).forward(y)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"margin": 0}, "margin=0.0 is outside"),
        ({"margin": 0.5}, "margin=0.5 is outside"),
        ({"published": 1}, "published=1 is not a bool"),
        ({"lower": 7.0}, "upper must exceed lower"),
        ({"lower": 1.0}, "upper must exceed lower"),
        ({"lower": -1e308, "upper": 1e308}, "by a finite number"),
        ({"lower": "0"}, "lower='0' is not a finite number"),
        ({"slope": 0}, "slope=0.0 is outside"),
        ({"slope": -1}, "slope=-1.0 is outside"),
        ({"slope": math.nan}, "slope=nan is not a finite number"),
    ],
)
def test_a_setting_out_of_range_is_refused(setting, message):
    with pytest.raises(InvalidArgument, match=message):
        BoundedTransform(**{"lower": 0.0, "upper": 1.0, **setting})


def test_every_faulty_setting_is_named_at_once():
    with pytest.raises(InvalidArgument) as caught:
        BoundedTransform(lower=math.nan, upper=True, slope="1", margin=None)
    assert [line.split("=")[0] for line in str(caught.value).splitlines()] == ["lower", "upper", "slope", "margin"]


def test_the_dict_names_its_format_and_another_is_refused():
    state = BoundedTransform(lower=0.0, upper=1.0).to_dict()
    assert state == {
        "format": BOUNDS_FORMAT,
        "lower": 0.0,
        "upper": 1.0,
        "slope": 1.0,
        "margin": 1e-6,
        "published": False,
    }
    for version in (2, "1", None, True):
        with pytest.raises(UnknownFormat, match="this version of jahs reads format 1"):
            BoundedTransform.from_dict({**state, "format": version})
    with pytest.raises(UnknownFormat):
        BoundedTransform.from_dict({})
    with pytest.raises(InvalidArgument, match="scale is not a part"):
        BoundedTransform.from_dict({**state, "scale": 2})
    with pytest.raises(InvalidArgument, match="slope is missing"):
        BoundedTransform.from_dict({key: value for key, value in state.items() if key != "slope"})
    with pytest.raises(InvalidArgument, match="lower='x' is not a finite number"):
        BoundedTransform.from_dict({**state, "lower": "x"})
    with pytest.raises(InvalidArgument, match="not a mapping"):
        BoundedTransform.from_dict([1])
