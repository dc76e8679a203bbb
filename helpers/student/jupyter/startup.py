# PYTHONSTARTUP of the kernels that `python -m helpers lab` starts. An interactive Python in a terminal of JupyterLab
# runs it too, and has no get_ipython.
if "get_ipython" in globals():
    from helpers.student.kernel import explain_until_started, keep_start_page_fresh

    explain_until_started(globals()["get_ipython"]())
    keep_start_page_fresh(globals()["get_ipython"]())
    del explain_until_started, keep_start_page_fresh
