"""Adapters of runtimes: what comes of a case, what is refused and in which words, and what may be asked of each."""

import gc
import os
import shlex
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from dataclasses import replace

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.judging import decide, expect
from lucid_onnx.conformance.outcome import PASS, WRONG_VALUE
from lucid_onnx.conformance.runtimes import RUNTIMES, check_runtime, installed, onnx_runtime, open_runtime
from lucid_onnx.conformance.runtimes.base import Crashed, Misplaced, Refused, Setting
from lucid_onnx.conformance.runtimes.placement import SMALL, misplaced
from lucid_onnx.reference.schema import ArgumentError, UnsupportedError

OPTIONAL = ("openvino", "tract", "torch")
"""Runtimes that lucid-onnx does without."""

AZURE = "AzureExecutionProvider"
"""A provider that comes with onnxruntime for the CPU, and runs none of these nodes."""

IMAGE = Case("GridSample", 4, "bilinear", "zeros", False, "float32", 20, "symbolic", "outside")
VOLUME = replace(IMAGE, rank=5, mode="nearest", shapes="static", family="non-square")
BICUBIC_VOLUME = replace(VOLUME, mode="bicubic")
OLD = replace(IMAGE, mode="bicubic", align_corners=True, opset=16)
MAP = Case("AffineGrid", 4, "", "", True, "float32", 20, "symbolic", "outside")
CONSTANT_SIZE = replace(MAP, rank=5, shapes="static")
GRADIENT = replace(IMAGE, op="GridSampleGrad", padding_mode="border", shapes="static")
MAP_GRADIENT = replace(MAP, op="AffineGridGrad", rank=5, family="non-square")
DOUBLE = replace(IMAGE, dtype="float64")
BFLOAT16 = replace(IMAGE, dtype="bfloat16", opset=22)


def opened(name, **setting):
    """The adapter of a runtime, if it is installed."""
    if name in OPTIONAL:
        pytest.importorskip(name, reason=f"judges {name}")
    return open_runtime(name, Setting(**setting))


def fed(case, model):
    inputs = case.inputs()
    return {value.name: inputs[value.name] for value in model.graph.input}


def copying(dtype="float32"):
    """A model that hands two inputs on, and arrays for it."""
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    a, b, to_a, to_b = (helper.make_tensor_value_info(name, element, [f"rows_of_{name}", 2]) for name in "abAB")
    nodes = [helper.make_node("Identity", [name], [name.upper()]) for name in "ab"]
    model = helper.make_model(helper.make_graph(nodes, "copying", [a, b], [to_a, to_b]))
    return model, {"a": np.ones((1, 2), dtype), "b": np.array([[0.5, -3.0], [np.inf, np.nan]], dtype)}


def results(runtime, case):
    model = case.model()
    return runtime.load(model, case)(fed(case, model))


def verdict(runtime, case):
    return decide(expect(case, case.inputs()), results(runtime, case))[0]


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("onnxruntime", [IMAGE, VOLUME, OLD, MAP, CONSTANT_SIZE, GRADIENT, MAP_GRADIENT, DOUBLE]),
        ("onnxruntime", [replace(GRADIENT, dtype="bfloat16"), replace(MAP_GRADIENT, dtype="float64")]),
        ("onnx.reference", [IMAGE, VOLUME, MAP, CONSTANT_SIZE, MAP_GRADIENT, BFLOAT16]),
        ("openvino", [IMAGE, OLD, MAP, CONSTANT_SIZE, GRADIENT, MAP_GRADIENT, BFLOAT16]),
        ("openvino", [replace(IMAGE, dtype="float16"), replace(GRADIENT, dtype="bfloat16")]),
        ("torch", [IMAGE, VOLUME, OLD, MAP, CONSTANT_SIZE, GRADIENT, MAP_GRADIENT, DOUBLE, BFLOAT16]),
        ("torch", [replace(GRADIENT, dtype="float64"), replace(MAP, dtype="bfloat16")]),
        ("tract", [IMAGE, VOLUME, OLD, GRADIENT, replace(IMAGE, dtype="float16")]),
    ],
)
def test_ordinary_cases_are_right(name, cases):
    runtime = opened(name)
    assert {case.id: verdict(runtime, case) for case in cases} == {case.id: PASS for case in cases}


