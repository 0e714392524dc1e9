"""Dtypes, autocast, nodes and errors of the reference."""

import ml_dtypes
import numpy as np
import pytest

from lucid_onnx.reference import (
    AffineGridBackward,
    AmpPolicy,
    ArgumentError,
    DtypeError,
    GridSampleBackward,
    OpSchema,
    affine_grid,
    affine_grid_backward,
    autocast,
    grid_sample,
    grid_sample_backward,
)

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALVES = [np.dtype(np.float16), BFLOAT16]
FLOATS = [*HALVES, np.dtype(np.float32), np.dtype(np.float64)]

X = np.arange(12.0).reshape(1, 1, 3, 4) / 7
GRID = np.linspace(-1.2, 1.1, 12).reshape(1, 2, 3, 2)
THETA = np.array([[[0.7, 0.2, 0.1], [-0.3, 0.9, 0.0]]])


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_half_precision_computes_in_float32_and_rounds_once(mode, dtype):
    x, grid = X.astype(dtype), GRID.astype(dtype)
    wide = grid_sample(x.astype(np.float32), grid.astype(np.float32), mode)
    np.testing.assert_array_equal(grid_sample(x, grid, mode), wide.astype(dtype))
    grad_out = np.ones(wide.shape, dtype)
    got = grid_sample_backward(grad_out, x, grid, mode)
    expected = grid_sample_backward(*(a.astype(np.float32) for a in (grad_out, x, grid)), mode)
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs.astype(dtype))
    theta = THETA.astype(dtype)
    grid = affine_grid(theta, (1, 1, 3, 4))
    np.testing.assert_array_equal(grid, affine_grid(theta.astype(np.float32), (1, 1, 3, 4)).astype(dtype))
    grad_theta = affine_grid_backward(grid, (1, 1, 3, 4))
    np.testing.assert_array_equal(grad_theta, affine_grid_backward(grid.astype(np.float32), (1, 1, 3, 4)).astype(dtype))


@pytest.mark.parametrize("x_dtype", FLOATS)
@pytest.mark.parametrize("grid_dtype", FLOATS)
def test_image_and_grid_may_differ_in_dtype(x_dtype, grid_dtype):
    x, grid = X.astype(x_dtype), GRID.astype(grid_dtype)
    wide = np.float64 if np.float64 in (x_dtype, grid_dtype) else np.float32
    y = grid_sample(x, grid)
    assert y.dtype == x_dtype
    np.testing.assert_array_equal(y, grid_sample(x.astype(wide), grid.astype(wide)).astype(x_dtype))
    grad_x, grad_grid = grid_sample_backward(np.ones_like(y), x, grid)
    assert (grad_x.dtype, grad_grid.dtype) == (x_dtype, grid_dtype)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64", "uint16", "bool"])
def test_integer_images_are_promoted_to_float32(dtype):
    x = (X * 7).astype(dtype)
    y = grid_sample(x, GRID.astype(np.float32))
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, grid_sample(x.astype(np.float32), GRID.astype(np.float32)))
    assert grid_sample_backward(y, x, GRID)[0].dtype == np.float32


@pytest.mark.parametrize("layout", ["fortran", "strided", "reversed", "broadcast"])
def test_any_memory_layout_gives_the_same(layout):
    x, grid = np.tile(X, (2, 3, 1, 1)), np.tile(GRID, (2, 1, 1, 1))
    grad_out = np.arange(36.0).reshape(2, 3, 2, 3)

    def laid_out(array):
        if layout == "fortran":
            return np.asfortranarray(array)
        if layout == "strided":
            return np.repeat(array, 2, axis=-1)[..., ::2]
        if layout == "reversed":
            return array[..., ::-1].copy()[..., ::-1]
        return np.broadcast_to(array[:1], array.shape)

    expected_x, expected_grid = (np.ascontiguousarray(laid_out(a)) for a in (x, grid))
    got = laid_out(x), laid_out(grid)
    np.testing.assert_array_equal(grid_sample(*got), grid_sample(expected_x, expected_grid))
    for ours, theirs in zip(
        grid_sample_backward(grad_out, *got), grid_sample_backward(grad_out, expected_x, expected_grid), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("x", "grid"),
    [
        ((0, 3, 4, 5), (0, 2, 2, 2)),
        ((0, 3, 0, 5), (0, 2, 2, 2)),
        ((2, 0, 4, 5), (2, 2, 3, 2)),
        ((2, 0, 0, 0), (2, 2, 3, 2)),
        ((2, 3, 4, 5), (2, 0, 3, 2)),
        ((2, 3, 0, 5), (2, 3, 0, 2)),
        ((2, 3, 4, 5, 6), (2, 2, 0, 3, 3)),
        ((0, 3, 4, 5, 6), (0, 2, 2, 3, 3)),
    ],
)
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
def test_nothing_to_sample_gives_an_empty_result(x, grid, mode, padding_mode):
    y = grid_sample(np.ones(x), np.ones(grid), mode, padding_mode)
    assert y.shape == (*x[:2], *grid[1:-1])
    grad_x, grad_grid = grid_sample_backward(y, np.ones(x), np.ones(grid), mode, padding_mode)
    assert grad_x.shape == x
    assert grad_grid.shape == grid
    assert not grad_x.any()
    assert not grad_grid.any()


