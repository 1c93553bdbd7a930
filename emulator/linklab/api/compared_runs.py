"""Holds the runs of several clients in one scenario, and what they come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from linklab.analysis.tables import Runs
from linklab.api.errors import UsageError
from linklab.runs.comparison import Comparison, ComparisonRow
from linklab.runs.figures import DOWNLOAD
from linklab.schema.mapping import guess

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class ComparedRuns:
    """The runs of several clients in one scenario, and their comparison.

    `print` shows the table of `linklab compare`. `comparison` holds medians and spreads of every
    figure, `runs` the runs themselves. Runs that failed have an `error`.
    """

    comparison: Comparison
    runs: Runs

    def __getitem__(self, client: str) -> ComparisonRow:
        """Returns a client's figures over all its runs. Raises UsageError."""
        rows = {row.algorithm: row for row in self.comparison.rows}
        if client not in rows:
            raise UsageError(
                f"no client is called {client!r}{guess(client, rows)}; there are: {', '.join(rows)}"
            )
        return rows[client]

    def download_s(self, client: str) -> float:
        """Returns the median download time of a client in seconds. Raises UsageError if every run
        failed."""
        row = self[client]
        spread = row.of(DOWNLOAD)
        if spread is None:
            why = "; ".join(row.failures)
            raise UsageError(f"{client} has no download time: every run failed: {why}")
        return spread.median

    def frame(self) -> pandas.DataFrame:
        """Returns a row for each run as a pandas DataFrame. Raises ImportError without pandas."""
        return self.runs.frame()

    def __str__(self) -> str:
        from linklab.report import tables  # rich is slow to load.

        return tables.render(self.comparison)
