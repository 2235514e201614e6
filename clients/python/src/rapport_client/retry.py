"""When a request is made again, and how long to wait before that."""

import email.utils
import math
from dataclasses import dataclass
from datetime import UTC, datetime

# Too slow, too many requests, or a proxy or the service that can't do it now. 500 isn't here: it would fail again.
PASSING_STATUSES = frozenset({408, 429, 502, 503, 504})
# The first request with this Idempotency-Key is still being handled.
IN_PROGRESS = "request_in_progress"


@dataclass(frozen=True)
class RetryPolicy:
    """Waits twice as long after each attempt, with jitter, and never less than `Retry-After` says."""

    attempts: int | None = 6
    """How often a request is made at most. None means until it works."""
    first_delay: float = 0.5
    """The seconds before the second attempt."""
    largest_delay: float = 30.0
    """The most seconds between two attempts, unless `Retry-After` is longer."""
    longest_wait: float = 60.0
    """If `Retry-After` is longer than these seconds, the request fails at once."""

    def delay(self, attempt: int, retry_after: float | None, chance: float) -> float | None:
        """Returns the seconds to wait after this attempt (the first is 1), or None to give up.

        `chance` is a random number from 0 to 1. It spreads the clients that failed at the same time.
        """
        if self.attempts is not None and attempt >= self.attempts:
            return None
        if retry_after is not None and retry_after > self.longest_wait:
            return None
        # The exponent is bounded because attempts may not be.
        backoff = min(self.largest_delay, self.first_delay * 2.0 ** min(attempt - 1, 30))
        asked = (retry_after or 0.0) + self.first_delay * chance
        return max(backoff * (1 + chance) / 2, asked if retry_after is not None else 0.0)


UNTIL_IT_WORKS = RetryPolicy(attempts=None, longest_wait=math.inf)


def passes(status: int, code: str | None) -> bool:
    """Whether a request that got this response may succeed if it is made again."""
    return status in PASSING_STATUSES or (status == 409 and code == IN_PROGRESS)


def seconds(retry_after: str | None, now: datetime) -> float | None:
    """Reads a `Retry-After` header: seconds or a date."""
    if retry_after is None:
        return None
    if retry_after.isascii() and retry_after.isdecimal():
        # No number of digits must fail here.
        return float(retry_after[:9])
    try:
        date = email.utils.parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - now).total_seconds())
