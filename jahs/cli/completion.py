"""The command `jahs completion`: completes commands, options and their choices in bash and zsh."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping

from jahs.cli.arguments import Commands, to_json

_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"
_SCRIPT = """\
_jahs() {{
    local words="{commands}" current="${{COMP_WORDS[COMP_CWORD]}}"
    if [ "$COMP_CWORD" -gt 1 ]; then
        case "${{COMP_WORDS[1]}} ${{COMP_WORDS[COMP_CWORD-1]}}" in
{cases}
        *) words="" ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _jahs jahs"""


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.add("completion", _completion, 'eval "$(jahs completion bash)"')
    parser.set_defaults(parsers=commands.parsers)
    parser.add_argument("shell", choices=["bash", "zsh"], help="which shell")


def _completion(arguments: argparse.Namespace) -> str:
    """Print a script that completes commands and options."""
    parsers: Mapping[str, argparse.ArgumentParser] = arguments.parsers
    cases = "\n".join(case for name, parser in parsers.items() for case in _cases(name, parser))
    script = _SCRIPT.format(commands=" ".join(parsers), cases=cases)
    script = _ZSH + script if arguments.shell == "zsh" else script
    return to_json({"script": script}) if arguments.json else script


def _cases(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield a shell case for each option with a value, and one for all other positions of a command.

    Without words, the shell completes names of files.
    """
    anywhere: list[str] = []
    for action in parser._actions:  # argparse has no public list of actions
        choices = [str(choice) for choice in action.choices or ()]
        anywhere += action.option_strings or choices
        if action.option_strings and action.nargs != 0:
            flags = "|".join(f'"{name} {flag}"' for flag in action.option_strings)
            yield f'        {flags}) words="{" ".join(choices)}" ;;'
    yield f'        "{name} "*) words="{" ".join(anywhere)}" ;;'
