"""The parts of the C and C++ standard headers that device code uses and NVRTC lacks, as text.

NVRTC has no standard headers, and defines none of their macros and types except `size_t`; nvcc uses
the host compiler's, and includes many in every source. NVRTC receives these texts as headers in
memory, so that a kernel written for nvcc compiles unchanged. Functions that nvcc rejects in device
code (`exit`, `strlen`, `std::sort`) are absent here too.
"""

from __future__ import annotations

import re

from cyrt.jit.standard_c import C_HEADERS, MATH_FUNCTIONS, STDINT_TYPES, SYS_TYPES
from cyrt.jit.standard_cxx import ALGORITHM, ARRAY, NUMERIC_LIMITS, TYPE_TRAITS, UTILITY

#: Name of each header, and its text.
STANDARD_HEADERS: dict[str, str] = {
    name: "#pragma once\n" + text
    for name, text in {
        **{f"{name}.h": text for name, text in C_HEADERS.items()},
        **{f"c{name}": f"#include <{name}.h>\n" for name in C_HEADERS},
        "sys/types.h": SYS_TYPES,
        "algorithm": ALGORITHM,
        "array": ARRAY,
        "initializer_list": "",
        "limits": NUMERIC_LIMITS,
        "new": "",
        "type_traits": TYPE_TRAITS,
        "utility": UTILITY,
    }.items()
}


def _macros(name: str) -> list[str]:
    return re.findall(r"#define (?!__)(\w+)", STANDARD_HEADERS[name])


#: The header that declares a name which NVRTC reports as undefined, for the headers that nvcc
#: includes by default.
GLOBAL_NAMES: dict[str, str] = {
    **{name: "stdint.h" for name in STDINT_TYPES},
    **{name: "sys/types.h" for name in ("u_char", "ushort", "uint", "ulong")},
    **{
        macro: header
        for header in ("float.h", "limits.h", "math.h", "stddef.h", "stdint.h")
        for macro in _macros(header)
    },
}

#: The same for members of namespace std.
STD_NAMES: dict[str, str] = {
    member: header
    for header, members in {
        "cmath": MATH_FUNCTIONS,
        "cstdint": STDINT_TYPES,
        "cstddef": ["size_t", "ptrdiff_t", "nullptr_t", "byte"],
        "cstdio": ["printf"],
        "cstdlib": ["labs", "llabs", "malloc", "free"],
        "cstring": ["memcpy", "memset"],
        "algorithm": ["min", "max", "clamp"],
        "array": ["array"],
        "limits": ["numeric_limits"],
        "type_traits": re.findall(
            r"(?:struct|using|constexpr bool) (?!__)(\w+)\b", STANDARD_HEADERS["type_traits"]
        ),
        "utility": [
            *("as_const", "exchange", "integer_sequence", "make_integer_sequence", "make_pair"),
            *("index_sequence", "index_sequence_for", "make_index_sequence", "pair", "swap"),
        ],
    }.items()
    for member in members
}
