"""Studies of the released models themselves, without a race of optimisers: a page each, beside the papers' figures."""
