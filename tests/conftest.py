"""Fixtures: data and frozen problems from folders, where they are at hand."""

import os
from pathlib import Path

import numpy as np
import pytest


def _folder(variable: str) -> Path:
    folder = os.environ.get(variable)
    if not folder or not Path(folder).is_dir():
        pytest.skip(f"set {variable} to the folder that this test reads")
    return Path(folder)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Original files of the paper's data sets."""
    return _folder("TCBOOST_DATA")


@pytest.fixture(scope="session")
def masters_dir() -> Path:
    """Frozen restricted masters with their optimal values."""
    return _folder("TCBOOST_MASTERS")


@pytest.fixture
def frozen(request, masters_dir):
    """rho, theta, optimum and its gap."""
    with np.load(masters_dir / f"{request.param}.npz") as data:
        return data["rho"], float(data["theta"]), float(data["log_loss"]), float(data["gap"])
