"""Views: the experiment's choice of which of N, W and Resolution are searched, fixed or fidelities."""

from jahs.queries.queryable import Queryable
from jahs.queries.views.choices import FIDELITIES
from jahs.queries.views.view import View

__all__ = ["FIDELITIES", "Queryable", "View"]
