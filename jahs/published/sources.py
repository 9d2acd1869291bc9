"""The published files: in an archive, in the folder it was unpacked to, or in the folder of one task or metric."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from jahs.errors import CorruptFile, InvalidArgument, MissingData, UnknownName, reading
from jahs.files.archives import checked_members, open_archive
from jahs.files.hashing import sha256_stream
from jahs.tasks.definitions import task

PUBLISHED_TASKS: Final = ("cifar10", "colorectal_histology", "fashion_mnist")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFile:
    """One file, in an archive or not."""

    folder: tuple[str, ...]  # names of the folders around it
    name: str
    where: str  # its name in messages
    open: Callable[[], BinaryIO]

    @property
    def task(self) -> str | None:
        """The task that the path names; if it names several, the innermost one."""
        return next((part for part in reversed(self.folder) if part in PUBLISHED_TASKS), None)

    def sha256(self) -> str:
        """Return the sha256 of its bytes."""
        with self.open() as file:
            return sha256_stream(file)


@contextmanager
def open_files(path: Path, names: Sequence[str]) -> Iterator[list[PublishedFile]]:
    """Yield the files with these names in an archive or a folder, at any depth, sorted."""
    with reading(path):
        paths, is_there = _files_below(path) if path.is_dir() else None, path.exists()
    if paths is not None:
        yield [
            PublishedFile(
                # The last two names of the path itself may name the task.
                folder=(*path.resolve().parts[-2:], *p.relative_to(path).parts[:-1]),
                name=p.name,
                where=str(p),
                open=partial(_open_path, p),
            )
            for p in paths
            if p.name in names
        ]
        return
    if not is_there:
        raise MissingData(f"{path} does not exist; see: jahs download jahs-bench-201")
    with open_archive(path) as archive:
        members = {PurePosixPath(member.name): member for member in checked_members(archive, str(path))}
        yield [
            PublishedFile(
                folder=name.parts[:-1],
                name=name.name,
                where=f"{path}: {name}",
                open=partial(_open_member, archive, member),
            )
            for name, member in sorted(members.items())
            if name.name in names
        ]


@contextmanager
def files_by_task(
    path: Path, names: Sequence[str], tasks: Sequence[str] | None
) -> Iterator[dict[str, list[PublishedFile]]]:
    """Yield the files with these names by task.

    Args:
        path: an archive or a folder.
        names: names of the files; the first one is required for each task.
        tasks: names; None for all. A single one is the task of files whose path does not name a task.
    """
    task_names = None if tasks is None else [task(name).name for name in tasks]
    if unknown := [name for name in task_names or () if name not in PUBLISHED_TASKS]:
        raise UnknownName.of("task", unknown[0], PUBLISHED_TASKS)
    by_task: dict[str, list[PublishedFile]] = {}
    with open_files(path, names) as files:
        for file in files:
            name = file.task or (task_names[0] if task_names is not None and len(task_names) == 1 else None)
            if name is None:
                raise InvalidArgument(
                    f"{file.where}: its path does not name a task; give one of {', '.join(PUBLISHED_TASKS)}"
                )
            if task_names is None or name in task_names:
                by_task.setdefault(name, []).append(file)
        missing = [
            name for name in task_names or by_task if names[0] not in {file.name for file in by_task.get(name, ())}
        ]
        if missing or not by_task:
            suffix = f" for {', '.join(missing)}" if missing else ""
            raise MissingData(f"{path} holds no {names[0]}{suffix}; see: jahs download jahs-bench-201")
        yield by_task


def _files_below(folder: Path) -> list[Path]:
    """Return the files of a folder at any depth, sorted; MissingData if a folder cannot be read, which glob ignores."""

    def refuse(err: OSError) -> None:
        with reading(Path(err.filename)):
            raise err

    walk = os.walk(folder, onerror=refuse)
    return sorted(path for at, _, names in walk for name in names if (path := Path(at, name)).is_file())


def _open_path(path: Path) -> BinaryIO:
    with reading(path):
        return path.open("rb")


def _open_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> BinaryIO:
    file = archive.extractfile(member)
    if file is None:
        raise CorruptFile(f"{archive.name!s}: {member.name} is not a file")
    return file  # type: ignore[return-value]  # IO[bytes], which is all that is used of it
