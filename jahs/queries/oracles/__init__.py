"""Oracles answer queries: from models (`surrogate`), recorded runs (`table`), or actual training (`live`)."""

from jahs.queries.oracles.oracle import Oracle
from jahs.queries.oracles.repaired import RepairedOracle
from jahs.queries.oracles.surrogate import SurrogateOracle
from jahs.queries.oracles.table import TableOracle

__all__ = ["Oracle", "RepairedOracle", "SurrogateOracle", "TableOracle"]
