"""Plans in Graphviz's language."""

from __future__ import annotations

import re

from cyrt.graph.drawing import PlanNode, dot


def node(name="add", kind="kernel", *, patched=False, **facts):
    empty = {
        "grid": (4, 1, 1),
        "block": (256, 1, 1),
        "smem": 0,
        "cluster": None,
        "cooperative": False,
    }
    return PlanNode(name, kind, **{**empty, **facts}, patched=patched)


def test_dot():
    nodes = [node("first"), node("copy", "copy", patched=True), node("last")]
    lines = dot(nodes, [(0, 1, False), (0, 2, True)], title="batch 1", label=str.upper).split("\n")
    assert lines[0] == "digraph {"
    assert 'label="batch 1"' in lines[1]
    assert lines[3].startswith(r'  n0 [label="0: FIRST\n<<<4, 256>>>", tooltip="0: FIRST\nfirst\n')
    assert 'label="1: COPY"' in lines[4]
    assert ["filled" in line for line in lines[3:6]] == [False, True, False]
    assert lines[6:] == ["  n0 -> n1", "  n0 -> n2 [style=dashed]", "}", ""]


def test_any_name_is_quoted():
    name = '<a & "b"> ]]> \'\x00\x1b\udc80\n\\'
    text = dot([node(name)], [])
    assert text.encode()
    assert r"""n0 [label="0: <a & \"b\"> ]]> '���\n\\\n<<<4, 256>>>", """ in text
    unescaped = re.sub(r'"(?:[^"\\\n]|\\.)*"', "", text)
    assert '"' not in unescaped
    assert "&" not in unescaped
