"""From measurements and trial logs to numbers."""
