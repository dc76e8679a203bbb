#!/usr/bin/env bash
# Builds the image that Gradescope grades in: Python, the course's packages, and the folders that answers run in.
set -euo pipefail
source=/autograder/source
chmod 700 /autograder "$source"    # the exam key is root's alone
chmod 755 "$source/run_autograder"

apt-get update
apt-get install --yes --no-install-recommends bubblewrap ca-certificates python3 python3-venv

# The newest Python that the course knows, beside the system's own; every user may read it, and root alone writes to it.
export UV_PYTHON_INSTALL_DIR=/opt/python
umask 022
python3 -m venv /opt/uv
/opt/uv/bin/pip install --quiet uv
/opt/uv/bin/uv venv --python 3.12 /opt/course
/opt/uv/bin/uv pip install --python /opt/course/bin/python --no-cache --compile-bytecode --torch-backend cpu \
    --constraint "$source/course/constraints.txt" --requirement "$source/requirements.txt"

# Ends the build with a reason unless the reference solution has full marks here
cd "$source/course"
/opt/course/bin/python -m compileall -q helpers
PYTHONPATH="$source/course" PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 /opt/course/bin/python -m helpers.grading.gradescope prepare
