"""Pictures of batches."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyrt.cli.graph_svg import svg, titles
from cyrt.graph.drawing import PlanNode

SVG = "{http://www.w3.org/2000/svg}"


class Batch(NamedTuple):
    nodes: list[PlanNode]
    edges: list[tuple[int, int, bool]] = []  # noqa: RUF012
    launches: int = 1


def node(name="add", kind="kernel", *, patched=False, **facts):
    empty = {
        "grid": (4, 1, 1),
        "block": (256, 1, 1),
        "smem": 0,
        "cluster": None,
        "cooperative": False,
    }
    return PlanNode(name, kind, **{**empty, **facts}, patched=patched)


def size(picture):
    """Width and height in the units of its parts."""
    return tuple(map(float, picture.get("viewBox").split()[2:]))


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float


def boxes(picture):
    """The nodes' rectangles, in order."""
    found = []
    for group in picture.iterfind(f".//{SVG}g[@class='batch']//{SVG}g"):
        if group.get("class", "").startswith("node"):
            x, y = map(float, re.findall(r"[-\d.]+", group.get("transform")))
            rect = group.find(f"{SVG}rect")
            found.append(Box(x, y, x + float(rect.get("width")), y + float(rect.get("height"))))
    return found


def routes(picture):
    """Points along each edge: (source, target, programmatic) and a list."""
    for path in picture.iterfind(f".//{SVG}g[@class='batch']//{SVG}path"):
        kind = path.get("class").split()[1]
        source, target = map(int, re.findall(r"\d+", path.find(f"{SVG}title").text))
        points = []
        for letter, numbers in re.findall(r"([MLC])([-\d. ]+)", path.get("d")):
            n = list(map(float, numbers.split()))
            ends = list(zip(n[::2], n[1::2], strict=True))
            controls = [points[-1], *ends] if points else ends
            if letter == "L":  # as a curve
                controls = [controls[0], controls[0], controls[1], controls[1]]
            steps = 16 if len(controls) == 4 else 0
            points += [
                tuple(bezier(axis, i / steps) for axis in zip(*controls, strict=True))
                for i in range(1, steps + 1)
            ] or ends
        yield (source, target, kind == "programmatic"), points


def bezier(p, t):
    s = 1 - t
    return s**3 * p[0] + 3 * s * s * t * p[1] + 3 * s * t * t * p[2] + t**3 * p[3]


@st.composite
def batches(draw):
    count = draw(st.integers(1, 40))
    kinds = draw(
        st.lists(
            st.sampled_from(["kernel", "copy", "fill", "empty", "graph"]),
            min_size=count,
            max_size=count,
        )
    )
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(
        lambda pair: pair[0] < pair[1]
    )
    edges = draw(st.dictionaries(pairs, st.booleans(), max_size=80)) if count > 1 else {}
    return Batch(
        [node(f"{kind * draw(st.integers(1, 9))}{i}", kind) for i, kind in enumerate(kinds)],
        [(*pair, programmatic) for pair, programmatic in edges.items()],
    )


@given(batches())
def test_edges_lead_down_and_around_nodes(batch):
    picture = ET.fromstring(svg([batch]))
    found = boxes(picture)
    assert len(found) == len(batch.nodes)
    for a, b in combinations(found, 2):
        assert a.right < b.left or b.right < a.left or a.bottom < b.top or b.bottom < a.top
    drawn = dict(routes(picture))
    assert list(drawn) == batch.edges
    for (source, target, _), points in drawn.items():
        start, end = found[source], found[target]
        assert points[0] == pytest.approx(((start.left + start.right) / 2, start.bottom), abs=0.2)
        assert points[-1] == pytest.approx(((end.left + end.right) / 2, end.top), abs=0.2)
        assert all(a[1] <= b[1] for a, b in pairwise(points))
        for box in found:
            assert not any(
                box.left < x < box.right and box.top + 0.2 < y < box.bottom - 0.2 for x, y in points
            )
    width, height = size(picture)
    assert all(box.left >= 0 and box.right < width and box.bottom < height for box in found)


