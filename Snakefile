"""One rule per notebook. ./run_all.sh checks everything first, then calls this with a plan as its configuration.

A notebook is run again when its record state/NN.json (what it depends on, see saber/run/provenance.py) or a notebook
that it needs is newer than its own executed copy. That copy is the only output Snakemake knows: it would delete other
outputs before a run, and with them work that the notebooks resume. All paths are relative to the profile's outputs.
"""

if "notebooks" not in config:
    raise WorkflowError("start the notebooks with ./run_all.sh; words after -- are passed on to Snakemake")

EXECUTED = {notebook["number"]: notebook["executed"] for notebook in config["notebooks"]}


rule all:
    input:
        list(EXECUTED.values()),


for notebook in config["notebooks"]:

    rule:
        name:
            f"notebook_{notebook['number']}"
        input:
            state=f"state/{notebook['number']}.json",
            needs=[EXECUTED[number] for number in notebook["needs"]],
            arguments=ancient(f"state/{notebook['number']}.args"),  # places of files: no reason to run again
        output:
            notebook["executed"],
        log:
            f"logs/{notebook['name']}.log",
        shell:
            "exec python -m saber.run.execute @{input.arguments} > {log:q} 2>&1"
