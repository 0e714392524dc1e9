"""Products of matrices and of tensors."""

import torch
from gradient.checking import Case


def matmul(label, a, b, y, **more):
    """A row of MatMul, by the shapes."""
    a, b = (f"T[{','.join(map(str, shape))}]" for shape in (a, b))
    y = f"T[{','.join(map(str, y))}]" if y else "T"
    return Case(f"matmul_{label}", f"({a} a, {b} b) => ({y} y) {{ y = MatMul(a, b) }}", torch.matmul, **more)


def gemm(label, a, b, c="", attributes="", twin=None, y="3,4", **more):
    """A row of Gemm, by the shapes, that of C being None for a scalar and empty where there is no C."""
    declared = {None: ", T c", "": ""}.get(c, f", T[{c}] c")
    node = f"y = Gemm{attributes}(a, b{', c' if declared else ''})"
    return Case(f"gemm_{label}", f"(T[{a}] a, T[{b}] b{declared}) => (T[{y}] y) {{ {node} }}", twin, **more)


def einsum(label, equation, *shapes, **more):
    """A row of Einsum, by the shapes."""
    inputs = ", ".join(
        f"T[{','.join(map(str, s))}] {n}" if s else f"T {n}" for s, n in zip(shapes, "abcd", strict=False)
    )
    names = ", ".join("abcd"[: len(shapes)])

    def call(*tensors):
        return torch.einsum(equation, *tensors)

    result = call(*(torch.ones(shape) for shape in shapes)).shape
    y = f"T[{','.join(map(str, result))}]" if result else "T"
    text = f'({inputs}) => ({y} y) {{ y = Einsum<equation="{equation}">({names}) }}'
    return Case(f"einsum_{label}", text, call, **more)


