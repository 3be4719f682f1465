from cyrt.runtime.memory import Buffer

class PinnedBuffer(Buffer):
    def __buffer__(self, flags: int, /) -> memoryview: ...

class ManagedBuffer(Buffer):
    def __buffer__(self, flags: int, /) -> memoryview: ...
