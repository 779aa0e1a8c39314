"""Where benchmark rows come from: pinned files for each benchmark, which ``agent0 bench fetch`` fetches."""

from dataclasses import dataclass

HOST = "https://raw.githubusercontent.com"


@dataclass(frozen=True)
class PinnedFile:
    """One file of a public repository at a commit, with the sha256 of its bytes."""

    repository: str
    commit: str
    path: str
    sha256: str

    def url(self, host: str = HOST) -> str:
        """The file's address below ``host``."""
        return f"{host.rstrip('/')}/{self.repository}/{self.commit}/{self.path}"


@dataclass(frozen=True)
class Upstream:
    """The files of one benchmark, whose converted rows are written together as ``name``."""

    name: str
    files: tuple[PinnedFile, ...]


def _single_file(name: str, repository: str, commit: str, path: str, sha256: str) -> Upstream:
    return Upstream(name, (PinnedFile(repository, commit, path, sha256),))


_HARNESS = "ZubinGou/math-evaluation-harness", "db77bc6bb2a17c90ed2d63e88ebd8c40a82858c5"
_QWEN = "QwenLM/Qwen2.5-Math", "a45202bd16f1ec06f433442dc1152d0074773465"
_ADAPTERS = "AGI-Edgerunners/LLM-Adapters", "816657208af4db747803f87ba40a4c71383fed7a"
_HARD = "suzgunmirac/BIG-Bench-Hard", "9ee07bd481feebf959a6b59d61ea57bdcf30964d"
_SUBSETS = {
    "boolean_expressions": "ea6c754ec005e2d3f2d085d349a740f593b5764f32ea4638ffed4cfc0061b12a",
    "date_understanding": "0148d4ac5fca05b2f82373e5fef7208e15363b9c6079493034d77b3dab496bf5",
    "dyck_languages": "3f9badedf15c2be1ce53d94fdf016299bb30ba231ef087ab9f51a7ed6d0bdc25",
    "formal_fallacies": "4c1adb664821157faade1d4153685403afcc02648f3c180a608a18f17f589629",
    "logical_deduction_five_objects": "d2df31394b903b7f0e085d42a69572a092987856eac076799017d70ef266fa8f",
    "logical_deduction_three_objects": "e590fae72e3a6041fbd23bd8ff6b74baf44ca563f6ba40a041c55e7b867c1681",
    "multistep_arithmetic_two": "c9d5a6433c9b78256422a15c78463949c8bec8d85607aa28b52d7234ad4a8595",
    "navigate": "b7944dfd3c81da5c4815bd75b00d6fa3c64140823498e78ed496f4c3d36f7f0d",
    "object_counting": "8acef14dbbdd40d2326ef7755750b6b5fe919fef06276af1bab3f1c297f022ff",
    "penguins_in_a_table": "bb87ee449698eee51215e025a453b1bcb2f5e6589c2063b2c79e68b8f0655228",
    "reasoning_about_colored_objects": "0a8850cf95166020fce7a78244026ceedd7ea839302471512b4f8744e85a6a49",
    "temporal_sequences": "92a1189faaa84aacc4c405aaa13f13f48c2992eb884772eedb622505252baef5",
    "tracking_shuffled_objects_three_objects": "546cc7bf10c6a01a6a4c17ae28a4966485f21f29fd5d111f37858ec78e354f6b",
    "tracking_shuffled_objects_five_objects": "2063a46a4fb484236ed4310523606543a3e1dd4a4dc34eda65d407910ece25a5",
    "web_of_lies": "3e60323f8514a107fdb4edf35f8832a9171c5a09c0eaa47823559de905e8ab8b",
    "word_sorting": "2a6132d2c99f00d0d2eb1113ac6b4a918bd969d863c48749210d969713db8d43",
}
SOURCES = {
    "aime24": _single_file(
        "aime24.jsonl",
        *_QWEN,
        "evaluation/data/aime24/test.jsonl",
        "af2b8bd2aa911b6333ad0df32f3ca05c7ae8ed10f1731f4372c8ae26990bf7ac",
    ),
    "arc_challenge": _single_file(
        "arc_challenge_test.jsonl",
        *_ADAPTERS,
        "dataset/ARC-Challenge/test.json",
        "4a89ce368ae01a71d268d9851686738b2a0a1d84271116bab49a1dd2b48ecad7",
    ),
    "arc_easy": _single_file(
        "arc_easy_test.jsonl",
        *_ADAPTERS,
        "dataset/ARC-Easy/test.json",
        "3f32a84716ca6d57d38728bf80cc8117aecd17445c2cf29a68b571b810eb82dc",
    ),
    "bbh": Upstream(
        "bbh_logic.jsonl",
        tuple(PinnedFile(*_HARD, f"bbh/{subset}.json", digest) for subset, digest in _SUBSETS.items()),
    ),
    "gsm8k": _single_file(
        "gsm8k_test.jsonl",
        "openai/grade-school-math",
        "3101c7d5072418e28b9008a6636bde82a006892c",
        "grade_school_math/data/test.jsonl",
        "3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14",
    ),
    "hellaswag": _single_file(
        "hellaswag_val.jsonl",
        "RubriksCube/rubriks_cube",
        "45e617d6ca9e5a158a280f0da0f7a44f7c8dbb8c",
        "data/hellaswag.jsonl",
        "79b87117cffba9878961284f233797c5ebeba4193cb48a93eabc4a5a1156cc45",
    ),
    "humaneval": _single_file(
        "humaneval.jsonl",
        "openai/human-eval",
        "6d43fb980f9fee3c892a914eda09951f772ad10d",
        "data/HumanEval.jsonl.gz",
        "b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef",
    ),
    "humanevalplus": _single_file(
        "HumanEvalPlus-Mini.jsonl",
        "evalplus/humanevalplus_release",
        "200defce9e3429d28ca215b6dd061c0f7f31c18b",
        "HumanEvalPlus-Mini.jsonl.gz",
        "91486741f1627101021fbe50523df08eebb5b0bf5e804b633dcd5ca3c14dbd2f",
    ),
    "math": _single_file(
        "math_test.jsonl",
        *_HARNESS,
        "data/math/test.jsonl",
        "3371949f33dd702d04b43fddd7d53a028de0aaca0e76abb1b875a050297b3aa4",
    ),
    "math500": _single_file(
        "math500.jsonl",
        *_HARNESS,
        "data/math_oai/test.jsonl",
        "35dc41080a3680858b27fa7e0533d2d547825316fc5dafe5d316f4ccc5a06132",
    ),
    "mbpp": _single_file(
        "mbpp_sanitized.jsonl",
        "mrigankpawagi/PropertyEval",
        "b2be813dcff867cc350c61b8d3ea57ec088ce1ac",
        "sanitized-mbpp.json",
        "8ac32b2799150228e2d745aed09c870b7e4444246d4727d1004576207ef40769",
    ),
    "mbppplus": _single_file(
        "MbppPlus-NoExtreme.jsonl",
        "evalplus/mbppplus_release",
        "dadf43da556a00f7bacd71cb154f2932757d9144",
        "MbppPlus-NoExtreme.jsonl.gz",
        "72d32acaea73d5606cb97041b30d45bbda9435a675369d3e31965513ee94e564",
    ),
    "svamp": _single_file(
        "svamp.jsonl",
        *_QWEN,
        "evaluation/data/svamp/test.jsonl",
        "d0826ff1264f3860e46fc4e71db9e31d2d188960db87090e22677f9493e67a0d",
    ),
}
"""Benchmark -> where its rows come from. Every file is pinned: what has another digest is refused."""
