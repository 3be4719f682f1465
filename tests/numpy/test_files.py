"""Arrays in files: every element type and shape comes back, and a damaged file is an error."""

from __future__ import annotations

import importlib.metadata
import io
import os
import pickle
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from safetensors import safe_open

import cyrt
from cyrt.dtypes import DTYPES

NAMES = [each.name for each in DTYPES]
SHAPES = {
    "whole": lambda x: x,
    "no dimensions": lambda x: x[0, 1, 2],
    "empty": lambda x: x[:, :0],
    "strided": lambda x: x[1, ::-1, ::2].T,
    "broadcast": lambda x: cyrt.broadcast_to(x[0, 0], (3, 4)),
}


def made(name, shape):
    host = np.arange(24).reshape(2, 3, 4)
    if name not in ("bool",) and not name.startswith("uint"):
        host = host - 7
    x = cyrt.asarray(host.astype(cyrt.dtype(name).numpy))
    if name.startswith("complex"):
        x = x + 2j
    return SHAPES[shape](x)


def same(found, wanted):
    assert isinstance(found, cyrt.Array)
    assert found.dtype is wanted.dtype
    assert found.shape == wanted.shape
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_round_trip(name, shape, tmp_path):
    x = made(name, shape)
    cyrt.save(tmp_path / "x", x)  # the suffix is added
    same(cyrt.load(tmp_path / "x.npy"), x)
    cyrt.savez(str(tmp_path / "x"), x, y=x)
    cyrt.savez_compressed(os.fsencode(tmp_path / "z"), x, y=x)
    for file in ("x.npz", "z.npz"):
        found = cyrt.load(tmp_path / file)
        assert set(found) == {"arr_0", "y"}
        same(found["arr_0"], x)
        same(found["y"], x)
    same(pickle.loads(pickle.dumps(x)), x)
    if name != "complex128":
        cyrt.save_safetensors(tmp_path / "x.safetensors", {"x": x, "y": x})
        found = cyrt.load_safetensors(tmp_path / "x.safetensors")
        assert set(found) == {"x", "y"}
        same(found["x"], x)
        same(found["y"], x)
    assert not [each for each in os.listdir(tmp_path) if "partial" in each]


@pytest.mark.parametrize("name", NAMES)
def test_numpy_reads_what_is_written(name, tmp_path):
    x = made(name, "strided")
    cyrt.save(tmp_path / "x.npy", x)
    found = np.load(tmp_path / "x.npy")
    if name == "bfloat16":
        assert found.dtype == "V2"
        found = found.view(ml_dtypes.bfloat16)
    assert found.dtype.name == name
    np.testing.assert_array_equal(found, x.numpy())
    np.save(tmp_path / "y.npy", x.numpy())
    same(cyrt.load(tmp_path / "y.npy"), x)


def test_open_files():
    x = cyrt.asarray([1.5, 2], dtype="bfloat16")
    for write, read in (
        (cyrt.save, lambda found: found),
        (cyrt.savez, lambda found: found["arr_0"]),
    ):
        file = io.BytesIO()
        write(file, x)
        file.seek(0)
        same(read(cyrt.load(file)), x)


def test_numbers_and_lists_are_written():
    file = io.BytesIO()
    cyrt.savez(file, [1.5, 2], z=3)
    file.seek(0)
    assert {name: each.tolist() for name, each in cyrt.load(file).items()} == {
        "arr_0": [1.5, 2],
        "z": 3,
    }


def test_other_byte_order(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3, dtype=">i4"))
    found = cyrt.load(tmp_path / "x.npy")
    assert (found.dtype, found.tolist()) == ("int32", [0, 1, 2])


@pytest.mark.parametrize(
    "host",
    [
        np.zeros(2, [("a", "i1"), ("b", "i1")]),
        np.zeros(2, "V4"),
        np.zeros(2, "V1"),
        np.array(["a"]),
        np.zeros(1, "M8[s]"),
    ],
    ids=lambda host: host.dtype.str,
)
def test_other_element_types(host, tmp_path):
    np.save(tmp_path / "x.npy", host)
    np.savez(tmp_path / "x.npz", y=host)
    with pytest.raises(TypeError, match=r"load: .*x\.npy: dtype.* is not an element type"):
        cyrt.load(tmp_path / "x.npy")
    with pytest.raises(
        TypeError, match=r"load: .*x\.npz, array 'y': dtype.* is not an element type"
    ):
        cyrt.load(tmp_path / "x.npz")
    for program in (
        lambda: cyrt.save(tmp_path / "y.npy", host),
        lambda: cyrt.savez(tmp_path / "y.npz", cyrt.ones(2), host),
        lambda: cyrt.savez_compressed(tmp_path / "y.npz", k=host),
        lambda: cyrt.save_safetensors(tmp_path / "y", {"k": host}),
    ):
        with pytest.raises(TypeError, match="is not an element type"):
            program()
    assert sorted(os.listdir(tmp_path)) == ["x.npy", "x.npz"]


