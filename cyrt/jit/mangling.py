"""Reading a kernel's signature from its symbol: the Itanium C++ ABI's name mangling.

Source of the grammar: "Itanium C++ ABI", section 5.1 "External Names (a.k.a. Mangling)".

INVARIANTS
- `_SymbolReader.seen` holds the substitution candidates in the ABI's order: every prefix and every
  compound type once, none of the built-in types and none of the substitutions themselves.
- A type that cannot be known for sure gives None, never a guess: a type that is a *member* of
  something that depends on a template argument may be any type at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import NoReturn

from cyrt.jit.parameters import Parameter, Signature, by_value

_BUILTIN = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char",
    "h": "unsigned char", "s": "short", "t": "unsigned short", "i": "int", "j": "unsigned int",
    "l": "long", "m": "unsigned long", "x": "long long", "y": "unsigned long long",
    "n": "__int128", "o": "unsigned __int128", "f": "float", "d": "double", "e": "long double",
    "g": "__float128", "z": "...",
}  # fmt: skip
_BUILTIN_D = {
    "h": "__half", "i": "char32_t", "s": "char16_t", "u": "char8_t", "n": "std::nullptr_t",
}  # fmt: skip
_ABBREVIATED = {
    "a": "std::allocator", "b": "std::basic_string", "s": "std::string", "i": "std::istream",
    "o": "std::ostream", "d": "std::iostream",
}  # fmt: skip


class _UnsureError(Exception):
    """The symbol cannot be decoded with certainty."""


def _unsure() -> NoReturn:
    raise _UnsureError


@dataclass(frozen=True, slots=True)
class _Node:
    """A part of a mangled name.

    Kinds: ``name`` (text), ``literal`` (text), ``member`` (scope, name), ``instance`` (template,
    arguments…), ``builtin`` (text), ``qualified`` (text holds ``const``/``volatile``; type),
    ``pointer``, ``reference``, ``array`` (text is its length), ``function`` (result,
    parameters…), ``complex``, ``argument`` (text is the index), ``pack`` (types…), ``expansion``.
    """

    kind: str
    text: str = ""
    parts: tuple[_Node, ...] = ()

    def depends(self) -> bool:
        """True if it contains a template argument of the kernel."""
        return self.kind == "argument" or any(part.depends() for part in self.parts)


class _SymbolReader:
    def __init__(self, symbol: str) -> None:
        self.s, self.i = symbol, 0
        self.seen: list[_Node] = []

    # -- characters ----------------------------------------------------------------------------

    def at(self, text: str) -> bool:
        return self.s.startswith(text, self.i)

    def take(self, text: str) -> bool:
        if self.at(text):
            self.i += len(text)
            return True
        return False

    def match(self, pattern: str) -> str:
        found = re.compile(pattern).match(self.s, self.i)
        if not found:
            _unsure()
        self.i = found.end()
        return found.group()

    def remember(self, node: _Node) -> _Node:
        self.seen.append(node)
        return node

    # -- names ---------------------------------------------------------------------------------

    def encoding(self) -> tuple[_Node, list[_Node]]:
        """``<name> <bare-function-type>``: the name, then the types to the symbol's end."""
        name = self.name()
        types = []
        while self.i < len(self.s):
            types.append(self.type())
        return name, types

    def name(self) -> _Node:
        if self.take("N"):
            return self.nested()
        if self.at("Z"):
            _unsure()
        if self.at("S") and not self.at("St"):
            node = self.substitution()
            if not self.at("I"):
                _unsure()
            return self.instance(node)
        node = self.unqualified(_Node("name", "std") if self.take("St") else None)
        return self.instance(self.remember(node)) if self.at("I") else node

    def nested(self) -> _Node:
        self.match("r?V?K?[RO]?")
        node: _Node | None = None
        while not self.take("E"):
            if self.at("S") and node is None:
                # Neither "St" alone nor a substitution is a candidate.
                node = _Node("name", "std") if self.take("St") else self.substitution()
                continue
            if self.at("I") and node is not None:
                node = self.instance(node)
            elif self.at("T") and node is None:
                node = self.template_parameter()
            else:
                node = self.unqualified(node)
            self.remember(node)
        if node is None or not self.seen or self.seen[-1] is not node:
            _unsure()
        # The whole name is a candidate only if it is a type, which the caller decides.
        self.seen.pop()
        return node

    def unqualified(self, scope: _Node | None) -> _Node:
        self.take("L")
        length = int(self.match(r"[1-9]\d{0,4}"))
        text = self.s[self.i : self.i + length]
        if len(text) < length:
            _unsure()
        self.i += length
        while self.take("B"):
            self.i += int(self.match(r"[1-9]\d{0,4}"))
        node = _Node("name", "(anonymous namespace)" if text.startswith("_GLOBAL__N_") else text)
        return node if scope is None else _Node("member", "", (scope, node))

    def instance(self, template: _Node) -> _Node:
        return _Node("instance", "", (template, *self.arguments()))

    def arguments(self) -> list[_Node]:
        if not self.take("I"):
            _unsure()
        return self.arguments_to_end()

    def arguments_to_end(self) -> list[_Node]:
        found = []
        while not self.take("E"):
            found.append(self.argument())
        return found

    def argument(self) -> _Node:
        if self.take("J"):
            return _Node("pack", "", tuple(self.arguments_to_end()))
        if self.take("L"):
            return self.literal()
        if self.at("X"):
            _unsure()
        return self.type()

    def literal(self) -> _Node:
        if self.at("_Z") or self.at("Z"):
            # The address of a function or variable: it has a separate encoding.
            _unsure()
        type = self.type()
        value = self.match(r"n?[0-9a-f]*").replace("n", "-")
        if not self.take("E"):
            _unsure()
        if type.text == "bool":
            return _Node("literal", {"0": "false", "1": "true"}.get(value, value))
        return _Node("literal", value)

    def substitution(self) -> _Node:
        self.match("S")
        for letter, text in _ABBREVIATED.items():
            if self.take(letter):
                return _Node("name", text)
        return self.indexed(self.seen)

    def indexed(self, table: list[_Node]) -> _Node:
        digits = self.match("[0-9A-Z]*_")[:-1]
        index = int(digits, 36) + 1 if digits else 0
        if index >= len(table):
            _unsure()
        return table[index]

    def template_parameter(self) -> _Node:
        digits = self.match(r"T\d*_")[1:-1]
        return _Node("argument", str(int(digits) + 1 if digits else 0))

    # -- types ---------------------------------------------------------------------------------

    def type(self) -> _Node:
        s, i = self.s, self.i
        letter = s[i : i + 1]
        if letter in _BUILTIN and letter:
            self.i += 1
            return _Node("builtin", _BUILTIN[letter])
        if letter == "D":
            return self.type_d()
        if letter == "S" and not self.at("St"):
            node = self.substitution()
            return self.remember(self.instance(node)) if self.at("I") else node
        return self.remember(self.compound(letter))

    def type_d(self) -> _Node:
        if self.take("DF16b"):
            return _Node("builtin", "__bf16")
        if self.take("DF16_"):
            return _Node("builtin", "_Float16")
        if self.take("Dp"):
            return self.remember(_Node("expansion", "", (self.type(),)))
        letter = self.s[self.i + 1 : self.i + 2]
        if letter not in _BUILTIN_D:
            # Expressions, vectors, exception specifications, automatic types.
            _unsure()
        self.i += 2
        return _Node("builtin", _BUILTIN_D[letter])

    def compound(self, letter: str) -> _Node:
        if letter in ("r", "V", "K"):
            qualifiers = self.match("r?V?K?")
            text = " ".join(
                word for mark, word in (("K", "const"), ("V", "volatile")) if mark in qualifiers
            )
            return _Node("qualified", text, (self.type(),))
        if self.take("P"):
            return _Node("pointer", "", (self.type(),))
        if letter in ("R", "O"):
            self.i += 1
            return _Node("reference", "", (self.type(),))
        if self.take("C"):
            return _Node("complex", "", (self.type(),))
        if self.take("A"):
            length = self.match(r"\d*_")[:-1]
            return _Node("array", length, (self.type(),))
        if self.take("F"):
            self.take("Y")
            parts = []
            while not self.take("E"):
                if self.at("RE") or self.at("OE"):
                    _unsure()
                parts.append(self.type())
            return _Node("function", "", tuple(parts))
        if self.take("U"):
            # A vendor's qualifier, such as an address space, does not change a known layout.
            _unsure()
        if letter == "T":
            if not re.match("[0-9_]", self.s[self.i + 1 : self.i + 2]):
                self.match("T[sue]")
                return self.name()
            node = self.template_parameter()
            return self.instance(self.remember(node)) if self.at("I") else node
        if letter == "N" or letter.isdigit() or letter in ("S", "L"):
            return self.name()
        _unsure()


