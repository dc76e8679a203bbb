"""The autograder's two commands, as root in Gradescope's container.

    python -m helpers.grading.gradescope prepare    once, from setup.sh, when the image is built
    python -m helpers.grading.gradescope grade      from run_autograder, for each submission

The folder that the zip was unpacked into holds autograder.json: the lesson, and when students see the tests.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from helpers.checking.judge.keys import BadKey
from helpers.course import ROOT, write_whole
from helpers.grading.errors import GradingError
from helpers.grading.gradescope import grading
from helpers.grading.sandbox import another_user
from helpers.grading.sandbox.bubblewrap import NoSandbox

AUTOGRADER = Path("/autograder")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m helpers.grading.gradescope", description=__doc__)
    parser.add_argument("command", choices=("prepare", "grade"))
    command = parser.parse_args().command
    settings = json.loads((ROOT.parent / "autograder.json").read_text())
    # Keys, submissions, marks and the student's name: root's alone, from before the first answer runs
    for folder in (AUTOGRADER, ROOT.parent):
        folder.chmod(0o700)
    try:
        if command == "prepare":
            another_user.prepare()
            how = grading.try_reference(ROOT, settings["lesson"])
            print(f"The reference solution of {settings['lesson']} has full marks here. Answers run by: {how}.")
        else:
            another_user.close_new_places()
            found = grading.grade(ROOT, settings["lesson"], AUTOGRADER, settings["visibility"])
            write_whole(AUTOGRADER / "results" / "results.json", json.dumps(found, indent=1, allow_nan=False))
            print(found["output"], f"Answers ran by: {found['extra_data']['isolation']}.", sep="\n")
    except (BadKey, GradingError, NoSandbox) as problem:
        print(f"\n{problem}\n", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
