"""Ways in: a model of the zoo, or an `onnxscript.nn` module, to an ONNX file."""

from lucid_onnx.exporters.export import export

__all__ = ["export"]
