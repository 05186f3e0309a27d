# The book: static pages of all lessons and notes in build/book, made by tools in a virtual environment of their own.

BOOK := build/book
BOOK_PYTHON := build/book-tools/bin/python
BOOK_PIP = $(BOOK_PYTHON) -m pip install --quiet --disable-pip-version-check --only-binary :all: -r $< && touch $@

# With what book-runs has made the lessons have a bench, on which their kernels and mistakes run.
book: build/book-tools/makes
	@$(BOOK_PYTHON) common/book/book.py $(BOOK)
book-runs: web root build/book-tools/makes
	@$(BOOK_PYTHON) common/book/break_ptx.py build/book-ptx
	@$(MAKE) --no-print-directory book
test-book: book build/book-tools/tests
	@$(BOOK_PYTHON) tests/book/test_pages_of_book.py
	@$(BOOK_PYTHON) tests/book/test_browser.py
	@$(BOOK_PYTHON) tests/book/test_watch.py
test-book-firefox: book build/book-tools/tests
	@BROWSER=firefox $(BOOK_PYTHON) tests/book/test_browser.py
	@BROWSER=firefox $(BOOK_PYTHON) tests/book/test_watch.py

build/book-tools/makes: common/book/requirements.txt
	@echo 'book: its tools go into build/book-tools' && python3 -m venv build/book-tools && $(BOOK_PIP)
build/book-tools/tests: tests/book/requirements.txt build/book-tools/makes
	@$(BOOK_PIP)
.PHONY: book book-runs test-book test-book-firefox
