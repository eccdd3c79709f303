"""Work space that threads keep."""

from __future__ import annotations

import numpy as np

from svmkit.engine.space import leave_rooms, room


def test_work_space_serves_all_that_need_no_more_of_it() -> None:
    """Else calls that need now more, now less, each take new memory, and leave the old one in pieces."""
    most = room("of a test", 5000)
    assert np.shares_memory(room("of a test", 10), most)
    assert np.shares_memory(room("of a test", 5000), most)
    assert len(room("of a test", 70_000)) == 70_000
    assert len(room("of another", 10)) == 10


def test_work_space_is_given_back() -> None:
    before = room("of a test", 5000)
    leave_rooms()
    assert not np.shares_memory(room("of a test", 10), before)