@pytest.mark.parametrize(("name", "case"), [("openvino", DOUBLE), ("tract", DOUBLE)])
def test_a_runtime_that_computes_float64_in_float32_is_caught(name, case):
    assert verdict(opened(name), case) == WRONG_VALUE


@pytest.mark.parametrize(
    ("name", "case", "words"),
    [
        ("onnxruntime", BFLOAT16, r"^NOT_IMPLEMENTED: .*GridSample"),
        ("onnxruntime", BICUBIC_VOLUME, r"^FAIL: [^/]*4-D"),
        ("onnx.reference", replace(IMAGE, opset=16), r"^RuntimeError: .* modes"),
        ("onnx.reference", replace(IMAGE, family="no-channels"), r"^TypeError: .*GridSample"),
        ("openvino", VOLUME, r"^GridSample is only supported for 4D"),
        ("openvino", replace(MAP, dtype="float16"), r"^Arguments do not have the same element type"),
        ("torch", BICUBIC_VOLUME, r"^grid_sampler\(\): bicubic interpolation only supports 4D input$"),
        ("torch", replace(MAP, family="empty-batch"), r"non-zero, positive output size"),
        ("tract", MAP, r"AffineGrid.*: Operator can not be made a TypedOp\.$"),
        ("tract", BFLOAT16, r": Unknown DatumType Bfloat16$"),
    ],
)
def test_a_refusal_carries_what_the_runtime_said_in_a_line(name, case, words):
    runtime = opened(name)
    with pytest.raises(Refused, match=words) as refusal:
        results(runtime, case)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) <= 300


@pytest.mark.parametrize("name", ["onnxruntime", "onnx.reference", "openvino", "torch", "tract"])
def test_results_outlive_the_next_run(name):
    model = IMAGE.model()
    run, inputs = opened(name).load(model, IMAGE), fed(IMAGE, model)
    (first,) = run(inputs)
    before = first.copy()
    (second,) = run({**inputs, "X": -inputs["X"]})
    np.testing.assert_array_equal(first, before)
    np.testing.assert_array_equal(second, -before)


@pytest.mark.parametrize("name", ["onnxruntime", "onnx.reference", "openvino", "tract"])
def test_results_are_not_the_inputs_handed_on(name):
    model, inputs = copying()
    for given, got in zip(inputs.values(), opened(name).load(model, IMAGE)(inputs), strict=True):
        np.testing.assert_array_equal(got, given)
        assert not np.shares_memory(got, given)


@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "torch", "tract"])
@pytest.mark.parametrize(
    ("family", "shape"), [("no-channels", (2, 0, 4, 5)), ("empty-batch", (0, 2, 4, 5)), ("empty-grid", (2, 2, 0, 5))]
)
def test_what_is_empty_comes_back_with_its_shape(name, family, shape):
    (y,) = results(opened(name), replace(IMAGE, family=family))
    assert y.shape == shape


@pytest.mark.parametrize(
    ("name", "provider"),
    [("onnxruntime", "CPUExecutionProvider"), ("openvino", "CPU"), ("torch", "cpu"), ("tract", "")],
)
def test_an_adapter_says_what_it_runs_and_where(name, provider):
    runtime = opened(name)
    assert (runtime.name, runtime.provider) == (name, provider)
    assert runtime.version[0].isdigit()


