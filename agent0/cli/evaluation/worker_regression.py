"""The process of one side of ``agent0 bench regression``: ``python -P -m agent0.cli.evaluation.worker_regression
REQUEST``, in the side's folder.

It answers each line of its standard input (``PLAN``, ``SCORE``) with one of JSON, and ends where that ends. What
plugins print goes to standard error.
"""

import os
import sys
from typing import TextIO

import typer

from agent0.assembly.evaluation.prompt_scores import prompt_choice
from agent0.assembly.evaluation.regression_side import PLAN, SideRequest, plan_side, score_side
from agent0.cli import flags, user_error
from agent0.cli.console import complain, run_async
from agent0.cli.defects import defect
from agent0.cli.evaluation.bench import BenchmarkReporter


def main() -> None:
    """Serve one side to the command that began it; an error is one paragraph and an exit code."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        try:
            _serve(SideRequest.model_validate_json(sys.argv[1]), answers)
        except typer.Exit as stopped:
            sys.exit(stopped.exit_code)
        except KeyboardInterrupt:
            sys.exit(130)
        except (Exception, BaseExceptionGroup) as error:
            reported = user_error(error) or defect(error)
            complain(reported)
            sys.exit(reported.kind.exit_code)


def _serve(request: SideRequest, answers: TextIO) -> None:
    settings = flags.settings(request.profile, request.pairs)
    if request.prompt:
        settings = prompt_choice(request.prompt).settings(settings)
    report = BenchmarkReporter(request.quiet)
    for line in sys.stdin:
        if line == PLAN:
            answer = run_async(lambda: plan_side(settings, request)).model_dump_json()
        else:
            answer = run_async(lambda: score_side(settings, request, report)).model_dump_json()
        answers.write(answer + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
