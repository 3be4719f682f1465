"""Finding the kernels that a CUDA source declares, before it is compiled.

A tolerant scan, not a parser: kernels made by macros are not found, and a result need not exist.
The compiler decides both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cyrt.jit.declaration import from_declaration
from cyrt.jit.parameters import Signature

_SKIPPED = re.compile(
    r'//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n]){1,8}\'',
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
_CONDITION = re.compile(r"[ \t]*#\s*(if|ifdef|ifndef|elif|else|endif)\b\s*(\w*)")
_MARK = re.compile(
    r'(?P<extern>\bextern\s*"C")|\bnamespace\b(?P<space>[\w:\s]*)(?=\{)'
    r"|(?P<kernel>\b__global__\b)|(?P<mark>[{};])"
)


_EXTERN_C = 'extern "C"'


@dataclass(frozen=True, slots=True)
class DeclaredKernel:
    """A kernel as its source declares it.

    Attributes
    ----------
    name : str
        With its namespaces, as a name expression: ``ns::axpy``.
    text : str
        The declaration, from ``__global__`` on and without the body.
    extern_c : bool
        True if its symbol is its bare name.
    template : bool
        True if it is a template, so that only its instances are code.
    """

    name: str
    text: str
    extern_c: bool
    template: bool

    @property
    def symbol(self) -> str:
        """The symbol of an ``extern "C"`` kernel: its name without namespaces."""
        return self.name.rpartition("::")[2]

    def signature(self) -> Signature | None:
        """The parameters that its text declares; None if the text cannot be read."""
        try:
            return from_declaration(self.text)
        except ValueError:
            return None

    def parameter_names(self) -> tuple[str, ...]:
        """The parameters' names; none if they cannot be read."""
        signature = self.signature()
        return tuple(p.name for p in signature.parameters) if signature else ()


def declared_kernels(source: str) -> list[DeclaredKernel]:
    """Return the kernels that a CUDA C++ source declares, in its order."""
    text = _without_directives(_SKIPPED.sub(_blank, source))
    found: list[DeclaredKernel] = []
    # One entry per open brace: a namespace's name, 'extern "C"', or neither.
    scopes: list[str | None] = []
    opening: str | None = None
    begin, until = 0, -1
    for m in _MARK.finditer(text):
        if m.start() < until:
            continue
        if m["extern"]:
            opening = _EXTERN_C
        elif m["space"] is not None:
            opening = re.sub(r"\s|\binline\b", "", m["space"])
        elif m["kernel"]:
            end = _declaration_end(text, m.end())
            kernel = _kernel(text[begin : m.start()], text[m.start() : end].strip(), scopes)
            if kernel:
                found.append(kernel)
            until = end
        else:
            if m["mark"] == "{":
                scopes.append(opening)
            elif m["mark"] == "}" and scopes:
                scopes.pop()
            begin, opening = m.end(), None
    return found


def _blank(m: re.Match[str]) -> str:
    # Offsets and lines are preserved; "C" is kept too, for extern "C".
    return m.group() if m.group() == '"C"' else re.sub(r"[^\n]", " ", m.group())


def _without_directives(text: str) -> str:
    """Blank preprocessor lines, and text under ``#if 0``."""
    parts, begin, off, depth = [], 0, 0, 0
    for m in _DIRECTIVE.finditer(text):
        between = text[begin : m.start()]
        parts.append(re.sub(r"[^\n]", " ", between) if off else between)
        parts.append(re.sub(r"[^\n]", " ", m.group()))
        begin = m.end()
        condition = _CONDITION.match(m.group())
        if not condition:
            continue
        word = condition[1]
        if word.startswith("if"):
            depth += 1
            if not off and condition[1] == "if" and condition[2] in ("0", "false"):
                off = depth
        elif depth == off and off:
            off = 0
        depth -= word == "endif"
    return "".join(parts) + text[begin:]


def _declaration_end(text: str, start: int) -> int:
    """Return the end of the declaration around `start`: its body or semicolon."""
    depth = 0
    for m in re.compile(r"[(){};]").finditer(text, start):
        if m.group() == "(":
            depth += 1
        elif m.group() == ")":
            depth -= 1
        elif depth <= 0:
            return m.start()
    return len(text)


def _kernel(before: str, text: str, scopes: list[str | None]) -> DeclaredKernel | None:
    """Return the kernel declared by `text`, from ``__global__`` on; None if it has no name."""
    try:
        name = from_declaration(text).name
    except ValueError:
        # Macros, or types that the reader does not know.
        name = _name_before_last_list(text)
    if not name:
        return None
    spaces = [s for s in scopes if s and s != _EXTERN_C]
    return DeclaredKernel(
        name="::".join([*spaces, name]),
        text=text,
        extern_c=_EXTERN_C in scopes or bool(re.search(r'\bextern\s*"C"', before)),
        template=bool(re.search(r"\btemplate\s*<\s*[^>\s]", before)),
    )


def _name_before_last_list(text: str) -> str:
    depth, name = 0, ""
    for m in re.finditer(r"(\w+)\s*\(|[()]", text):
        if m[1] and not depth and not m[1].startswith("__"):
            name = m[1]
        depth += -1 if m.group() == ")" else 1
    return name
