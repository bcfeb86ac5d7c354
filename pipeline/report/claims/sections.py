"""All parts of the page on the paper, in its order."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.evaluation.paper_scores import Paper
from pipeline.report.claims.further_sections import further_sections
from pipeline.report.claims.paper_sections import paper_sections
from pipeline.report.claims.section import Section


def sections(paper: Paper, studies: Iterable[str]) -> list[Section]:
    """The paper's, ours, and one without claims for each study of params.yaml that is no section's counterpart."""
    known = [*paper_sections(paper), *further_sections()]
    own = set(studies) - {section.study for section in known}
    return [*known, *(Section(name, "your study", name, "", ()) for name in studies if name in own)]
