"""Record calls as a CUDA graph, after https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs."""

WARM_UP_CALLS = 3  # on the stream of the recording: libraries choose algorithms, and an optimiser makes its state


def record(cuda, call, prepare=None, stream=None):
    """Return (graph, what the recorded call returned, in the memory that each replay writes).

    Args:
        cuda: ``torch.cuda``.
        call: queues work on the current stream, and does not wait for the device.
        prepare: is called before each warm-up call and before the recording; None for nothing.
        stream: to record on; None for a new one.
    """
    stream = stream or cuda.Stream()
    stream.wait_stream(cuda.current_stream())
    with cuda.stream(stream):
        for _ in range(WARM_UP_CALLS):
            if prepare is not None:
                prepare()
            call()
    cuda.current_stream().wait_stream(stream)
    if prepare is not None:
        prepare()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, stream=stream):
        result = call()
    return graph, result
