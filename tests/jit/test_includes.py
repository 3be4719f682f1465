"""Which files a compilation depends on: a header's change is seen, and no more is claimed."""

from __future__ import annotations

import builtins
import os

import pytest

from cyrt.jit import nvrtc, toolchain
from cyrt.jit.compiler import compile

PTX = "compute_90"
BODY = '\nextern "C" __global__ void k(T x) {}'


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    """The current folder, which is not the cache's."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def parameter(source, **more):
    (signature,) = compile(source, arch=PTX, **more).signatures.values()
    return signature.parameters[0].type


def kept(runs, source, **more):
    """Whether it is compiled once, and its parameter."""
    runs.clear()
    found = parameter(source, **more)
    assert parameter(source, **more) == found
    return found, len(runs) == 1


INCLUDED = {
    "quoted": '#include "t.h"',
    "spaced": '  #  include\t"t.h"',
    "comments between": '/* a\nb */ # /* c */ include /* d */ "t.h"',
    "spliced": '#inc\\\nlude "t.\\\nh"',
    "digraph": '%:include "t.h"',
    "asked for first": '#if __has_include("t.h")\n#include "t.h"\n#endif',
    "next": '#include_next "t.h"',
    "behind a comment that holds a comment's mark": '# /* a /* b */ include "t.h"',
    "behind a comment that speaks of one": '/* include " */ #include "t.h"',
    "behind returns": '#\rinclude\r"t.h"',
    "behind a splice of two characters": '#incl\\\r\nude "t.h"',
    "its name asked for in a condition": (
        '#if defined(__has_include) && __has_include(<t.h>)\n#endif\n#include "t.h"'
    ),
    "asked for where that is known": '#ifdef __has_include\n#endif\n#include "t.h"',
}


@pytest.mark.parametrize("line", INCLUDED.values(), ids=INCLUDED)
def test_a_changed_header_is_compiled_anew(here, runs, line):
    for type in ("float", "int"):
        (here / "t.h").write_text(f"typedef {type} T;")
        assert kept(runs, line + BODY) == (type, True)


@pytest.mark.parametrize(
    "options",
    [
        ["-Iinc"], ["-I", "inc"], ["-I inc"], ["-I=inc"], [" -Iinc"], ["--include-path=inc"],
        ["--include-path", "inc"], ["-Iother", "-Iinc"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_folders_of_options(here, runs, options):
    (here / "inc" / "sub").mkdir(parents=True)
    (here / "inc" / "t.h").write_text("#include <sub/u.h>")
    (here / "inc" / "sub" / "u.h").write_text('#include "v.h"')
    for type in ("float", "int"):
        (here / "inc" / "sub" / "v.h").write_text(f"typedef {type} T;")
        assert kept(runs, "#include <t.h>" + BODY, options=options) == (type, True)


@pytest.mark.parametrize("option", ["-include=t.h", "--pre-include=t.h", "-include t.h"])
def test_headers_of_options(here, runs, option):
    for type in ("float", "int"):
        (here / "t.h").write_text(f"typedef {type} T;")
        assert kept(runs, BODY, options=option.split(" ")) == (type, True)


def test_the_folder_of_the_source(here, runs, tmp_path):
    (tmp_path / "src").mkdir()
    (here / "t.h").write_text("typedef double T;")
    for type in ("float", "int"):
        (tmp_path / "src" / "t.h").write_text(f"typedef {type} T;")
        filename = str(tmp_path / "src" / "k.cu")
        assert kept(runs, '#include "t.h"' + BODY, filename=filename) == (type, True)


def test_links_and_circles(here, runs, tmp_path):
    (tmp_path / "far" / "inner").mkdir(parents=True)
    (here / "link").symlink_to(tmp_path / "far" / "inner")
    circle = '#pragma once\n#include "../inner/a.h"\n#include "./b.h"\n'
    (tmp_path / "far" / "inner" / "a.h").write_text(circle)
    (tmp_path / "far" / "inner" / "b.h").write_text(circle + '#include "../t.h"')
    for type in ("float", "int"):
        # The link's target has this beside it, not the link.
        (tmp_path / "far" / "t.h").write_text(f"typedef {type} T;")
        assert kept(runs, '#include "link/../inner/a.h"' + BODY) == (type, True)


def test_a_header_that_comes_to_be_found_first(here, runs):
    for name in ("a", "b"):
        (here / name).mkdir()
    (here / "b" / "t.h").write_text("typedef float T;")
    given = {"source": "#include <t.h>" + BODY, "options": ["-Ia", "-Ib"]}
    assert kept(runs, **given) == ("float", True)
    (here / "a" / "t.h").write_text("typedef int T;")
    assert kept(runs, **given) == ("int", True)


def test_a_header_only_asked_for(here, runs):
    source = '#if __has_include("t.h")\ntypedef int T;\n#else\ntypedef float T;\n#endif' + BODY
    assert kept(runs, source) == ("float", True)
    (here / "t.h").write_text("")
    assert kept(runs, source) == ("int", True)


def test_a_header_in_memory_that_includes_one_on_disk(here, runs):
    (here / "inc").mkdir()
    headers = {"m.h": "#include <t.h>"}
    for type in ("float", "int"):
        (here / "inc" / "t.h").write_text(f"typedef {type} T;")
        found = kept(runs, '#include "m.h"' + BODY, headers=headers, options=["-Iinc"])
        assert found == (type, True)


def test_a_header_of_nvidia_that_includes_one_of_ours(here, runs):
    """cuda_fp16.h includes vector_types.h, which the user's folder may have too."""
    (here / "inc").mkdir()
    given = {"source": "#include <cuda_fp16.h>\ntypedef half T;" + BODY, "options": ["-Iinc"]}
    assert kept(runs, **given) == ("__half", True)
    (here / "inc" / "unrelated.h").write_text("")
    assert parameter(**given) == "__half"
    assert len(runs) == 1
    for text in ("// one", "// two"):
        (here / "inc" / "cuda_fp16.hpp").write_text(text)
        runs.clear()
        parameter(**given)
        assert runs


