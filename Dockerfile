# Two images. `grader`, the default, grades a course that is mounted at /course, as an ordinary user and on the CPU:
#   docker build --tag attention-kit .
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/course" attention-kit grade a2_attention
# `ci` is the same with git and a shell as its entry, for jobs that check a repository out and run commands:
#   docker build --target ci --tag attention-kit-ci .
# docs/install.md says which walls stand in them.

FROM python:3.11-slim-trixie AS build
# PyPI's build of torch brings CUDA. An index with builds for the CPU makes the image gigabytes smaller:
#   --build-arg PIP_EXTRA_INDEX_URL=...
ARG PIP_EXTRA_INDEX_URL=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
COPY autograder/requirements locks
# every package as the lock files name it, to the byte; CUDA's libraries where the build of torch asks for them
RUN python -m venv /opt/kit \
    && /opt/kit/bin/python -m pip install --no-deps --require-hashes --requirement locks/torch.txt \
    && /opt/kit/bin/python -m pip install --no-deps --require-hashes --requirement locks/kit.txt \
    && { /opt/kit/bin/python -m pip check \
         || /opt/kit/bin/python -m pip install --no-deps --require-hashes --requirement locks/cuda.txt; }
COPY . kit
RUN /opt/kit/bin/python -m pip install --no-deps --no-build-isolation ./kit

FROM python:3.11-slim-trixie AS base
COPY --from=build /opt/kit /opt/kit
ENV PATH=/opt/kit/bin:$PATH
RUN useradd --create-home --uid 1000 grader
WORKDIR /course

FROM base AS ci
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/*
USER 1000
CMD ["bash"]

FROM base AS grader
# matplotlib keeps files in a home, and --user may name somebody who has none
ENV HOME=/tmp
USER 1000
ENTRYPOINT ["autograder"]
CMD ["--help"]
