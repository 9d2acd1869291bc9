"""Views: which of N, W and Resolution are searched, fixed or fidelities, a choice of the experiment."""

from jahs.queryable import Queryable
from jahs.views.choices import FIDELITIES, SIZES
from jahs.views.view import View

__all__ = ["FIDELITIES", "SIZES", "Queryable", "View"]