def test_headers_of_nvidia_are_not_read(here, runs, monkeypatch):
    opened = []

    def spy(real):
        return lambda path, *a, **k: opened.append(str(path)) or real(path, *a, **k)

    for module in (builtins, os):
        monkeypatch.setattr(module, "open", spy(module.open))
    folders = [f"-I{folder.path}" for folder in toolchain.header_folders()]
    for options in ([], folders):
        given = {"source": "#include <cuda_fp16.h>\ntypedef half T;" + BODY, "options": options}
        assert kept(runs, **given) == ("__half", True)
    assert any(path.endswith(".entry") for path in opened)
    assert not [path for path in opened if path.startswith(tuple(f[2:] for f in folders))]


@pytest.mark.parametrize(
    "text",
    [
        '#define H "t.h"\n#include H',
        "#include NAME",
        "#define F(x) <x>\n#if __has_include(F(t.h))\n#endif\n#include NAME",
        'const char* r = R"(" /*)";\n#include NAME\n/**/',
    ],
)
def test_an_include_that_a_macro_names_is_not_kept(here, runs, text):
    for type in ("float", "int"):
        (here / "t.h").write_text(f"typedef {type} T;")
        found, once = kept(runs, text + BODY, define={"NAME": '"t.h"'})
        assert (found, once) == (type, False)


ASKED = "\ntypedef int T;\n#else\ntypedef float T;\n#endif"
PASTE = "#define PASTE(a, b) a##b\n"


@pytest.mark.parametrize(
    "text",
    [
        '#define ASK __has_include\n#if ASK("t.h")',
        '#define ASK(x) __has_include(x)\n#if ASK("t.h")',
        "#define ASK(x) __has_include(<x>)\n#if ASK(t.h)",
        "#define ID(x) x\n#define u t\n#if ID(__has_include(<u.h>))",
        "#define HIDE(x) /*\n#if */ __has_include(<x>)\n#if HIDE(t.h)",
        PASTE + '#if PASTE(__has_, include)("t.h")',
        '#define PASTE(a, b, c) a##b##c\n#if PASTE(_, _has_inclu, de)("t.h")',
        '%:define PASTE(a, b) a%:%:b\n#if PASTE(__has_, include)("t.h")',
        '#define ASK() __has_include("t.h")\n#define NAME __has_include\n#if NAME("t.h")',
    ],
)
def test_a_question_for_a_file_that_macros_make_is_not_kept(here, runs, text):
    given = {"source": text + ASKED + BODY, "options": ["-I."]}
    assert kept(runs, **given) == ("float", False)
    (here / "t.h").write_text("")
    assert kept(runs, **given) == ("int", False)


def test_a_word_pasted_from_several_files_is_not_kept(here, runs):
    (here / "paste.h").write_text(PASTE)
    (here / "begin.h").write_text("#define BEGIN __has_")
    text = (
        '#include "paste.h"\n#include "begin.h"\n#define APPLY(a, b) PASTE(a, b)\n'
        '#if APPLY(BEGIN, include)("t.h")'
    )
    assert kept(runs, text + ASKED + BODY) == ("float", False)
    (here / "t.h").write_text("")
    assert kept(runs, text + ASKED + BODY) == ("int", False)


