CONSTANTS: dict[str, dict[str, int]]
