from linklab.models.seeds import random_for, seed_for


def test_seeds_depend_on_the_run_and_every_name() -> None:
    seeds = {
        seed_for(1, "wifi", "loss"),
        seed_for(2, "wifi", "loss"),
        seed_for(1, "lte", "loss"),
        seed_for(1, "wifi", "jitter"),
        seed_for(1, "wifi"),
        seed_for(1),
        seed_for(11, "wifi"),
        seed_for(1, "wifiloss"),
        seed_for(1, "wi", "filoss"),
        seed_for(1, "wifi", "loss", ""),
    }
    assert len(seeds) == 10
    assert all(0 <= seed < 1 << 64 for seed in seeds)


def test_seeds_never_change_between_versions() -> None:
    assert seed_for(1, "wifi", "down") == 6640768887920966460


def test_the_same_names_draw_the_same() -> None:
    assert random_for(1, "lte", "trace").random() == random_for(1, "lte", "trace").random()
    assert random_for(1, "lte", "trace").random() != random_for(2, "lte", "trace").random()
