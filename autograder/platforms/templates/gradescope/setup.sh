#!/usr/bin/env bash
# Builds the image once: a Python of its own for the kit, away from the course.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get update
python=""
for version in 3.13 3.12 3.11; do
    if apt-get install -y --no-install-recommends "python$version" "python$version-venv"; then
        python="python$version"
        break
    fi
done
if [ -z "$python" ]; then
    echo "This image has no Python 3.11 or later: choose a newer base image." >&2
    exit 1
fi
"$python" -m venv /opt/autograder
"$python" -m zipfile -e /autograder/source/kit/attention_kit-*.whl /opt/wheel
locks=/opt/wheel/autograder/requirements
# Every package as the lock files name it, to the byte. A CPU-only build of torch makes the image gigabytes smaller: set
# PIP_EXTRA_INDEX_URL to its index, and put the hash of its wheel into $locks/torch.txt where it is not there.
pip() { /opt/autograder/bin/python -m pip "$@"; }
locked() { pip install --no-cache-dir --no-deps --require-hashes --requirement "$locks/$1.txt"; }
locked torch
locked kit
pip check || locked cuda  # PyPI's build of torch needs CUDA's libraries beside it
pip install --no-cache-dir --no-deps /autograder/source/kit/attention_kit-*.whl
# Student code may read the kit; nobody but root reads the course.
chmod -R go-rwx /autograder/source
