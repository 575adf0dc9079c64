"""MissingPolicy: what to do about missing values.

`spins.as_spins`, `packing.apply_missing_policy` and `tables.rows.RowPacker` apply it to tables, to
packed spins and to rows as a file yields them.
"""

from enum import StrEnum


class MissingPolicy(StrEnum):
    """A member equals its name in the public API: `MissingPolicy.DROP == "drop"`."""

    ERROR = "error"
    DROP = "drop"
    PAIRWISE = "pairwise"
    IMPUTE = "impute"

    @property
    def keeps_all_rows(self) -> bool:
        """Whether incomplete rows are kept, their missing cells marked; empty ones never are."""
        return self in (MissingPolicy.PAIRWISE, MissingPolicy.IMPUTE)

    @property
    def explanation(self) -> str:
        """What it does about missing values, for help."""
        return {
            MissingPolicy.ERROR: "refuses them",
            MissingPolicy.DROP: "keeps complete rows",
            MissingPolicy.PAIRWISE: "keeps all rows, each pair being seen where both are present",
            MissingPolicy.IMPUTE: "draws them from the network found, several times (method auto)",
        }[self]

    @property
    def offer(self) -> str:
        """What choosing it does, for the app."""
        if self is MissingPolicy.ERROR:
            return "there are none in the variables"
        recommended = " (recommended)" if self is MissingPolicy.IMPUTE else ""
        return self.remedy.removeprefix("to ") + recommended

    def kept(self, n_samples: int, n_complete: str, n_seen: int) -> str:
        """What a table keeps by it, for the advice of an error.

        n_complete: rows in which nothing is missing     n_seen: of the emptiest column
        """
        return {
            MissingPolicy.DROP: f"keeps {n_complete} of {n_samples} rows",
            MissingPolicy.PAIRWISE: f"keeps all, the emptiest column being seen in {n_seen}",
            MissingPolicy.IMPUTE: "keeps all; AutoIsing only",
        }[self]

    @property
    def remedy(self) -> str:
        """What choosing it does, for the advice of an error; "" where it prevents none."""
        return {
            MissingPolicy.DROP: "to use complete rows only",
            MissingPolicy.PAIRWISE: "to use for each pair the rows where both are present",
            MissingPolicy.IMPUTE: "to draw them from the network found, several times",
        }.get(self, "")


EVERY_POLICY = tuple(MissingPolicy)
# of methods that fit no network to draw from
WITHOUT_DRAWING = (MissingPolicy.ERROR, MissingPolicy.DROP, MissingPolicy.PAIRWISE)
COMPLETE_ROWS = (MissingPolicy.ERROR, MissingPolicy.DROP)  # of methods that look at whole rows
WHY_COMPLETE_ROWS = (
    "this estimator looks at whole rows (linear and mean-field estimators take 'pairwise', "
    "AutoIsing takes 'impute')"
)
