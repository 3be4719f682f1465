"""What is said of a source that does not compile, and of wrong arguments."""

from __future__ import annotations

import builtins

import pytest
from kernel_sources import PTX, SAXPY

from cyrt.driver.errors import CompileError, CudaError
from cyrt.jit import build, compiler, job, nvrtc
from cyrt.jit.compiler import compile


def failure(source, names=(), **more):
    with pytest.raises(CompileError) as failed:
        compile(source, names, arch=PTX, **more)
    assert isinstance(failed.value, CudaError)
    assert failed.value.call.startswith("nvrtc")
    return str(failed.value)


def test_error_shows_the_line():
    message = failure('extern "C" __global__ void k() {\n\n    int x = wrong;\n}', filename="my.cu")
    assert "my.cu does not compile for compute_90" in message
    assert 'my.cu(3): error: identifier "wrong" is undefined' in message
    assert "\n    3 |     int x = wrong;\n" in message
    lines = message.split("\n")
    shown = next(i for i, line in enumerate(lines) if "|" in line)
    assert lines[shown + 1].index("^") == lines[shown].index("wrong")
    assert "probe" not in message


def test_error_has_the_log():
    with pytest.raises(CompileError) as failed:
        compile("int x = ;", arch=PTX)
    assert "cyrt_kernel.cu(1): error" in failed.value.log
    assert failed.value.code == 6


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nope", 'identifier "nope" is undefined'),
        ("over", "cannot determine which instance"),
        ("tmpl", "cannot"),
        ("tmpl<flaot>", 'identifier "flaot" is undefined'),
        ("helper", "non-__global__"),
        ("_Z4nopev", "no kernel has this symbol"),
    ],
)
def test_wrong_name_says_which_there_are(name, why):
    source = (
        SAXPY
        + """
    __global__ void over(int*) {} __global__ void over(float*) {}
    template<class T> __global__ void tmpl(T*) {}
    __device__ void helper() {}
    """
    )
    message = failure(source, [name])
    assert f"'{name}' is not in cyrt_kernel.cu" in message
    assert why in message
    assert "its kernels: saxpy, over, tmpl<…>" in message
    assert "probe" not in message
    assert "__nv_name_map" not in message
    assert "pragma" not in message


def test_a_source_that_is_no_source_shows_its_own_errors_only():
    with pytest.raises(CompileError, match="expected a declaration") as caught:
        compile("not c++", ["f"], arch="sm_90")
    assert "    1 | not c++" in caught.value.log
    assert "__nv_name_map" not in str(caught.value)
    assert "nv_mangled_name" not in str(caught.value)


def test_failing_instance_shows_its_line():
    source = 'template<int N> __global__ void k() {\n  static_assert(N > 3, "too few");\n}'
    message = failure(source, ["k<2>"])
    assert "too few" in message
    assert "    2 |" in message


def test_a_named_template_whose_parameter_has_an_unknown_type(python):
    # In another process, since NVRTC ends it by a signal if it receives the name.
    done = python(
        r"""
        import cyrt
        template = "template <int N> __global__ void f(__half* x, int n) { x[0] = n; }"
        for source, name in (
            (template, "f<32>"),
            (f"namespace a {{ {template} }}", "a::f<32>"),
            (f"#define g f<32>\n{template}", "g"),
            (f"#define g f<32>\n{template}", "&g"),
            (f"struct S {{ {template.replace('void', 'static void')} }};", "S::f<32>"),
        ):
            try:
                cyrt.Module(source, [name])
            except cyrt.CompileError as error:
                print('identifier "__half" is undefined' in error.log)
        """
    )
    assert (done.returncode, done.stdout.split()) == (0, ["True"] * 5), done.stderr


def test_a_named_template_gets_the_headers_that_its_source_implies():
    source = "template <class T> __global__ void f(uint32_t* x, T n) { x[0] = n; }"
    image = compile(source, ["f<int>"], arch="compute_90")
    assert str(image.signatures["f<int>"]).startswith("void f<int>(unsigned int*")


def test_only_names_of_templates_cost_a_check(monkeypatch):
    runs = []
    run = nvrtc.run
    monkeypatch.setattr(nvrtc, "run", lambda *a, **k: runs.append(a[4]) or run(*a, **k))
    for source, name, count in (
        (SAXPY, "saxpy", 1),
        ("__global__ void k(int* x) { *x = 41; }", "k", 1),
        ("__device__ int v; __global__ void k() { v = 41; }", "&v", 1),
        ("template <int N> __global__ void k(int* x) { *x = N; }", "k<41>", 2),
    ):
        runs.clear()
        build.build(job.Job(source, [name], "compute_90", (), None, None, None))
        assert (len(runs), runs[-1][0]) == (count, name)


