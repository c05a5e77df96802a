"""`runner` whose jobs of Slurm write their replies on this machine, where a file appears at once."""

from runner import cli
from runner.hosts.executors import slurm

slurm.SETTLE_SECONDS = 2.0
cli.main()
