"""The profiles of a run as Markdown: the tables of the largest changes, folded."""

from runner.report.formatting import sentence
from runner.report.markdown_text import Raw, bold, bullets, folded, plain, table
from runner.report.profile_section import INTRODUCTION, SHOWN_PAIRS, OperatorRow, OperatorTable, ProfiledPair, Profiles


def parts(profiles: Profiles | None) -> list[str]:
    """Return the section of the profiles; empty without profiles."""
    if profiles is None:
        return []
    texts = [plain(INTRODUCTION)]
    for pair in profiles.pairs[:SHOWN_PAIRS]:
        texts += _pair(pair)
    more = len(profiles.pairs) - SHOWN_PAIRS + profiles.left_out
    if more > 0:
        texts.append(f"{more} more comparisons have profiles: see index.html.")
    if profiles.missing:
        texts.append(bullets(map(sentence, profiles.missing)))
    return [folded("Where the time goes", texts)]


def _pair(pair: ProfiledPair) -> list[str]:
    compared = pair.compared
    title = f"{compared.test}, {compared.api}: {pair.base} → {pair.other}, {compared.change}"
    return [
        bold(title),
        bullets(map(sentence, (pair.base_steps, pair.other_steps, pair.noise))),
        *(_table(pair, each) for each in pair.tables),
    ]


def _table(pair: ProfiledPair, operators: OperatorTable) -> str:
    head = (f"operator, {operators.title}", "difference", "of the step", pair.base, pair.other, "calls")
    rows = [*operators.rows, *([operators.rest] if operators.rest else []), operators.total]
    return table(head, map(_row, rows))


def _row(row: OperatorRow) -> tuple[str, ...]:
    name = plain(row.name) if row.is_operator else bold(row.name)
    name += " (no more than between two processes)" if row.is_noise else ""
    return Raw(name), row.change, row.share, row.base, row.other, row.calls
