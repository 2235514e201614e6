"""What can go wrong with a request, after the repeats."""

from typing import Any


class RapportError(Exception):
    """A request failed."""

    attempts: int = 1
    """How often the request was made."""


class NoResponse(RapportError):
    """The service couldn't be reached, or the connection broke. The request may or may not have been done."""


class ErrorResponse(RapportError):
    """The service answered with an error. Unless it is `outcome_unknown` or `timed_out`, it changed nothing."""

    def __init__(self, status: int, problem: dict[str, Any], retry_after: float | None, request_id: str | None) -> None:
        self.status = status
        self.problem = problem
        """The problem document (RFC 9457). Empty if something in front of the service answered."""
        self.code: str | None = problem.get("code")
        """A stable word for programs; docs/errors.md lists them."""
        self.detail: str | None = problem.get("detail")
        self.errors: list[dict[str, Any]] = problem.get("errors") or []
        """The invalid members: `pointer`, `code` and `detail` of each."""
        self.retry_after = retry_after
        """The seconds that the service asked to wait, if it did."""
        self.request_id = request_id
        """The id of the request in the service's log."""
        members = "; ".join(f"{error.get('pointer')}: {error.get('detail')}" for error in self.errors)
        words = [str(status), self.code, self.detail, members and f"({members})"]
        super().__init__(" ".join(word for word in words if word))
