"""What a compilation gives, and its form as plain data, which is what the disk keeps of it."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

from cyrt.jit.parameters import Parameter, Signature


@dataclass(frozen=True)
class Image:
    """Code for a device, and what its kernels are called and take.

    Attributes
    ----------
    code : bytes
        PTX, as text, or a cubin.
    format : str
        ``"ptx"`` or ``"cubin"``.
    lowered : dict of str to str
        The symbol of each name asked for; every kernel's symbol is there too, as itself.
    signatures : dict of str to Signature
        The parameters of each kernel, under the same keys as in `lowered`, all sizes known.
        Names of variables have none.
    log : str
        What the compiler said: warnings, or nothing.
    """

    code: bytes
    format: str
    lowered: dict[str, str]
    signatures: dict[str, Signature]
    log: str = ""

    def facts(self) -> dict[str, Any]:
        """All but the code, as JSON has it; `from_facts` reads it."""
        return {
            "format": self.format,
            "lowered": self.lowered,
            "signatures": {
                name: [found.name, [astuple(p) for p in found.parameters]]
                for name, found in self.signatures.items()
            },
            "log": self.log,
        }


def from_facts(facts: dict[str, Any], code: bytes) -> Image:
    """Return the image that `Image.facts` and its code were taken from.

    Raises
    ------
    ValueError
        If they are not an image's.
    """
    try:
        return Image(
            code=code,
            format=facts["format"],
            lowered=facts["lowered"],
            signatures={
                name: Signature(symbol, tuple(Parameter(*p) for p in parameters))
                for name, (symbol, parameters) in facts["signatures"].items()
            },
            log=facts["log"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not the facts of an image: {error!r}") from None
