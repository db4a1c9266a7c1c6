#!/usr/bin/env bash
# All that is measured on a GPU, in at most 9 minutes, into one JSON file. Set PYTHON for another interpreter.
exec "${PYTHON:-python3}" "$(dirname "$0")/gpu_all.py" "$@"