def test_files_that_are_none(tmp_path):
    (tmp_path / "text.py").write_text("print(1)\n")
    with pytest.raises(ValueError, match=r"text\.py is damaged, or not a file of NumPy's format$"):
        cyrt.load(tmp_path / "text.py")
    np.save(tmp_path / "objects.npy", np.array([{}, None]), allow_pickle=True)
    with pytest.raises(TypeError, match=r"objects\.npy: an array of Python objects") as caught:
        cyrt.load(tmp_path / "objects.npy")
    assert "pickle" not in str(caught.value)
    with pytest.raises(TypeError, match="load: file: expected a name, a path or .*, got int"):
        cyrt.load(3)


def test_the_file_comes_first(tmp_path):
    x = cyrt.ones(1)
    for name, function, arguments in (
        ("save", cyrt.save, (x, tmp_path / "x.npy")),
        ("savez", cyrt.savez, (x, "x.npz")),
        ("savetxt", cyrt.savetxt, (x, "x.txt")),
        ("save_checkpoint", cyrt.save_checkpoint, ({"x": x}, tmp_path / "x.npz")),
    ):
        with pytest.raises(TypeError, match=f"^{name}: file: .* got .*: the file comes first$"):
            function(*arguments)
    with pytest.raises(TypeError, match="^load_checkpoint: file: expected a name, .* got dict$"):
        cyrt.load_checkpoint({"x": x}, "x.npz")
    assert not os.listdir(tmp_path)


def test_a_buffer_is_no_array(tmp_path):
    buffer = cyrt.Buffer(8)
    for program, name in (
        (lambda: cyrt.save(tmp_path / "x", buffer), "save: arr"),
        (lambda: cyrt.savez(tmp_path / "x", y=buffer), "savez: y"),
        (lambda: cyrt.savetxt(tmp_path / "x", buffer), "savetxt: X"),
        (lambda: cyrt.save_safetensors(tmp_path / "x", {"y": buffer}), "save_safetensors: .*y"),
    ):
        with pytest.raises(TypeError, match=f"{name}.*: expected an Array, got Buffer"):
            program()
    cyrt.save(tmp_path / "pinned", cyrt.PinnedBuffer(8))
    assert cyrt.load(tmp_path / "pinned.npy").dtype is cyrt.uint8
    assert os.listdir(tmp_path) == ["pinned.npy"]


def cut_everywhere(whole):
    return [whole[:length] for length in {*range(0, len(whole), 7), len(whole) - 1}]


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "z.npz", "x.safetensors"])
def test_truncated(name, tmp_path):
    x = cyrt.arange(50, dtype="float64")
    cyrt.save(tmp_path / "x.npy", x)
    cyrt.savez(tmp_path / "x.npz", x, y=x)
    cyrt.savez_compressed(tmp_path / "z.npz", x, y=x)
    cyrt.save_safetensors(tmp_path / "x.safetensors", {"x": x})
    load = cyrt.load_safetensors if name == "x.safetensors" else cyrt.load
    for part in cut_everywhere((tmp_path / name).read_bytes()):
        (tmp_path / name).write_bytes(part)
        with pytest.raises(ValueError, match=rf"load.*{name}.* is damaged, or not a file of"):
            load(tmp_path / name)


def test_damaged(rng):
    """Bytes exchanged anywhere: an array, or a ValueError or TypeError."""
    files = []
    for write in (cyrt.save, cyrt.savez, cyrt.savez_compressed):
        file = io.BytesIO()
        write(file, cyrt.arange(20))
        files.append(file.getvalue())
    refused = 0
    for _ in range(600):
        damaged = bytearray(files[rng.integers(len(files))])
        for place in rng.integers(len(damaged), size=rng.integers(1, 4)):
            damaged[place] = rng.integers(256)
        try:
            cyrt.load(io.BytesIO(bytes(damaged)))
        except (ValueError, TypeError):
            refused += 1
    assert refused


