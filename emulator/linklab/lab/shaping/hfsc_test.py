from linklab.lab.shaping import hfsc
from linklab.lab.shaping.conftest import ADD, CHANGE, CLASS, INDEX, ROOT, decoded
from linklab.lab.shaping.hfsc import Curve


def test_a_class_is_limited_by_its_curve() -> None:
    curve = Curve(1_000, 20_000, 10_000_000)
    read, options = decoded(hfsc.put_class(INDEX, CLASS, ROOT, curve, new=True))
    assert (read["handle"], read["parent"], read["header"]["flags"]) == (CLASS, ROOT, ADD)
    limit = options.get_attr("TCA_HFSC_USC")  # type: ignore[attr-defined]
    assert (limit["m1"], limit["d"], limit["m2"]) == curve
    share = options.get_attr("TCA_HFSC_FSC")  # type: ignore[attr-defined]
    assert share["m2"] > 1_250_000_000  # Over 10 Gbit/s: the limit alone decides
    assert options.get_attr("TCA_HFSC_RSC") is None  # type: ignore[attr-defined]


def test_a_change_of_a_class_says_nothing_but_its_limit() -> None:
    changed, options = decoded(hfsc.put_class(INDEX, CLASS, ROOT, Curve(0, 0, 125)))
    assert changed["header"]["flags"] == CHANGE
    assert [name for name, _ in options["attrs"]] == ["TCA_HFSC_USC"]
