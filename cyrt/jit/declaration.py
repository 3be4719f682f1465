"""Reading a kernel's signature from its C++ declaration.

This is not a C++ parser: it knows what a kernel's parameter list may contain, and reports where it
stopped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn

from cyrt.jit.parameters import Parameter, Signature, by_value, type_layout

_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/|\\\n)|(?P<word>[A-Za-z_$][\w$]*)"
    r'|(?P<number>\.?\d(?:[\w.\']|[eEpP][+-])*)|(?P<text>"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\')'
    r"|(?P<mark>::|\.\.\.|->|&&|.)",
    re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}

#: Words of built-in types, in the order of their canonical spelling.
_ARITHMETIC = (
    "signed", "unsigned", "short", "long", "bool", "char", "int", "float", "double",
    "__int128", "__int64", "void",
)  # fmt: skip
_QUALIFIERS = {"const", "volatile", "__const", "__volatile__"}
_IGNORED = {
    "__restrict__", "__restrict", "restrict", "__grid_constant__", "register", "typename",
    "struct", "class", "enum", "union", "__shared__", "__device__", "__constant__", "constexpr",
}  # fmt: skip
#: Words before a kernel's name that are followed by a group in parentheses.
_WITH_GROUP = {
    "__launch_bounds__", "__cluster_dims__", "__block_size__", "__maxnreg__", "__attribute__",
    "__attribute", "__declspec", "__align__", "alignas", "requires", "noexcept", "explicit",
}  # fmt: skip
_BEFORE_NAME = {
    "__global__", "static", "inline", "__inline__", "__forceinline__", "__noinline__", "extern",
    "void", "auto", "constexpr", "export", "__host__", "__device__",
}  # fmt: skip
_AFTER_LIST = {"", ";", "{", ":", "->", "const", "try"} | _WITH_GROUP

_Token = tuple[str, int]


def from_declaration(text: str) -> Signature:
    """Read a signature from a C++ declaration.

    Parameters
    ----------
    text : str
        ``extern "C" __global__ void saxpy(float a, const float *x, float *y, int n)``, with or
        without qualifiers, names, default arguments and a body; ``(float, const float*)`` is
        enough. The target of a pointer is read if it is ``const``, otherwise read and written.

    Returns
    -------
    Signature
        Types that are not built in (structs, enumerations) have size 0, to be completed.

    Raises
    ------
    ValueError
        If it is not such a declaration, or has a parameter that no kernel can take; the message
        shows the text and the position.
    """
    if not isinstance(text, str):
        raise TypeError(f"a declaration is a str, got {type(text).__name__}")
    return _DeclarationReader(text).signature()


class _DeclarationReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[_Token] = [
            (m.group(), m.start()) for m in _TOKEN.finditer(text) if m.lastgroup != "space"
        ]

    def fail(self, what: str, at: int) -> NoReturn:
        start = self.text.rfind("\n", 0, at) + 1
        line = self.text[start:].split("\n", 1)[0]
        caret = " " * (at - start) + "^"
        raise ValueError(f"cannot read the kernel declaration: {what}\n    {line}\n    {caret}")

    def word(self, index: int) -> str:
        return self.tokens[index][0] if index < len(self.tokens) else ""

    def skip_group(self, index: int, *, end: int | None = None) -> int:
        """Return the index after the group that opens at `index`."""
        end = len(self.tokens) if end is None else end
        waiting = []
        for i in range(index, end):
            token = self.tokens[i][0]
            if token in _CLOSING:
                waiting.append(_CLOSING[token])
            elif token in ")]}":
                if token != waiting.pop():
                    self.fail(f"unexpected '{token}'", self.tokens[i][1])
                if not waiting:
                    return i + 1
        self.fail(f"'{self.tokens[index][0]}' is never closed", self.tokens[index][1])

    def skip_angles(self, index: int, end: int) -> int:
        """Return the index after the template argument list at `index`, or `index` if none is."""
        depth, i = 0, index
        while i < end:
            token = self.tokens[i][0]
            if token == "<":
                depth += 1
            elif token == ">":
                depth -= 1
                if not depth:
                    return i + 1
            elif token in _CLOSING:
                i = self.skip_group(i, end=end)
                continue
            if token in ")]};" or not depth:
                break
            i += 1
        return index

    def signature(self) -> Signature:
        name, i, end = "", 0, len(self.tokens)
        while i < end:
            token, at = self.tokens[i]
            if token == "(":
                break
            if token == "template":
                i = self.skip_angles(i + 1, end)
            elif token == "[":
                i = self.skip_group(i)
            elif token in _WITH_GROUP:
                i = self.skip_group(i + 1) if self.word(i + 1) == "(" else i + 1
            elif token in _BEFORE_NAME or token.startswith(('"', "'")):
                i += 1
            elif token in _ARITHMETIC:
                self.fail(f"a kernel returns void, not '{token}'", at)
            elif token[0].isalpha() or token[0] in "_$:":
                # A macro may precede the name: the last word is the name.
                name, i = self.qualified(i, end)
            else:
                self.fail(f"unexpected '{token}'", at)
        if i == end:
            self.fail("no parameter list '(…)'", len(self.text.rstrip()))
        after = self.skip_group(i)
        if self.word(after) not in _AFTER_LIST:
            self.fail(f"unexpected '{self.word(after)}'", self.tokens[after][1])
        return Signature(name, tuple(self.parameters(i + 1, after - 1)))

    def qualified(self, index: int, end: int) -> tuple[str, int]:
        """Read ``a::b<c>::d`` and return it with the index after it."""
        i = index
        while i < end:
            if self.word(i) in ("::", "template"):
                i += 1
                continue
            if not re.match(r"[A-Za-z_$]", self.word(i)):
                self.fail("expected a name", self.tokens[i][1])
            i += 1
            if i < end and self.word(i) == "<":
                i = self.skip_angles(i, end)
            if i >= end or self.word(i) != "::":
                break
        return self.joined(index, i).removeprefix("::"), i

    def joined(self, start: int, end: int) -> str:
        parts: list[str] = []
        for i in range(start, end):
            token = self.tokens[i][0]
            if token == "template":
                continue
            if parts and parts[-1][-1:].isidentifier() and token[:1].isidentifier():
                parts.append(" ")
            parts.append(token + " " if token == "," else token)
        return "".join(parts)

    def parameters(self, start: int, end: int) -> list[Parameter]:
        if start == end or (end == start + 1 and self.word(start) == "void"):
            return []
        found, i = [], start
        while True:
            stop = self.next_comma(i, end)
            if stop == i:
                self.fail("a parameter is missing", self.tokens[i][1])
            found.append(_ParameterReader(self, i, stop).parameter())
            if stop == end:
                return found
            i = stop + 1

    def next_comma(self, index: int, end: int) -> int:
        i = index
        while i < end and self.word(i) != ",":
            if self.word(i) in _CLOSING:
                i = self.skip_group(i, end=end)
            elif self.word(i) == "<":
                i = max(i + 1, self.skip_angles(i, end))
            else:
                i += 1
        return i


class _ParameterReader:
    """One parameter, tokens `start` to `end` of a reader: a type and a declarator."""

    def __init__(self, reader: _DeclarationReader, start: int, end: int) -> None:
        self.r, self.i, self.end = reader, start, end
        # A default argument does not affect the type.
        for i in range(start, end):
            if reader.word(i) == "=":
                self.end = i
                break
        self.start = start

    def fail(self, what: str) -> NoReturn:
        i = min(self.i, len(self.r.tokens) - 1)
        self.r.fail(what, self.r.tokens[i][1])

    def peek(self) -> str:
        return self.r.word(self.i) if self.i < self.end else ""

    def skip_ignored(self) -> None:
        while True:
            if self.peek() in ("alignas", "__align__", "__attribute__") or (
                self.peek() == "[" and self.r.word(self.i + 1) == "["
            ):
                self.i += self.peek() != "["
                self.i = self.r.skip_group(self.i, end=self.end)
            elif self.peek() in _IGNORED:
                self.i += 1
            else:
                return

    def base(self) -> tuple[str, bool]:
        """Read the type before any ``*``; return it and whether it is const."""
        words: list[str] = []
        named, const = "", False
        while True:
            self.skip_ignored()
            token = self.peek()
            if token in _QUALIFIERS:
                const |= token in ("const", "__const")
                self.i += 1
            elif token in _ARITHMETIC and not named:
                words.append(token)
                self.i += 1
            elif (token[:1].isalpha() or token[:1] in ("_", "$", ":")) and not (named or words):
                if token in ("decltype", "auto"):
                    self.fail(f"'{token}' does not name a type by itself; write the type")
                named, self.i = self.r.qualified(self.i, self.end)
            else:
                break
        if words:
            named = _arithmetic(words, self.fail)
        if not named:
            self.fail("expected a type")
        return named, const

    def parameter(self) -> Parameter:
        named, const = self.base()
        return self.declarator(named, const)

    def declarator(self, named: str, const: bool) -> Parameter:
        # `spelled`: the type so far. `const`: True if its outermost level is const. `depth`: its
        # stars.
        spelled, depth, name = f"const {named}" if const else named, 0, ""
        target = const
        while True:
            self.skip_ignored()
            token = self.peek()
            if token == "*":
                target, const = const, False
                spelled, depth = spelled + "*", depth + 1
                self.i += 1
            elif token in _QUALIFIERS and depth:
                if token in ("const", "__const") and not const:
                    spelled, const = spelled + " const", True
                self.i += 1
            elif token in ("&", "&&"):
                self.fail("a kernel takes no references; pass a value or a pointer")
            elif token == "...":
                self.fail("a kernel takes no variable arguments or packs; list the parameters")
            elif token == "(":
                return self.grouped(spelled, const)
            elif token == "[":
                target, const, depth = const, False, depth + 1
                spelled = self.arrays(spelled)
            elif token and (token[0].isalpha() or token[0] in "_$") and not name:
                if self.r.word(self.i + 1) == "::":
                    self.fail("a kernel takes no pointers to members")
                name = token
                self.i += 1
            elif not token:
                break
            else:
                self.fail(f"unexpected '{token}'")
        spelled = spelled.removesuffix(" const") if depth else spelled
        if depth:
            return Parameter(spelled, "pointer", 8, 8, not target, name)
        if named == "void":
            self.i = self.start
            self.fail("a parameter cannot be void")
        return by_value(named, name)

    def arrays(self, spelled: str) -> str:
        """Read ``[…][N]``: a parameter that is an array is a pointer to its elements."""
        sizes = []
        while self.peek() == "[":
            close = self.r.skip_group(self.i, end=self.end)
            sizes.append(self.r.joined(self.i, close))
            self.i = close
        return f"{spelled} (*){''.join(sizes[1:])}" if sizes[1:] else f"{spelled}*"

    def grouped(self, spelled: str, const: bool) -> Parameter:
        """Read ``(*name)(…)``, a function's address, or ``(*name)[N]``, an array's."""
        close = self.r.skip_group(self.i, end=self.end)
        inside = [self.r.word(i) for i in range(self.i + 1, close - 1)]
        if "&" in inside or "&&" in inside:
            self.fail("a kernel takes no references; pass a value or a pointer")
        words = [w for w in inside if w not in _QUALIFIERS | _IGNORED]
        after = self.r.word(close) if close < self.end else ""
        if words[:1] != ["*"] or len(words) > 2 or after not in ("(", "["):
            self.fail("expected a pointer to a function or to an array")
        name = words[1] if len(words) == 2 else ""
        rest = self.r.joined(close, self.end)
        if after == "(":
            return Parameter(f"{spelled} (*){rest}", "u64", 8, 8, False, name)
        return Parameter(f"{spelled} (*){rest}", "pointer", 8, 8, not const, name)


def _arithmetic(words: list[str], fail: Callable[[str], NoReturn]) -> str:
    """Return the usual spelling of a built-in type: ``long unsigned`` is ``unsigned long``."""
    if words.count("long") > 2 or any(words.count(w) > 1 for w in set(words) - {"long"}):
        fail(f"'{' '.join(words)}' is not a type")
    ordered = sorted(words, key=_ARITHMETIC.index)
    if "__int64" in ordered:
        ordered[ordered.index("__int64")] = "long long"
    sizes = [w for w in ordered if w in ("short", "long", "long long", "char", "__int128")]
    if "int" in ordered and sizes:
        ordered.remove("int")
    if "signed" in ordered and "char" not in ordered:
        ordered.remove("signed")
        ordered = ordered or ["int"]
    if ordered == ["unsigned"]:
        ordered = ["unsigned", "int"]
    name = " ".join(ordered)
    if name != "void" and not type_layout(name)[1]:
        fail(f"'{' '.join(words)}' is not a type")
    return name