ASKED_TOO_MUCH = [
    ("onnxruntime", {"providers": ("AbacusExecutionProvider",)}, UnsupportedError, "no execution provider 'Abacus"),
    ("onnxruntime", {"providers": ("CPUExecutionProvider,fast",)}, ArgumentError, "written NAME,key=value"),
    ("onnxruntime", {"options": {"no_such_option": "1"}}, UnsupportedError, "no session option 'no_such_option'"),
    ("onnxruntime", {"options": {"add_initializer": "1"}}, UnsupportedError, "no session option 'add_initializer'"),
    ("onnxruntime", {"options": {"graph_optimization_level": "ALL"}}, ArgumentError, "ORT_DISABLE_ALL.*got 'ALL'"),
    ("onnxruntime", {"options": {"intra_op_num_threads": "two"}}, ArgumentError, "must be a whole number.*got 'two'"),
    ("onnxruntime", {"options": {"intra_op_num_threads": "9" * 20}}, ArgumentError, "must be a whole number"),
    ("onnxruntime", {"options": {"enable_mem_pattern": "2"}}, ArgumentError, "one of 0, 1, false, true; got '2'"),
    ("onnxruntime", {"options": {f"session.{'x' * 2000}": "1"}}, UnsupportedError, "makes no session with CPU"),
    ("openvino", {"providers": ("ABACUS",)}, UnsupportedError, "no device 'ABACUS'.*ABACUS"),
    ("openvino", {"providers": ("CPU", "GPU")}, UnsupportedError, "openvino takes one device; got 'CPU', 'GPU'"),
    ("openvino", {"options": {"NO_SUCH": "1"}}, UnsupportedError, "property NO_SUCH"),
    ("openvino", {"options": {"INFERENCE_PRECISION_HINT": "f99"}}, UnsupportedError, "Wrong value f99"),
    ("torch", {"providers": ("abacus",)}, UnsupportedError, "no device 'abacus' here"),
    ("torch", {"providers": ("meta",)}, UnsupportedError, "no device 'meta' here"),
    ("torch", {"options": {"threads": "1"}}, UnsupportedError, "torch takes no options; got 'threads'"),
    ("tract", {"providers": ("CPU",)}, UnsupportedError, "tract takes no provider; got 'CPU'"),
    ("tract", {"options": {"a": "1"}}, UnsupportedError, "tract takes no options; got 'a'"),
    ("onnx.reference", {"providers": ("CPU",)}, UnsupportedError, "onnx.reference takes no provider; got 'CPU'"),
    ("onnx.reference", {"command": "./run"}, UnsupportedError, r"only the runtime 'command' is .* got './run'"),
]


@pytest.mark.parametrize(("name", "setting", "error", "words"), ASKED_TOO_MUCH)
def test_what_a_runtime_does_not_have_is_one_error(name, setting, error, words):
    with pytest.raises(error, match=words) as raised:
        opened(name, **setting)
    assert "\n" not in str(raised.value)


def test_an_unknown_runtime_is_one_error():
    for check in (check_runtime, lambda name: open_runtime(name, Setting())):
        with pytest.raises(ArgumentError, match=r"no runtime 'abacus' \(there is onnxruntime, .*command\)"):
            check("abacus")


@pytest.mark.parametrize("name", OPTIONAL)
def test_a_runtime_that_is_not_installed_says_how_to_get_it(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnsupportedError, match=rf"{name} is not installed; pip install {name}$"):
        open_runtime(name, Setting())


def test_those_installed_are_found_without_being_imported(monkeypatch):
    monkeypatch.setattr("importlib.import_module", lambda name: pytest.fail(f"{name} was imported"))
    assert {"onnxruntime", "onnx.reference"} <= set(installed()) < set(RUNTIMES)


# onnxruntime


@pytest.fixture
def session_arguments(monkeypatch):
    """What the last session was made with."""
    made = {}

    class Session(onnx_runtime.Session):
        def __init__(self, model, options, **how):
            made.update(how, options=options)
            super().__init__(model, options, **how)

    monkeypatch.setattr(onnx_runtime, "Session", Session)
    return made


@pytest.mark.parametrize(
    ("setting", "threads"),
    [({}, 1), ({"repeated": True}, 0), ({"options": {"intra_op_num_threads": "3"}, "repeated": True}, 3)],
)
def test_an_operator_has_one_thread_unless_results_are_repeated_or_told_otherwise(setting, threads, session_arguments):
    opened("onnxruntime", **setting)
    assert session_arguments["options"].intra_op_num_threads == threads