def test_rows_are_ordered_so_that_edges_do_not_cross():
    lower = {0: 7, 1: 5, 2: 6, 3: 4}
    found = boxes(ET.fromstring(svg([Batch([node()] * 8, [(*e, False) for e in lower.items()])])))
    assert [found[n].left for n in lower] == pytest.approx([found[n].left for n in lower.values()])


def test_an_edge_that_passes_rows_is_straight_there():
    edges = [(i, i + 1, False) for i in range(6)] + [(0, 6, True)]
    drawn = dict(routes(ET.fromstring(svg([Batch([node(f"add{i}") for i in range(7)], edges)]))))
    for points in drawn[0, 6, True][16:-16], drawn[2, 3, False]:
        across = [x for x, _ in points]
        assert max(across) - min(across) < 3


def test_what_is_wide_takes_several_rows():
    picture = ET.fromstring(svg([Batch([node()] * 128)]))
    assert max(size(picture)) < 1600


def test_several_batches_do_not_overlap():
    chain = Batch([node(f"add{i}") for i in range(60)], [(i, i + 1, False) for i in range(59)])
    picture = ET.fromstring(svg([chain, Batch([node()] * 9), chain, chain, Batch([node()])] * 2))
    panels = []
    for group in picture.iterfind(f"{SVG}g[@class='batch']"):
        x, y = map(float, re.findall(r"[-\d.]+", group.get("transform")))
        panel = group.find(f"{SVG}rect")
        panels.append(Box(x, y, x + float(panel.get("width")), y + float(panel.get("height"))))
    assert len(panels) == 10
    for a, b in combinations(panels, 2):
        assert a.right < b.left or b.right < a.left or a.bottom < b.top or b.bottom < a.top
    assert max(p.right for p in panels) < size(picture)[0]
    assert max(p.bottom for p in panels) < size(picture)[1]


@pytest.mark.parametrize("count", [1, 400])
def test_a_picture_fits_a_page(count):
    chain = Batch(
        [node(f"add{i}") for i in range(count)], [(i, i + 1, False) for i in range(count - 1)]
    )
    picture = ET.fromstring(svg([chain]))
    shown = [float(picture.get(side)) for side in ("width", "height")]
    shorter, longer = sorted(shown)
    assert shorter <= 794
    assert longer <= 1123
    width, height = size(picture)
    assert shown[0] / shown[1] == pytest.approx(width / height, rel=0.01)
    assert (shown[0] == width) == (count == 1)


def test_a_part_that_repeats_is_drawn_once_beside_a_loop():
    names = ["first", *["multiply", "add"] * 40, "last"]
    batch = Batch(
        [node(name, patched=i == 30) for i, name in enumerate(names)],
        [(i, i + 1, i % 2 == 0) for i in range(len(names) - 1)],
    )
    picture = ET.fromstring(svg([batch]))
    found = boxes(picture)
    assert len(found) == 4
    assert titles([batch])[0].startswith("batch 1 of 1: 82 operations")
    numbers = [text.text for text in picture.iterfind(f".//{SVG}g/{SVG}text[@class='number']")]
    assert numbers == ["0", "1", "2", "81"]
    assert [text.text for text in picture.iter(f"{SVG}text") if "×" in text.text] == ["× 40"]
    (loop,) = picture.iterfind(f".//{SVG}g[@class='batch']//{SVG}path[@class='edge loop']")
    points = list(map(float, re.findall(r"[-\d.]+", loop.get("d"))))
    x, y = points[::2], points[1::2]
    assert found[1].top < y[-1] < found[1].bottom < found[2].top < y[0] < found[2].bottom
    assert max(x) > max(box.right for box in found[1:3])
    kinds = [group.get("class") for group in picture.iterfind(f".//{SVG}g[@class='batch']//{SVG}g")]
    assert kinds[1:] == ["node kernel", "node kernel", "node kernel patched", "node kernel"]
    details = [t.text.split("\n")[-1] for t in picture.iterfind(f".//{SVG}g/{SVG}title")]
    assert details[1] == "the first of 40 equal ones"


