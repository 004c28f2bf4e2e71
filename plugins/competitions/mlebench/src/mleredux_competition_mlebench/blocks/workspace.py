"""One preparation: read and plan everything first, then write. Invalid raw data stops it before the first file."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from mleredux.errors import DataError, MlereduxError, file_errors, one_line
from mleredux.plugin.task import neutral_order

from mleredux_competition_mlebench.blocks.archives import AGAIN, DAMAGE, open_tree
from mleredux_competition_mlebench.blocks.contents import Content, Csv, SameBytes
from mleredux_competition_mlebench.blocks.placement import make_folders
from mleredux_competition_mlebench.blocks.splits import by_group, joined_groups, split_positions, take
from mleredux_competition_mlebench.blocks.tables import read_csv
from mleredux_competition_mlebench.blocks.trees import Files, Folder, Tree
from mleredux_competition_mlebench.new_ids import NewIds

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Settings:
    """Deviations from the published preparation.

    Attributes:
        test_size: Replaces every split's test size, for tests on miniature data.
        salt: Replaces the published seeds by secret ones (variant `+private`).
        id_columns: Columns of the answers whose ids are replaced if there is a salt.
        id_pattern: A pattern of cells with ids (see `NewIds`); None keeps all ids.
    """

    test_size: float | int | None = None
    salt: bytes | None = None
    id_columns: tuple[str, ...] = ()
    id_pattern: str | None = None


@dataclass
class Workspace:
    """The interface of a recipe: the raw files, the splits, and the two output folders.

    Nothing is written while the recipe runs; `public` and `private` only record what to write.
    """

    raw: Path
    settings: Settings = Settings()
    seeds_drawn: int = 0
    """Number of seed requests by the recipe, which shows whether its split is random."""
    _notes: list[tuple[str, str, Content | Files]] = field(default_factory=list)

    def table(self, name: str, columns: Iterable[str] = (), *, archive: str = "", **options: Any) -> pd.DataFrame:
        """Read a raw CSV with exact floats; see `read_csv`.

        Args:
            archive: The archive that contains the table, if it is not unpacked in the raw folder.
        """
        if archive and not (self.raw / name).is_file():
            with self.tree(archive).open(name) as file:
                return read_csv(file, name, columns, **options)
        return read_csv(self.path(name), name, columns, **options)

    def json(self, name: str, encoding: str = "utf-8") -> Any:
        """Read a raw JSON document.

        Raises:
            DataError: The document is missing or not JSON.
        """
        import json

        with file_errors(DataError, f"{name} can't be read", "Get the raw data again.", ValueError):
            return json.loads(self.path(name).read_text(encoding=encoding))

    def path(self, name: str) -> Path:
        """Return the path of a raw file.

        Raises:
            DataError: The file does not exist.
        """
        path = self.raw / name
        if not path.is_file():
            raise DataError(
                f"The raw data has no {name}.",
                hint=f"Searched {self.raw}; specify the folder or archive that has it with --from, or {AGAIN}.",
            )
        return path

    def tree(self, name: str, inside: str = "") -> Tree:
        """Open a raw folder or archive; see `open_tree`."""
        return open_tree(self.raw, name, inside)

    def file(self, name: str) -> Content:
        """Return one raw file, to write unchanged."""
        path = self.path(name)
        return SameBytes(Folder(path.parent, name), path.name)

    def seed(self, published: int) -> int:
        """Return the seed to use instead of a seed of the published preparation."""
        self.seeds_drawn += 1
        if self.settings.salt is None:
            return published
        digest = hashlib.blake2b(str(published).encode(), key=self.settings.salt[:64], digest_size=4).digest()
        return int.from_bytes(digest, "big")

    def shuffled(self, count: int) -> Any:
        """Return positions 0 to count-1 in a secret order."""
        import numpy as np

        return np.random.RandomState(self.seed(count)).permutation(count)

    def split(
        self, items: Any, test_size: float | None = 0.1, seed: int = 0, *, train_size: float | None = None,
        stratify: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Split a table, list or array like `train_test_split`, in the order drawn (`split_positions`)."""
        size = test_size if self.settings.test_size is None else self.settings.test_size
        train, test = split_positions(
            len(items), test_size=size, seed=self.seed(seed), train_size=train_size, stratify=stratify
        )
        return take(items, train), take(items, test)

    def split_groups(
        self, table: pd.DataFrame, group: Any, test_size: float = 0.1, seed: int = 0, *, joined: bool = False
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Split the distinct values of a column, and assign each row to the part of its value.

        Args:
            group: The column's name, or a series of the rows' groups.
            joined: Whether values are split in ascending order, and rows are written value by value in the order drawn;
                otherwise values are split in order of first appearance, and rows keep the raw order.
        """
        groups = table[group] if isinstance(group, str) else group
        values = groups.drop_duplicates()
        if joined:
            train, test = self.split(values.sort_values().to_numpy(), test_size, seed)
            return joined_groups(table, groups, train), joined_groups(table, groups, test)
        return by_group(table, groups, *self.split(values.to_numpy(), test_size, seed))

    def public(self, name: str, what: Any, **options: Any) -> None:
        """Record the contents of the public file (or folder, for selected files) of this name.

        Args:
            what: A table (written as CSV, with `options` of `to_csv`), a `Content`, or selected `Files`.
        """
        self._note("public", name, what, options)

    def private(self, name: str, what: Any, **options: Any) -> None:
        """Record the contents of a private file or folder, as `public` does for public ones."""
        self._note("private", name, what, options)

    def answers(self, name: str, sample: str, table: pd.DataFrame, /, **predictions: Any) -> None:
        """Record a private table of answers, and a public sample submission: the same table with other predictions."""
        self.public(sample, table.assign(**predictions))
        self.private(name, table)

    def _note(self, side: str, name: str, what: Any, options: dict[str, Any]) -> None:
        content = what if isinstance(what, Content | Files) else Csv(what, options)
        self._notes.append((side, name, content))

    def rename(self) -> None:
        """Replace the ids of test rows in everything recorded, if the settings require it."""
        columns, pattern = self.settings.id_columns, self.settings.id_pattern
        if self.settings.salt is not None and pattern is not None:
            new = NewIds.of_answers(self._notes, columns, pattern, self.shuffled)
            self._notes = [(side, name, new(what)) for side, name, what in self._notes]

    def write(self, folders: dict[str, Path]) -> None:
        """Write everything recorded; on failure, remove what was written."""
        before = {side: set(folder.iterdir()) if folder.is_dir() else set() for side, folder in folders.items()}
        try:
            self._write_trees(folders)
            contents = {
                str(folders[side] / name): what for side, name, what in self._notes if isinstance(what, Content)
            }
            for target in neutral_order(contents):
                make_folders([target])
                contents[target].write(Path(target))
        except BaseException:
            for side, folder in folders.items():
                for path in set(folder.iterdir()) - before[side] if folder.is_dir() else ():
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            raise

    def _write_trees(self, folders: dict[str, Path]) -> None:
        """Place all selected files in neutral order, with a single pass through each tree."""
        pairs: dict[int, tuple[Tree, list[tuple[str, str]]]] = {}
        for side, name, files in self._notes:
            if isinstance(files, Files):
                target = folders[side] / name
                target.mkdir(parents=True, exist_ok=True)
                for empty in neutral_order(files.folders):
                    (target / empty).mkdir(parents=True, exist_ok=True)
                pairs.setdefault(id(files.tree), (files.tree, []))[1].extend(files.pairs(target))
        for tree, wanted in pairs.values():
            places = {target: place for place, target in enumerate(neutral_order(target for _, target in wanted))}
            tree.extract(sorted(wanted, key=lambda pair: places[pair[1]]))


Recipe = Callable[[Workspace], None]


@dataclass(frozen=True)
class Preparation:
    """A recipe as a task's `prepare`: `preparation(raw, public, private)`."""

    recipe: Recipe
    settings: Settings = Settings()
    neutral_order: ClassVar[bool] = True
    """Folders and files are created in neutral order, or link to raw files, so they need not be copied again."""

    def __call__(self, raw: Path, public: Path, private: Path) -> None:
        """Prepare the task's files.

        Raises:
            DataError: The raw data is missing, damaged or too small; no files remain.
        """
        # hard links need absolute paths
        workspace = Workspace(raw.absolute(), self.settings)
        try:
            self.recipe(workspace)
            if self.settings.salt is not None and not workspace.seeds_drawn:
                raise DataError(
                    "This competition has no random split (its test set is Kaggle's own, or is split by date), so "
                    "there is no private one.",
                    hint="Use the task without +private.",
                )
            workspace.rename()
            for folder in (public, private):
                folder.mkdir(parents=True, exist_ok=True)
            workspace.write({"public": public, "private": private})
        except MlereduxError:
            raise
        except FileExistsError as error:
            raise DataError(f"{error.filename} already exists.", hint="Prepare into empty folders.") from error
        except (*DAMAGE, LookupError, TypeError) as error:
            raise DataError(
                f"The raw data is not as expected ({one_line(error)}).",
                hint="Check that these are this competition's files, and that they are complete.",
            ) from error

    def with_settings(self, **changes: Any) -> Preparation:
        """Return the recipe with other settings (see `Settings`)."""
        return replace(self, settings=replace(self.settings, **changes))
