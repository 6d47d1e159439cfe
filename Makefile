# The three things one does here. The tools come from `pip install -e '.[dev]'`.
.PHONY: test lint bench

test:
	pytest -n auto

lint:
	ruff check .
	ruff format --check .
	mypy
	PYTHONPATH=linter lint-imports

bench:
	python benchmarks/speed.py --gpu a40:2
