from pathlib import Path

import pytest

from linklab.places.guest import user_namespaces


@pytest.mark.parametrize(
    ("values", "command"),
    [
        ({}, ""),
        ({"user/max_user_namespaces": "96000"}, ""),
        ({"user/max_user_namespaces": "0"}, "sysctl user.max_user_namespaces=10000"),
        # Ubuntu 24.04 as it is installed.
        (
            {
                "user/max_user_namespaces": "96000",
                "kernel/unprivileged_userns_clone": "1",
                "kernel/apparmor_restrict_unprivileged_userns": "1",
            },
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        (
            {"kernel/unprivileged_userns_clone": "0", "user/max_user_namespaces": "0"},
            "sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000",
        ),
        ({"kernel/unprivileged_userns_clone": "what?"}, ""),
    ],
)
def test_the_setting_that_refuses_is_named(
    tmp_path: Path, values: dict[str, str], command: str
) -> None:
    for name, value in values.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{value}\n")
    assert user_namespaces.remedy(tmp_path) == command


def test_a_try_says_why_it_fails_and_leaves_nothing_that_waits(tmp_path: Path) -> None:
    assert user_namespaces.refused(["true"]) is None
    assert user_namespaces.refused(["false"]) == "it ended with 1"
    assert user_namespaces.refused(["sh", "-c", "echo one >&2; echo two >&2; exit 3"]) == "two"
    another = tmp_path / "self"
    another.symlink_to("1")
    tried = tmp_path / "tried"
    said = user_namespaces.refused(["touch", str(tried)], another)
    assert said is not None
    assert "--mount-proc" in said
    assert not tried.exists()