@pytest.mark.parametrize("size", [(0, 1, 2, 3), (1, 1, 0, 3), (2, 0, 2, 0), (1, 1, 2, 0, 3), (0, 1, 0, 0, 0)])
def test_empty_affine_grids(size):
    d = len(size) - 2
    grid = affine_grid(np.ones((size[0], d, d + 1)), size)
    assert grid.shape == (size[0], *size[2:], d)
    np.testing.assert_array_equal(affine_grid_backward(grid, size), np.zeros((size[0], d, d + 1)))


@pytest.mark.parametrize("dtype", [">f2", ">f4", ">f8"])
def test_foreign_byte_order_computes_the_same(dtype):
    x, grid = X.astype(dtype), GRID.astype(dtype)
    native = np.dtype(dtype).newbyteorder("=")
    y = grid_sample(x, grid)
    assert y.dtype == native
    np.testing.assert_array_equal(y, grid_sample(X.astype(native), GRID.astype(native)))
    theta = affine_grid(THETA.astype(dtype), (1, 1, 3, 4))
    np.testing.assert_array_equal(theta, affine_grid(THETA.astype(native), (1, 1, 3, 4)))


def test_align_corners_none_means_false():
    np.testing.assert_array_equal(grid_sample(X, GRID, align_corners=None), grid_sample(X, GRID, align_corners=False))
    size = (1, 1, 3, 4)
    np.testing.assert_array_equal(affine_grid(THETA, size, None), affine_grid(THETA, size, False))


class TestAutocast:
    @pytest.mark.parametrize("dtype", ["bfloat16", BFLOAT16, "float32", "float64", np.float64])
    def test_inputs_are_cast_to_its_dtype(self, dtype):
        cast = BFLOAT16 if dtype == "bfloat16" else np.dtype(dtype)
        with autocast(dtype):
            y = grid_sample(X.astype(np.float32), GRID)
            grid = affine_grid(THETA, (1, 1, 3, 4))
        assert (y.dtype, grid.dtype) == (cast, cast)
        np.testing.assert_array_equal(y, grid_sample(X.astype(np.float32).astype(cast), GRID.astype(cast)))
        np.testing.assert_array_equal(grid, affine_grid(THETA.astype(cast), (1, 1, 3, 4)))

    def test_float16_computes_in_float32_on_the_cpu(self):
        with autocast("float16"):
            y = grid_sample(X, GRID)
        assert y.dtype == np.float32
        np.testing.assert_array_equal(y, grid_sample(X.astype(np.float32), GRID.astype(np.float32)))

    def test_ends_with_its_block_and_nests(self):
        with autocast("float64"):
            with autocast("bfloat16"):
                pass
            assert affine_grid(THETA.astype(np.float32), (1, 1, 2, 2)).dtype == np.float64
        assert affine_grid(THETA.astype(np.float32), (1, 1, 2, 2)).dtype == np.float32

    @pytest.mark.parametrize(
        ("policy", "expected"),
        [(AmpPolicy.Promote, BFLOAT16), (AmpPolicy.KeepInput, "float64"), (AmpPolicy.ForceFP32, "float32")],
    )
    def test_policies(self, policy, expected):
        schema = OpSchema("an_operator", 1, policy)
        with autocast("bfloat16"):
            assert schema.input_dtype("float64", "x") == expected

    def test_an_unknown_dtype_is_refused(self):
        with pytest.raises(DtypeError, match=r"autocast: dtype must be one of float16.*got int8"), autocast("int8"):
            pass


