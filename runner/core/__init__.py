"""What every other package builds on: values and small helpers that know nothing of backends, GPUs or reports.

``model`` holds the values that packages exchange: cells, plans, environments, records and events. ``errors`` has the
errors for people and their exit codes. ``machine`` reads this machine's cores and memory, ``paths`` says where files
go, ``locks`` and ``files`` protect them from other processes and from crashes, ``json`` reads them with positions in
its errors. ``threads`` and ``timeout`` run code in parallel and bound it in time, ``progress`` shows what happens,
``units`` formats quantities, ``text`` makes text from outside safe to print, and ``facts`` lists the facts that records
keep of a measurement.

This package imports no other package of runner.
"""
