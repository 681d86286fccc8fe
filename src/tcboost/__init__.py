"""tcboost: totally corrective multiclass boosting with a proof of optimality on every fit."""

from typing import TYPE_CHECKING

from .classifier import TCBoostClassifier
from .correctors import solve_master
from .verify import verify  # now, since an import of the module would take the name later

if TYPE_CHECKING:
    from .model_file import ModelFileError, load, save
    from .named import AdaBoostECC, AdaBoostMO, MultiBoostECC, MultiBoostHinge, MultiBoostMO
    from .path import plot_theta_path, theta_path
    from .relatives import AdaBoostSAMME, MultiBoostSAMME
    from .thinning import thin
    from .writers import to_c, to_javascript, to_onnx, to_python, to_sql

    __version__: str

__all__ = [
    "AdaBoostECC",
    "AdaBoostMO",
    "AdaBoostSAMME",
    "ModelFileError",
    "MultiBoostECC",
    "MultiBoostHinge",
    "MultiBoostMO",
    "MultiBoostSAMME",
    "TCBoostClassifier",
    "load",
    "plot_theta_path",
    "save",
    "solve_master",
    "theta_path",
    "thin",
    "to_c",
    "to_javascript",
    "to_onnx",
    "to_python",
    "to_sql",
    "verify",
]

# Where the other names are. They are loaded when one is first asked for: the import of tcboost
# takes a fifth less.
_LATER = {
    ".model_file": ("ModelFileError", "load", "save"),
    ".named": (
        "AdaBoostECC",
        "AdaBoostMO",
        "MultiBoostECC",
        "MultiBoostHinge",
        "MultiBoostMO",
    ),
    ".path": ("plot_theta_path", "theta_path"),
    ".relatives": ("AdaBoostSAMME", "MultiBoostSAMME"),
    ".thinning": ("thin",),
    ".writers": ("to_c", "to_javascript", "to_onnx", "to_python", "to_sql"),
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name == "__version__":  # as installed: to look it up takes 2 ms
            from importlib.metadata import version

            return version("tcboost")
        for module, names in _LATER.items():
            if name in names:
                from importlib import import_module

                found = import_module(module, __name__)
                globals().update({each: getattr(found, each) for each in names})
                return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
