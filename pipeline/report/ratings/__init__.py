"""The human evaluation: sheets out, ratings in."""