@pytest.mark.parametrize("define", [{}, {"PASTE(a, b)": "a##b"}])
def test_words_that_only_resemble_such_a_part_do_no_harm(here, runs, define):
    text = PASTE if not define else ""
    text += "typedef int T; __device__ int PASTE(a_, b); __device__ int f(int __host, int e);"
    assert kept(runs, text + BODY, define=define) == ("int", True)


@pytest.mark.parametrize("line", ['??=include "t.h"', '#incl??/\nude "t.h"'])
def test_trigraphs_are_not_kept(here, runs, line):
    for type in ("float", "int"):
        (here / "t.h").write_text(f"typedef {type} T;")
        assert kept(runs, line + BODY, options=["-std=c++14"]) == (type, False)


@pytest.mark.parametrize("std", ["c++14", "c++17"])
def test_what_is_no_trigraph_is_kept(here, runs, std):
    text = "typedef int T; // what ?? is /that"
    assert kept(runs, text + BODY, options=[f"-std={std}"])[1]


def test_a_name_that_is_not_ascii(here, runs):
    (here / "a.h").write_bytes('#include "é.h"'.encode())
    for type in ("float", "int"):
        (here / "é.h").write_text(f"typedef {type} T;")
        assert kept(runs, '#include "a.h"' + BODY) == (type, True)


@pytest.mark.parametrize(
    "text",
    [
        "__device__ int x = '/*';\n#include NAME\n/**/",
        '#if 0\n#error 5" /*\n#endif\n#include NAME\n/**/',
        "#if 0\ndon't /*\n#endif\n#include NAME\n/**/",
        "#include <a/*b.h>\n#include NAME\n/**/",
    ],
)
def test_what_only_seems_to_begin_a_comment_hides_nothing(here, runs, text):
    (here / "a").mkdir()
    (here / "a" / "*b.h").write_text("")
    (here / "a/*b.h").write_text("")
    for type in ("float", "int"):
        (here / "t.h").write_text(f"typedef {type} T;")
        found = kept(runs, text + BODY, define={"NAME": '"t.h"'}, options=["-I."])
        assert found == (type, False)


@pytest.mark.parametrize("kind", ["fifo", "device", "endless", "huge"])
def test_a_name_of_what_is_no_text_is_not_kept(here, runs, kind):
    """No more than a comment names it, so the compiler does not read it."""
    if kind == "fifo":
        os.mkfifo(here / "odd.h")
    elif kind == "huge":
        (here / "odd.h").write_bytes(b"")
        os.truncate(here / "odd.h", 1 << 42)
    else:
        (here / "odd.h").symlink_to("/dev/zero" if kind == "device" else "/proc/self/status")
    assert kept(runs, '// #include "odd.h"\ntypedef int T;' + BODY) == ("int", False)


def test_a_name_with_a_nul_character_is_not_kept(here, runs):
    (here / "a.h").write_bytes(b'// #include "b\0.h"\ntypedef int T;')
    assert kept(runs, '#include "a.h"' + BODY)[1] is False


def test_a_folder_of_that_name_is_no_file(here, runs):
    (here / "t.h").mkdir()
    assert kept(runs, '// #include "t.h"\ntypedef int T;' + BODY) == ("int", True)


def test_a_folder_that_resembles_nvidias_is_read(here, runs):
    (here / "inc").mkdir()
    (here / "inc" / "cuda_runtime_api.h").write_text("")
    for type in ("float", "int"):
        (here / "inc" / "t.h").write_text(f"typedef {type} T;")
        assert kept(runs, "#include <t.h>" + BODY, options=["-Iinc"]) == (type, True)


def test_a_toolkit_where_the_environment_names_it_is_not_read(here, runs, monkeypatch, tmp_path):
    toolkit = tmp_path / "toolkit" / "include"
    toolkit.mkdir(parents=True)
    (toolkit / "cuda_runtime_api.h").write_text("")
    (toolkit / "t.h").write_text("typedef int T;\n#define NAME <u.h>\n#if 0\n#include NAME\n#endif")
    given = {"source": "#include <t.h>" + BODY, "options": [f"-I{toolkit}"]}
    monkeypatch.setattr(toolchain, "_toolkit_places", toolchain._toolkit_places.__wrapped__)
    assert kept(runs, **given) == ("int", False)
    monkeypatch.setenv("CUDA_HOME", str(toolkit.parent))
    assert kept(runs, **given) == ("int", True)
    # Another version's has another time.
    os.utime(toolkit, (1, 1))
    assert kept(runs, **given) == ("int", True)
    parameter(**given)
    assert len(runs) == 1
    # A system's folder holds more than NVIDIA's.
    (toolkit / "stdio.h").write_text("")
    assert kept(runs, **given) == ("int", False)


