"""Facts about builds, CUDA toolkits, drivers and GPUs, each with its source.

The CSV files hold the facts, ``facts`` reads them, ``versions`` compares versions, and ``peaks`` has the peak rates of
data sheets. The rules that apply these facts are in ``runner.plan.compatibility``.
"""
