"""Tools that the workshops share: progress, commands, jobs, folders, ranks and pages. It imports `jahs` alone."""
