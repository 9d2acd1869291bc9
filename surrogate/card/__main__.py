"""Show the quality of a release: as Markdown, or as one HTML page with plots that needs no network.

python -m surrogate.card RELEASE            # Markdown, on the terminal
python -m surrogate.card RELEASE --out DIR [--figures FILE]  # DIR/quality.md and DIR/quality.html
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from jahs.release import read_release
from surrogate.card.figures import figures_of
from surrogate.card.page import card, write_card
from workshop.command import new_parser, run_command
from workshop.pages.markdown import to_markdown


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 2 for a user's mistake."""
    parser = new_parser("surrogate.card", __doc__, example="jahs/releases/fashion_mnist_mini --out card/")
    parser.add_argument("release", type=Path, help="a release folder")
    parser.add_argument("--out", type=Path, help="a folder for quality.md and quality.html")
    parser.add_argument("--figures", type=Path, help="the result file of surrogate.figures for this release")
    given = parser.parse_args(argv)

    def work() -> str:
        release = read_release(given.release)
        figures = None if given.figures is None else figures_of(given.figures, release)
        if given.out is None:
            return to_markdown(card(release, figures), has_figures=False)
        return "\n".join(str(path) for path in write_card(release, given.out, figures))

    return run_command("surrogate.card", work)


if __name__ == "__main__":
    sys.exit(main())
