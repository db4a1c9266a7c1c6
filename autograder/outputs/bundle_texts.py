"""The scripts and the workflows that bundles carry. ASSIGNMENT stands for the assignment's name, PREFIX- for what
GitHub Classroom puts before a username."""

from __future__ import annotations

import re

_ACTIONS = {
    "actions/checkout": "d23441a48e516b6c34aea4fa41551a30e30af803",  # v6.1.0
    "actions/setup-python": "ece7cb06caefa5fff74198d8649806c4678c61a1",  # v6.3.0
    "actions/upload-artifact": "b7c566a772e6b6bfb58ed0dc250532a479d7789f",  # v6.0.0
}
"""The commits of the actions in our workflows: a tag can be moved to other code, a commit cannot."""


def _pinned(workflow: str) -> str:
    """The workflow with each action at a commit in place of its tag."""
    return re.sub(r"(uses: (actions/[\w-]+))@(v\d+)", lambda use: f"{use[1]}@{_ACTIONS[use[2]]}  # {use[3]}", workflow)


SETUP = """\
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
# Every package as the lock files name it, to the byte. A CPU-only build of torch makes the image gigabytes smaller: set
# PIP_EXTRA_INDEX_URL to its index, and put the hash of its wheel into torch.txt where it is not there.
pip() { /opt/autograder/bin/python -m pip "$@"; }
locks=/autograder/source/kit/autograder/requirements
locked() { pip install --no-cache-dir --no-deps --require-hashes --requirement "$locks/$1.txt"; }
locked torch
locked kit
pip check || locked cuda  # PyPI's build of torch needs CUDA's libraries beside it
pip install --no-cache-dir --no-deps --no-build-isolation /autograder/source/kit
# Student code may read the kit; nobody but root reads the course.
chmod -R go-rwx /autograder/source
"""

RUN_AUTOGRADER = """\
#!/usr/bin/env bash
# Grades one submission. To accept a container in which no wall stands, and with it that a submission can read
# the suite and write its own score, put AUTOGRADER_ALLOW_NO_ISOLATION=1 in front of the command.
set -euo pipefail
chmod -R go-rwx /autograder/source /autograder/results
cd /
exec /opt/autograder/bin/python -I -m autograder.outputs.gradescope ASSIGNMENT /autograder/source/course
"""

GITHUB_WORKFLOW = _pinned("""\
# Grades ASSIGNMENT on every push. See GRADING.md before you use it: the hidden suite comes from the course's
# private repository. It must never lie in this one.
#
# The file, the workflow and the job are called as GitHub Classroom calls its own; the last step hands it the points.
name: Autograding Tests
on: [push, workflow_dispatch]
permissions:
  contents: read
concurrency:
  group: grade-${{ github.ref }}
  cancel-in-progress: true
jobs:
  run-autograding-tests:
    if: github.actor != 'github-classroom[bot]'  # the empty template, when Classroom makes the repository
    runs-on: ubuntu-24.04
    timeout-minutes: 30
    environment: grading  # holds the token; GRADING.md says how to keep students from reading it
    outputs:
      points: ${{ steps.report.outputs.points }}
      max_points: ${{ steps.report.outputs.max_points }}
    steps:
      - name: The submission
        uses: actions/checkout@v6
        with:
          path: submission
          persist-credentials: false
      - name: The course, from its private repository
        uses: actions/checkout@v6
        with:
          repository: ${{ vars.COURSE_REPOSITORY }}
          token: ${{ secrets.COURSE_TOKEN }}
          path: course
          persist-credentials: false
      - uses: actions/setup-python@v6
        with:
          python-version: "3.12"
      - name: Install
        run: |
          # Every package as the kit's lock files name it, and then the kit itself.
          python -m zipfile -e course/kit/attention_kit-*.whl "$RUNNER_TEMP/wheel"
          python -m venv "$RUNNER_TEMP/kit"
          pip() { "$RUNNER_TEMP/kit/bin/python" -m pip "$@"; }
          locks="$RUNNER_TEMP/wheel/autograder/requirements"
          locked() { pip install --no-deps --require-hashes --requirement "$locks/$1.txt"; }
          locked torch
          locked kit
          pip check || locked cuda  # PyPI's build of torch needs CUDA's libraries beside it
          pip install --no-deps course/kit/attention_kit-*.whl
      - name: Grade
        working-directory: course
        run: |
          # What a submission prints must not be taken for a command to the runner.
          stop="$(openssl rand -hex 16)"
          echo "::stop-commands::$stop"
          status=0
          "$RUNNER_TEMP/kit/bin/autograder" grade ASSIGNMENT ../submission/ASSIGNMENT.ipynb \\
            --isolation strict --force --out "$RUNNER_TEMP/results" || status=$?
          echo "::$stop::"
          exit "$status"
      - name: Report
        id: report
        if: always()
        run: |
          "$RUNNER_TEMP/kit/bin/python" -I -m autograder.outputs.github ASSIGNMENT "$RUNNER_TEMP/results" course
""")

