from linklab.lab.shaping import plug, tc
from linklab.lab.shaping.conftest import CHANGE, CLASS, INDEX, LEAF, PUT, decoded


def test_a_plug_has_no_room_and_is_opened() -> None:
    read, options = decoded(tc.put_qdisc(INDEX, LEAF, CLASS, plug.NAME, plug.without_room()))
    assert (read["handle"], read["parent"], read["header"]["flags"]) == (LEAF, CLASS, PUT)
    assert (options["action"], options["limit"]) == (3, 0)
    read, options = decoded(plug.wake(INDEX, LEAF, CLASS))
    assert (read["handle"], read["parent"]) == (LEAF, CLASS)
    assert (options["action"], read["header"]["flags"]) == (2, CHANGE)  # linux/pkt_sched.h
