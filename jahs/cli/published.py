"""Commands about what others published: download it, and turn it into releases and folders of runs."""

from __future__ import annotations

from jahs.cli.arguments import Commands
from jahs.published import fetching, importing

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Define the commands of this module."""
    downloaded = commands.add(
        "download",
        fetching.run,
        "Fetch JAHS-Bench-201's archives.",
        "jahs download jahs-bench-201 --what surrogates",
    )
    fetching.add_arguments(downloaded)
    imported = commands.add(
        "import",
        importing.run,
        "Turn JAHS-Bench-201's archives into releases and runs; no pickle is executed.",
        "jahs import assembled_surrogates.tar --out releases",
    )
    importing.add_arguments(imported)
