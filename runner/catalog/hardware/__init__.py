"""Facts about builds, CUDA toolkits, drivers and GPUs, each with its source.

The CSV files hold the facts, and ``tables`` reads them. ``builds`` has the GPU code in packages, ``facts`` what CUDA,
drivers, cuDNN and images support, and ``peaks`` the peak rates of data sheets. ``versions`` compares versions. The
rules that apply these facts are in ``runner.plan.compatibility``.
"""