CASES = [
    matmul("matrices", [2, 3], [3, 4], [2, 4], half=True),
    matmul("oldest", [2, 3], [3, 4], [2, 4], opset=16),
    matmul("left_vector", [3], [3, 4], [4]),
    matmul("right_vector", [2, 3], [3], [2]),
    matmul("vectors", [3], [3], []),
    matmul("left_vector_batch", [3], [5, 2, 3, 4], [5, 2, 4]),
    matmul("right_vector_batch", [5, 1, 2, 3], [3], [5, 1, 2]),
    matmul("right_matrix", [5, 2, 3], [3, 4], [5, 2, 4], half=True),
    matmul("left_matrix", [2, 3], [6, 5, 3, 4], [6, 5, 2, 4]),
    matmul("batch", [5, 2, 3], [5, 3, 4], [5, 2, 4]),
    matmul("batch_both", [5, 1, 2, 3], [4, 3, 4], [5, 4, 2, 4]),
    matmul("batch_one", [1, 2, 3], [5, 3, 1], [5, 2, 1]),
    matmul("batch_more", [3, 2, 3], [2, 3, 3, 4], [2, 3, 2, 4]),
    matmul("empty_inner", [2, 0], [0, 4], [2, 4]),
    matmul("empty_rows", [5, 0, 3], [3, 4], [5, 0, 4]),
    matmul("empty_columns", [2, 3], [5, 3, 0], [5, 2, 0]),
    matmul("empty_batch", [0, 2, 3], [3, 4], [0, 2, 4]),
    matmul("empty_batch_broadcast", [0, 2, 3], [1, 3, 4], [0, 2, 4]),
    Case("matmul_square", "(T[3,3] a) => (T[3,3] y) { y = MatMul(a, a) }", lambda a: a @ a),
    gemm("no_c", "3,2", "2,4", twin=torch.matmul),
    gemm("matrix", "3,2", "2,4", "3,4", twin=lambda a, b, c: a @ b + c, half=True),
    gemm("oldest", "3,2", "2,4", "4", twin=lambda a, b, c: a @ b + c, opset=16),
    gemm("row", "3,2", "2,4", "1,4", twin=lambda a, b, c: a @ b + c),
    gemm("column", "3,2", "2,4", "3,1", twin=lambda a, b, c: a @ b + c),
    gemm("scalar", "3,2", "2,4", None, "<beta=2.5>", twin=lambda a, b, c: a @ b + 2.5 * c),
    gemm("one", "3,2", "2,4", "1", "<beta=-1.0>", twin=lambda a, b, c: a @ b - c),
    gemm("alpha", "3,2", "2,4", "4", "<alpha=0.5, beta=2.0>", twin=lambda a, b, c: 0.5 * a @ b + 2 * c),
    gemm("no_alpha", "3,2", "2,4", "4", "<alpha=0.0, beta=0.0>", twin=lambda a, b, c: 0 * (a @ b + c)),
    gemm("turned_a", "2,3", "2,4", "4", "<alpha=2.0, transA=1>", twin=lambda a, b, c: 2 * a.T @ b + c),
    gemm("turned_b", "3,2", "4,2", "4", "<alpha=2.0, transB=1>", twin=lambda a, b, c: 2 * a @ b.T + c),
    gemm("turned_both", "2,3", "4,2", "4", "<alpha=2.0, transA=1, transB=1>", twin=lambda a, b, c: 2 * a.T @ b.T + c),
    gemm("empty_inner", "3,0", "0,4", "4", twin=lambda a, b, c: a @ b + c),
    gemm("empty_rows", "0,2", "4,2", "4", "<transB=1>", twin=lambda a, b, c: a @ b.T + c, y="0,4"),
    einsum("product", "ij,jk->ik", [2, 3], [3, 4], half=True),
    einsum("oldest", "ij,jk->ik", [2, 3], [3, 4], opset=16),
    einsum("implicit", "ij,jk", [2, 3], [3, 4]),
    einsum("implicit_sorted", "ba", [2, 3]),
    einsum("spaces", " b i , b j -> b j i ", [2, 3], [2, 4]),
    einsum("capitals", "aB,Bc->ca", [2, 3], [3, 4]),
    einsum("turned", "ijk->kij", [2, 3, 4]),
    einsum("same", "ij->ij", [2, 3]),
    einsum("sum", "ij->", [2, 3]),
    einsum("sum_of_one_axis", "ij->j", [2, 3]),
    einsum("scalars", ",->", [], []),
    einsum("scalar_and_matrix", ",ij->ij", [], [2, 3]),
    einsum("outer", "i,j", [2], [3]),
    einsum("inner", "i,i", [3], [3]),
    einsum("index_in_one", "ij,ik->k", [2, 3], [2, 4]),
    einsum("index_in_neither", "ij,k->k", [2, 3], [4]),
    einsum("diagonal", "ii->i", [3, 3]),
    einsum("trace", "ii", [3, 3]),
    einsum("trace_of_batch", "bii->b", [2, 3, 3]),
    einsum("diagonal_apart", "iji,j->ij", [3, 2, 3], [2]),
    einsum("diagonal_of_three", "iii->i", [3, 3, 3]),
    einsum("diagonals", "ijij->ji", [2, 3, 2, 3]),
    einsum("diagonal_and_sum", "iij->", [2, 2, 3]),
    einsum("diagonals_of_both", "ii,ii->i", [3, 3], [3, 3]),
    einsum("three", "ij,jk,kl->il", [2, 3], [3, 4], [4, 2]),
    einsum("four", "i,ij,jk,k->", [2], [2, 3], [3, 2], [2]),
    einsum("attention", "bhqd,bhkd->bhqk", [2, 2, 3, 4], [2, 2, 5, 4]),
    einsum("ellipsis", "...ij,...jk->...ik", [2, 3, 4], [2, 4, 2]),
    einsum("ellipsis_implicit", "...ij,...jk", [2, 3, 4], [2, 4, 2]),
    einsum("ellipsis_of_two", "i...j->...i", [2, 3, 4, 2]),
    einsum("ellipsis_of_none", "...ij,...jk->...ik", [2, 3], [3, 4]),
    einsum("ellipsis_in_one", "...ij,jk->...ik", [2, 5, 3, 4], [4, 2]),
    einsum("ellipsis_repeated", "b...i,...i->b...", [2, 1, 3], [4, 3]),
    einsum("ellipsis_diagonal", "...ii->...i", [2, 3, 3]),
    einsum("ellipsis_of_ones", "...i,...i->...i", [2, 1, 3], [1, 4, 3]),
    einsum("one", "ij,jk->ik", [2, 1], [3, 4]),
    einsum("one_summed", "ij,kj->i", [2, 3], [4, 1]),
    einsum("one_in_all", "ij,j->i", [2, 1], [1]),
    # Not twice: onnxruntime's Einsum divides by zero where it has to transpose an empty right factor.
    einsum("empty", "ij,jk->ik", [2, 0], [0, 4], second=False),
    einsum("empty_result", "ij,jk->ik", [0, 3], [3, 4]),
    einsum("empty_sum", "i->", [0]),
    Case("einsum_itself", '(T[3,3] a) => (T[3,3] y) { y = Einsum<equation="ij,jk->ik">(a, a) }', lambda a: a @ a),
]
