"""The links between host and device, and the device's memory, at sizes that no cache holds."""