@cache
def readable_name(symbol: str) -> str:
    """Return a kernel's name as source has it, or the symbol if it cannot be read."""
    signature = from_mangled(symbol)
    return symbol if signature is None else signature.name


def from_mangled(symbol: str) -> Signature | None:
    """Read a signature from a mangled kernel name.

    Parameters
    ----------
    symbol : str
        A symbol in PTX or a cubin: ``_Z4axpyIfEvT_PKS0_PS0_i``.

    Returns
    -------
    Signature or None
        None if the symbol is not mangled, or its types cannot be known for sure. Parameters have no
        names; structs and enumerations have size 0, to be completed.
    """
    if not symbol.startswith("_Z"):
        return None
    try:
        reader = _SymbolReader(symbol)
        reader.i = 2
        name, types = reader.encoding()
        arguments: tuple[_Node, ...] = ()
        if name.kind == "instance":
            # A template's symbol begins with the result type, which is void for a kernel.
            arguments = name.parts[1:]
            types.pop(0)
        if not types:
            # A variable: a function without parameters has `v`.
            return None
        parameters = _parameters(types, arguments)
        return Signature(_spell(name, arguments), parameters)
    except (_UnsureError, IndexError, RecursionError):
        return None


def variable_name(symbol: str) -> str:
    """Return a variable's qualified C++ name, ``ns::table<float>``, or an undecodable symbol."""
    if not symbol.startswith("_Z"):
        return symbol
    try:
        reader = _SymbolReader(symbol)
        reader.i = 2
        name = reader.name()
        return _spell(name, ()) if reader.i == len(symbol) else symbol
    except (_UnsureError, IndexError, RecursionError):
        return symbol


