"""Files that can be relied on: written whole or not at all, downloaded and checked, archives and tables checked."""
