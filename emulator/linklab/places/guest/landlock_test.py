import tempfile
from pathlib import Path

from linklab.places.guest import landlock


def test_the_readable_is_all_but_the_hidden(tmp_path: Path) -> None:
    for path in ("a/b/secret", "a/b/open", "a/c", "d/secrets"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    (tmp_path / "link").symlink_to("a/b/secret")
    hidden = {str(tmp_path / "a/b/secret"), str(tmp_path / "d"), str(tmp_path / "not-there")}
    found = sorted(landlock.readable(str(tmp_path), hidden))
    assert found == [f"{tmp_path}/a/b/open", f"{tmp_path}/a/c"]
    assert list(landlock.readable(str(tmp_path / "d"), hidden)) == []
    assert list(landlock.readable("/", set())) == ["/"]
    # A name that another begins with is another.
    assert list(landlock.readable(str(tmp_path / "a"), {f"{tmp_path}/a/bb"})) == [
        f"{tmp_path}/a/b",
        f"{tmp_path}/a/c",
    ]


def test_only_the_two_directories_and_null_are_written(tmp_path: Path) -> None:
    rules = dict(landlock.rules([str(tmp_path)], {"/etc/shadow"}, ()))
    assert rules[str(tmp_path)] == landlock.READ | landlock.WRITE
    written = {path for path, rights in rules.items() if rights & landlock.WRITE}
    assert written == {str(tmp_path), "/dev/null"}
    assert "/etc/passwd" in rules
    assert not {"/", "/etc", "/etc/shadow", "/proc", "/dev", "/sys"} & set(rules)


def test_what_is_hidden_in_shared_memory_is_not_read() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        secret = Path(directory, "secret")
        secret.touch()
        Path(directory, "open").touch()
        rules = dict(landlock.rules((), {str(secret)}, ()))
    assert rules[f"{directory}/open"] == landlock.READ
    assert not {str(secret), directory, "/dev/shm"} & set(rules)
