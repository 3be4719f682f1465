from typing import Any

encoders: dict[int, Any]
nvtx: Any

class Recorder: ...
