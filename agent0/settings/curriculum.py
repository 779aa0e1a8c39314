"""Settings of where tasks come from: the curriculum, a file of questions, and a folder of documents."""

from typing import Literal

from pydantic import Field

from agent0.settings.base import Frozen


class CurriculumConfig(Frozen):
    """Settings of the curriculum: which domains, families and levels are requested, and how slots are allocated."""

    kind: Literal["bandit", "progress", "uniform", "frontier", "rising", "teacher"] = Field(
        "bandit",
        description="bandit over domain x family x level, by learnability or by learning progress, uniform, the levels "
        "around the highest solved one, rising: from the lowest level to the highest over the run's iterations (rows "
        "of a file: in each epoch), or teacher: requests name no level, the teacher chooses it",
    )
    mastered: int = Field(
        0, ge=0, le=10_000, description="frontier, progress: levels up to this count as solved until they are asked for"
    )
    ahead: int = Field(3, ge=1, le=1_000, description="frontier, rising: levels above it that are asked for")
    domains: tuple[str, ...] = Field(("math", "logic", "code"), description="domains")
    families: tuple[str, ...] = Field(
        ("computed", "checked"),
        description="families, or all that compute their answers (computed), only check them (checked), or go "
        "on to any level (ladder); open: free questions, too, which bring a program",
    )
    levels: tuple[int, ...] = Field((1, 2, 3, 4), description="difficulty levels")
    long: float = Field(0.0, ge=0, le=1, description="share of slots that ask for long tasks, with subgoals")
    exploration: float = Field(0.3, ge=0, le=1, description="share of slots given out uniformly")
    entropy: float = Field(
        0.0, ge=0, le=1, description="probabilities of a domain's slots keep this share of full entropy"
    )
    max_share: float = Field(1.0, gt=0, le=1, description="share of an iteration's tasks that a family may have")
    patience: int = Field(
        0, ge=0, le=10_000, description="iterations after which a slot not requested comes first; 0: off"
    )
    band: tuple[float, float] = Field(
        (0.1, 0.9), description="learnable band: solve rates of tasks that are trained on"
    )
    similarity_limit: float = Field(
        0.95, gt=0, le=1, description="cosine similarity above which a proposal is rejected as similar"
    )
    embedder: str = Field("minilm", description="minilm | ngram")
    overlap_ngram: int = Field(8, ge=3, le=50, description="words in a row shared with a benchmark item: contaminated")
    overlap_limit: float = Field(0.95, gt=0, le=1, description="similarity to a benchmark item above it: contaminated")


class QuestionsConfig(Frozen):
    """A file of rows with answers, whose questions are tasks in place of the teacher's or beside them."""

    file: str = Field(
        "",
        description="file of questions with answers, as GSM8K, MATH, SVAMP and MBPP are published or with the columns "
        "named here (JSON, JSON lines, CSV, Parquet, a saved data set), or a folder of mined tasks; empty: none. "
        "run start --questions",
    )
    share: float = Field(1.0, gt=0, le=1, description="share of tasks that are its rows; a teacher proposes the others")
    heldout: str = Field(
        "",
        description="file of the held-out questions, laid out likewise; empty: rows of `file`. run start --held-out",
    )
    columns: dict[str, str] = Field(
        default_factory=dict,
        description="question, answer, id, tests, tolerance, kind, level, domain or tools -> its column; others by "
        "their usual names. run start --columns",
    )
    template: str = Field(
        "",
        max_length=32_768,
        description="Jinja template that makes a row's question of its columns; empty: the question as it is. "
        "run start --template",
    )
    tolerance: str = Field(
        "",
        pattern=r"^([\d.]+([eE]-?\d+)?%?)?$",
        description="by how much a number may differ from a row's answer, where the row has no tolerance of its own: "
        "0.01, or 1% of it",
    )
    kind: str = Field(
        "",
        description="kind of the answers (verify answer --kind); judged: verification.judge compares free text, run "
        "start --judge; empty: as each reads",
    )
    domain: str = Field(
        "",
        pattern=r"^[a-z0-9_-]*$",
        description="whose prompts the student gets at rows that name none; filled in: code where rows have tests, "
        "else math",
    )
    sha256: str = Field("", pattern=r"^([0-9a-f]{64})?$", description="of the file; filled in where a run begins")
    heldout_sha256: str = Field("", pattern=r"^([0-9a-f]{64})?$", description="of the held-out file, likewise")

    @property
    def of_heldout(self) -> "QuestionsConfig":
        """How the held-out file is read."""
        files = {"file": self.heldout, "sha256": self.heldout_sha256, "heldout": "", "heldout_sha256": ""}
        return self.model_copy(update=files)

    @property
    def order(self) -> tuple[object, ...]:
        """What decides, with a run's seed, which rows are asked in which order."""
        return self.sha256, self.heldout_sha256, tuple(sorted(self.columns.items())), self.template


class DocumentsConfig(Frozen):
    """A folder of text files about whose passages the teacher writes questions (SPICE, arXiv 2510.24684)."""

    folder: str = Field("", description="folder with .txt, .md and .rst files; empty: none. run start --documents")
    share: float = Field(1.0, gt=0, le=1, description="share of the teacher's tasks that are about its passages")
    shown: bool = Field(False, description="whether the student reads the passage before the question")
    sha256: str = Field("", pattern=r"^([0-9a-f]{64})?$", description="of its files; filled in where a run begins")
