"""``python -m cyrt graph``."""

from __future__ import annotations

import os
import struct
import sys
import textwrap
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import processes
import pytest

from cyrt.cli import graph_png

SVG = "{http://www.w3.org/2000/svg}"
WORK = r"""
import cyrt

module = cyrt.Module('''
template <typename T> __global__ void twice(const T* x, T* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
''', ["twice<float>"])
x, y = cyrt.Buffer(1024), cyrt.Buffer(1024)
x.copy_from(bytes(1024))

def work(times):
    for _ in range(times):
        module["twice<float>"][1, 256](x, y)
"""  # noqa: E501


@pytest.fixture
def graph(fork_server, tmp_path):
    """Run the command on a script, in a folder beside the script's; gives the finished process."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "working.py").write_text(WORK)
    (tmp_path / "here").mkdir()

    def run(script, *arguments, **environment):
        (tmp_path / "scripts" / "script.py").write_text(textwrap.dedent(script))
        return fork_server.run(
            ["-m", "cyrt", "graph", *arguments],
            cwd=tmp_path / "here",
            env={**os.environ, "CYRT_GRAPHS": "1", "CYRT_LAUNCH_BLOCKING": "0", **environment},
        )

    return run


SCRIPT = "../scripts/script.py"


def titles(path):
    return [text.text for text in ET.parse(path).iterfind(f".//{SVG}text[@class='title']")]


def test_the_picture_is_named_after_the_script(graph, tmp_path):
    done = graph("import os\nfrom working import work\nos.chdir('/')\nwork(2)", SCRIPT)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "cyrt graph: script_graph.svg: 1 batch\n"
    assert len(titles(tmp_path / "here" / "script_graph.svg")) == 1


def test_batches_in_order_of_first_use(graph, tmp_path):
    done = graph(
        """
        import os
        from working import work, cyrt
        os.chdir("/")
        for _ in range(3):
            work(2)
            cyrt.commit()
        work(5)             # launched by the script's end
        """,
        SCRIPT,
        "-o",
        "out.svg",
        "--dot",
        "out.dot",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "cyrt graph: out.svg: 2 batches\n"
    expected = [
        "batch 1 of 2: 2 operations, launched 3 times, none patched",
        "batch 2 of 2: 5 operations, launched 1 time, none patched",
    ]
    assert titles(tmp_path / "here" / "out.svg") == expected
    text = (tmp_path / "here" / "out.dot").read_text()
    assert all(f'label="{title}"' in text for title in expected)
    assert text.count("twice<float>\\n<<<1, 256>>>") == 7
    picture = ET.parse(tmp_path / "here" / "out.svg")
    tooltip = picture.find(f".//{SVG}g[@class='node kernel']/{SVG}title")
    assert tooltip.text.startswith("0: twice<float>\n_Z5twiceIf")


def test_what_is_recorded_at_the_end_is_launched_on_every_stream(graph, tmp_path):
    done = graph(
        """
        from working import cyrt, module
        for count in 1, 2, 3:
            cyrt.Stream().__enter__()
            x, y = cyrt.Buffer(1024), cyrt.Buffer(1024)
            x.copy_from(bytes(1024))
            for _ in range(count):
                module["twice<float>"][1, 256](x, y)
            assert cyrt.current_encoder().num_ops == count
            assert cyrt.current_encoder().stats()["commits"] == 0
        """,
        SCRIPT,
        "-o",
        "out.svg",
    )
    assert done.returncode == 0, done.stderr
    found = titles(tmp_path / "here" / "out.svg")
    assert {title.split(": ")[1].split(",")[0] for title in found} == {
        "1 operation",
        "2 operations",
        "3 operations",
    }


def test_the_script_runs_as_it_would_by_itself(graph):
    done = graph(
        """
        import sys
        from working import work
        print(sys.argv, __name__, __file__, sys.path[0].endswith("scripts"))
        work(1)
        sys.exit(7)
        """,
        SCRIPT,
        "3",
        "--steps",
        "5",
        "-o",
        "out.svg",
        "-v",
        "--",
        "-o",
        "theirs",
    )
    assert done.returncode == 7, done.stderr
    arguments = [SCRIPT, "3", "--steps", "5", "-v", "-o", "theirs"]
    assert done.stdout == f"{arguments} __main__ {SCRIPT} True\n"


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        ("raise KeyError('on purpose')", "KeyError: 'on purpose'"),
        ("sys.exit('enough of it')", "enough of it"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
def test_a_script_that_fails_is_drawn_so_far(graph, tmp_path, ending, message):
    done = graph(
        f"import sys\nfrom working import work\nwork(3)\n{ending}\n", SCRIPT, "-o", "out.svg"
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("File ") == ("raise" in ending), "the script's own frame only"
    assert titles(tmp_path / "here" / "out.svg") == [
        "batch 1 of 1: 3 operations, launched 1 time, none patched"
    ]


def test_a_script_that_does_not_compile(graph):
    done = graph("def f(:\n", SCRIPT, "-o", "out.svg")
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr
    assert "Traceback" not in done.stderr


def test_endings_in_capitals(graph, tmp_path):
    done = graph("from working import work\nwork(1)\n", SCRIPT, "-o", "out.SVG", "--dot", "out.DOT")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "here" / "out.SVG").read_text().startswith("<svg")
    assert (tmp_path / "here" / "out.DOT").exists()


@pytest.mark.parametrize(
    ("script", "environment", "message"),
    [
        ("import cyrt", {}, "script.py recorded nothing"),
        ("from working import work; work(1)", {"CYRT_GRAPHS": "0"}, "nothing is batched with"),
    ],
)
def test_nothing_to_draw(graph, tmp_path, script, environment, message):
    done = graph(script, SCRIPT, "-o", "out.svg", **environment)
    assert done.returncode == 1
    assert message in done.stderr
    assert not (tmp_path / "here" / "out.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py", "-o", "out.svg"], "missing.py: there is no such script"),
        ([SCRIPT, "-o", "missing/out.svg"], "there is no folder"),
        ([SCRIPT, "-o", "folder.svg"], "it is a folder"),
        ([SCRIPT, "-o", "out"], "out: expected a name that ends in .svg or .png"),
        ([SCRIPT, "-o", "."], "cyrt graph: .: expected a name that ends in .svg or .png"),
        ([SCRIPT, "-o", "other.py"], "other.py: expected a name that ends in .svg or .png"),
        ([SCRIPT, "-o", "out.svg", "--dot", "out.txt"], "expected a name that ends in .dot or .gv"),
        ([SCRIPT, "-o", "/proc/out.svg"], "/proc/out.svg cannot be written: "),
        ([SCRIPT, "-o", "same", "--dot", "same"], "must be different"),
        ([SCRIPT, "-o", SCRIPT], "must be different"),
        ([], "the following arguments are required: SCRIPT"),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_script_runs(graph, tmp_path, arguments, message):
    (tmp_path / "here" / "folder.svg").mkdir()
    done = graph("print('ran')", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["folder.svg"]


def test_no_device(graph):
    done = graph(
        "import cyrt\ncyrt.ones(1)",
        SCRIPT,
        "-o",
        "out.svg",
        CYRT_DEVICE="cuda",
        CUDA_VISIBLE_DEVICES="",
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "set CYRT_DEVICE=emulated" in done.stderr


def test_png(graph, tmp_path):
    try:
        import cairosvg  # noqa: F401
    except (ImportError, OSError):
        pytest.skip("needs cairosvg and Cairo")
    done = graph("from working import work; work(50)", SCRIPT, "-o", "out.png")
    assert done.returncode == 0, done.stderr
    content = (tmp_path / "here" / "out.png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n")
    width, height = struct.unpack(">II", content[16:24])
    assert max(width, height) <= 2 * 1123


@pytest.mark.parametrize(
    ("shown", "drawn", "pixels"),
    [
        ((300, 100), (300, 100), (600, 200)),
        ((400, 1000), (4000, 10000), (3578, 8944)),  # 32 million
        ((1, 1123), (20, 22460), (28, 32000)),
    ],
)
def test_a_png_is_as_large_as_the_drawing(monkeypatch, shown, drawn, pixels):
    found = []
    converter = SimpleNamespace(svg2png=lambda bytestring, scale: found.append(scale) or b"")
    monkeypatch.setitem(sys.modules, "cairosvg", converter)
    graph_png.png(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{shown[0]}" height="{shown[1]}" '
        f'viewBox="0 0 {drawn[0]} {drawn[1]}"/>'
    )
    assert tuple(round(found[0] * size) for size in shown) == pixels


@pytest.mark.parametrize(
    ("cairosvg", "message"),
    [
        ("raise ModuleNotFoundError('no', name='cairosvg')", "pip install 'cyrt[graph]'"),
        ("raise OSError('no library called cairo')", "apt install libcairo2"),
    ],
)
def test_png_without_what_it_needs(graph, tmp_path, cairosvg, message):
    (tmp_path / "here" / "cairosvg.py").write_text(cairosvg)
    done = graph("print('ran')", SCRIPT, "-o", "out.png")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("cyrt graph: PNG needs")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_copy_is_named_by_the_words_that_it_moves(graph, tmp_path):
    done = graph(
        """
        import cyrt
        x = cyrt.ones(1024)
        y, z = x.copy(), x[::2].copy()
        """,
        SCRIPT,
        "-o",
        "out.svg",
        "--dot",
        "out.dot",
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "here" / "out.dot").read_text()
    assert "cyrt_copy, 128-bit words\\n" in text
    assert "cyrt_copy_strided, 32-bit words\\n" in text
    assert "complex128\\n<<<" not in text


@pytest.mark.parametrize("way", ["..", "link", "hard link", "link to the folder", "dangling link"])
@pytest.mark.parametrize("option", ["-o", "--dot"])
def test_no_spelling_of_the_script_is_written(graph, tmp_path, way, option):
    text = "print('ran')"
    target = {"..": "../here/../scripts/script.py", "link to the folder": "folder/script.py"}.get(
        way, "out.svg"
    )
    arguments = ["-o", target] if option == "-o" else ["-o", "other.svg", "--dot", target]
    script = tmp_path / "scripts" / "script.py"
    script.write_text(text)
    here = tmp_path / "here"
    if way == "link":
        (here / target).symlink_to("../scripts/script.py")
    elif way == "hard link":
        (here / target).hardlink_to(script)
    elif way == "link to the folder":
        (here / "folder").symlink_to("../scripts")
    elif way == "dangling link":
        (here / target).symlink_to("nowhere")
        arguments = ["-o", "nowhere", "--dot", target]
    done = graph(text, SCRIPT, *arguments)
    assert done.returncode == 2
    assert "must be different" in done.stderr
    assert done.stdout == ""
    assert script.read_text() == text


def test_the_beginning_of_a_folder_is_not_written(graph, tmp_path):
    main = tmp_path / "scripts" / "__main__.py"
    main.write_text("print('ran')")
    done = graph("", "../scripts", "-o", "../scripts/__main__.py")
    assert done.returncode == 2
    assert "must be different" in done.stderr
    assert main.read_text() == "print('ran')"


def test_a_picture_that_the_script_made_a_link_to_itself(graph, tmp_path):
    text = "import os\nfrom working import work\nwork(1)\nos.link(__file__, 'out.svg')\n"
    done = graph(text, SCRIPT, "-o", "out.svg")
    assert done.returncode == 1
    assert "out.svg is the script's own file" in done.stderr
    assert (tmp_path / "scripts" / "script.py").read_text() == text


@pytest.mark.parametrize(
    "last",
    [
        "sys.stdout.close()",
        "sys.stdout = None",
        "sys.stderr.close()",
        "sys.stdout = sys.stderr = None",
    ],
)
def test_a_script_that_takes_its_output_away(graph, tmp_path, last):
    done = graph(
        f"import sys\nfrom working import work\nwork(1)\nprint('ran')\n{last}\n",
        SCRIPT,
        "-o",
        "out.svg",
    )
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "Traceback" not in done.stderr
    assert len(titles(tmp_path / "here" / "out.svg")) == 1


@pytest.mark.parametrize("ending", ["", "raise KeyError", "sys.exit('enough')"])
@pytest.mark.parametrize(
    ("output", "status", "message"),
    [(">&-", 0, ""), ("> /dev/full", 1, "cyrt: the output cannot be written"), ("| true", 1, "")],
)
def test_an_output_that_nobody_reads(graph, tmp_path, ending, output, status, message):
    program = f"import sys\nfrom working import work\nwork(1)\nprint('ran')\n{ending}\n"
    (tmp_path / "scripts" / "script.py").write_text(program)
    line = f"set -o pipefail; {sys.executable} -m cyrt graph {SCRIPT} -o out.svg {output}"
    done = processes.run(
        ["bash", "-c", line],
        cwd=tmp_path / "here",
        env={**os.environ, "CYRT_GRAPHS": "1", "PYTHONUNBUFFERED": ""},
    )
    assert done.returncode == (status or bool(ending))
    assert message in done.stderr
    assert done.stderr.count("Traceback") == (ending == "raise KeyError")
    assert len(titles(tmp_path / "here" / "out.svg")) == 1


def test_a_forked_child_draws_nothing(graph):
    done = graph(
        """
        import os, sys
        from working import work
        work(1)
        child = os.fork()
        if child == 0:
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """,
        SCRIPT,
        "-o",
        "out.svg",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("cyrt graph: ") == 1


def test_other_commands_take_no_arguments_of_a_script(graph):
    done = processes.run([sys.executable, "-P", "-m", "cyrt", "info", "--", "more"])
    assert done.returncode == 2
    assert "unrecognized arguments: more" in done.stderr


def test_fused_plans_are_drawn_behind_the_batches(graph, tmp_path):
    done = graph(
        """
        import cyrt
        from cyrt.builtin import background

        def work(times):
            x, b = cyrt.zeros(256), cyrt.ones(256)
            for _ in range(times):
                for _ in range(4):
                    x = x * 0.5 + b
                cyrt.commit()

        work(12)
        assert background.wait()
        work(12)
        """,
        SCRIPT,
        "-o",
        "out.svg",
        "--dot",
        "out.dot",
        CYRT_FUSE_AFTER="2",
        CYRT_FUSE="1",
        CYRT_REPLAY="1",
    )
    assert done.returncode == 0, done.stderr
    last = titles(tmp_path / "here" / "out.svg")[-1]
    assert "8 operations as 1, launched " in last
    text = (tmp_path / "here" / "out.dot").read_text()
    assert (
        "8 operations in one kernel:\\ncyrt_multiply_float32_aligned × 4\\ncyrt_add_float32" in text
    )