def from_probe(symbol: str) -> tuple[Parameter, ...] | None:
    """Return the parameters of the function type in the symbol of a template's instance.

    Parameters
    ----------
    symbol : str
        The symbol of ``probe<void(float, const float*)>``: ``_Z5probeIFvfPKfEEvv``.
    """
    try:
        reader = _SymbolReader(symbol)
        reader.match("_Z")
        name = reader.name()
        if name.kind != "instance" or name.parts[1].kind != "function":
            return None
        return _parameters(list(name.parts[1].parts[1:]), ())
    except (_UnsureError, IndexError, RecursionError):
        return None


# -- from nodes to parameters ----------------------------------------------------------------------


def _parameters(types: list[_Node], arguments: tuple[_Node, ...]) -> tuple[Parameter, ...]:
    resolved = []
    for type in types:
        resolved.extend(_expand(type, arguments))
    if [t.text for t in resolved] == ["void"]:
        return ()
    return tuple(_parameter(type) for type in resolved)


def _parameter(type: _Node) -> Parameter:
    if type.kind == "qualified":
        type = type.parts[0]
    if type.kind == "pointer":
        target = type.parts[0]
        if target.kind == "function":
            return Parameter(_text(type), "u64", 8, 8, False)
        inner = target
        while inner.kind == "array":
            inner = inner.parts[0]
        const = inner.kind == "qualified" and "const" in inner.text
        return Parameter(_text(type), "pointer", 8, 8, not const)
    if type.kind == "reference":
        return Parameter(_text(type), "reference", 8, 8, True)
    if type.kind == "complex":
        code = {"float": ("c64", 8, 4), "double": ("c128", 16, 8)}.get(type.parts[0].text)
        if code is None:
            _unsure()
        return Parameter(_text(type), *code, False)
    if type.kind not in ("builtin", "name", "member", "instance") or type.text in ("void", "..."):
        _unsure()
    return by_value(_text(type))


