"""Names the places, clocks and processors that a user may ask for. Pure."""

from typing import Final

PLACES: Final = ("auto", "host", "guest")
CLOCKS: Final = ("auto", "virtual", "real")
PROCESSORS: Final = ("auto", "native", "emulated")
PROCESSOR: Final = "LINKLAB_PROCESSOR"
"""The environment variable with the processor for guests. `--processor` sets it, so that the
processes of a campaign have it, too."""
