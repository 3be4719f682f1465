"""The driver's objects: devices, streams, events, memory, modules."""
