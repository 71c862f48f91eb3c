"""Fitted models as files for other software."""

from .columns import ExportError
from .comparison import compare_onnx, run_onnx
from .onnx_file import ExportedModel, export_onnx

__all__ = ["ExportError", "ExportedModel", "compare_onnx", "export_onnx", "run_onnx"]
