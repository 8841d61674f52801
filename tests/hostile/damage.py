"""Damaged files, and another process that reads them all, so that a crash is seen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.io
import scipy.sparse as sp
import tifffile
from PIL import Image

COORDINATE = "%%MatrixMarket matrix coordinate real general\n% made by hand\n3 2 2\n1 1 0.5\n3 2 2e1\n"
ARRAY = "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n"
MATRIX = np.arange(12.0).reshape(4, 3)
_IMAGES = (".png", ".jpg", ".tif", ".gif")

_READ_ALL = """
import sys
from pathlib import Path
from gsnmf.datasets import FileError, read_matrix
for path in sorted(Path(sys.argv[1]).iterdir()):
    print(path.name, flush=True)
    try:
        read_matrix(path)
    except (FileError, ValueError, TypeError):
        pass
print("done")
"""

_READ_SCENES = """
import sys
from pathlib import Path
from gsnmf.applications.unmixing.scene_files import ENDINGS, read_cube
for path in sorted(Path(sys.argv[1]).iterdir()):
    if path.suffix not in ENDINGS:
        continue
    print(path.name, flush=True)
    try:
        for _, block in read_cube(path).blocks():
            block.sum()
    except (ValueError, TypeError):
        pass
print("done")
"""
_HEADER = """ENVI
description = { a scene }
samples = 3
lines = 4
bands = 2
header offset = 0
data type = 12
interleave = bil
byte order = 0
data ignore value = 7
wavelength = { 450.0, 650.0 }
bbl = { 1, 1 }
"""


def originals(folder: Path) -> list[Path]:
    """A sound file of every format but AnnData: the HDF5 library can hang in a damaged file."""
    (folder / "c.mtx").write_text(COORDINATE, encoding="utf-8")
    (folder / "a.mtx").write_text(ARRAY, encoding="utf-8")
    (folder / "t.csv").write_text("name,a,b\nx,1,2\ny,3,4\n", encoding="utf-8")
    (folder / "s.tsv").write_text("1\t2\n3\t4\n", encoding="utf-8")
    (folder / "l.cluto").write_text("2 3 3\n1 1.5 2 2\n3 1\n", encoding="utf-8")
    np.save(folder / "d.npy", MATRIX)
    np.savez(folder / "z.npz", matrix=MATRIX)
    sp.save_npz(folder / "y.npz", sp.csr_array(MATRIX))
    scipy.io.savemat(folder / "m.mat", {"M": MATRIX})
    pq.write_table(pa.table({"name": list("wxyz"), "a": MATRIX[:, 0], "b": MATRIX[:, 1]}), folder / "p.parquet")
    for suffix in _IMAGES:
        Image.fromarray(MATRIX.astype(np.uint8)).save(folder / f"i{suffix[1:]}{suffix}")
    return sorted(folder.iterdir())


def mutated(whole: bytes, rng: np.random.Generator) -> bytes:
    """A file with a few bytes changed, put in or cut out."""
    changed = bytearray(whole)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(max(1, len(changed))))
        piece = [b"", b"\0", b"-", b" ", b"\n", b"9" * 18, b"e", b".", b"%", b"\xff", rng.bytes(3)][rng.integers(11)]
        changed[at : at + int(rng.integers(0, 5))] = piece
    return bytes(changed[: int(rng.integers(len(changed) + 1))] if rng.random() < 0.1 else changed)


def read_damaged(folder: Path, rng: np.random.Generator, count: int) -> int:
    """Read ``count`` damaged files of each format in another process; how many in all."""
    sound, damaged = folder / "sound", folder / "damaged"
    sound.mkdir()
    damaged.mkdir()
    for original in originals(sound):
        whole = original.read_bytes()
        for number in range(count):
            path = damaged / f"{original.stem}{number:03}{original.suffix}"
            if original.suffix in _IMAGES:  # which are read from folders
                path.mkdir()
                path /= original.name
            path.write_bytes(mutated(whole, rng))
    child = subprocess.run([sys.executable, "-c", _READ_ALL, str(damaged)], capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, (child.stdout.splitlines()[-1:], child.stderr[-2000:])
    assert child.stdout.endswith("done\n")
    return len(list(damaged.iterdir()))


def read_damaged_scenes(folder: Path, rng: np.random.Generator, count: int) -> int:
    """Read ``count`` damaged spectral images of each format in another process; how many in all."""
    sound, damaged = folder / "sound", folder / "damaged"
    sound.mkdir()
    damaged.mkdir()
    scene = np.arange(24, dtype=np.uint16).reshape(4, 3, 2)
    (sound / "e.hdr").write_text(_HEADER, encoding="utf-8")
    np.save(sound / "d.npy", scene)
    np.savez(sound / "z.npz", scene=scene, wavelengths=[450.0, 650.0])
    scipy.io.savemat(sound / "m.mat", {"scene": scene})
    for name, compression in (("t", None), ("c", "zlib")):
        tifffile.imwrite(
            sound / f"{name}.tif", scene, photometric="minisblack", planarconfig="contig", compression=compression
        )
    n_tried = 0
    for original in sorted(sound.iterdir()):
        whole = original.read_bytes()
        for number in range(count):
            path = damaged / f"{original.stem}{number:03}{original.suffix}"
            path.write_bytes(mutated(whole, rng))
            if original.suffix == ".hdr":
                path.with_suffix(".img").write_bytes(scene.tobytes())
            n_tried += 1
    command = [sys.executable, "-c", _READ_SCENES, str(damaged)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, (child.stdout.splitlines()[-1:], child.stderr[-2000:])
    assert child.stdout.endswith("done\n")
    return n_tried
