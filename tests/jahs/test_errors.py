"""The drawn tree of errors is the real one."""

import builtins
import inspect
import pickle
import re
import runpy
from pathlib import Path

import pytest

from jahs import errors
from jahs.errors import InvalidArgument, InvalidConfig, JahsError, UnknownName, refuse

ROOT = Path(__file__).resolve().parents[2]
DRAWN = dict(re.findall(r"[├└]── (\w+) +\((\w+)\)", errors.__doc__))
DEFINED = {name: cls for name, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, BaseException)}


def test_the_drawing_shows_every_error_and_no_other():
    assert {*DRAWN, "JahsError", "PoorView"} == set(DEFINED) == set(errors.__all__)
    for name, builtin in DRAWN.items():
        assert DEFINED[name].__bases__ == (JahsError, getattr(builtins, builtin))


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_an_error_prints_its_message_plainly_and_is_pickled(name):
    error = DEFINED[name](["N is wrong"]) if name == "InvalidConfig" else DEFINED[name]("N is wrong")
    assert str(error) == "N is wrong"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == "N is wrong"


@pytest.mark.parametrize("name", sorted(DEFINED))
def test_an_error_says_what_it_means_and_then_what_to_do(name):
    meaning, remedy, *_ = inspect.getdoc(DEFINED[name]).split("\n\n")
    assert meaning.endswith(".")
    assert re.match(r"[A-Z][a-z]+ [\w`]", remedy), remedy  # an imperative, not a section
    assert remedy.endswith(".")


def test_the_page_of_errors_is_what_its_script_writes():
    page = ROOT / "docs" / "errors.md"
    written = runpy.run_path(str(ROOT / "docs" / "write_errors.py"))["page"]()
    assert page.read_text(encoding="utf-8") == written
    assert re.findall(r"^## (\w+)$", written, re.MULTILINE) == [name for name in vars(errors) if name in errors.__all__]


def test_the_faults_of_a_config_are_its_lines():
    error = InvalidConfig(["N=4 is odd", "W=5 is too"])
    assert error.faults == ("N=4 is odd", "W=5 is too")
    assert str(error) == "N=4 is odd\nW=5 is too"


def test_an_unknown_name_lists_the_valid_ones_and_the_near_miss():
    assert str(UnknownName.of("task", "cifar1", ["cifar10", "digits"])) == (
        "task='cifar1' does not exist (did you mean 'cifar10'?); task is one of: cifar10, digits"
    )
    assert str(UnknownName.of("task", None, iter(["digits"]))) == "task=None does not exist; task is one of: digits"


def test_many_faults_are_counted_after_the_first_ones():
    faults = [f"fault {i}" for i in range(22)]
    with pytest.raises(InvalidArgument) as caught:
        refuse(*faults)
    assert str(caught.value).splitlines() == [*faults[:20], "... and 2 more"]
