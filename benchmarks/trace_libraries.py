"""What the libraries of other frameworks do with traces, each in an environment of its own (``make traces``).

``python trace_libraries.py read FORMAT IN OUT`` has the format's own library read IN, which an export of ours is, and
write what it read to OUT; ``write FORMAT IN OUT`` has it write rollouts of its own: IN has question, answer, text and
reward in each line. Nothing of Agent0 is imported here.
"""

import json
import sys
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

NOON = "2026-01-01T12:00:00+00:00"


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def save(path: Path, rows: list[Any]) -> int:
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return len(rows)


def _hollow(*packages: str) -> None:
    """Let modules of ``packages`` be imported without what these import themselves: a hundred packages in all."""
    spec = find_spec(packages[0])
    assert spec is not None and spec.origin is not None
    for name in packages:
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = [str(Path(spec.origin).parents[1].joinpath(*name.split(".")))]


def atif(source: Path, out: Path) -> int:
    """Harbor's validator decides, then the models of Harbor and of the package atif read and write."""
    validator = import_module("harbor.utils.trajectory_validator").TrajectoryValidator()
    models = [import_module(f"{name}").Trajectory for name in ("harbor.models.trajectories", "atif")]
    rows = lines(source)
    for number, row in enumerate(rows):
        if not validator.validate(row):
            raise ValueError(f"line {number + 1}: {validator.get_errors()}")
        for model in models:
            row = model.model_validate(row).model_dump(mode="json", exclude_none=True)
        rows[number] = row
    return save(out, rows)


def inspect(source: Path, out: Path) -> int:
    log = import_module("inspect_ai.log")
    read = log.read_eval_log(str(source))
    log.write_eval_log(read, str(out), format="eval")
    return len(read.samples)


def openenv(source: Path, out: Path) -> int:
    _hollow("openenv", "openenv.core", "openenv.core.harness", "openenv.core.harness.capture")
    model = import_module("openenv.core.harness.training").TrainingTrace
    return save(out, [model.model_validate(row).model_dump_json() for row in lines(source)])


def verifiers_results(source: Path, out: Path) -> int:
    """Of a folder that an evaluation left, whose messages it reads into its own types and writes as its own."""
    saving, reading = (import_module(f"verifiers.utils.{name}_utils") for name in ("save", "message"))
    with tempfile.TemporaryDirectory() as folder:
        evaluation = Path(folder)
        (evaluation / "results.jsonl").write_bytes(source.read_bytes())
        outputs = saving.load_outputs(evaluation)
        for output in outputs:
            for part in ("prompt", "completion"):
                messages = reading.normalize_messages(output[part])
                output[part] = reading.sanitize_tool_calls(reading.serialize_messages_for_output(messages))
        saving.save_outputs(outputs, evaluation)
        out.write_bytes((evaluation / "results.jsonl").read_bytes())
    return len(outputs)


def verifiers_trace(source: Path, out: Path) -> int:
    model = import_module("verifiers.v1").WireTrace
    return save(out, [model.model_validate(row).to_record(float_decimals=None) for row in lines(source)])


def openai_chat(source: Path, out: Path) -> int:
    chat = import_module("openai.types.chat")
    adapter = import_module("pydantic").TypeAdapter(list[chat.ChatCompletionMessageParam])
    rows = lines(source)
    for row in rows:
        adapter.validate_python(row["messages"])
    return save(out, rows)


def trl(source: Path, out: Path) -> int:
    """TRL's data sets are those of datasets; TRL says whether they are conversations."""
    rows = import_module("datasets").load_dataset("json", data_files=str(source), split="train", cache_dir=_cache())
    is_conversational = import_module("trl.data_utils").is_conversational
    texts = "completions" in rows.column_names  # stepwise supervision has no conversational form
    if not all(is_conversational(row) != texts for row in rows):
        raise ValueError("TRL takes a row for what it is not")
    rows.to_json(str(out))
    return len(rows)


def parquet(source: Path, out: Path) -> int:
    rows = import_module("datasets").Dataset.from_parquet(str(source), cache_dir=_cache())
    rows.to_parquet(str(out))
    return len(rows)


def pi(source: Path, out: Path) -> int:
    """Each session in a file of its own, which trackio takes as it is."""
    _hollow("trackio")
    is_native = import_module("trackio.agent_sessions").is_hub_native_jsonl
    sessions: list[list[Any]] = []
    for line in lines(source):
        sessions += [[]] * 0 if line["type"] != "session" else [[line]]
        if line["type"] != "session":
            sessions[-1].append(line)
    for session in sessions:
        save(out, session)
        if not is_native(out):
            raise ValueError(f"trackio does not take the session {session[0]['id']}")
    return len(sessions)


def _cache() -> str:
    return tempfile.mkdtemp(prefix="agent0-datasets-")


def write_atif(rows: list[Any], out: Path) -> int:
    model = import_module("harbor.models.trajectories").Trajectory
    documents = []
    for row in rows:
        steps = [
            {"step_id": 1, "source": "user", "message": row["question"]},
            {"step_id": 2, "source": "agent", "message": row["text"]},
        ]
        agent = {"name": "theirs", "version": "1"}
        documents.append(model(schema_version="ATIF-v1.7", session_id="s", agent=agent, steps=steps).to_json_dict())
    return save(out, documents)


def write_inspect(rows: list[Any], out: Path) -> int:
    log, score = import_module("inspect_ai.log"), import_module("inspect_ai.scorer").Score
    samples = [
        log.EvalSample(
            id=number,
            epoch=1,
            input=row["question"],
            target=row["answer"],
            messages=[{"role": "user", "content": row["question"]}, {"role": "assistant", "content": row["text"]}],
            scores={"exact": score(value="C" if row["reward"] else "I")},
        )
        for number, row in enumerate(rows)
    ]
    spec = log.EvalSpec(created=NOON, task="sums", dataset=log.EvalDataset(), model="m/1", config=log.EvalConfig())
    log.write_eval_log(log.EvalLog(eval=spec, status="success", samples=samples), str(out), format="eval")
    return len(samples)


def write_verifiers_trace(rows: list[Any], out: Path) -> int:
    model = import_module("verifiers.v1").WireTrace
    traces = [
        model(
            id=f"{number}",
            task={"type": "Sums", "key": f"{number}", "data": {"prompt": row["question"], "answer": row["answer"]}},
            agent={"config": {"model": "m/1"}},
            nodes=[
                {"message": {"role": "user", "content": row["question"]}},
                {"parent": 0, "sampled": True, "message": {"role": "assistant", "content": row["text"]}},
            ],
            rewards={"right": {"score": row["reward"]}},
        ).model_dump_json()
        for number, row in enumerate(rows)
    ]
    return save(out, traces)


READ = {
    "atif": atif,
    "inspect": inspect,
    "openenv": openenv,
    "verifiers": verifiers_results,
    "verifiers-trace": verifiers_trace,
    "openai-chat": openai_chat,
    "trl": trl,
    "trl-messages": trl,
    "trl-preference": trl,
    "trl-prompt": trl,
    "trl-unpaired": trl,
    "trl-stepwise": trl,
    "parquet": parquet,
    "pi": pi,
}
WRITE = {"atif": write_atif, "inspect": write_inspect, "verifiers-trace": write_verifiers_trace}

if __name__ == "__main__":
    verb, kind, source, out = sys.argv[1:]
    if verb == "read":
        print(READ[kind](Path(source), Path(out)))
    else:
        print(WRITE[kind](lines(Path(source)), Path(out)))
