class Plan:
    names: list[str]
    edges: list[tuple[int, int, bool]]
    patched: list[int]

def held() -> tuple[int, int]: ...
