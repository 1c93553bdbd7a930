import math
from typing import Any

import pytest

from linklab.api.errors import UsageError
from linklab.api.settings import RunOptions, Settings, require_runs


@pytest.mark.parametrize(
    ("kind", "arguments", "words"),
    [
        (RunOptions, {"seed": -1}, "seed cannot be -1; allowed: 0 to 2^63-1"),
        (RunOptions, {"seed": True}, "seed cannot be True"),
        (RunOptions, {"seed": 1.5}, "seed cannot be 1.5"),
        (RunOptions, {"shift": -0.1}, "shift cannot be -0.1; allowed: 0 to 21600 seconds"),
        (RunOptions, {"shift": math.nan}, "shift cannot be nan"),
        (RunOptions, {"port": 0}, "port cannot be 0; allowed: 1 to 65535"),
        (Settings, {"place": "moon"}, "place cannot be 'moon'; allowed: auto, host, guest"),
        (Settings, {"clock": ""}, "clock cannot be ''; allowed: auto, virtual, real"),
        (Settings, {"processor": "arm64"}, "processor cannot be 'arm64'; allowed: auto, "),
        (Settings, {"timeout": math.inf}, "timeout cannot be inf"),
        (Settings, {"parallel": 0}, "parallel cannot be 0; allowed: 1 to 1024"),
    ],
)
def test_a_number_or_word_that_is_not_allowed_is_refused(
    kind: Any, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError) as raised:
        kind(**arguments)
    assert words in str(raised.value)


def test_what_is_allowed_is_kept() -> None:
    assert RunOptions(seed=2**63 - 1, shift=1).seed == 2**63 - 1
    assert Settings(timeout=2, parallel=1).timeout == 2
    require_runs(10_000)
    with pytest.raises(UsageError, match="runs cannot be 10001; allowed: 1 to 10000"):
        require_runs(10_001)
