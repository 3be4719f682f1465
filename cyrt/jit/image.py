"""The result of a compilation, and its form as JSON facts and bytes for the disk cache."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

from cyrt.jit.parameters import Parameter, Signature


@dataclass(frozen=True)
class Image:
    """Code for a device, and its kernels' symbols and signatures.

    Attributes
    ----------
    code : bytes
        PTX, as text, or a cubin.
    format : str
        ``"ptx"`` or ``"cubin"``.
    lowered : dict of str to str
        The symbol of each requested name; every kernel's symbol is also a key, for itself.
    signatures : dict of str to Signature
        The parameters of each kernel, under the same keys as in `lowered`, with all sizes known.
        Variables have no entry.
    log : str
        The compiler's messages: warnings, or an empty string.
    """

    code: bytes
    format: str
    lowered: dict[str, str]
    signatures: dict[str, Signature]
    log: str = ""

    def facts(self) -> dict[str, Any]:
        """All fields except the code, as JSON types; `from_facts` reads them."""
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
    """Return the image with these facts (from `Image.facts`) and this code.

    Raises
    ------
    ValueError
        If the facts are not an image's.
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
