"""linklab: a testbed for multi-link HTTP over emulated LTE and Wi-Fi links."""

__version__ = "0.1.0"
