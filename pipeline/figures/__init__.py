"""One module a figure or piece of a page; `main_page` and `paper_page` assemble them."""
