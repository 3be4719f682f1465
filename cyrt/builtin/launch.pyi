class Explainer:
    launches: list[tuple[str, int, tuple[int, int]]]
    origin: str | None
