"""The engine: profiles are checked, Snakemake orders the notebooks, papermill executes them.

``environment``, ``arguments``, ``collection`` and ``params`` come before the run, ``provenance`` and
``status`` say what is up to date, ``engine`` hands the rest to Snakemake (``Snakefile``), which starts
``execute`` once per notebook.
"""
