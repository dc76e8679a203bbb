#!/usr/bin/env bash
# Builds the image that Gradescope grades in: Python, the course's packages, and the folders that answers run in.
set -euo pipefail
source=/autograder/source
chmod 700 /autograder "$source"    # the exam key is root's alone
chmod 755 "$source/run_autograder"

apt-get update
apt-get install --yes --no-install-recommends bubblewrap ca-certificates python3 python3-venv

# The newest Python that the course knows, beside the system's own; every user may read it, and root alone writes to it.
export UV_PYTHON_INSTALL_DIR=/opt/python UV_LINK_MODE=copy
umask 022
python3 -m venv /opt/uv
/opt/uv/bin/pip install --quiet uv
/opt/uv/bin/uv venv --python 3.12 /opt/course
/opt/uv/bin/uv pip install --python /opt/course/bin/python --no-cache \
    --index-strategy unsafe-best-match --constraint "$source/course/constraints.txt" \
    --requirement "$source/requirements.txt"

cd "$source/course"
PYTHONPATH="$source/course" PYTHONDONTWRITEBYTECODE=1 /opt/course/bin/python -m helpers.grading.gradescope prepare
