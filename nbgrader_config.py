"""How nbgrader works in this course. Loaded by every nbgrader command that is run in this folder."""

import os
import sys

from nbgrader.converters import Autograde, NbGraderException

# nbgrader calls alembic by its bare name: it has to be found also where the environment is not activated
os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])

c = get_config()  # noqa: F821  (nbgrader defines it)

c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "notebooks"
# Everything beside a notebook would be copied to the release, and over a student's files when grading.
# *.py and mistakes.toml keep a lesson's source text and its mistakes out of both, further what else was measured;
# *.safetensors is the solution of lesson 22's open task.
c.CourseDirectory.ignore = [
    ".ipynb_checkpoints",
    "*.pyc",
    "__pycache__",
    ".*",
    "*.py",
    "mistakes.toml",
    "*.safetensors",
    "further",
    "feedback",
]

# A gradebook on a server: GRADEBOOK=postgresql+psycopg://user@host/database
if os.environ.get("GRADEBOOK"):
    c.CourseDirectory.db_url = os.environ["GRADEBOOK"]
    # Without a name nbgrader makes no course, and a database that minds references refuses the lessons
    c.CourseDirectory.course_id = "dot-product-to-gpt2"

# The stub's message tells our check an exercise that was not begun from one that raises by itself.
c.ClearSolutions.code_stub = {"python": 'raise NotImplementedError("write this")'}

# What a student gets in place of a solution may be other lines than the stub ("### STUDENT GETS").
# A student's copy has no helpers.authoring, and releases nothing.
c.GenerateAssignment.preprocessors = [
    "nbgrader.preprocessors.IncludeHeaderFooter",
    "nbgrader.preprocessors.InstantiateTests",
    "nbgrader.preprocessors.LockCells",
    "helpers.authoring.build.release_step.ClearOrExchange",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.CheckCellMetadata",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.SaveCells",
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbgrader.preprocessors.ClearMarkScheme",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.CheckCellMetadata",
]

c.OverwriteCells.add_missing_cells = True

# The Validate button: seconds for a cell. Some train for a minute, and for longer on a slow machine.
c.Execute.timeout = 600


def refuse(self: Autograde) -> None:
    """Submissions are graded in a sandbox, by one command. Raises NbGraderException, and opens no file."""
    says = f"Nothing was graded. This course is graded by: make grade LESSON={self.coursedir.assignment_id}"
    self.log.error("%s", says)
    raise NbGraderException(says)


# nbgrader runs no hook before it reads what students sent. Its command and the formgrader's button both come here.
Autograde.start = refuse
