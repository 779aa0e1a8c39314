"""Examples of every command, as its help shows them. A test reads each of them as the command line does."""

EXAMPLES = """\
agent0 api key add laptop --scope submit
agent0 api key list
agent0 api key remove laptop
agent0 api openapi
agent0 artifacts verify
agent0 artifacts gc --delete
agent0 backup monday.tar
agent0 batch run questions.jsonl --out answers.jsonl --model tiny
agent0 batch run questions.jsonl --out answers.jsonl --model LAST/student-1 --no-tools --yes
agent0 batch run --resume batch-0f3a9c1d2e
agent0 batch list
agent0 bench list --data rows
agent0 bench runs
agent0 bench run gsm8k,mbpp --data rows --limit 50
agent0 bench run all --data rows --checkpoint LAST/student-1
agent0 bench run --resume bench-0f3a9c --data rows
agent0 bench compare bench-1a2b3c bench-4d5e6f
agent0 bench controls repairs -n 4 --prompt compact --model qwen2.5-coder-0.5b-instruct
agent0 bench regression main branch --plan
agent0 bench regression main branch --write comment.md
agent0 bench regression bench-1a2b3c bench-4d5e6f
agent0 bench baseline --data rows --limit 20 --out -
agent0 bench report LAST --out page.html
agent0 bench fetch gsm8k --data rows
agent0 calibrate --help
agent0 chat tiny
agent0 chat qwen2.5-coder-0.5b-instruct --tools python
agent0 chat LAST/student-1 --once "What is 12+30?"
agent0 cluster keys keys --host nats-1 --host nats-2 --host nats-3
agent0 cluster keys keys --rotate student
agent0 cluster status
agent0 cluster status --json
agent0 config show --profile climb --origin
agent0 config validate --profile mine.toml
agent0 config docs
agent0 curriculum show LAST
agent0 curriculum draw LAST --out curriculum.svg
agent0 doctor
agent0 doctor --profile climb --smoke
agent0 doctor --model qwen2.5-coder-0.5b-instruct
agent0 env add harbor tasks --name countdowns
agent0 env add gym FrozenLake-v1 --option desc=random --option is_slippery=false
agent0 env add openenv http://127.0.0.1:8010 --count 50
agent0 env add tau2 retail --split test
agent0 env add verifiers wordle --package ./wordle
agent0 env list
agent0 env serve countdown --port 8010
agent0 env rm countdowns
agent0 events tail --run LAST -n 50
agent0 events tail --follow --type CheckpointTrained
agent0 events show +100
agent0 events grep "division by zero" --run LAST
agent0 events stats --run LAST
agent0 events verify
agent0 events set-aside 4711 --reason "written by hand"
agent0 events export run.tar --run LAST
agent0 events import run.tar
agent0 events archive everything.tar
agent0 experiment list --run LAST
agent0 experiment show exp-mine
agent0 experiment rescore LAST --rewards paper
agent0 experiment reroute --strategy threshold --threshold 0.9 LAST
agent0 experiment reverify LAST --set verification.agreeing=3
agent0 experiment retrain LAST --name gentle --set training.student.lr=0.0001
agent0 experiment purge-task t0-003 LAST
agent0 experiment compare LAST~1 LAST --out compare.html
agent0 experiment ablation --variant base: --variant dear:run.rewards.weights.token_cost=0.1 --seeds 0-4
agent0 experiment ablation studies/climb.toml --only ours,frozen --seeds 0 --jobs 2
agent0 failures list --run LAST
agent0 failures show f-1a2b
agent0 failures retry f-1a2b
agent0 failures drop f-1a2b --reason "the file is gone"
agent0 family validate countdown
agent0 family validate countdown --level 4 --count 100 --json
agent0 family export countdown tasks --format harbor --count 10
agent0 handlers list
agent0 handlers run attempt_task verify_result
agent0 handlers run --profile cluster --projector
agent0 handlers run --role student --slots 8
agent0 log init
agent0 log check
agent0 metrics show
agent0 metrics serve --port 9464
agent0 model list --run LAST --role student
agent0 model list --available
agent0 model get qwen2.5-coder-0.5b-instruct
agent0 model rm qwen2.5-coder-0.5b-instruct
agent0 model train qwen2.5-coder-0.5b-instruct --items 100
agent0 model show LAST/student-1
agent0 model card LAST/student-1 --out card.md
agent0 model compare LAST/base LAST/student-1
agent0 model ab LAST/base LAST/student-1
agent0 model repeat LAST/student-1
agent0 model exam LAST/student-1 --n 150 --attempts 8 --temperatures 0,1
agent0 model ensemble LAST/base LAST/student-1 --n 150 --attempts 8
agent0 model rejudge LAST
agent0 model promote LAST/student-1 --reason "better on our own tasks"
agent0 model rollback base --run LAST
agent0 model prune LAST --commit
agent0 model export LAST/student-1 --out served
agent0 model push LAST/student-1 --name student:1
agent0 model verify LAST/student-1 --folder served
agent0 model lineage LAST/student-1
agent0 model check pyproject.toml
agent0 projections list
agent0 projections show tasks --limit 5
agent0 projections query "SELECT family, avg(solve_rate) FROM tasks GROUP BY family"
agent0 projections lag
agent0 projections run
agent0 projections rebuild --verify
agent0 projections build --into then.db --until-seq 500
agent0 projections rollback
agent0 prompt list
agent0 prompt show compact/math/student
agent0 prompt diff compact/math/student compact/code/student
agent0 prompt compare compact mine.txt --on heldout_math --model tiny --limit 100
agent0 prompt compare full programs --on questions.jsonl --model qwen2.5-coder-0.5b-instruct
agent0 questions check mine.jsonl
agent0 questions check mine.jsonl --columns question=Frage,answer=Antwort --tolerance 1%
agent0 questions check train.jsonl --held-out test.jsonl
agent0 questions check rows.csv --template question.jinja
agent0 questions ledger LAST
agent0 questions write docs --out heldout.jsonl --split test --model qwen2.5-coder-0.5b-instruct
agent0 report LAST
agent0 report LAST --full --out page.html
agent0 restore monday.tar
agent0 reward list agent0
agent0 reward explain t0-003 LAST
agent0 reward hack-test --set paper
agent0 reward calibrator tiny
agent0 router strategies
agent0 router route "7 + 5?" --role teacher -s run.teacher.fallback='["tiny/"]' -s run.teacher.routing.strategy=ab
agent0 router explain 3f2a91c07be4
agent0 router ask "Is 7 a prime?" --role student
agent0 router stats
agent0 router stats --by role --by day --run LAST
agent0 router calibrate --profile tiny --items 640 --seeds 3
agent0 router evaluate LAST/student-7
agent0 router compress LAST/student-7 --stage structural --stage extractive --long
agent0 router cache
agent0 router cache --clear
agent0 router budget list
agent0 router budget set run LAST --cap 5
agent0 router budget show run LAST
agent0 run start --profile scripted
agent0 run start --profile climb --seed 1 --set run.iterations=10
agent0 run start --model qwen2.5-coder-0.5b-instruct --iterations 1 --tasks 8
agent0 run start --base-url http://127.0.0.1:8000/v1 --iterations 1
agent0 run resume LAST
agent0 run list --limit 5
agent0 run list --tag keep --status finished
agent0 run show LAST --full
agent0 run show LAST --at iteration:1
agent0 run fork LAST --at iteration:1 --set training.student.lr=0.001
agent0 run diff LAST~1 LAST
agent0 run check LAST
agent0 run diet LAST
agent0 run ledger LAST
agent0 run watch LAST
agent0 run story LAST
agent0 run why LAST
agent0 run export LAST --format csv --out curves
agent0 run hide LAST
agent0 run tag LAST keep
agent0 run note LAST "half the learning rate"
agent0 run delete LAST
agent0 run archive LAST --out kept.tar
agent0 run prune --older-than 30d --larger-than 100MB
agent0 run pause LAST --reason "the machine is needed"
agent0 run priority LAST 40
agent0 run cancel LAST --yes
agent0 sandbox check
agent0 sandbox snapshots LAST
agent0 sandbox diff t0-003-a0#1 t0-003-a0#2
agent0 sandbox restore t0-003-a0#2 folder
agent0 sandbox top --run LAST
agent0 sandbox allow module sympy
agent0 sandbox deny module sympy
agent0 sandbox list
agent0 sandbox test "ls -l"
agent0 solve fix . --check "pytest -q" --model qwen2.5-coder-1.5b-instruct
agent0 solve test . --check "pytest -q tests" --needs attr --accept
agent0 solve review . --diff main..HEAD
agent0 solve refactor . --dirty
agent0 solve document .
agent0 solve resume submission-0a1b2c3d4e5f
agent0 solve apply submission-0a1b2c3d4e5f
agent0 solve list
agent0 status --json
agent0 task list LAST --status rejected
agent0 task show t0-003 LAST
agent0 task review LAST t0-003-a0 --correct --reviewer me
agent0 task lineage t0-003 LAST
agent0 task nearest LAST --data rows --embedder ngram
agent0 task mine more-itertools==10.1.0..10.2.0 --out mined --count 20
agent0 task mine toolz boltons inflection --out mined
agent0 task generate --out repairs --count 1000 --level 1 --level 2
agent0 task generate --from-failures LAST --out further
agent0 task unpack more-itertools-10.1.0-10.2.0 work --from mined
agent0 task judge more-itertools-10.1.0-10.2.0 work --from mined
agent0 tiny build --help
agent0 tiny card
agent0 tool list
agent0 tool call python --code "print(2**10)"
agent0 tool serve
agent0 tool serve --mcp --port 8020
agent0 tool mcp search
agent0 trajectory list LAST --wrong
agent0 trajectory show t0-003-a0 LAST
agent0 trajectory search print --run LAST
agent0 trajectory fork t0-003-a0 LAST --turn 1 -n 4
agent0 trajectory export LAST --format trl
agent0 trajectory export LAST --format atif
agent0 trajectory import results.jsonl
agent0 trajectory verify LAST
agent0 tutorial
agent0 up --port 8651
agent0 up --no-handlers
agent0 verify answer "So the total is \\boxed{12}." --expected 12
agent0 verify pairs pyproject.toml
agent0 view LAST
agent0 view run.tar
""".splitlines()
"""Command lines; those of one command stand together."""


def examples_of(path: str) -> list[str]:
    """The examples of the command ``path``, as in ``run show``."""
    return [line for line in EXAMPLES if f"{line} ".startswith(f"agent0 {path} ")]


def epilog(path: str) -> str:
    """What stands below the help of the command ``path``; empty where it is none that has examples."""
    examples = examples_of(path)
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples) if examples else ""
