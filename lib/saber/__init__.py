"""Reproduction of *Stuck on Shuffle: On Attribute-Object Binding in Vision-Language Models*.

The data flows in one direction through the modules::

    run.params -> vocabulary -> scenes -> benchmark -> images -> embedders (store)
        -> metrics -> numbers -> tables and figures -> report
"""

__version__ = "0.1.0"