def _expand(type: _Node, arguments: tuple[_Node, ...]) -> list[_Node]:
    """Return the type with template arguments substituted: several types for a pack expansion."""
    if type.kind != "expansion":
        return [_resolve(type, arguments)]
    lengths = {len(pack.parts) for pack in _packs(type, arguments)}
    if len(lengths) != 1:
        _unsure()
    return [_resolve(type.parts[0], arguments, index) for index in range(lengths.pop())]


def _packs(type: _Node, arguments: tuple[_Node, ...]) -> list[_Node]:
    if type.kind == "argument":
        argument = arguments[int(type.text)]
        return [argument] if argument.kind == "pack" else []
    return [pack for part in type.parts for pack in _packs(part, arguments)]


def _resolve(type: _Node, arguments: tuple[_Node, ...], index: int | None = None) -> _Node:
    if type.kind == "argument":
        found = arguments[int(type.text)]
        if found.kind == "pack":
            if index is None:
                _unsure()
            found = found.parts[index]
        return found if not found.depends() else _unsure()
    if not type.parts:
        return type
    if type.kind == "member" and type.parts[0].depends():
        _unsure()
    if type.kind == "instance" and type.parts[0].kind == "argument":
        # A template used as an argument may be an alias of any type.
        _unsure()
    parts = _flatten(type.parts, arguments, index)
    if type.kind == "qualified" and parts[0].kind == "qualified":
        # `const T` with a T that is already const.
        words = sorted({*type.text.split(), *parts[0].text.split()})
        return _Node("qualified", " ".join(words), parts[0].parts)
    if type.kind == "qualified" and parts[0].kind in ("reference", "function"):
        return parts[0]
    return _Node(type.kind, type.text, tuple(parts))


def _flatten(
    types: tuple[_Node, ...], arguments: tuple[_Node, ...], index: int | None
) -> list[_Node]:
    """Return the resolved types, with packs and their expansions replaced by their elements."""
    found: list[_Node] = []
    for type in types:
        if type.kind == "expansion":
            found += _expand(type, arguments)
        elif type.kind == "pack":
            found += _flatten(type.parts, arguments, index)
        else:
            found.append(_resolve(type, arguments, index))
    return found


def _spell(type: _Node, arguments: tuple[_Node, ...]) -> str:
    return _text(_resolve(type, arguments))


def _text(type: _Node) -> str:
    kind, parts = type.kind, type.parts
    if kind == "member" and parts[0].text.startswith("_INTERNAL_"):
        # NVRTC's scope of static names.
        return _text(parts[1])
    if kind == "member":
        return f"{_text(parts[0])}::{_text(parts[1])}"
    if kind == "instance":
        return f"{_text(parts[0])}<{', '.join(map(_text, parts[1:]))}>"
    if kind == "qualified":
        inner = _text(parts[0])
        return f"{inner} {type.text}" if parts[0].kind == "pointer" else f"{type.text} {inner}"
    if kind in ("pointer", "reference"):
        return _around(parts[0], "*" if kind == "pointer" else "&")
    if kind == "function":
        return f"{_text(parts[0])} ({_list_types(parts[1:])})"
    if kind == "array":
        return f"{_text(parts[0])} [{type.text}]"
    if kind == "complex":
        return f"{_text(parts[0])} _Complex"
    if kind in ("pack", "expansion"):
        _unsure()
    return type.text


def _around(target: _Node, mark: str) -> str:
    if target.kind == "function":
        return f"{_text(target.parts[0])} ({mark})({_list_types(target.parts[1:])})"
    if target.kind == "pointer":
        return _around(target.parts[0], "*" + mark)
    if target.kind == "qualified" and target.parts[0].kind == "pointer":
        return _around(target.parts[0].parts[0], f"* {target.text}{mark}")
    if target.kind == "array":
        sizes = ""
        while target.kind == "array":
            sizes, target = f"{sizes}[{target.text}]", target.parts[0]
        return f"{_text(target)} ({mark}){sizes}"
    return _text(target) + mark


def _list_types(types: tuple[_Node, ...]) -> str:
    text = ", ".join(map(_text, types))
    return "" if text == "void" else text
