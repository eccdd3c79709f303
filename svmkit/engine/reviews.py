"""Whether a run still comes down: by a look now and again at the least violation so far, and by float64 kernel values.

What counts of looks is a fall to a share of what it was when it last had fallen so far, so small falls add up from look to
look. After so many looks without one the run has stalled.
"""

from __future__ import annotations

from math import inf

#: Looks are so many steps apart, or so many a variable where that is more; the first comes after ``_STEPS`` whatever n is.
_STEPS, _STEPS_EACH = 5_000_000, 50
#: So many steps apart, of a run that is hurried.
_HURRIED_STEPS = 1_000_000
#: What counts is a fall to this share; after so many looks without one the run has stalled.
_SHARE, _LOOKS = 0.8, 4
#: So many checks may find that the violation was not halved.
_FAILURES = 3


class Reviews:
    """Of a run over ``n`` variables."""

    def __init__(self, n: int) -> None:
        self._every, self._most_idle = max(_STEPS, _STEPS_EACH * n), _LOOKS
        self._next, self._idle = _STEPS, 0
        self._fallen_to = inf

    def review(self, steps: int, least: float) -> bool:
        """Whether the run has stalled, after ``steps`` steps in all; ``least`` is the least violation of any."""
        if steps < self._next:
            return False
        if least <= _SHARE * self._fallen_to:
            self._fallen_to, self._idle = least, 0
        else:
            self._idle += 1
        self._next = steps + self._every
        return self._idle >= self._most_idle

    def begin_again(self) -> None:
        """Nothing is known of any violation: whatever the next look finds is a fall."""
        self._fallen_to, self._idle = inf, 0

    def hurry(self, steps: int, least: float) -> None:
        """After ``steps`` steps in all, at ``least``: looks come sooner from now on; one without a fall is the last."""
        self._every, self._most_idle = _HURRIED_STEPS, 1
        self._fallen_to, self._next = least, steps + self._every


class Checks:
    """Of a run that by its own arithmetic was done, by float64 kernel values: ``least`` is the least violation they found."""

    def __init__(self) -> None:
        self.least = inf
        self._failed = 0

    def fail(self, violation: float) -> bool:
        """After a check that found the tolerance not met: whether that is the third that did not halve the violation.

        Then kernels turn to float64, or where they are float64 already, the run has stalled.
        """
        if violation > 0.5 * self.least:
            self._failed += 1
        self.least = min(self.least, violation)
        return self._failed >= _FAILURES