def test_options_of_session_and_provider_arrive(session_arguments):
    options = {"graph_optimization_level": "ORT_DISABLE_ALL", "enable_mem_pattern": "0", "session.use_env": "x"}
    runtime = opened("onnxruntime", providers=("CPUExecutionProvider,a=1,b=c=d",), options=options)
    made = session_arguments["options"]
    assert made.graph_optimization_level.name == "ORT_DISABLE_ALL"
    assert made.enable_mem_pattern is False
    assert made.get_session_config_entry("session.use_env") == "x"
    assert session_arguments["provider_options"] == [{"a": "1", "b": "c=d"}]
    assert session_arguments["enable_fallback"] == 0
    assert verdict(runtime, IMAGE) == PASS


@pytest.mark.parametrize(("given", "tf32"), [("", "0"), (",use_tf32=1", "1")])
def test_cuda_computes_in_float32_unless_told_otherwise(given, tf32, monkeypatch, session_arguments):
    cuda = "CUDAExecutionProvider"
    monkeypatch.setattr(onnx_runtime.ort, "get_available_providers", lambda: [cuda])
    with warnings.catch_warnings(), suppress(UnsupportedError):  # where there is no such device
        warnings.simplefilter("ignore")
        opened("onnxruntime", providers=(cuda + given,))
    assert session_arguments["provider_options"] == [{"use_tf32": tf32}]


