"""The tolerance rule: what passes, what does not, and what no float32 decides."""

import cells
import numpy as np
import pytest
from judging import Case

import lucid_onnx as lo
from lucid_onnx.conformance.tolerance import as_computed, image_range, judge, undecided


def thirds(dtype):
    return (np.arange(4, dtype=dtype) + 1) / dtype.type(3)


def test_the_references_own_float32_passes():
    assert judge(thirds(np.dtype(np.float32)), thirds, "float32").ok


def test_an_error_beyond_four_times_its_own_does_not():
    wrong = thirds(np.dtype(np.float32)).copy()
    wrong[0] += 1e-5
    verdict = judge(wrong, thirds, "float32")
    assert not verdict.ok
    assert verdict.max_error == pytest.approx(1e-5, rel=0.1)
    assert verdict.max_allowed < 1e-5


def test_the_range_of_an_image_widens_the_bound():
    wrong = thirds(np.dtype(np.float32)) + np.float32(1e-5)
    assert judge(wrong, thirds, "float32", value_range=100.0).ok


@pytest.mark.parametrize(("truth", "got"), [(np.nan, 0.0), (0.0, np.nan), (np.inf, -np.inf), (np.inf, 1.0)])
def test_what_is_not_finite_must_match(truth, got):
    verdict = judge(np.float32([got]), lambda dtype: np.array([truth], dtype), "float32")
    assert verdict.mismatches == 1
    assert not verdict.ok


def test_float64_is_held_to_a_bound_of_float64():
    assert judge(thirds(np.dtype(np.float64)) + 1e-15, thirds, "float64").ok
    assert not judge(thirds(np.dtype(np.float64)) + 1e-12, thirds, "float64").ok


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_held_to_its_own_rounding(dtype):
    import ml_dtypes

    working = np.dtype(np.float16) if dtype == "float16" else np.dtype(ml_dtypes.bfloat16)
    assert judge(thirds(np.dtype(np.float32)).astype(working), thirds, dtype).ok
    assert not judge(thirds(np.dtype(np.float32)) * 1.1, thirds, dtype).ok


def test_chosen_values_may_not_differ_at_all():
    labels = np.float32([1, 2, 3e7])

    def compute(dtype):
        return labels.astype(dtype)

    assert judge(labels, compute, "float32", exact=True).ok
    assert judge(labels + np.float32(1), compute, "float32").ok
    assert judge(labels + np.float32(1), compute, "float32", exact=True).mismatches == 2


def test_values_set_aside_are_counted_and_not_compared():
    wrong = thirds(np.dtype(np.float32)) + np.float32([1, 0, 0, 0])
    verdict = judge(wrong, thirds, "float32", undecided=np.array([True, False, False, False]))
    assert verdict.ok
    assert (verdict.set_aside, verdict.compared) == (1, 3)


def test_values_set_aside_must_still_be_values_of_the_image():
    aside = np.array([True, False, False, False])
    for wrong in (np.nan, np.inf, 1e30, -0.5):
        got = thirds(np.dtype(np.float32))
        got[0] = wrong
        assert judge(got, thirds, "float32", undecided=aside, limits=(0.0, 1.4)).mismatches == 1
    got[0] = 1.2
    assert judge(got, thirds, "float32", undecided=aside, limits=(0.0, 1.4)).ok


def test_a_gradient_is_held_to_the_size_of_its_terms():
    x = np.full((1, 1, 4, 4), 100, np.float32)
    grid = np.float32([[[[-0.8270807266235352, 0.41761115193367004]]]])
    case = Case(x, grid, np.ones((1, 1, 1, 1), np.float32), "bicubic", "border", False)
    model = lo.operator_model("GridSampleGrad", mode="bicubic", padding_mode="border")
    _, grad_grid = lo.session(model).run(None, {"dY": case.grad_out, "X": x, "grid": grid})
    assert case.judge_grad_grid(grad_grid).ok
    assert not case.judge_grad_grid(grad_grid + 0.01).ok


def test_a_result_of_another_shape_is_no_result():
    with pytest.raises(ValueError, match=r"shape \(3,\), the reference \(4,\)"):
        judge(np.ones(3), thirds, "float32")


def test_a_tie_that_float32_computes_exactly_is_decided():
    exact = np.float32([[[[0.0, 0.0]]]])  # pixel 1.5 of 4
    assert not undecided(exact, (4, 4), "nearest", "zeros", False, "float32").any()


def test_a_coordinate_beside_a_tie_is_not():
    beside = np.float32([[[[1 / 3, 0.25]]]])  # pixel 1.5 of 3, but for rounding
    assert undecided(beside, (4, 3), "nearest", "zeros", False, "float32").all()
    assert not undecided(beside, (4, 3), "bilinear", "zeros", False, "float32").any()


def test_kinks_matter_to_derivatives_only():
    beside = np.float32([[[[2 / 3, 0.25]]]])  # pixel 2 of 3, but for rounding
    assert undecided(beside, (4, 3), "bilinear", "zeros", False, "float32", derivative=True).all()
    assert not undecided(beside, (4, 3), "bicubic", "zeros", False, "float32", derivative=True).any()


@pytest.mark.parametrize("cell", cells.CELLS, ids=cells.cell_id)
def test_few_points_are_undecided(cell):
    """An `undecided` that gave up on everything would let everything pass."""
    rank, mode, padding_mode, align_corners = cell
    exact = (1, 1, *[8] * (rank - 2)) if not align_corners else (1, 1, *[9] * (rank - 2))
    for dtype in (np.float32, np.float64):
        for family in ("inside", "outside", "far", "nonfinite"):
            grid = as_computed(cells.grid(family, exact, align_corners, dtype), exact[2:], align_corners, dtype)
            # Beyond 2**23 pixels, which 3e38 is in float64, a reflection is not resolved.
            near = np.abs(np.nan_to_num(grid, posinf=0, neginf=0)).max(axis=-1) < 1e6
            assert undecided(grid, exact[2:], mode, padding_mode, align_corners, dtype)[near].mean() <= 0.1
        for family in ("centres", "ties", "borders"):
            # Here every coordinate is computed without rounding, so all of them are decided.
            grid = cells.grid(family, exact, align_corners, dtype)
            for derivative in (False, True):
                assert not undecided(grid, exact[2:], mode, padding_mode, align_corners, grid.dtype, derivative).any()


def test_far_reflections_are_undecided():
    far = np.float32([[[[1e10, 0.3]]]])
    assert undecided(far, (4, 4), "bilinear", "reflection", False, "float32").all()
    assert not undecided(far, (4, 4), "bilinear", "border", False, "float32").any()
    assert not undecided(far.astype(np.float64), (4, 4), "bilinear", "reflection", False, "float64").any()


def test_overflowing_coordinates_are_seen_as_the_infinities_they_become():
    grid = np.array([[3e38, -3e38, 0.5]], np.float32)
    assert as_computed(grid, (3, 3, 3), False, "float32").tolist() == [[np.inf, -np.inf, 0.5]]
    assert np.isfinite(as_computed(grid.astype(np.float64), (3, 3, 3), False, "float64")).all()


def test_the_range_of_an_image_includes_the_zero_of_padding():
    assert image_range(np.array([2.0, 5.0, np.inf, np.nan])) == 5.0
    assert image_range(np.array([-1.0, 5.0])) == 6.0
    assert image_range(np.empty((0, 1))) == 0.0
