"""Who may import whom: never upward, never sideways beyond this."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lucid_onnx

PACKAGE = Path(lucid_onnx.__file__).parent
ROOT = PACKAGE.parent
MAY_IMPORT = {
    # module or room: what of lucid_onnx it may import, beside itself
    "_version": (),
    "reference": (),
    "files": ("reference.schema",),
    "external_data": ("reference.schema",),
    "model_files": ("external_data", "files", "reference.schema"),
    "images": ("files", "reference.schema"),
    "operators": ("_version", "reference.schema"),
    "runtime": ("files", "reference.schema"),
    "lowering": ("_version", "files", "model_files", "external_data", "operators", "reference.schema"),
    "models": ("operators", "reference.schema"),
    "exporters": ("files", "models", "operators", "reference.schema"),
    "conformance": ("_version", "files", "operators", "reference", "runtime"),
    "feeding": ("files", "images", "reference.schema", "runtime"),
    "demo": ("conformance", "files", "images", "models", "operators", "reference", "runtime"),
    "bench": (
        *("conformance", "exporters.module", "files", "gradient", "lowering", "models", "operators", "reference"),
        "runtime",
    ),
    "gradient": ("_version", "files", "model_files", "lowering", "operators", "reference.schema"),
    "verification": ("conformance", "files", "gradient", "model_files", "lowering", "reference", "runtime"),
    "options": ("_version", "reference.schema"),
    "__main__": ("cli",),
    "cli": None,  # anything, inside its commands
    "__init__": None,  # anything, when a name is used
}
MODULES = sorted(path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py"))


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_only_commands_import_rooms():
    tree = ast.parse((PACKAGE / "cli.py").read_text())
    at_the_top = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert {name for name in at_the_top if name.startswith("lucid_onnx")} <= {
        "lucid_onnx.options",
        "lucid_onnx.reference.schema",
    }


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_imports_point_downward(module):
    room = module.parts[0]
    allowed = MAY_IMPORT[room]
    if allowed is None:
        return
    allowed = (room, *allowed)
    for name in imports((PACKAGE / module).with_suffix(".py")):
        assert name != "lucid_onnx", f"{module} imports the whole face"
        if name.startswith("lucid_onnx."):
            inside = name.removeprefix("lucid_onnx.")
            assert any(f"{inside}.".startswith(f"{prefix}.") for prefix in allowed), f"{module} imports {name}"


@pytest.mark.parametrize("module", [m for m in MODULES if m.parts[0] == "reference"], ids=str)
def test_the_reference_imports_nothing_of_onnx(module):
    outside = {name.split(".")[0] for name in imports((PACKAGE / module).with_suffix(".py"))}
    assert outside <= {*sys.stdlib_module_names, "numpy", "ml_dtypes", "lucid_onnx"}


TWINS = ("coordinates", "interpolation", "affine_grid", "grid_sample")
ONE_COLUMN = {
    # What only one column has: graphs read an extended image, by the cells of `operators/cells.py`, and need no masks.
    "grid_sample": {"_scatter_add", "grid_sample_nd", "grid_sample_nd_backward", "_to_channels", "_to_images"},
    "affine_grid": {"_sizes"},
    "interpolation": {"taps", "slopes", "corners", "flat_index", "_combinations", "_in_image", "_linear_weights"},
    "coordinates": {"clip", "clip_slope", "reflect", "reflect_slope", "_mirror", "pad", "pad_slope"},
}


@pytest.mark.parametrize("name", TWINS)
def test_the_two_columns_have_the_same_functions_in_the_same_order(name):
    ours, theirs = (
        {
            node.name: [argument.arg for argument in node.args.args]
            for node in ast.parse((PACKAGE / column / f"{name}.py").read_text()).body
            if isinstance(node, ast.FunctionDef) and node.name not in ONE_COLUMN[name]
        }
        for column in ("operators", "reference")
    )
    assert list(ours) == list(theirs)
    for function, arguments in ours.items():
        # The builder comes first; what NumPy reads off an array, a graph is told last.
        shared = [argument for argument in arguments if argument in theirs[function]]
        assert arguments[0] == "op"
        assert shared == [argument for argument in theirs[function] if argument in shared]
        assert set(theirs[function]) <= set(arguments) | {"batch_and_spatial"}


@pytest.mark.parametrize("door", ["reference", "exporters", "models"])
def test_the_doors_at_the_top_level_are_relative_links(door):
    if not (ROOT / "pyproject.toml").exists():
        pytest.skip("installed without its repository")
    assert (ROOT / door).is_symlink()
    assert str((ROOT / door).readlink()) == f"lucid_onnx/{door}"


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("onnx", "onnx_ir", "onnxscript", "onnxruntime", "torch", "matplotlib", "PIL"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocked())
import numpy as np, lucid_onnx as lo
grid = lo.affine_grid(np.ones((1, 2, 3)), (1, 1, 2, 2))
y = lo.grid_sample(np.ones((1, 1, 2, 2)), grid)
lo.reference.grid_sample_backward(y, np.ones((1, 1, 2, 2)), grid)
"""


def test_the_reference_works_without_onnx():
    subprocess.run([sys.executable, "-c", BLOCKED], check=True)


def test_importing_the_package_imports_numpy_at_the_most():
    def modules(imported):
        listing = f"import sys, {imported}; print(*{{name.split('.')[0] for name in sys.modules}})"
        run = subprocess.run([sys.executable, "-c", listing], check=True, capture_output=True, text=True)
        return set(run.stdout.split())

    assert modules("lucid_onnx") - modules("numpy, importlib, typing, __future__") <= {"lucid_onnx"}


def test_every_public_name_is_there():
    for name in lucid_onnx.__all__:
        assert getattr(lucid_onnx, name) is not None
    assert set(lucid_onnx.__all__) <= set(dir(lucid_onnx))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        lucid_onnx.nothing  # noqa: B018
