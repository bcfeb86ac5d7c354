"""One module a figure; `report` assembles the page."""