def test_what_nvidias_headers_ask_for_and_do_not_bring_is_looked_for(here, runs, tmp_path):
    """As ``cuda_fp16.h`` asks for ``<nv/target>``, which another package of NVIDIA's brings."""
    nvidia = tmp_path / "nvidia"
    (nvidia / "detail").mkdir(parents=True)
    (nvidia / "whole.h").write_text('#pragma once\n#include <part/of.h>\n#include "detail/own.h"')
    (nvidia / "detail" / "own.h").write_text('#include "../whole.h"')
    (here / "inc" / "part").mkdir(parents=True)
    folder = toolchain.Folder(str(nvidia), nvidia.stat().st_mtime_ns, ())
    assert toolchain.lacking_names((folder,)) == ("part/of.h",)
    before = toolchain.header_folders()
    toolchain._folders = (*before, folder)
    try:
        for type in ("float", "int"):
            (here / "inc" / "part" / "of.h").write_text(f"typedef {type} T;")
            given = {"source": "#include <whole.h>" + BODY, "options": ["-Iinc"]}
            assert kept(runs, **given) == (type, True)
    finally:
        toolchain._folders = before


def test_what_nvidias_headers_lack_is_remembered(here, monkeypatch, tmp_path):
    (tmp_path / "nvidia").mkdir()
    (tmp_path / "nvidia" / "whole.h").write_text("#include <part.h>")
    folders = (toolchain.Folder(str(tmp_path / "nvidia"), 2, ()),)
    find = toolchain.lacking_names.__wrapped__
    assert find(folders) == ("part.h",)
    (tmp_path / "nvidia" / "whole.h").unlink()
    assert find(folders) == ("part.h",)
    assert find((folders[0]._replace(changed=3),)) == ()


def test_comments_that_speak_of_includes_do_no_harm(here, runs):
    text = "// we #include MORE than is needed, and don't\n/* #include THIS */ typedef float T;"
    assert kept(runs, text + BODY) == ("float", True)


def test_a_time_that_is_pasted_is_not_kept(here, runs):
    text = PASTE + "typedef int T; __device__ const char* when = PASTE(__TI, ME__);"
    assert kept(runs, text + BODY) == ("int", False)


@pytest.mark.parametrize("macro", ["__DATE__", "__TIME__"])
def test_what_tells_the_time_is_not_kept(here, runs, macro):
    text = f"__device__ const char* when = {macro};"
    assert kept(runs, "typedef int T;" + text + BODY) == ("int", False)
    (here / "t.h").write_text("typedef int T;" + text)
    assert kept(runs, '#include "t.h"' + BODY) == ("int", False)
    given = {"source": "typedef int T; __device__ const char* when = W;" + BODY}
    assert kept(runs, **given, define={"W": macro}) == ("int", False)
    assert kept(runs, **given, options=[f"-DW={macro}"]) == ("int", False)


@pytest.mark.parametrize("passed", ["-Xptxas ", "--ptxas-options="])
@pytest.mark.parametrize("named", ["--options-file=more", "-optf=more"])
def test_options_in_a_file_are_not_kept(here, runs, passed, named):
    (here / "more").write_text("-v")
    options = f"{passed}{named}".split(" ")
    assert kept(runs, "typedef int T;" + BODY, options=options) == ("int", False)


@pytest.mark.parametrize("option", ["-time=-", "-no-cache"])
def test_options_with_an_effect_of_their_own_are_not_kept(here, runs, option):
    assert kept(runs, "typedef int T;" + BODY, options=[option]) == ("int", False)


def test_a_header_that_changes_meanwhile_is_not_kept(here, runs, monkeypatch):
    (here / "t.h").write_text("typedef float T;")
    run = nvrtc.run

    def interrupted(*arguments, **more):
        found = run(*arguments, **more)
        (here / "t.h").write_text("typedef int T;")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(nvrtc, "run", interrupted)
        assert parameter('#include "t.h"' + BODY) == "float"
    (here / "t.h").write_text("typedef float T;")
    runs.clear()
    parameter('#include "t.h"' + BODY)
    assert len(runs) == 1


def test_a_current_folder_that_is_gone(here, runs):
    here.rmdir()
    assert kept(runs, "#include <stdint.h>\ntypedef int T;" + BODY)[0] == "int"
