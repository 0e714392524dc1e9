"""What the gradients of products are built of, for that decides what they cost."""

import onnx
import pytest

import lucid_onnx as lo


def built(text, wrt):
    """Operators of the gradient, with the equations of an Einsum."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> case {text}')
    nodes = list(lo.gradient(model, wrt).graph.node)[len(model.graph.node) :]
    return [node.attribute[0].s.decode() if node.op_type == "Einsum" else node.op_type for node in nodes]


@pytest.mark.parametrize(
    ("shapes", "wrt", "operators"),
    [
        # One product of all rows, where one for each member of the batch would have to be summed.
        (["B,S,K", "K,M", "B,S,M"], "b", ["Flatten", "Flatten", "Gemm"]),
        (["B,S,K", "K,M", "B,S,M"], "a", ["Transpose", "MatMul"]),
        (["M,K", "B,K,N", "B,M,N"], "a", ["Transpose", "Transpose", "Flatten", "Flatten", "Gemm"]),
        # Nothing is summed where the batches are known to be the same.
        (["B,H,S,K", "B,H,K,T", "B,H,S,T"], "a", ["Transpose", "MatMul"]),
        (["B,H,S,K", "B,H,K,T", "B,H,S,T"], "b", ["Transpose", "MatMul"]),
    ],
)
def test_matmul(shapes, wrt, operators):
    a, b, y = (f"float[{shape}]" for shape in shapes)
    assert built(f"({a} a, {b} b) => ({y} y) {{ y = MatMul(a, b) }}", wrt) == operators


@pytest.mark.parametrize(
    ("wrt", "operators"), [("a", ["il,kl,jk->ij"]), ("b", ["il,ij,kl->jk"]), ("c", ["il,ij,jk->kl"])]
)
def test_einsum_multiplies_what_shares_an_index(wrt, operators):
    text = (
        '(float[I,J] a, float[J,K] b, float[K,L] c) => (float[I,L] y) { y = Einsum<equation="ij,jk,kl->il">(a, b, c) }'
    )
    assert built(text, wrt) == operators
