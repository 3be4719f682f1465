from typing import Any

encoders: dict[int, Any]
encoder_class: type | None

class Recorder: ...

def commit_current() -> None: ...
