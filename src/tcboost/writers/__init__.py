"""Fitted models as code, each from the form alone, with nothing of the fit."""

from .c import to_c
from .javascript import to_javascript
from .onnx import to_onnx
from .python import to_python
from .sql import to_sql

__all__ = ["to_c", "to_javascript", "to_onnx", "to_python", "to_sql"]
