"""What answers a query: models (`surrogate`), recorded runs (`table`), or a training that really happens (`live`)."""

from jahs.queries.oracles.oracle import Codes, Numbers, Oracle, config_of
from jahs.queries.oracles.repaired import RepairedOracle
from jahs.queries.oracles.surrogate import SurrogateOracle
from jahs.queries.oracles.table import TableOracle

__all__ = ["Codes", "Numbers", "Oracle", "RepairedOracle", "SurrogateOracle", "TableOracle", "config_of"]
