"""linklab: a testbed for multi-link HTTP over emulated LTE and Wi-Fi links."""

__version__: str


def __getattr__(name: str) -> str:
    """`__version__`, which takes asking git."""
    if name == "__version__":
        from linklab.core.version import own_version

        return own_version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
