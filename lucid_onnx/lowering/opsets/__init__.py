"""A model brought to another version of ONNX's default domain, node by node.

ONNX's own converter takes a model as a whole: names, doc strings and metadata are lost, weights are copied, and one
operator without an adapter stops everything. Here only the nodes that have to change are touched. A node follows in
the first of these ways that is right for it:

1. its operator is defined by the same schema at both versions: there is nothing to do;
2. what the node uses of the operator means the same at both: it stays, less attributes that only say the default
   (``changes``);
3. ONNX's converter converts the node alone, and the result is valid (``converter``);
4. the operator is an ONNX function: its body, brought to the version by these same rules, takes its place (``plans``).

Otherwise it is an `Obstacle`. ONNX's body of LayerNormalization and GroupNormalization computes the variance as
E[x^2] - E[x]^2, which is less exact than a kernel where the mean is large against the deviation.
"""

from lucid_onnx.lowering.opsets.convert import convert_opset, first_obstacle
from lucid_onnx.lowering.opsets.obstacles import Obstacle

__all__ = ["Obstacle", "convert_opset", "first_obstacle"]
