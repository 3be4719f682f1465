CYTHON_VERSION: str
CONSTANTS: dict[str, dict[str, int]]
