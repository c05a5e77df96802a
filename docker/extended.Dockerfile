# An environment that adds packages to another: it is built on the image of that one.
# The context is one lock file, and the program that imports what was added: a pair that does not fit fails here.
ARG BASE
FROM ${BASE}

# Set by the runner, and taken off the finished image: what a dead runner's build left behind is found by it.
ARG BUILDER=""
LABEL io.matrix-runner.owner="${BUILDER}"

USER 0:0
ARG LOCK
COPY ${LOCK} added.py /usr/local/share/extended/
RUN python3 -m pip install --require-hashes --no-cache-dir --progress-bar off -r /usr/local/share/extended/lock.txt

# The last step.
ARG ADDED=""
WORKDIR /tmp
RUN HOME=/tmp python3 -B /usr/local/share/extended/added.py \
      /usr/local/share/lock.txt /usr/local/share/extended/lock.txt ${ADDED} \
 && mv /usr/local/share/extended/lock.txt /usr/local/share/lock.txt \
 && rm -rf /usr/local/share/extended /tmp/.[a-zA-Z]* /tmp/*

USER 1000:1000
WORKDIR /work