GITHUB_README = """\
# Grading ASSIGNMENT in a classroom

This folder is the template of the repository that each student gets. It holds the notebook, the programs that students
get with it (`check.py`), and the workflow `.github/workflows/classroom.yml`, and nothing hidden.

**The hidden suite and the answer key stay in the course's private repository.** The workflow fetches them with a
token while it runs. Never copy `tests/hidden/`, `source/` or `solutions/` into this repository: whoever can read a
repository can read its whole history.

## Set it up

1. Commit the folder `kit/` of the course to its private repository: the workflow installs the kit from the wheel in it.
   `autograder bundle` has just written it; make the bundle again after an update of the kit.
2. In the organisation, set the variable `COURSE_REPOSITORY` to the private repository, as `owner/name`.
3. Make a token that can read the contents of that one repository and do nothing else.
4. In each student repository, make an environment `grading` with the secret `COURSE_TOKEN`, and protect it: a
   required reviewer from the staff, or a rule that only a branch which students cannot push to may use it.

## What you must know

- **A secret that a workflow can read, everybody can read who can change the workflow.** A student with write access
  can edit `classroom.yml` and print the token, and with it fetch the suite and the answer key. The protected
  environment in step 4 is what prevents it. An organisation secret or an unprotected repository secret does not.
- Environments, and rules that protect them, are there for public repositories in every plan. For private ones, as
  students' repositories are, environments with branch rules need GitHub Pro, Team or Enterprise, and required reviewers
  need Enterprise. Look into your organisation's settings before you rely on it.
- Where you cannot protect the environment, do not use this workflow. Grade the repositories from the course's own
  private one, with the workflow that `autograder bundle ASSIGNMENT --for github-course --to .` writes, or on your
  machine: `autograder collect ASSIGNMENT FOLDER --from github`, then `autograder grade ASSIGNMENT`.
- A student can change what a workflow in their own repository reports. Points that count come from a grading run of
  yours.
- GitHub Classroom gets the points from the run, as from its own reporter: choose "custom YAML" as the autograding
  test there. A submission that could not be read has 0 points; a run that fails for another reason gives none.
- The log and the summary show what a student may see: claims, messages and hints, never an expected value in full.
"""

