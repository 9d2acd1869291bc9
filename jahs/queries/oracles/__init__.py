"""Oracles answer queries: from models (`surrogate`), recorded runs (`table`), or actual training (`live`)."""