def test_titles():
    loop = Batch([node(), node("empty", "empty"), node(patched=True), node(patched=True)], [], 1200)
    once = Batch([node()])
    assert titles([loop, once]) == [
        "batch 1 of 2: 3 operations, launched 1,200 times, 2 patched",
        "batch 2 of 2: 1 operation, launched 1 time, none patched",
    ]
    texts = {text.text for text in ET.fromstring(svg([loop, once])).iter(f"{SVG}text")}
    assert texts > set(titles([loop, once]))


def test_a_node_tells_all_it_has():
    symbol = "_Z8reduce_kIfLi256EEvPKT_"
    kernel = node(
        symbol,
        grid=(8, 2, 1),
        block=(128, 2, 2),
        smem=4096,
        cluster=(2, 1, 1),
        cooperative=True,
        patched=True,
    )
    readable = {symbol: "a_name_space::of_some_length::reduce_k<float, 256>", "copy": "copy"}
    picture = ET.fromstring(svg([Batch([kernel, node("copy", "copy")])], readable.__getitem__))
    first, second = picture.iterfind(f".//{SVG}g[@class='batch']//{SVG}g[{SVG}title]")
    assert first.get("class") == "node kernel patched"
    assert [text.text for text in first.iter(f"{SVG}text")] == [
        "0",
        "a_name_space::of_som…float, 256>",
        "<<<(8, 2), (128, 2, 2), 4096>>> cluster 2 cooperative",
    ]
    assert first.find(f"{SVG}title").text.split("\n") == [
        "0: a_name_space::of_some_length::reduce_k<float, 256>",
        symbol,
        "kernel",
        "grid 8 × 2 × 1",
        "block 128 × 2 × 2",
        "cluster 2 × 1 × 1",
        "4,096 bytes of dynamic shared memory",
        "cooperative",
        "patched by the last launch",
    ]
    assert second.get("class") == "node copy"
    assert "".join(second.itertext()) == "1: copy1copy"


def test_any_name_makes_well_formed_pictures():
    name = '<a & "b"> ]]> \'\x00\x1b\udc80\n\\'
    batch = Batch([node(name)])
    (title,) = ET.fromstring(svg([batch]).encode()).iterfind(
        f".//{SVG}g[@class='node kernel']/{SVG}title"
    )
    assert title.text.startswith('0: <a & "b"> ]]> \'\ufffd\ufffd\ufffd\ufffd\\\n')


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    low, high = sorted(map(luminance, (a, b)))
    return (high + 0.05) / (low + 0.05)


def test_readable_on_light_and_dark():
    style = ET.fromstring(svg([])).find(f"{SVG}style").text
    light, dark = (
        {
            selector: dict(part.strip().split(":") for part in rule.split(";"))
            for selector, rule in re.findall(r"^(\.cyrt .*) \{(.*#.*)\}$", part, re.MULTILINE)
        }
        for part in style.split("@media (prefers-color-scheme: dark)")
    )
    assert light.keys() == dark.keys()
    assert luminance(light[".cyrt .paper"]["fill"]) > 0.9
    assert luminance(dark[".cyrt .paper"]["fill"]) < 0.1
    for theme in light, dark:
        grounds = [rule["fill"] for selector, rule in theme.items() if "rect" in selector]
        panel = theme[".cyrt .panel"]["fill"]
        for text in (".cyrt text", ".cyrt .number, .cyrt .launch"):
            assert all(contrast(theme[text]["fill"], ground) > 4.5 for ground in [*grounds, panel])
        for edge in (".cyrt .full", ".cyrt .programmatic"):
            assert contrast(theme[edge]["stroke"], panel) > 3
