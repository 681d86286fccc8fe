"""The names of the package: how many, and loaded when they are asked for."""

import subprocess
import sys

import pytest

import tcboost


def test_public_names():
    assert len(tcboost.__all__) < 40
    assert all(hasattr(tcboost, name) for name in tcboost.__all__)
    assert {*tcboost.__all__} <= {*dir(tcboost)}
    with pytest.raises(AttributeError, match="'tcboost' has no attribute 'AdaBoostMQ'"):
        _ = tcboost.AdaBoostMQ


LATER = """
import sys, types, tcboost

asked = sys.argv[1:] or tcboost.__all__
loaded = {name for name in sys.modules if name.startswith("tcboost.")}
assert "tcboost.named" not in loaded and "tcboost.path" not in loaded
assert {*tcboost.__all__} <= {*dir(tcboost)}
for name in asked:
    found = getattr(tcboost, name)
    assert callable(found) and not isinstance(found, types.ModuleType), name
    assert found is getattr(tcboost, name) and found.__name__ == name
from tcboost import *
assert all(globals()[name] is getattr(tcboost, name) for name in tcboost.__all__)
"""


@pytest.mark.parametrize("first", [[], ["theta_path", "thin"], ["thin"], ["MultiBoostSAMME"]])
def test_names_are_loaded_when_they_are_asked_for(first):
    """Whatever came first, a name is what it says, and not a module."""
    subprocess.run([sys.executable, "-c", LATER, *first], check=True, timeout=120)
