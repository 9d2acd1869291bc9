"""The study `live`: optimisers that really train what they propose, and the same optimisers on the surrogate."""
