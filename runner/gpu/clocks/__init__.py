"""Hold the clocks of a GPU during a run, and restore them however the run ends.

The life of a clock: who acts, in which process, and which module holds the code.

0. announced: the runner says what it will change, or what speaks against it (``preconditions``).
1. idle -> recorded: the runner (``lease``) starts a guardian (``client``, ``guardian``) with an order (``protocol``),
   as root if sudo's rule for that is visible (``permission``). The guardian takes the GPU's lock (``machine_lock``) and
   forks a child, which chooses the clocks (``policy``), checks that nobody else depends on them (``preconditions``),
   and writes the call that it is about to make to the disk (``journal``).
2. recorded -> held: the child makes the call (``apply``), and keeps the driver open as long as the clocks are held.
3. held -> restored: the runner closes its pipe, or dies by whatever signal, which closes it too. The child undoes what
   the journal records and removes the file. If the child hangs or dies, the guardian starts a second one.
4. held, guardian killed: the child sees its pipe close and undoes the clocks; the runner starts a new guardian.
5. held, guardian and child killed: the journal stays without a lock. The runner, the next run, or ``runner clocks
   reset`` finds it (``recovery``), and a new guardian undoes it.
6. held, machine rebooted: the driver has reset the clocks, so the file is only removed.
"""
