"""TRL's side of ``benchmarks.gpu``: its GRPOTrainer, with the same LoRA, batch, lengths and checkpointing."""

import tempfile
from typing import Any

from benchmarks.gpu_work import GROUP, Cost, Meter, Work, question


def measure_trl(work: Work) -> Cost:
    """Rollouts are what happens until completions are scored, the training step is the rest of the step."""
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import PreTrainedTokenizerFast

    from agent0.infra.engine.adapter import lora_settings

    asked = [{"prompt": [{"role": "user", "content": question(number)}]} for number in range(work.rows // GROUP)]
    with tempfile.TemporaryDirectory() as folder:
        trainer = _timed()(
            model=work.folder,
            reward_funcs=_reward,
            args=_arguments(work, folder, GROUP),
            train_dataset=Dataset.from_list(asked * work.turns),
            processing_class=PreTrainedTokenizerFast.from_pretrained(work.folder, padding_side="left"),
            peft_config=LoraConfig(task_type="CAUSAL_LM", **lora_settings(work.rank, 2 * work.rank)),
            quantization_config=_quantized(work),
        )
        trainer.add_callback(_clock(trainer))
        trainer.train()
    found: Cost = trainer.cost
    return found


def _arguments(work: Work, folder: str, group: int) -> Any:
    from trl import GRPOConfig

    gpu = work.device != "cpu"
    return GRPOConfig(
        output_dir=folder, per_device_train_batch_size=work.rows, num_generations=group, max_steps=work.turns,
        max_completion_length=work.tokens, temperature=1.0, beta=0.0, learning_rate=1e-5, bf16=gpu, use_cpu=not gpu,
        gradient_checkpointing=True, report_to="none", save_strategy="no", logging_strategy="no", disable_tqdm=True,
        model_init_kwargs={"dtype": "bfloat16" if gpu else "float32"}, optim="adamw_torch",
    )  # fmt: skip


def _quantized(work: Work) -> Any:
    if not work.quantization:
        return None
    import torch
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )


def _reward(completions: list[Any], **_: Any) -> list[float]:
    """Anything that differs inside a group."""
    return [float(place % 2) for place in range(len(completions))]


def _timed() -> Any:
    """GRPOTrainer that times its own rollouts."""
    from trl import GRPOTrainer

    class Timed(GRPOTrainer):  # type: ignore[misc]
        cost = Cost(0, 0.0, 0.0, 0.0, 0.0)

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            self.meter = Meter("cpu" if self.args.use_cpu else "cuda")
            made = super()._generate_and_score_completions
            found, self.rollout_s, self.rollout_gib = self.meter.time(lambda: made(inputs))
            self.tokens = int(found["completion_mask"].sum())
            self.meter.begin()
            return found

    return Timed


def _clock(trainer: Any) -> Any:
    """Ends each step's training part."""
    from transformers import TrainerCallback

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            seconds, gib = trainer.meter.end()
            trainer.cost = Cost(trainer.tokens, trainer.rollout_s, trainer.rollout_gib, seconds, gib)

    return Clock()
