"""The rules of ONNX's operators, by family. Importing this package registers them."""

from lucid_onnx.gradient.rules import activations as activations
from lucid_onnx.gradient.rules import arithmetic as arithmetic
from lucid_onnx.gradient.rules import convolution as convolution
from lucid_onnx.gradient.rules import functions as functions
from lucid_onnx.gradient.rules import indexing as indexing
from lucid_onnx.gradient.rules import losses as losses
from lucid_onnx.gradient.rules import normalization as normalization
from lucid_onnx.gradient.rules import norms as norms
from lucid_onnx.gradient.rules import pooling as pooling
from lucid_onnx.gradient.rules import products as products
from lucid_onnx.gradient.rules import reductions as reductions
from lucid_onnx.gradient.rules import resize as resize
from lucid_onnx.gradient.rules import sampling as sampling
from lucid_onnx.gradient.rules import scans as scans
from lucid_onnx.gradient.rules import shaping as shaping
from lucid_onnx.gradient.rules import slicing as slicing
from lucid_onnx.gradient.rules import softmax as softmax
