"""The variables and thread counts that a user typed, as environments of the matrix."""

from dataclasses import replace

from runner.matrix import Matrix
from runner.matrix.variants import read_threads, read_variables, with_thread_counts, with_variables, with_variants
from runner.session.options import Options


def with_typed_variants(matrix: Matrix, options: Options) -> tuple[Matrix, Options]:
    """Return the matrix with the variables and the variants that were typed, and the options with the ids of these.

    Raises:
        UsageError, NothingSelectedError: a variable, a thread count or a selector is wrong.
    """
    matrix = with_variables(matrix, read_variables(options.env or ()))
    matrix, selectors = with_variants(matrix, options.selectors or ())
    return with_thread_counts(matrix, typed_threads(options)), replace(options, selectors=selectors or None)


def typed_threads(options: Options) -> tuple[int, ...]:
    """Return the thread counts of ``--threads``, the run's first; none without the option. Raises UsageError."""
    return read_threads(options.threads, "--threads ") if options.threads is not None else ()