def test_no_array_in_an_archive(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("note.txt", "text")
    with pytest.raises(ValueError, match=r"x\.npz, array 'note\.txt' is not an array"):
        cyrt.load(tmp_path / "x.npz")


# -- written whole, or not at all ------------------------------------------------------------------


def failing(writer):
    def write(*args, **options):
        path = next(each for each in args if isinstance(each, str))
        Path(path).write_bytes(b"half")
        raise OSError("the disk is full")

    return write


@pytest.mark.parametrize(
    ("module", "writer", "file", "program"),
    [
        (np, "save", "x.npy", lambda file: cyrt.save(file, cyrt.ones(3))),
        (np, "savez", "x.npz", lambda file: cyrt.savez(file, cyrt.ones(3))),
        (np, "savez_compressed", "x.npz", lambda file: cyrt.savez_compressed(file, cyrt.ones(3))),
        (np, "savetxt", "x.csv", lambda file: cyrt.savetxt(file, cyrt.ones(3))),
        (
            safetensors.numpy,
            "save_file",
            "x.safetensors",
            lambda file: cyrt.save_safetensors(file, {"x": cyrt.ones(3)}),
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_writer_that_fails_leaves_the_old_file(
    module, writer, file, program, tmp_path, monkeypatch
):
    (tmp_path / file).write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(module, writer, failing(writer))
        with pytest.raises(OSError, match="the disk is full"):
            program(tmp_path / file)
    assert os.listdir(tmp_path) == [file]
    assert (tmp_path / file).read_bytes() == b"old"
    program(tmp_path / file)
    assert os.listdir(tmp_path) == [file]
    assert (tmp_path / file).read_bytes() != b"old"


def test_a_file_that_is_replaced_keeps_its_mode_and_its_links(tmp_path):
    (tmp_path / "data.npy").touch(0o640)
    (tmp_path / "link.npy").symlink_to("data.npy")
    cyrt.save(tmp_path / "link.npy", cyrt.ones(2))
    assert (tmp_path / "link.npy").is_symlink()
    assert (tmp_path / "data.npy").stat().st_mode & 0o777 == 0o640
    assert cyrt.load(tmp_path / "data.npy").tolist() == [1, 1]
    assert sorted(os.listdir(tmp_path)) == ["data.npy", "link.npy"]


def test_a_pipe_is_not_replaced(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.npy")
    written = []
    monkeypatch.setattr(np, "save", lambda file, *args, **options: written.append(file))
    cyrt.save(tmp_path / "pipe.npy", cyrt.ones(2))
    assert written == [str(tmp_path / "pipe.npy")]
    assert (tmp_path / "pipe.npy").is_fifo()


def test_no_such_folder(tmp_path):
    for program in (
        lambda: cyrt.save(tmp_path / "none" / "x", cyrt.ones(2)),
        lambda: cyrt.save_safetensors(tmp_path / "none" / "x", {}),
        lambda: cyrt.load(tmp_path / "none"),
        lambda: cyrt.load_safetensors(tmp_path / "none"),
    ):
        with pytest.raises(FileNotFoundError, match="none"):
            program()


# -- safetensors -----------------------------------------------------------------------------------


def test_safetensors_reads_what_is_written(tmp_path):
    file = tmp_path / "x.safetensors"
    arrays = {name: made(name, "strided") for name in NAMES if name != "complex128"}
    cyrt.save_safetensors(file, arrays, {"format": "np", "step": "3"})
    with safe_open(file, framework="np") as opened:
        assert opened.metadata() == {"format": "np", "step": "3"}
        for name, x in arrays.items():
            np.testing.assert_array_equal(opened.get_tensor(name), x.numpy())


def test_what_safetensors_writes_is_read(tmp_path):
    file = str(tmp_path / "x.safetensors")
    hosts = {name: made(name, "whole").numpy() for name in NAMES if name != "complex128"}
    safetensors.numpy.save_file(hosts, file)
    found = cyrt.load_safetensors(file)
    assert set(found) == set(hosts)
    for name, host in hosts.items():
        assert found[name].dtype == name
        np.testing.assert_array_equal(found[name].numpy(), host)


def test_numpy_arrays_in_any_order_are_written(tmp_path):
    host = np.asfortranarray(np.arange(6).reshape(2, 3))
    cyrt.save_safetensors(tmp_path / "x", {"x": host, "y": host[:, ::-1]})
    found = cyrt.load_safetensors(tmp_path / "x")
    np.testing.assert_array_equal(found["x"].numpy(), host)
    np.testing.assert_array_equal(found["y"].numpy(), host[:, ::-1])


def test_an_element_type_of_safetensors_alone(tmp_path):
    header = b'{"x":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}}'
    (tmp_path / "x").write_bytes(len(header).to_bytes(8, "little") + header + b"\x38\x38")
    with pytest.raises(TypeError, match="'x' is of element type F8_E4M3, which cyrt does not have"):
        cyrt.load_safetensors(tmp_path / "x")


@pytest.mark.parametrize(
    ("error", "text", "program"),
    [
        (
            TypeError,
            "'x': the format has no complex128",
            lambda file: cyrt.save_safetensors(file, {"x": cyrt.ones(2, dtype="complex128")}),
        ),
        (
            TypeError,
            "arrays: expected a mapping of str to Array, got list",
            lambda file: cyrt.save_safetensors(file, [cyrt.ones(2)]),
        ),
        (
            TypeError,
            "arrays: expected names of type str, got 1",
            lambda file: cyrt.save_safetensors(file, {1: cyrt.ones(2)}),
        ),
        (
            ValueError,
            "the name '__metadata__' is the format's own",
            lambda file: cyrt.save_safetensors(file, {"__metadata__": cyrt.ones(2)}),
        ),
        (
            TypeError,
            "metadata: expected a mapping of str to str, got 'a': 1",
            lambda file: cyrt.save_safetensors(file, {"x": cyrt.ones(2)}, {"a": 1}),
        ),
        (
            TypeError,
            "metadata: expected a mapping of str to str, got list",
            lambda file: cyrt.save_safetensors(file, {"x": cyrt.ones(2)}, []),
        ),
        (
            TypeError,
            "file: expected a path, got BytesIO",
            lambda file: cyrt.save_safetensors(io.BytesIO(), {}),
        ),
        (
            TypeError,
            "file: expected a path, got BytesIO",
            lambda file: cyrt.load_safetensors(io.BytesIO()),
        ),
    ],
    ids=lambda each: None,
)
def test_refused(error, text, program, tmp_path):
    with pytest.raises(error, match=text):
        program(tmp_path / "x.safetensors")
    assert not os.listdir(tmp_path)


def test_a_write_that_safetensors_refuses_is_an_os_error(tmp_path, monkeypatch):
    def refuse(*args):
        raise safetensors.SafetensorError("no space")

    monkeypatch.setattr(safetensors.numpy, "save_file", refuse)
    with pytest.raises(OSError, match="x cannot be written: no space"):
        cyrt.save_safetensors(tmp_path / "x", {})
    assert not os.listdir(tmp_path)


def test_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.delitem(sys.modules, "safetensors.numpy")
    for program in (
        lambda: cyrt.save_safetensors(tmp_path / "x", {}),
        lambda: cyrt.load_safetensors(tmp_path / "x"),
    ):
        with pytest.raises(ImportError, match=r"pip install 'cyrt\[safetensors\]'"):
            program()


def test_what_an_installation_brings():
    requires = importlib.metadata.requires("cyrt")
    assert any(each.startswith("ml_dtypes") and "extra" not in each for each in requires)
    assert any("safetensors" in each and 'extra == "safetensors"' in each for each in requires)


# -- text and bytes --------------------------------------------------------------------------------


def test_text(tmp_path):
    x = cyrt.asarray(np.array([[1.5, 2], [3, -4]], np.float32))
    for name in ("x.csv", "x.csv.gz"):
        cyrt.savetxt(tmp_path / name, x, delimiter=",")
        found = cyrt.loadtxt(tmp_path / name, delimiter=",")
        assert found.dtype == cyrt.float32
        assert found.tolist() == np.loadtxt(tmp_path / name, delimiter=",").tolist() == x.tolist()
    assert cyrt.loadtxt(["# no number", "3 4"], int, usecols=1).tolist() == 4


@pytest.mark.parametrize("name", NAMES[1:])
def test_text_of_every_type(name, tmp_path):
    x = made(name, "whole")[0]
    cyrt.savetxt(tmp_path / "x", x, fmt="%d" if x.dtype.kind in "iu" else "%.18e")
    found = cyrt.loadtxt(tmp_path / "x", name)
    same(found, x)


def test_bytes_become_an_array():
    host = np.arange(6, dtype=np.int16)
    assert cyrt.frombuffer(host.tobytes(), "int16", 2, 4).tolist() == [2, 3]
    assert cyrt.frombuffer(host.tobytes(), cyrt.uint8).size == 12
    assert cyrt.frombuffer(b"\x80\x3f\x00\x40", "bfloat16").tolist() == [1, 2]
    assert cyrt.asnumpy(cyrt.asarray(host)).tolist() == cyrt.asnumpy(range(6)).tolist()
    assert type(cyrt.asnumpy(cyrt.zeros(1))) is np.ndarray