@pytest.mark.parametrize(
    ("header", "advice"),
    [
        ("cublas_not_there.h", "pip install nvidia-cublas"),
        ("cuda/not_there.h", "pip install nvidia-cuda-cccl"),
        ("cuda_not_there.h", "pip install nvidia-cuda-runtime"),
        ("iostream", "device code only"),
        ("mine.h", "headers={'mine.h': …}"),
    ],
)
def test_missing_header_says_where_it_is(header, advice):
    assert advice in failure(f"#include <{header}>\n{SAXPY}")


def test_headers_of_a_toolkit(python, tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "cuda_runtime.h").write_text("")
    program = """
    import site
    site.getsitepackages = lambda: []
    site.ENABLE_USER_SITE = False
    from cyrt.jit.headers import include_directories
    print(include_directories()[0])
    """
    for name, other in (("CUDA_HOME", "CUDA_PATH"), ("CUDA_PATH", "CUDA_HOME")):
        done = python(program, **{name: str(tmp_path), other: "", "CONDA_PREFIX": ""})
        assert done.stdout.strip() == str(tmp_path / "include"), done.stderr


def test_unknown_architecture_lists_those_known():
    with pytest.raises(CompileError, match="compiles for sm_ .*90"):
        compile(SAXPY, arch="sm_13")


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("-nonsense", "NVRTC refuses one of the options -lineinfo -nonsense"),
        ("-maxrregcount=few", "expects an integer value"),
        ("-dlto", "neither PTX nor a cubin"),
    ],
)
def test_options_that_nvrtc_refuses(option, says):
    assert says in failure(SAXPY, options=["-lineinfo", option])


@pytest.mark.parametrize(
    ("more", "error", "says"),
    [
        ({"source": b"x"}, TypeError, "got bytes"),
        ({"source": "a\0b"}, ValueError, "NUL"),
        ({"names": "saxpy"}, TypeError, "sequence of str, got 'saxpy'"),
        ({"names": [3]}, TypeError, "sequence of str"),
        ({"names": [" "]}, ValueError, "empty"),
        ({"options": "-G"}, TypeError, "sequence of str"),
        ({"options": ["-arch=sm_80"]}, ValueError, "arch="),
        ({"arch": "90"}, ValueError, "'sm_90'.*got '90'"),
        ({"source": "\ud800"}, ValueError, "source.*UTF-8"),
        ({"options": {"-G"}}, TypeError, "sequence of str"),
        ({"options": [""]}, ValueError, "empty"),
        ({"options": ["-DA=\0"]}, ValueError, "NUL"),
        ({"headers": [("a.h", "")]}, TypeError, "headers is a mapping from names, got list"),
        ({"headers": {"a.h": b""}}, TypeError, r"headers\['a.h'\].*got bytes"),
        ({"headers": {3: ""}}, TypeError, "headers: 3.*got int"),
        ({"define": ["N"]}, TypeError, "define is a mapping"),
        ({"define": {"1N": 3}}, ValueError, "1N"),
        ({"define": {"N": [3]}}, TypeError, r"define\['N'\].*got list"),
        ({"define": {"N": 1j}}, TypeError, r"define\['N'\].*got complex"),
        ({"define": {"N": float("inf")}}, ValueError, r"define\['N'\] is inf"),
        ({"define": {"N": "a\nb"}}, ValueError, "line's end"),
        ({"define": {"N": "a\\", "M": 1}}, ValueError, r"define\['N'\] ends in a backslash"),
        ({"filename": 3}, TypeError, "filename.*got int"),
    ],
)
def test_wrong_argument(more, error, says):
    arguments = {"source": SAXPY, "arch": PTX, **more}
    with pytest.raises(error, match=says):
        compile(arguments.pop("source"), **arguments)


def test_without_nvrtc_the_error_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name.startswith("cuda"):
            raise ImportError(name)
        return real(name, *rest)

    nvrtc._nvrtc.cache_clear()
    monkeypatch.setattr(builtins, "__import__", missing)
    try:
        with pytest.raises(CompileError, match=r"(?s)cannot be loaded.*pip install 'cyrt\[cu13"):
            compile(SAXPY, arch=PTX)
        assert compiler.library_path() is None
    finally:
        monkeypatch.undo()
    assert compile(SAXPY, arch=PTX).format == "ptx"
