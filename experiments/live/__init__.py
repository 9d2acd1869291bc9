"""The study `live`: optimisers whose proposals are trained, and the same optimisers on the surrogate."""
