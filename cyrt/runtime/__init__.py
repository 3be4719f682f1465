"""Objects of the driver: devices, streams, events, memory, modules."""