GITHUB_COURSE_WORKFLOW = _pinned("""\
# Grades the students' repositories of ASSIGNMENT from the course's own private repository, when somebody starts it.
# Students can neither read nor change this file, so its token needs no protected environment.
#
# Which repositories: the lines `owner/name` of repositories.txt in the root of this repository, where it is there; else
# all of STUDENTS_OWNER's whose names begin with `PREFIX-`, as GitHub Classroom calls them.
#
# Set up, once, in this repository's settings:
#   the variable STUDENTS_OWNER: the organisation that holds the students' repositories
#   the secret STUDENTS_TOKEN: a token that can read the contents of those repositories and do nothing else
name: grade ASSIGNMENT
on: workflow_dispatch
permissions:
  contents: read
concurrency:
  group: grade-ASSIGNMENT
jobs:
  grade:
    runs-on: ubuntu-24.04
    timeout-minutes: 350
    steps:
      - name: The course
        uses: actions/checkout@v6
        with:
          persist-credentials: false
      - uses: actions/setup-python@v6
        with:
          python-version: "3.12"
      - name: Install
        run: |
          # Every package as the kit's lock files name it, and then the kit itself.
          python -m zipfile -e kit/attention_kit-*.whl "$RUNNER_TEMP/wheel"
          python -m venv "$RUNNER_TEMP/kit"
          pip() { "$RUNNER_TEMP/kit/bin/python" -m pip "$@"; }
          locks="$RUNNER_TEMP/wheel/autograder/requirements"
          locked() { pip install --no-deps --require-hashes --requirement "$locks/$1.txt"; }
          locked torch
          locked kit
          pip check || locked cuda  # PyPI's build of torch needs CUDA's libraries beside it
          pip install --no-deps kit/attention_kit-*.whl
      - name: The students' repositories
        env:
          GH_TOKEN: ${{ secrets.STUDENTS_TOKEN }}
          STUDENTS_OWNER: ${{ vars.STUDENTS_OWNER }}
          GIT_LFS_SKIP_SMUDGE: "1"
          GIT_TERMINAL_PROMPT: "0"
        run: |
          set -euo pipefail
          if [ -f repositories.txt ]; then
            tr -d '\\r' < repositories.txt | { grep -Ev '^[[:space:]]*(#|$)' || true; }
          else
            gh repo list "$STUDENTS_OWNER" --limit 4000 --json name,nameWithOwner \\
              --jq '.[] | select(.name | ascii_downcase | gsub("_"; "-") | startswith("PREFIX-")) | .nameWithOwner'
          fi > "$RUNNER_TEMP/repositories"
          mkdir -p "$RUNNER_TEMP/clones"
          while read -r repository; do
            # Forks have equal names: each lies in a folder that is called like its owner.
            place="${repository#*/}"
            if [ "$(cut -d/ -f2 "$RUNNER_TEMP/repositories" | grep -Fixc -- "$place")" -gt 1 ]; then
              place="$repository"
            fi
            if ! [[ "$repository" =~ ^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$ ]]; then
              echo "::warning::repositories.txt: a line is not owner/name"
            elif ! git -c credential.helper= -c credential.helper='!gh auth git-credential' -c core.symlinks=false \\
                clone --quiet "https://github.com/$repository" "$RUNNER_TEMP/clones/$place"; then
              echo "::warning::$repository cannot be cloned; it is not graded"
            fi
          done < "$RUNNER_TEMP/repositories"
          if [ -z "$(ls "$RUNNER_TEMP/clones")" ]; then
            echo "::error::no repository was cloned: look at STUDENTS_OWNER, STUDENTS_TOKEN and repositories.txt"
            exit 1
          fi
      - name: Grade
        run: |
          # What a submission prints must not be taken for a command to the runner.
          stop="$(openssl rand -hex 16)"
          echo "::stop-commands::$stop"
          status=0
          PATH="$RUNNER_TEMP/kit/bin:$PATH"
          {
            autograder collect ASSIGNMENT "$RUNNER_TEMP/clones" --from github &&
            { autograder grade ASSIGNMENT --isolation strict || [ $? -eq 1 ]; } &&
            autograder report ASSIGNMENT &&
            autograder export ASSIGNMENT --format csv --to grades.csv
          } || status=$?
          echo "::$stop::"
          exit "$status"
      - name: Report, feedback pages, results and marks
        uses: actions/upload-artifact@v6
        with:
          name: ASSIGNMENT
          path: |
            results
            feedback
            grades.csv
          retention-days: 30
""")
