"""Commands that take more than one stage: each is a module or a folder here, and calls the stages in order.

``context`` turns the options of a command into values, ``preparation`` plans, ``run`` measures, ``nightly`` compares
with the last good runs. ``doctor`` and its ``tune`` look at the machine, ``check`` and ``suggest`` judge a run,
``results`` writes reports and comparisons. ``clean``, ``clocks``, ``lock`` and ``pins`` each serve the command of that
name, and ``plan_elsewhere`` plans for another machine.

``options.Options`` declares the options that these commands share. Only ``runner.cli`` imports this package.
"""
