"""Facts about builds, CUDA toolkits, drivers and GPUs, each with its source.

The CSV files hold the facts, ``facts`` reads them, ``versions`` compares releases, and ``peaks`` has the peak rates of
data sheets. The rules that decide by these facts are in ``runner.plan.compatibility``.
"""