class TestNodes:
    def test_affine_grid(self):
        grid, node = AffineGridBackward.forward(THETA, 1, 3, 4, True)
        np.testing.assert_array_equal(grid, affine_grid(THETA, (1, 5, 3, 4), True))
        np.testing.assert_array_equal(node.apply(grid), affine_grid_backward(grid, (1, 1, 3, 4), True))
        assert (node.N_, node.D_, node.H_, node.W_, node.align_corners_) == (1, None, 3, 4, True)
        assert node.orig_theta_shape_ == (1, 2, 3)
        schema = AffineGridBackward.schema_v1
        assert (schema.name, schema.version, schema.amp_policy) == ("affine_grid", 1, AmpPolicy.Promote)

    def test_affine_grid_of_volumes(self):
        theta = np.ones((2, 3, 4))
        grid, node = AffineGridBackward.forward(theta, 2, 3, 4, None, D=5)
        assert grid.shape == (2, 5, 3, 4, 3)
        assert (node.D_, node.align_corners_) == (5, False)
        assert node.apply(grid).shape == node.orig_theta_shape_ == (2, 3, 4)

    def test_grid_sample(self):
        y, node = GridSampleBackward.forward(X, GRID, "bicubic", "border", True)
        np.testing.assert_array_equal(y, grid_sample(X, GRID, "bicubic", "border", True))
        expected = grid_sample_backward(y, X, GRID, "bicubic", "border", True)
        for ours, theirs in zip(node.apply(y), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        schema = GridSampleBackward.schema_v1
        assert (schema.name, schema.version, schema.amp_policy) == ("grid_sample", 1, AmpPolicy.Promote)
        assert schema.real_valued
        assert not AffineGridBackward.schema_v1.real_valued

    def test_gradients_have_the_dtypes_of_the_inputs_under_autocast(self):
        with autocast("bfloat16"):
            y, node = GridSampleBackward.forward(X, GRID)
            grad_x, grad_grid = node.apply(y)
            grid, affine = AffineGridBackward.forward(THETA, 1, 3, 4)
            grad_theta = affine.apply(grid)
        assert y.dtype == grid.dtype == BFLOAT16
        assert grad_x.dtype == grad_grid.dtype == grad_theta.dtype == np.float64


ONES = np.ones((1, 1, 2, 2))
POINT = np.zeros((1, 1, 1, 2))
WRONG = [
    (lambda: grid_sample(ONES, POINT, "linear"), "mode must be one of 'bilinear', 'nearest', 'bicubic'; got 'linear'"),
    (lambda: grid_sample(ONES, POINT, padding_mode="wrap"), "padding_mode must be one of 'zeros'.*got 'wrap'"),
    (lambda: grid_sample(ONES[0], POINT), r"x must be \(N,C,H,W\) or \(N,C,D,H,W\); got shape \(1, 2, 2\)"),
    (lambda: grid_sample(ONES, POINT[0]), r"grid must be \(N,Ho,Wo,2\) .* got shape \(1, 1, 2\)"),
    (lambda: grid_sample(ONES, np.zeros((1, 1, 1, 3))), r"grid must be \(N,Ho,Wo,2\)"),
    (lambda: grid_sample(ONES, np.zeros((2, 1, 1, 2))), "same batch size; got 1 in x and 2 in grid"),
    (lambda: grid_sample(np.ones((1, 1, 0, 2)), POINT), "at least one pixel along H"),
    (lambda: grid_sample(np.ones((1, 1, 2, 2, 0)), np.zeros((1, 1, 1, 1, 3))), "at least one pixel along W"),
    (lambda: grid_sample(np.ones((1, 1, 2, 2, 2)), np.zeros((1, 1, 1, 1, 3)), "bicubic"), "for a 5-D x; got 'bicubic'"),
    (
        lambda: grid_sample_backward(np.ones((1, 1, 2, 1)), ONES, POINT),
        r"grad_out must .*\(1, 1, 1, 1\); got",
    ),
    (lambda: grid_sample_backward(ONES, ONES, POINT, "cubic"), "grid_sample_backward: mode must be one of"),
    (lambda: affine_grid(THETA, (1, 1, 2)), r"size must be \(N,C,H,W\) or \(N,C,D,H,W\).*got \(1, 1, 2\)"),
    (lambda: affine_grid(THETA, (1, 1, 2, -1)), "integers from 0 up"),
    (lambda: affine_grid(THETA, (2, 1, 2, 2)), r"theta must be \(2, 2, 3\) .*got shape \(1, 2, 3\)"),
    (lambda: affine_grid(THETA, (1, 1, 2, 2, 2)), r"theta must be \(1, 3, 4\)"),
    (lambda: affine_grid_backward(np.ones((1, 2, 2, 3)), (1, 1, 2, 2)), r"grad_grid must .*\(1, 2, 2, 2\); got"),
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_values_are_value_errors_that_say_what_was_expected(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert isinstance(caught.value, ArgumentError)


WRONG_DTYPES = [
    (lambda: grid_sample(ONES * 1j, POINT), "grid_sample: x must be one of float16.*got complex128"),
    (lambda: grid_sample(ONES, POINT * 1j), "grid_sample: grid must be one of"),
    (lambda: grid_sample(ONES.astype(str), POINT), "grid_sample: x must be one of"),
    (
        lambda: grid_sample_backward(ONES[..., :1, :1] * 1j, ONES, POINT),
        "sample_backward: grad_out must be one of",
    ),
    (lambda: affine_grid(THETA.astype(int), (1, 1, 2, 2)), "affine_grid: theta must be one of float16.*got int64"),
    (lambda: affine_grid(THETA, 3), "size must be a sequence of integers; got 3"),
    (lambda: affine_grid(THETA, (1, 1, 2, 2.5)), "size must be a sequence of integers"),
    (lambda: affine_grid(THETA, (1, 1, 2, np.inf)), "size must be a sequence of integers"),
    (lambda: grid_sample(ONES, POINT, align_corners="False"), "align_corners must be True, False or None; got 'False'"),
]


@pytest.mark.parametrize(("call", "message"), WRONG_DTYPES, ids=[message for _, message in WRONG_DTYPES])
def test_wrong_dtypes_are_type_errors(call, message):
    with pytest.raises(TypeError, match=message) as caught:
        call()
    assert isinstance(caught.value, DtypeError)
