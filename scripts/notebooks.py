"""Runs the notebooks anew and writes their outputs into them: python scripts/notebooks.py [NAME…].

What is stored is what a reader sees without running anything: no execution times, no names of this machine.
"""

import base64
import os
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

FOLDER = Path(__file__).parent.parent / "notebooks"
_COLOURS = 64
_QUIET = {"PYTHONWARNINGS": "ignore:IProgress not found"}  # a hint to install what no notebook here needs


def names() -> list[str]:
    """The notebooks that there are."""
    return sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def read(name: str) -> Any:
    """A notebook as it is stored. Raises ValidationError if it is none."""
    import nbformat

    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    return notebook


def executed(name: str, folder: Path) -> Any:
    """A notebook with the outputs that it has now.

    Args:
        name: of the notebook.
        folder: where it runs, and leaves what it writes.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell fails.
    """
    from nbclient import NotebookClient

    notebook = read(name)
    client = NotebookClient(
        notebook,
        timeout=1800,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env=os.environ | _QUIET)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def shrink(notebook: Any) -> None:
    """Gives the pictures of a notebook few colours, which is enough for plots and a third of the bytes."""
    from PIL import Image

    for output in outputs(notebook):
        data = output.get("data", {})
        if "image/png" in data:
            sink = BytesIO()
            picture = Image.open(BytesIO(base64.b64decode(data["image/png"]))).convert("RGB")
            picture.quantize(_COLOURS).save(sink, "PNG", optimize=True)
            data["image/png"] = base64.b64encode(sink.getvalue()).decode()


def outputs(notebook: Any) -> Iterator[Any]:
    """The outputs of all cells, in their order."""
    for cell in notebook.cells:
        yield from cell.get("outputs", ())


def texts(notebook: Any) -> list[str]:
    """What the outputs say in plain text, in their order."""
    found = []
    for output in outputs(notebook):
        if output.output_type == "stream":
            found.append(output.text)
        elif output.output_type in ("display_data", "execute_result"):
            found.append(output.data.get("text/plain", ""))
    return found


def main() -> None:
    """Rewrites the notebooks that the arguments name, or all of them."""
    import nbformat

    for name in sys.argv[1:] or names():
        with TemporaryDirectory() as folder:
            notebook = executed(name, Path(folder))
        shrink(notebook)
        nbformat.write(notebook, FOLDER / f"{name}.ipynb")
        print(f"{name}: {(FOLDER / f'{name}.ipynb').stat().st_size:,} B")


if __name__ == "__main__":
    main()
