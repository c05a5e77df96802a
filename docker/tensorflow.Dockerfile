# TensorFlow of any release, from wheels.
# The context is one lock file. The harness is never in the image: it travels over stdin when a server starts.
#   docker build -f docker/tensorflow.Dockerfile --build-arg BASE=python:3.6-slim --build-arg LOCK=locks/tf-1.8-cpu.txt docker
ARG BASE
FROM ${BASE}

# Set by the runner, and taken off the finished image: what a dead runner's build left behind is found by it.
ARG BUILDER=""
LABEL io.matrix-runner.owner="${BUILDER}"

# A new cache volume takes its owner from /cache.
RUN useradd --no-log-init --uid 1000 --home-dir /work --create-home bench \
 && install -d -o bench -g bench /cache

ARG LOCK
COPY ${LOCK} /usr/local/share/lock.txt
# pip before 21.3 does not know the tags of newer wheels; 21.3.1 is the last one for Python 3.6.
RUN { python3 -c 'import pip, sys; sys.exit(tuple(map(int, pip.__version__.split(".")[:2])) < (21, 3))' \
      || { echo 'pip==21.3.1 --hash=sha256:deaf32dcd9ab821e359cd8330786bcd077604b5c5730c0b096eda46f95c24a2d' > /tmp/pip.txt \
        && python3 -m pip install --require-hashes --no-cache-dir --progress-bar off -r /tmp/pip.txt && rm /tmp/pip.txt; }; } \
 && python3 -m pip install --require-hashes --no-cache-dir --progress-bar off -r /usr/local/share/lock.txt \
 && site=$(python3 -c "import sysconfig; print(sysconfig.get_paths()['purelib'])") \
 && rm -rf "$site"/tensorflow/include "$site"/tensorflow_core/include

USER 1000:1000
WORKDIR /work