def test_a_provider_without_its_driver_is_one_error(monkeypatch):
    # onnxruntime then makes a session without it.
    monkeypatch.setattr(onnx_runtime.Session, "get_providers", lambda session: ["CPUExecutionProvider"])
    with pytest.raises(UnsupportedError, match=f"has {AZURE} but cannot start it here"):
        opened("onnxruntime", providers=(AZURE,))


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (IMAGE, "^GridSample GridSample ran on CPUExecutionProvider$"),
        (replace(MAP, shapes="static"), "^AffineGrid AffineGrid ran on CPUExecutionProvider$"),
        # Here the node is replaced by its function body, of many nodes.
        (replace(MAP, dtype="float16"), "ran on CPUExecutionProvider, and [0-9]+ more nodes$"),
        (GRADIENT, "ran on CPUExecutionProvider, and [0-9]+ more nodes$"),
    ],
    ids=lambda value: getattr(value, "id", ""),
)
def test_nodes_that_run_elsewhere_are_named_at_every_run(case, words, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    model = case.model()
    run = opened("onnxruntime", providers=(AZURE,)).load(model, case)
    for _ in range(2):
        with pytest.raises(Misplaced, match=words):
            run(fed(case, model))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("case", [BFLOAT16, BICUBIC_VOLUME], ids=lambda case: case.id)
def test_no_profile_is_left_of_what_is_refused(case, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(Refused):
        results(opened("onnxruntime", providers=(AZURE,)), case)
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_node_of_the_right_provider_is_in_its_place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(onnx_runtime, "CPU", "another provider")
    assert verdict(opened("onnxruntime", providers=("CPUExecutionProvider",)), IMAGE) == PASS
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("op", "provider", "element", "shape", "in_place"),
    [
        ("Add", "CPU", "float", [2], False),
        ("Add", "CPU", "bfloat16", [2, 3], False),
        ("Add", "CPU", "float", [], True),
        ("Add", "CPU", "double", [1, 1], True),
        ("Add", "CUDA", "float", [2, 3], True),
        ("MemcpyToHost", "CUDA", "float", [2, 3], True),
        ("Shape", "CPU", "int64", [5], True),
        ("Range", "CPU", "int64", [SMALL], True),
        ("Gather", "CPU", "int64", [SMALL + 1], False),
        ("Equal", "CPU", "bool", [], True),
        ("GridSample", "CPU", "float", [0, 2, 4, 5], False),
        ("AffineGrid", "CPU", "float", [1, 1, 1], False),
    ],
)
def test_only_arithmetic_on_shapes_may_run_elsewhere(op, provider, element, shape, in_place):
    about = {"op_name": op, "provider": provider, "output_type_shape": [{"int64": []}, {element: shape}]}
    events = [{"cat": "Session", "name": "run"}, {"cat": "Node", "name": "n_kernel_time", "args": about}]
    assert misplaced(events, "CUDA") == ("" if in_place else f"{op} n ran on {provider}")


# Programs

COPY_NPZ = """
arrays = dict(np.load(sys.argv[2]))
np.savez(sys.argv[3], B=arrays["b"], A=arrays["a"])
"""
COPY_PB = """
for name in "01":
    shutil.copy(f"{sys.argv[2]}/input_{name}.pb", f"{sys.argv[3]}/output_{name}.pb")
"""
RUN = """
import onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1])
(y,) = session.run(None, dict(np.load(sys.argv[2])))
np.savez(sys.argv[3], Y=y)
"""
NPZ, PB = "{model} {inputs} {outputs}", "{model} {inputs_pb} {outputs_pb}"


@pytest.fixture
def program(tmp_path):
    """Makes a runtime of a few lines of Python, which get the arguments."""

    def make(lines, arguments=NPZ):
        script = tmp_path / "a runtime.py"
        imports = "import os, shutil, signal, sys\n" + "import numpy as np\n" * ("np." in lines)
        script.write_text(imports + lines)
        return open_runtime("command", Setting(command=f"{shlex.join([sys.executable, str(script)])} {arguments}"))

    return make


def answers(runtime, dtype="float32"):
    model, inputs = copying(dtype)
    return runtime.load(model, IMAGE)(inputs)


def test_a_program_that_runs_the_model_is_right(program):
    runtime = program(RUN)
    assert (runtime.name, runtime.version, runtime.provider) == (sys.executable.rpartition("/")[2], "", "")
    assert verdict(runtime, IMAGE) == PASS


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", ml_dtypes.bfloat16])
@pytest.mark.parametrize(("lines", "arguments"), [(COPY_NPZ, NPZ), (COPY_PB, PB)])
def test_arrays_of_every_dtype_go_to_a_program_and_back_in_the_order_of_the_model(program, lines, arguments, dtype):
    _, inputs = copying(dtype)
    got = answers(program(lines, arguments), dtype)
    for array, want in zip(got, inputs.values(), strict=True):
        assert array.dtype == want.dtype
        assert array.tobytes() == want.tobytes()


@pytest.fixture
def standard_input():
    """Something on the standard input of this process, as a worker of the suite has its parent's questions."""
    kept, (end, start) = os.dup(0), os.pipe()
    os.write(start, b"a question")
    os.close(start)
    os.dup2(end, 0)
    yield
    os.dup2(kept, 0)
    os.close(kept)
    os.close(end)


@pytest.mark.usefixtures("standard_input")
def test_a_program_gets_the_model_and_an_empty_standard_input(program, tmp_path):
    lines = "assert sys.stdin.read() == ''\nshutil.copy(sys.argv[1], __file__ + '.onnx')\nsys.exit('enough')"
    with pytest.raises(Refused, match=r"^status 1: enough$"):
        answers(program(lines))
    assert onnx.load(tmp_path / "a runtime.py.onnx") == copying()[0]


@pytest.mark.parametrize(
    ("lines", "arguments", "words"),
    [
        ("print('looking', file=sys.stderr); sys.exit('it is tired')", NPZ, "^status 1: it is tired$"),
        ("sys.exit(3)", NPZ, "^status 3$"),
        ("pass", NPZ, "^no outputs.npz was written$"),
        ("np.savez(sys.argv[3], A=1, C=2)", NPZ, "^outputs.npz has no 'B'; it has A, C$"),
        ("np.savez(sys.argv[3])", NPZ, "^outputs.npz has no 'A'; it has nothing$"),
        ("open(sys.argv[3], 'w').write('A=1')", NPZ, "^outputs.npz is no .npz file of arrays$"),
        ("open(sys.argv[3], 'w')", NPZ, "^outputs.npz is no .npz file of arrays$"),
        ("np.save(open(sys.argv[3], 'wb'), np.ones(2))", NPZ, "^outputs.npz is no .npz file of arrays$"),
        ("np.savez(sys.argv[3], A=1, B=np.array([None]))", NPZ, "^outputs.npz is no .npz file of arrays$"),
        ("pass", PB, "^no output_0.pb was written$"),
        ("open(f'{sys.argv[3]}/output_0.pb', 'w').write('A=1')", PB, "^output_0.pb is no TensorProto of numbers$"),
        ("open(f'{sys.argv[3]}/output_0.pb', 'w')", PB, "^output_0.pb is no TensorProto of numbers$"),
    ],
)
def test_a_program_that_fails_refuses_in_its_words(program, lines, arguments, words, tmp_path, monkeypatch):
    runtime = program(lines, arguments)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(Refused, match=words):
        answers(runtime)
    assert [path.name for path in tmp_path.iterdir()] == ["a runtime.py"]


@pytest.mark.parametrize("name", ["SIGKILL", "SIGABRT"])
def test_a_program_that_is_killed_has_crashed(program, name):
    with pytest.raises(Crashed, match=f"^was killed by {name}$"):
        answers(program(f"os.kill(os.getpid(), signal.{name})"))


@pytest.mark.parametrize(
    ("command", "error", "words"),
    [
        ("", ArgumentError, r"a command has \{model\}, and either .*; got ''"),
        ("run {inputs} {outputs}", ArgumentError, r"a command has \{model\}"),
        ("run {model} {inputs}", ArgumentError, r"either \{outputs\} or \{outputs_pb\}"),
        ("run {model} {outputs} {outputs_pb}", ArgumentError, r"either \{outputs\} or \{outputs_pb\}"),
        ("run {model} {output}", ArgumentError, r"has \{output\}; there is \{model\}, \{inputs\}"),
        ("run '{model} {outputs}", ArgumentError, "cannot be split into words: No closing quotation"),
        ("./no-such-program {model} {outputs}", UnsupportedError, "no program './no-such-program' that may be run"),
    ],
)
def test_a_command_that_cannot_be_run_is_one_error(command, error, words):
    with pytest.raises(error, match=words):
        open_runtime("command", Setting(command=command))


def test_a_command_takes_neither_providers_nor_options():
    command = f"{shlex.quote(sys.executable)} {NPZ}"
    with pytest.raises(UnsupportedError, match="command takes no provider; got 'CPU'"):
        open_runtime("command", Setting(providers=("CPU",), command=command))
    with pytest.raises(UnsupportedError, match="command takes no options; got 'a'"):
        open_runtime("command", Setting(options={"a": "1"}, command=command))


def test_bfloat16_is_read_back_only_where_the_model_says_so(program):
    (a, _) = answers(program("np.savez(sys.argv[3], A=np.zeros(2, 'V2'), B=1)"), "float16")
    assert a.dtype == "V2"
    assert copying("float16")[0].graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT16


def test_what_a_program_says_is_kept_short_and_its_children_are_not_waited_for(tmp_path):
    program = tmp_path / "noisy.py"
    program.write_text(
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(20)'])\n"
        "sys.stderr.write('x' * 10**7)\n"
        "sys.exit(3)\n"
    )
    command = Setting(command=f"{sys.executable} {program} {{model}} {{outputs}}")
    case = Case("GridSample", 4, "nearest", "zeros", False, "float32", 20, "symbolic", "inside")
    started = time.perf_counter()
    with pytest.raises(Refused) as refused:
        open_runtime("command", command).load(case.model(), case)(case.inputs())
    assert len(str(refused.value)) <= 300
    assert time.perf_counter() - started < 15
